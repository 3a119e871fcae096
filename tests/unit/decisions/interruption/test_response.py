"""What a notice asks for."""

from dataclasses import replace
from datetime import timedelta

import pytest

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.decisions.interruption.response import concerned, respond
from joinery.objects.actions import Announce, Command, DeleteClaim, MarkUnavailable, UpdateClaim, UpdateNode
from joinery.objects.karpenter.labels import (
    DISRUPTED_TAINT,
    INTERRUPTED_AT,
    RESERVATION_ID,
    RETIRED_FOR,
    TERMINATION_TIMESTAMP,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.offerings import OfferingKey
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

SPOT = Notice(NoticeKind.SPOT_INTERRUPTED, ("i-node-1",))
SNAPSHOT = Snapshot(
    now=START,
    nodes=(builders.node("node-1"), builders.node("node-2")),
    node_claims=(
        builders.node_claim("claim-1", node="node-1", capacity_type="spot"),
        builders.node_claim("claim-2", node="node-2", capacity_type="spot"),
    ),
)


def _chains(notice: Notice, snapshot: Snapshot = SNAPSHOT) -> tuple[tuple[Command, ...], ...]:
    claims = concerned(notice, snapshot.managed_claims)
    by_name = {node.metadata.name: node for node in snapshot.nodes}
    nodes = {claim.metadata.name: by_name[claim.status.node_name] for claim in claims if claim.status.node_name}
    return respond(notice, claims, nodes, snapshot.now)


def _commands(notice: Notice, snapshot: Snapshot = SNAPSHOT) -> list[Command]:
    return [command for chain in _chains(notice, snapshot) for command in chain]


def _kinds(notice: Notice, snapshot: Snapshot = SNAPSHOT) -> list[str]:
    return [type(command).__name__ for command in _commands(notice, snapshot) if not isinstance(command, Announce)]


def test_a_spot_warning_marks_before_it_deletes() -> None:
    """The mark is what makes provisioning count the pods; it must be there when the deletion rings the bell."""
    assert _kinds(SPOT) == ["UpdateClaim", "UpdateNode", "DeleteClaim", "MarkUnavailable"]


def test_a_spot_warning_concerns_its_own_claim_only() -> None:
    """Rules are account-wide: instances of other nodes, or of nobody, are left alone."""
    assert {c.claim.metadata.name for c in _commands(SPOT) if isinstance(c, DeleteClaim)} == {"claim-1"}
    assert _chains(Notice(NoticeKind.SPOT_INTERRUPTED, ("i-of-somebody-else",))) == ()


def test_the_pool_that_ec2_is_short_of_is_remembered() -> None:
    """The replacement should not be launched into the pool that is just being emptied."""
    marked = [c.offering for c in _commands(SPOT) if isinstance(c, MarkUnavailable)]
    assert marked == [OfferingKey("m7a.xlarge", "us-east-1a", "spot")]


def test_the_reservation_that_is_taken_back_is_remembered_by_its_id() -> None:
    """Others of its type and zone are of use still. Without its label nobody knows which one it is."""
    notice = Notice(NoticeKind.CAPACITY_RESERVATION_INTERRUPTED, ("i-node-1",))
    inside = builders.node_claim("claim-1", node="node-1", labels={RESERVATION_ID: "cr-1"})
    found = _commands(notice, replace(SNAPSHOT, node_claims=(inside,)))
    marked = [c.offering for c in found if isinstance(c, MarkUnavailable)]
    assert marked == [OfferingKey("m7a.xlarge", "us-east-1a", "reserved", "cr-1")]
    assert "MarkUnavailable" not in _kinds(notice)


def test_the_claim_says_since_when_it_is_interrupted() -> None:
    """The moment starts the fifteen seconds that a replacement has."""
    (update,) = [c for c in _commands(SPOT) if isinstance(c, UpdateClaim)]
    assert update.after.metadata.annotations[INTERRUPTED_AT] == START.isoformat()


@pytest.mark.parametrize(
    ("late", "told"),
    [
        (timedelta(seconds=40), timedelta(seconds=40)),
        (timedelta(hours=3), timedelta()),
        (timedelta(seconds=-2), timedelta()),
    ],
    ids=["delivered again", "a dead letter, or somebody's sample", "a clock that is ahead"],
)
def test_the_two_minutes_of_a_warning_begin_when_it_was_sent(late: timedelta, told: timedelta) -> None:
    """It may be heard at the second delivery only. EC2 does not wait for that."""
    (update,) = [c for c in _commands(replace(SPOT, at=START - late)) if isinstance(c, UpdateClaim)]
    assert update.after.metadata.annotations[INTERRUPTED_AT] == (START - told).isoformat()


def test_the_node_takes_no_more_pods() -> None:
    """Nothing should be scheduled onto a node with two minutes to live."""
    (update,) = [c for c in _commands(SPOT) if isinstance(c, UpdateNode)]
    assert [taint.key for taint in update.after.spec.taints] == [DISRUPTED_TAINT]


def test_a_rebalance_recommendation_is_only_told() -> None:
    """Acting on a recommendation would cost healthy nodes."""
    found = _commands(Notice(NoticeKind.REBALANCE_RECOMMENDATION, ("i-node-1",)))
    assert [(type(c).__name__, c.warning) for c in found if isinstance(c, Announce)] == [("Announce", False)] * 2
    assert len(found) == 2


@pytest.mark.parametrize(
    "kind", [k for k in NoticeKind if k not in (NoticeKind.REBALANCE_RECOMMENDATION, NoticeKind.STATUS_POLL)]
)
def test_every_other_notice_retires_the_claim(kind: NoticeKind) -> None:
    """Whatever takes the instance away, its claim goes and its pods are replaced first."""
    assert _kinds(Notice(kind, ("i-node-1",)))[:3] == ["UpdateClaim", "UpdateNode", "DeleteClaim"]


@pytest.mark.parametrize(
    "kind", [NoticeKind.SCHEDULED_CHANGE, NoticeKind.INSTANCE_STOPPED, NoticeKind.INSTANCE_TERMINATED]
)
def test_only_a_shortage_is_remembered_as_one(kind: NoticeKind) -> None:
    """A maintenance or a stopped instance says nothing about capacity."""
    assert "MarkUnavailable" not in _kinds(Notice(kind, ("i-node-1",)))


def test_one_health_event_retires_all_of_its_instances() -> None:
    """Every instance that it names has a claim to go."""
    commands = _commands(Notice(NoticeKind.SCHEDULED_CHANGE, ("i-node-1", "i-node-2")))
    assert [c.claim.metadata.name for c in commands if isinstance(c, DeleteClaim)] == ["claim-1", "claim-2"]


def test_no_write_waits_for_another() -> None:
    """Each is a chain of its own: a conflict on the Node must not cost the deletion any of its two minutes."""
    writes = [[c for c in chain if not isinstance(c, Announce)] for chain in _chains(SPOT)]
    assert [len(chain) for chain in writes if chain] == [1, 1, 1, 1]


def test_a_repeated_warning_finds_only_the_rest_to_do() -> None:
    """SQS delivers twice: what is marked and tainted already is only deleted."""
    first = _commands(SPOT)
    claim = next(c.after for c in first if isinstance(c, UpdateClaim))
    node = next(c.after for c in first if isinstance(c, UpdateNode))
    again = replace(SNAPSHOT, node_claims=(claim,), nodes=(node,))
    assert _kinds(SPOT, again) == ["DeleteClaim", "MarkUnavailable"]


def test_a_claim_that_goes_already_is_left_to_go() -> None:
    """The state change of an instance that we terminate ourselves comes back as a notice."""
    going = builders.node_claim("claim-1", node="node-1", deleted=START)
    snapshot = replace(SNAPSHOT, node_claims=(going,))
    assert _kinds(Notice(NoticeKind.INSTANCE_TERMINATED, ("i-node-1",)), snapshot) == []


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (NoticeKind.SPOT_INTERRUPTED, ["UpdateClaim", "MarkUnavailable"]),
        (NoticeKind.CAPACITY_RESERVATION_INTERRUPTED, ["UpdateClaim", "MarkUnavailable"]),
        (NoticeKind.INSTANCE_STOPPED, ["UpdateClaim"]),
        (NoticeKind.SCHEDULED_CHANGE, []),
    ],
)
def test_a_claim_that_goes_already_is_marked_where_two_minutes_are_left(kind: NoticeKind, written: list[str]) -> None:
    """Its drain has had time until now. A change that EC2 has scheduled leaves it days."""
    going = builders.node_claim("claim-1", node="node-1", labels={RESERVATION_ID: "cr-1"}, deleted=START)
    assert _kinds(Notice(kind, ("i-node-1",)), replace(SNAPSHOT, node_claims=(going,))) == written


