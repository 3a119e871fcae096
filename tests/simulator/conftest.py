"""A stage for one actor at a time: a clock, an engine, a cluster and a cloud, and nobody else."""

import pytest

from simulator.actors.base import Stage
from simulator.engine import Engine
from simulator.world import World


@pytest.fixture
def engine(world: World) -> Engine:
    """The engine that drives the world's clock."""
    return Engine(world.clock, seed=1)


@pytest.fixture
def stage(engine: Engine, world: World) -> Stage:
    """What an actor is given."""
    return Stage(engine, world.cluster, world.cloud)
