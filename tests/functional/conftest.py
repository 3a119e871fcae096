"""What the controllers' tests stand on."""

from collections.abc import Callable

import pytest

from joinery.controllers.telemetry import metrics
from simulator.world import World
from tests.functional.stand import Stand


@pytest.fixture
def stand(world: World) -> Stand:
    """Controllers over a world with one ready NodePool."""
    found = Stand(world).with_defaults()
    found.rung()
    return found


@pytest.fixture
def counted() -> Callable[[], dict[str, float]]:
    """What was counted in this test, by metric."""
    metrics.forget()
    return metrics.totals


@pytest.fixture
def running(stand: Stand) -> Stand:
    """Three pods that run on one spot node."""
    stand.pods(3)
    stand.settle()
    stand.rung()
    return stand