LATER = replace(Notice(NoticeKind.SCHEDULED_CHANGE, ("i-node-1",)), starts=START + timedelta(days=20))


def _marks(notice: Notice, claim: NodeClaim) -> dict[str, str]:
    """The annotations that the notice adds to the claim."""
    updates = [c for c in _commands(notice, replace(SNAPSHOT, node_claims=(claim,))) if isinstance(c, UpdateClaim)]
    added = [c.after.metadata.annotations.items() - claim.metadata.annotations.items() for c in updates]
    return {key: value for items in added for key, value in items}


def test_a_change_that_is_weeks_ahead_retires_a_claim_that_has_time() -> None:
    """Nothing forces it before the change begins."""
    starts = (START + timedelta(days=20)).isoformat()
    assert _marks(LATER, SNAPSHOT.node_claims[0]) == {RETIRED_FOR: "scheduled_change", TERMINATION_TIMESTAMP: starts}


def test_a_claim_s_own_grace_period_may_end_before_a_change_begins() -> None:
    """It is what the user has granted; the change does not prolong it."""
    granted = builders.node_claim("claim-1", node="node-1", terminationGracePeriod="1h")
    assert _marks(LATER, granted) == {RETIRED_FOR: "scheduled_change"}


def test_a_claim_that_waits_for_its_replacement_goes_on_to_wait_until_a_change_begins() -> None:
    """It was retired for its age before. The event is told again and again."""
    aged = builders.node_claim("claim-1", node="node-1", annotations={RETIRED_FOR: "expired"}, deleted=START)
    assert _marks(LATER, aged) == {TERMINATION_TIMESTAMP: (START + timedelta(days=20)).isoformat()}
    now = replace(LATER, starts=START)
    assert _marks(now, aged) == {INTERRUPTED_AT: START.isoformat()}


