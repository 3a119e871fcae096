"""Stories for tests that kill a process after one of its writes: three pods that may not share a node."""

from collections.abc import Callable

from simulator import builders
from simulator.actors.base import Stage
from simulator.actors.kubescheduler.scheduler import KubeScheduler
from simulator.actors.workloads import Caretakers, WorkloadControllers, workload
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.stand import APART, Stand

PODS = 3
DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": PODS,
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "affinity": APART,
                "containers": [{"name": "web", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            },
        },
    },
}


class Story:
    """The story with a fuse. ``launched`` is every instance that ever was."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self.world = World(seed=5)
        self.launched: list[str] = []
        self.world.cloud.watch(self._notice)
        self.stand = Stand(self.world, gateways=fuse.protect(self.world.gateways))
        stage = Stage(self.stand.engine, self.world.cluster, self.world.cloud)
        self.world.cluster.add(builders.node_class(), builders.node_pool())
        KubeScheduler(stage)
        WorkloadControllers(stage).apply(workload(DEPLOYMENT))
        Caretakers(stage)

    def _notice(self, instance_id: str) -> None:
        if instance_id not in self.launched:
            self.launched.append(instance_id)

    def tell(self) -> None:
        """Until all pods run, then a warning, then until all run again and nothing is in progress."""
        self._until(self._is_settled)
        (lost, *_) = sorted(self.stand.alive)
        while not self.fuse.outlives(lambda: self.stand.receive("interruption_spot_warning", lost)):
            pass
        self._until(lambda: lost not in self.stand.alive and self._is_settled())

    def _until(self, is_done: Callable[[], bool]) -> None:
        for _ in range(60):
            self.stand.wait(2)
            self.fuse.outlives(self.stand.provision)
            self.fuse.outlives(self.stand.live)
            self.stand.boot()
            self.fuse.outlives(self.stand.live)
            if is_done():
                return
        raise AssertionError(f"it does not settle after {self.fuse.writes}")

    def _is_settled(self) -> bool:
        pods = [pod for pod in self.world.cluster.pods.values() if pod.metadata.deletion_timestamp is None]
        running = sum(bool(pod.spec.node_name) for pod in pods)
        claims = self.stand.claims
        return running == len(pods) == PODS and all(c.is_true("Ready") and not c.is_deleting for c in claims)


def assert_nothing_is_left_behind(stand: Stand, told: str) -> None:
    """Every node has its pod, each instance that lives has its claim, and no node costs money for nobody."""
    owned = {claim.status.provider_id.rpartition("/")[2] for claim in stand.claims}
    assert set(stand.alive) == owned, told
    assert len(owned) == PODS, told
