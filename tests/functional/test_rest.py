"""What is waited for is looked at ever less often, and at once when somebody rings."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from joinery.gateways.doorbell.gateway import Bell
from simulator import builders
from simulator.doors.doors import Doors
from simulator.doors.queues import BellQueues
from simulator.engine import Engine
from simulator.world import World

SECOND = timedelta(seconds=1)


class _Booting:
    """A pod's node, some seconds after its launch; its instance never joins."""

    def __init__(self, world: World, doors: Doors) -> None:
        self.engine, self.doorbell, self._doors = Engine(world.clock, seed=1), world.doorbell, doors
        BellQueues(self.engine, world.doorbell, doors)
        world.cluster.add(builders.node_class(), builders.node_pool(), builders.pod("web"))
        self.ring()
        world.doorbell.ring(Bell.PROVISIONING)
        self.engine.run_for(10 * SECOND)
        (claim,) = world.cluster.node_claims.values()
        assert claim.is_true("Launched")

    def looks(self, duration: timedelta) -> int:
        """How often lifecycle reads the cluster in the time that comes."""
        before = len(self._doors.calls)
        self.engine.run_for(duration)
        calls = [call for call in self._doors.calls[before:] if call.door == "lifecycle"]
        assert not any(call.error for call in calls)
        return sum(call.result["outcome"] == "done" for call in calls)

    def ring(self) -> None:
        """What the webhook does when the Node is there."""
        self.doorbell.ring(Bell.LIFECYCLE)


@pytest.fixture
def booting(world: World) -> Iterator[_Booting]:
    """In a cluster in which nothing else happens, and without schedules."""
    doors = Doors(world)
    with doors.open():
        yield _Booting(world, doors)


def test_an_instance_that_never_joins_is_looked_at_ever_less_often(booting: _Booting) -> None:
    """Every five seconds, its quarter of an hour was 180 reads of the cluster."""
    assert booting.looks(30 * SECOND) >= 3
    assert booting.looks(60 * SECOND) <= 4
    assert booting.looks(120 * SECOND) <= 4
    assert 8 <= booting.looks(600 * SECOND) <= 12


@pytest.mark.parametrize("after", [100, 101, 102, 103, 104, 105])
def test_a_node_that_joins_late_is_met_at_once(booting: _Booting, after: int) -> None:
    """Whenever the webhook rings, and whatever lifecycle has said to itself in the same moment."""
    booting.engine.run_for(after * SECOND)
    booting.ring()
    assert booting.looks(5 * SECOND) == 1


def test_the_chain_does_not_fork(booting: _Booting) -> None:
    """Each ring of somebody else begins one, but rings of one slot are one."""
    for _ in range(20):
        booting.engine.run_for(1.7 * SECOND)
        booting.ring()
    booting.engine.run_for(60 * SECOND)
    assert booting.looks(240 * SECOND) <= 6
