"""Marking the claims whose pods have somewhere to go."""

from typing import Any

from joinery.decisions.lifecycle.state.replacement import replaced
from joinery.decisions.scheduling.packing import ExistingPlacement, Packing, Unplaced
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.karpenter.labels import INTERRUPTED_AT, REPLACEMENT_LAUNCHED
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

WARNED = {INTERRUPTED_AT: START.isoformat()}
POD = builders.pod("a", node="node-1")


def _marked(packing: Packing, *, failed: tuple[str, ...] = (), **claim: Any) -> list[str]:
    claims = (builders.node_claim("claim-1", **{"node": "node-1", "annotations": WARNED, **claim}),)
    return [
        mark.before.metadata.name
        for mark in replaced(Snapshot(now=START, pods=(POD,), node_claims=claims), packing, failed)
    ]


def test_a_claim_is_marked_once_its_pods_have_a_place() -> None:
    """On a node that EC2 has accepted to launch, or on one that is there."""
    packing = Packing(existing=(ExistingPlacement("node-2", "claim-2", ("default/a",)),))
    assert _marked(packing) == ["claim-1"]


def test_a_pod_without_a_place_keeps_its_claim_unmarked() -> None:
    """Then only the fifteen seconds start the drain."""
    assert _marked(Packing(unplaced=(Unplaced("default/a", (Reason(ReasonCode.TAINTS, "y"),)),))) == []


def test_a_launch_that_ec2_did_not_accept_replaces_nothing() -> None:
    """A plan is not a node."""
    assert _marked(Packing(), failed=("default/a",)) == []


def test_an_expired_claim_is_marked_like_an_interrupted_one() -> None:
    """Its deletion is what makes its pods pending."""
    assert _marked(Packing(), annotations={}, deleted=START) == ["claim-1"]


def test_a_claim_that_stays_or_is_marked_already_is_not_written() -> None:
    """Every run looks at all claims, and writes what is new."""
    assert _marked(Packing(), annotations={}) == []
    assert _marked(Packing(), annotations={**WARNED, REPLACEMENT_LAUNCHED: "2026-08-24T09:00:00+00:00"}) == []


def test_a_claim_of_another_provider_is_not_ours_to_mark() -> None:
    """EKS Auto Mode replaces and drains its nodes itself."""
    theirs = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    assert _marked(Packing(), nodeClassRef=theirs) == []
