"""What simulated actors share: the world they act on, the engine they are driven by, and a way to be woken once."""

from collections.abc import Callable
from datetime import timedelta

from simulator.cloud.cloud import InMemoryCloud
from simulator.engine import Engine, Turn
from simulator.kubernetes.cluster import InMemoryCluster


class Alarm:
    """Rings an action once after a delay, however often it is set meanwhile."""

    def __init__(self, engine: Engine, turn: Turn, delay: timedelta, action: Callable[[], object]) -> None:
        self._engine = engine
        self._turn = turn
        self._delay = delay
        self._action = action
        self._is_set = False

    def set(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._engine.after(self._delay, self._turn, self._ring)

    def _ring(self) -> None:
        self._is_set = False
        self._action()


class Stage:
    """Where an actor stands: engine, cluster and cloud."""

    def __init__(self, engine: Engine, cluster: InMemoryCluster, cloud: InMemoryCloud) -> None:
        self.engine = engine
        self.cluster = cluster
        self.cloud = cloud
        self.clock = engine.clock
