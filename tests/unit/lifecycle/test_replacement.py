"""Marking the claims whose pods have somewhere to go, and steering those pods."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from joinery.apis.core import Pod
from joinery.apis.labels import INTERRUPTED_AT, PLANNED_PODS, REPLACEMENT_LAUNCHED
from joinery.commands import Nominate
from joinery.lifecycle.replacement import replaced
from joinery.lifecycle.steering import PATIENCE, is_steering, promises, withdrawals
from joinery.lifecycle.view import View, view
from joinery.scheduling.packing import ExistingPlacement, Packing, Reason, Unplaced
from joinery.state.snapshot import Snapshot
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
    assert _marked(Packing(unplaced=(Unplaced("default/a", (Reason("x", "y"),)),))) == []


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


def _steered(*, since: timedelta = timedelta(0), pod: Pod | None = None, **claim: Any) -> View:
    """A pod that was nominated for a node that is fit, ``since`` when."""
    waiting = pod or builders.pod("a")
    nominated = replace(waiting, status=replace(waiting.status, nominated_node_name="node-1"))
    found = builders.node_claim("claim-1", node="node-1", annotations={PLANNED_PODS: '["default/a"]'}, **claim)
    ready = found.condition("Initialized")
    assert ready is not None
    assert ready.last_transition_time is not None
    now = ready.last_transition_time + since
    return view(Snapshot(now=now, pods=(nominated,), node_claims=(found,), nodes=(builders.node("node-1"),)), ())


def _withdrawn(world: View) -> list[tuple[str, str]]:
    return [(command.pod.key, command.node) for command in withdrawals(world) if isinstance(command, Nominate)]


def test_the_scheduler_has_its_time_to_bind_nominated_pods() -> None:
    """Until then the room is theirs, and the ticks go on."""
    world = _steered(since=PATIENCE - timedelta(seconds=1))
    assert (_withdrawn(world), is_steering(world)) == ([], True)


def test_a_nomination_that_came_to_nothing_is_taken_back() -> None:
    """A nominated pod counts as placed: it would wait for ever."""
    world = _steered(since=PATIENCE)
    assert (_withdrawn(world), is_steering(world)) == ([("default/a", "")], False)


def test_a_nomination_for_a_node_that_goes_is_taken_back() -> None:
    """Nothing will bind there any more."""
    assert _withdrawn(_steered(deleted=START)) == [("default/a", "")]


def test_the_scheduler_s_own_nominations_are_its_own() -> None:
    """It nominates pods for which it pre-empts others; we take back what we gave."""
    assert _withdrawn(_steered(since=PATIENCE, pod=builders.pod("urgent"))) == []


def test_a_nomination_for_a_node_that_is_gone_is_taken_back() -> None:
    """Whoever made it."""
    pod = builders.pod("a")
    lost = replace(pod, status=replace(pod.status, nominated_node_name="node-9"))
    assert _withdrawn(view(Snapshot(now=START, pods=(lost,)), ())) == [("default/a", "")]


def test_pods_planned_for_a_node_on_its_way_are_promised_it() -> None:
    """They will be nominated when it registers; pods that are gone are forgotten, and known ones not written again."""
    claim = builders.node_claim("claim-1", conditions=("Launched",), annotations={PLANNED_PODS: '["default/gone"]'})
    snapshot = Snapshot(now=START, pods=(builders.pod("a"), builders.pod("b")), node_claims=(claim,))
    packing = Packing(existing=(ExistingPlacement("", "claim-1", ("default/a",)),))
    (update,) = promises(snapshot, packing)
    assert update.after.metadata.annotations[PLANNED_PODS] == '["default/a"]'
    again = Snapshot(now=START, pods=(builders.pod("a"),), node_claims=(update.after,))
    assert promises(again, packing) == ()


def test_a_node_that_is_there_needs_no_promise() -> None:
    """Its room is the scheduler's to give."""
    claim = builders.node_claim("claim-1", node="node-1")
    packing = Packing(existing=(ExistingPlacement("node-1", "claim-1", ("default/a",)),))
    assert promises(Snapshot(now=START, pods=(builders.pod("a"),), node_claims=(claim,)), packing) == ()
