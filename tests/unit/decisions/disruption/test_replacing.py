"""Static NodePools and disruption commands: a candidate and its replacement are one node."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.objects.annotations.disruption import CommandRecord, Replaces, encoded
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DISRUPTION_COMMAND, REPLACES
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.replicas import static_pools
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START


def _candidate(*, rollback: str = "", **given: Any) -> NodeClaim:
    record = CommandRecord(
        id="command",
        reason=DisruptionReason.DRIFTED,
        started=START,
        deadline=START + timedelta(minutes=10),
        candidates=("old",),
        replacements=("new",),
        rollback=rollback,
    )
    return builders.node_claim("old", node="n-old", annotations={DISRUPTION_COMMAND: encoded(record)}, **given)


def _replacement(**given: Any) -> NodeClaim:
    return builders.node_claim("new", annotations={REPLACES: encoded(Replaces("command", ("old",)))}, **given)


@pytest.mark.parametrize(
    ("claims", "counted"),
    [
        ([_candidate()], ["old"]),
        ([_candidate(), _replacement()], ["new"]),
        ([_candidate(rollback="lost"), _replacement()], ["old"]),
        ([_candidate(), _replacement(deleted=START)], ["old"]),
        ([_candidate(deleted=START), _replacement()], ["new"]),
        ([_candidate(deleted=START), _replacement(deleted=START)], []),
        ([_replacement()], ["new"]),
    ],
    ids=["marked", "written", "rolled back", "replacement lost", "retired", "both gone", "taken over"],
)
def test_a_candidate_and_its_replacement_count_once(claims: list[NodeClaim], counted: list[str]) -> None:
    """Wherever a command is stopped, the pool neither lacks a node for it nor has one too many."""
    snapshot = Snapshot(now=START, node_pools=(builders.node_pool(replicas=1),), node_claims=tuple(claims))
    staying = static_pools(snapshot)["default"].staying
    assert [claim.metadata.name for claim in staying] == counted
