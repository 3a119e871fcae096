"""A cloud that is silent: its calls end without an answer after twenty seconds, and a run has a minute."""

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from joinery.gateways.aws import LONGEST_REQUEST
from joinery.gateways.deadlines import in_time
from joinery.gateways.kubernetes.gateway import LONGEST_CALL
from joinery.objects.errors import JoineryError, UnavailableError
from joinery.objects.karpenter.labels import INTERRUPTED_AT
from simulator import builders
from simulator.doors.large import fill
from simulator.doors.timed import TimedDoors
from simulator.world import World
from tools.template import doors, load

TIMEOUTS = {door.name: float(door.timeout) for door in doors(load()).values()}
#: What a call takes that is never answered: two attempts (``joinery.gateways.aws``).
SILENCE = 21.0
_AGES_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def timed(world: World) -> TimedDoors:
    """Doors of a cluster in which one node drains, two Nodes wait to be registered and two claims to be launched.

    It has four node classes: most clusters that have more than one have several.
    """
    fill(world, nodes=3, stalled=1, joining=2, waiting=2)
    world.cluster.add(*(builders.node_class(f"other-{number}") for number in range(3)))
    world.clock.advance(timedelta(seconds=20))
    return TimedDoors(world, TIMEOUTS)


def _silence(timed: TimedDoors, *calls: str) -> None:
    def unanswered(*_: Any) -> None:
        timed.latency.charge(SILENCE)
        raise UnavailableError("no answer")

    timed.latency.answers |= dict.fromkeys(calls, unanswered)


@pytest.mark.parametrize(
    "silent",
    [
        ("cloud.prepare",),
        ("cloud.instances", "cloud.prepare", "cloud.shifted_zones"),
        ("unavailable.at",),
    ],
)
def test_nodes_join_and_drain_while_the_cloud_is_silent(timed: TimedDoors, silent: tuple[str, ...]) -> None:
    """Neither needs it. The run is not killed, which would block its queue and lose what it remembers."""
    _silence(timed, *silent)
    with contextlib.suppress(JoineryError):
        timed.live()
    claims = timed.world.cluster.node_claims
    assert claims["joining-0003"].is_true("Registered")
    assert timed.latency.calls["cluster.evict"]


@pytest.mark.parametrize("silent", [("unavailable.at",), ("cloud.instances",)])
def test_pods_are_planned_while_the_cloud_is_silent(timed: TimedDoors, silent: tuple[str, ...]) -> None:
    """Though claims wait for their launch, and what can be bought is asked twice for that."""
    timed.world.cluster.add(*(builders.pod(f"pod-{number}", cpu="3500m") for number in range(3)))
    before = len(timed.world.cluster.node_claims)
    _silence(timed, *silent)
    with contextlib.suppress(JoineryError):
        timed.provision()
    assert len(timed.world.cluster.node_claims) > before


def _make_slow(timed: TimedDoors, call: str) -> None:
    """Let a call take nine requests, of eight seconds each: none of them is given up."""

    def requests(*_: Any) -> None:
        for number in range(9):
            in_time(f"request {number}", LONGEST_REQUEST)
            timed.latency.charge(8.0)

    timed.latency.answers[call] = requests


def test_a_launch_of_many_requests_does_not_outlast_its_run(timed: TimedDoors) -> None:
    """The run is not killed, and the next one launches the claims."""
    _make_slow(timed, "cloud.launch")
    with contextlib.suppress(JoineryError):
        timed.provision()
    assert timed.latency.calls["cloud.launch"]
    assert timed.latency.calls["doorbell.ring"]
    timed.latency.answers.clear()
    timed.provision()
    assert all(claim.is_true("Launched") for claim in timed.world.cluster.node_claims.values())


def test_node_classes_of_many_requests_leave_time_for_nodes(timed: TimedDoors) -> None:
    """They join and drain. The classes are looked at again by the next run."""
    _make_slow(timed, "cloud.prepare")
    timed.live()
    assert timed.world.cluster.node_claims["joining-0003"].is_true("Registered")
    assert timed.latency.calls["cluster.evict"]


def test_many_node_classes_are_looked_at_side_by_side(timed: TimedDoors) -> None:
    """Each takes nine calls, so one after another a hundred would take longer than a run may."""
    timed.world.cluster.add(*(builders.node_class(f"team-{number:02}") for number in range(96)))
    timed.live()
    assert timed.latency.calls["cloud.prepare"] == 100
    assert timed.lasted[-1] < TIMEOUTS["lifecycle"] / 2


def test_a_warning_is_heeded_while_nobody_remembers_what_ec2_is_out_of(timed: TimedDoors) -> None:
    """The mark of the capacity pool is a help for the replacement. The node goes without it."""
    _silence(timed, "unavailable.mark")
    timed.warn([1])
    claim = timed.world.cluster.node_claims["claim-0001"]
    assert claim.is_deleting
    assert INTERRUPTED_AT in claim.metadata.annotations


def test_warnings_are_heeded_while_no_event_can_be_written(world: World) -> None:
    """Somebody's admission webhook answers for Events, and is down: each takes ten seconds. They are for people."""
    fill(world, nodes=10)
    timed = TimedDoors(world, TIMEOUTS)
    timed.latency.answers["recorder.emit"] = lambda _: timed.latency.charge(LONGEST_CALL)
    timed.warn(range(10))
    assert all(claim.is_deleting for claim in world.cluster.node_claims.values())
    assert all(INTERRUPTED_AT in claim.metadata.annotations for claim in world.cluster.node_claims.values())


def test_nodes_drain_while_no_event_can_be_written(timed: TimedDoors) -> None:
    """The Events of other nodes are sent when everything is done."""
    world = timed.world
    world.cluster.add(*(builders.node_claim(f"late-{number}", created=_AGES_AGO) for number in range(60)))
    timed.latency.answers["recorder.emit"] = lambda _: timed.latency.charge(LONGEST_CALL)
    timed.live()
    assert timed.latency.calls["recorder.emit"]
    assert timed.latency.calls["cluster.evict"]
