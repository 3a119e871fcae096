"""The simulated world, for every test that needs some of it. Nobody writes another fake."""

from typing import TYPE_CHECKING

import pytest

from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster

if TYPE_CHECKING:
    from simulator.cloud.cloud import InMemoryCloud
    from simulator.world import World


@pytest.fixture
def world() -> "World":
    """All six gateways over one clock, with an empty cluster; actors move only when the test runs the engine."""
    from simulator.world import World

    return World(seed=1)


@pytest.fixture
def clock(world: "World") -> Clock:
    """The world's clock."""
    return world.clock


@pytest.fixture
def cluster(world: "World") -> InMemoryCluster:
    """The world's cluster: no nodes, no pods, no pools."""
    return world.cluster


@pytest.fixture
def cloud(world: "World") -> "InMemoryCloud":
    """The world's EC2."""
    return world.cloud
