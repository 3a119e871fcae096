"""What the controllers' tests stand on."""

import pytest

from simulator.world import World
from tests.functional.stand import Stand


@pytest.fixture
def stand(world: World) -> Stand:
    """Controllers over a world with one ready NodePool."""
    found = Stand(world).with_defaults()
    found.rung()
    return found
