"""What simulated actors share: the cluster and cloud they act on, the engine that runs them, and an alarm."""

from collections.abc import Callable
from datetime import timedelta

from simulator.cloud.cloud import InMemoryCloud
from simulator.engine import Engine, Turn
from simulator.kubernetes.cluster import InMemoryCluster


class Alarm:
    """Runs an action once after a delay, however often the alarm is set in that time."""

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
    """What an actor is given: the engine that runs it, and the cluster and cloud that it acts on."""

    def __init__(self, engine: Engine, cluster: InMemoryCluster, cloud: InMemoryCloud) -> None:
        self.engine = engine
        self.cluster = cluster
        self.cloud = cloud
        self.clock = engine.clock
