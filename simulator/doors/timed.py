"""Controllers whose calls take time, and whose clock moves on with them; each run is killed at its timeout."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.disruption import Decide, DisruptionController
from joinery.controllers.interruption import InterruptionController
from joinery.controllers.lifecycle import LifecycleController
from joinery.controllers.provisioning import ProvisioningController
from joinery.decisions.disruption.decide import decide
from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.objects.settings import Settings
from simulator.doors.large import instance
from simulator.latency import Latency
from simulator.world import CLUSTER, World


class TimedDoors:
    """Four doors of one world, one run after another.

    ``timeouts``: by door, the seconds after which Lambda kills it. ``settings``: the stack's, if not the usual.
    ``lasted``: the seconds of each run so far.
    """

    def __init__(self, world: World, timeouts: Mapping[str, float], settings: Settings | None = None) -> None:
        self.world = world
        self.latency = Latency(world.gateways)
        self.lasted: list[float] = []
        self._timeouts = timeouts
        self._settings = settings or Settings(cluster=CLUSTER)

    def live(self) -> Any:
        """A run of lifecycle. Raises ``Killed`` if it takes too long; so do the others."""
        return self._run("lifecycle", LifecycleController(self.latency.gateways, self._settings).reconcile)

    def provision(self) -> Any:
        return self._run("provisioning", ProvisioningController(self.latency.gateways, self._settings).reconcile)

    def disrupt(self, decide: Decide = decide) -> Any:
        """A run of disruption, with its own decision or another."""
        door = DisruptionController(self.latency.gateways, self._settings, decide)
        return self._run("disruption", door.reconcile)

    def warn(self, numbers: Iterable[int]) -> Any:
        """Spot warnings for the instances behind these nodes of ``large.fill``, as one batch."""
        door = InterruptionController(self.latency.gateways)
        notices = [Notice(NoticeKind.SPOT_INTERRUPTED, (instance(number),)) for number in numbers]
        return self._run("interruption", lambda invocation: door.reconcile(notices, invocation))

    def wait(self, seconds: float) -> None:
        self.world.clock.advance(timedelta(seconds=seconds))

    def _run(self, door: str, reconcile: Callable[[Invocation], Any]) -> Any:
        answer = reconcile(self.latency.begin(self._timeouts[door]))
        self.lasted.append(self.latency.spent)
        self.wait(self.latency.spent)
        return answer