def test_a_claim_that_has_time_is_not_deleted_without_its_mark() -> None:
    """It would be drained like one that has none, for nothing but a conflict."""
    chains = [[type(c).__name__ for c in chain if not isinstance(c, Announce)] for chain in _chains(LATER)]
    assert [chain for chain in chains if chain] == [["UpdateNode"], ["UpdateClaim", "DeleteClaim"]]


def test_a_claim_is_found_before_it_has_a_node() -> None:
    """A spot instance may be taken back while it boots."""
    booting = builders.node_claim("claim-1", conditions=("Launched",), provider_id="aws:///us-east-1a/i-node-1")
    assert "DeleteClaim" in _kinds(SPOT, Snapshot(now=START, node_claims=(booting,)))


def test_a_capacity_block_that_ends_empties_its_nodes_and_no_others() -> None:
    """The claims say by label which reservation they are in."""
    inside = builders.node_claim("claim-1", node="node-1", labels={RESERVATION_ID: "cr-1"})
    snapshot = replace(SNAPSHOT, node_claims=(inside, *SNAPSHOT.node_claims[1:]))
    notice = Notice(NoticeKind.CAPACITY_BLOCK_EXPIRING, reservation="cr-1")
    assert _kinds(notice, snapshot) == ["UpdateClaim", "UpdateNode", "DeleteClaim", "MarkUnavailable"]
    assert _chains(replace(notice, reservation="cr-2"), snapshot) == ()


@pytest.mark.parametrize("notice", [SPOT, Notice(NoticeKind.CAPACITY_BLOCK_EXPIRING, reservation="cr-1")])
def test_a_claim_of_another_provider_is_left_alone(notice: Notice) -> None:
    """EKS Auto Mode writes NodeClaims too, whose NodeClass is its own, and retires its nodes itself."""
    theirs = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    claim = builders.node_claim("claim-1", node="node-1", labels={RESERVATION_ID: "cr-1"}, nodeClassRef=theirs)
    assert _chains(notice, replace(SNAPSHOT, node_claims=(claim,))) == ()
