"""A warm interruption function answers from the claims that an earlier batch read, as long as they are enough."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from joinery.controllers.interruption import InterruptionController
from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.decisions.interruption.ownership import RECENT, EarlyNoticeError, suffice
from joinery.objects.karpenter.labels import INTERRUPTED_AT
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaimStatus
from joinery.objects.snapshot.claims import annotated
from joinery.objects.snapshot.snapshot import ClaimsSnapshot
from simulator import builders
from simulator.clock import START
from tests.functional.fuse import Fuse
from tests.functional.stand import APART, Stand

STRANGER, NEW = "i-0aaaaaaaaaaaaaaaa", "i-0ccccccccccccccc0"


class Door:
    """One process of the interruption function, which has just read the claims."""

    def __init__(self, stand: Stand) -> None:
        self.fuse, self._stand = Fuse(), stand
        gateways = self.fuse.protect(stand.gateways)
        self._controller = InterruptionController(gateways, now=stand.world.clock.now)
        self.hear(STRANGER)

    @property
    def reads(self) -> int:
        """How often the claims were read."""
        return self.fuse.calls.count("cluster.claims_snapshot")

    def hear(self, *instances: str, kind: NoticeKind = NoticeKind.SPOT_INTERRUPTED, reservation: str = "") -> None:
        """A batch of one notice. Raises what went wrong with it."""
        notice = Notice(kind, instances, reservation=reservation, at=self._stand.world.clock.now())
        for outcome in self._controller.reconcile([notice], self._stand.invocation()):
            if isinstance(outcome, Exception):
                raise outcome


@pytest.fixture
def machines(stand: Stand) -> Sequence[str]:
    """Three of ours."""
    stand.pods(3, labels={"app": "web"}, affinity=APART)
    stand.settle()
    return sorted(stand.alive)


@pytest.fixture
def door(stand: Stand, machines: Sequence[str]) -> Door:
    """It has heard of a stranger."""
    return Door(stand)


def _leaving(stand: Stand) -> int:
    return sum(claim.is_deleting and INTERRUPTED_AT in claim.metadata.annotations for claim in stand.claims)


def test_warnings_that_come_one_by_one_read_the_claims_once(stand: Stand, door: Door, machines: Sequence[str]) -> None:
    """In a storm each batch has one or two, and a list of all claims takes megabytes."""
    for machine in machines:
        stand.wait(3)
        door.hear(machine)
    assert (door.reads, _leaving(stand)) == (1, 3)


def test_old_claims_are_read_again(stand: Stand, door: Door, machines: Sequence[str]) -> None:
    """Ten seconds are enough for a storm."""
    stand.wait(RECENT.total_seconds() + 1)
    door.hear(machines[0])
    assert (door.reads, _leaving(stand)) == (2, 1)


def test_an_instance_that_they_do_not_know_is_looked_for(stand: Stand, door: Door) -> None:
    """It may be that of a claim which was launched meanwhile."""
    stand.wait(3)
    stand.pods(4, labels={"app": "web"}, affinity=APART)
    before = set(stand.alive)
    stand.settle()
    (new,) = set(stand.alive) - before
    door.hear(new)
    assert (door.reads, _leaving(stand)) == (2, 1)


def test_within_a_moment_of_a_read_an_unknown_instance_is_nobodys(stand: Stand, door: Door) -> None:
    """EC2 sends the events of a whole account: hundreds about instances of others."""
    for number in range(3):
        stand.wait(0.5)
        door.hear(f"i-0bbbbbbbbbbbbbbb{number}")
    assert door.reads == 1


def test_a_claim_that_waited_for_its_launch_may_know_its_instance_by_now(stand: Stand, door: Door) -> None:
    """Taken for too early, the notice would come again after half a minute only."""
    launched = builders.node_claim("new", provider_id=f"aws:///us-east-1a/{NEW}", created=stand.world.clock.now())
    waiting = launched.model_copy(update={"status": NodeClaimStatus()})
    stand.world.cluster.add(waiting)
    stand.wait(3)
    with pytest.raises(EarlyNoticeError):
        door.hear(NEW)
    stand.wait(0.5)
    stand.world.cluster.add(launched)
    door.hear(NEW)
    assert (door.reads, _leaving(stand)) == (3, 1)


def test_the_claim_of_a_warning_is_read_again(stand: Stand, door: Door, machines: Sequence[str]) -> None:
    """It alone: what is written from an old one would be refused."""
    for claim in stand.claims:
        stand.world.cluster.update_node_claim(claim, annotated(claim, {"somebody": "else"}))
    door.hear(machines[0])
    assert (door.reads, door.fuse.calls.count("cluster.node_claim"), _leaving(stand)) == (1, 1, 1)
    assert all(claim.metadata.annotations["somebody"] == "else" for claim in stand.claims)


def test_a_second_notice_about_a_claim_finds_it_as_the_first_left_it(
    stand: Stand, door: Door, machines: Sequence[str]
) -> None:
    """A spot warning, and two minutes later, or at once, that the instance is shutting down."""
    door.hear(machines[0])
    (marked,) = [claim.metadata.annotations[INTERRUPTED_AT] for claim in stand.claims if claim.is_deleting]
    stand.wait(1)
    door.hear(machines[0], kind=NoticeKind.INSTANCE_TERMINATED)
    assert _leaving(stand) == 1
    assert [claim.metadata.annotations[INTERRUPTED_AT] for claim in stand.claims if claim.is_deleting] == [marked]


def test_a_claim_that_is_gone_is_no_error(stand: Stand, door: Door, machines: Sequence[str]) -> None:
    """Its instance is gone with it."""
    for claim in stand.claims:
        stand.world.cluster.api.delete(stand.world.cluster.api.update(with_metadata(claim, finalizers=[])))
    door.hear(machines[0])
    assert stand.claims == []


def test_what_concerns_a_reservation_is_answered_from_new_claims(stand: Stand, door: Door) -> None:
    """Whoever is in it, also those that came a moment ago."""
    door.hear(kind=NoticeKind.CAPACITY_RESERVATION_INTERRUPTED, reservation="cr-0123456789abcdef0")
    assert door.reads == 2


def test_claims_of_a_time_to_come_are_not_trusted() -> None:
    """A clock that was put back: nobody knows how old they are."""
    snapshot = ClaimsSnapshot(now=START)
    assert suffice(snapshot, timedelta(), [])
    assert not suffice(snapshot, timedelta(seconds=-1), [])
