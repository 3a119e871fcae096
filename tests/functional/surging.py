"""A workload whose nodes go, with everybody who acts in a cluster, and what its users see of it meanwhile."""

from collections.abc import Callable, Mapping
from typing import Any

from joinery.gateways.bundles import Gateways
from joinery.objects.karpenter.labels import REVISION, SURGE_BEFORE_EVICTION
from joinery.objects.kubernetes.core import Pod
from simulator import builders
from simulator.actors.base import Stage
from simulator.actors.kubescheduler.scheduler import KubeScheduler
from simulator.actors.workloads import Caretakers, WorkloadControllers, workload
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.budgets import is_healthy
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand

ASKING = {SURGE_BEFORE_EVICTION: "true"}


class Shop:
    """Pods of one workload, ``web``, which run and then lose their node. ``size``: of all nodes.

    ``fewest``: how many of its pods were ready at the worst moment since ``watch``. ``launched``: every instance that
    ever was.
    """

    def __init__(
        self,
        *,
        kind: str = "Deployment",
        replicas: int = 1,
        annotations: Mapping[str, str] = ASKING,
        fuse: Fuse | None = None,
        settings: Mapping[str, Any] | None = None,
        size: str = "xlarge",
        **spec: Any,
    ) -> None:
        self.fuse = fuse or Fuse()
        self.world = World(seed=3)
        self.launched: set[str] = set()
        self.world.cloud.watch(self.launched.add)
        self.stand = Stand(self.world, gateways=self._protected(), **(settings or {}))
        stage = Stage(self.stand.engine, self.world.cluster, self.world.cloud)
        pool = builders.node_pool(requirements=[f"karpenter.k8s.aws/instance-size={size}"])
        self.world.cluster.add(builders.node_class(), pool)
        KubeScheduler(stage)
        self.document = _document(kind, replicas, annotations, spec)
        self.workloads = WorkloadControllers(stage)
        self.workloads.apply(workload(self.document))
        Caretakers(stage)
        self.is_slow = False
        self.fewest = 0

    def _protected(self) -> Gateways:
        return self.fuse.protect(self.world.gateways)

    # --- what happens ---

    def open(self) -> "Shop":
        """Let all pods run."""
        self.until(self._is_settled)
        return self

    def watch(self) -> "Shop":
        """Count from here on how many pods are ready, and how often the Deployment is restarted."""
        self.fewest = self.ready
        self.fuse.writes.clear()
        self.world.cluster.api.watch(self._notice)
        return self

    def warn(self) -> "Shop":
        """EC2 warns that it takes the instance of the first pod."""
        (node, *_) = sorted({pod.spec.node_name for pod in self.pods} - {""})
        lost = self.world.cluster.nodes[node].spec.provider_id.rpartition("/")[2]
        while not self.fuse.outlives(lambda: self.stand.receive("interruption_spot_warning", lost)):
            pass
        return self

    def retire(self) -> "Shop":
        """Somebody deletes all claims: there is time."""
        for claim in self.stand.claims:
            self.world.cluster.delete_node_claim(claim)
        return self

    def turn(self, times: int = 1) -> None:
        """Two seconds, and one run of each door."""
        for _ in range(times):
            self.stand.wait(2)
            self.fuse.outlives(self.stand.provision)
            self.fuse.outlives(self.stand.live)
            self.stand.boot()
            self.fuse.outlives(self.stand.live)

    def until(self, is_done: Callable[[], bool], turns: int = 60) -> None:
        for _ in range(turns):
            self.turn()
            if is_done():
                return
        raise AssertionError("it does not come to that")

    def moved(self) -> bool:
        """Whether all pods run on nodes that stay, and nothing goes any more."""
        return self._is_settled() and not any(claim.is_deleting for claim in self.stand.claims)

    # --- what there is ---

    @property
    def pods(self) -> list[Pod]:
        return [pod for pod in self.world.cluster.pods.values() if pod.metadata.deletion_timestamp is None]

    @property
    def ready(self) -> int:
        return sum(map(is_healthy, self.world.cluster.pods.values()))

    @property
    def restarts(self) -> int:
        return self.fuse.writes.count("cluster.restart")

    @property
    def rollouts(self) -> int:
        """How many rollouts there were, the first one included."""
        return int(self.world.cluster.api.get("Deployment", "default/web").metadata.annotations[REVISION])

    def _is_settled(self) -> bool:
        wanted: int = self.document["spec"]["replicas"]
        bound = [pod for pod in self.pods if pod.spec.node_name]
        return len(bound) == len(self.pods) == wanted == self.ready

    def _notice(self, change: Change) -> None:
        if change.kind == "Pod":
            self.fewest = min(self.fewest, self.ready)


def _document(kind: str, replicas: int, annotations: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, Any]:
    containers = [{"name": "web", "resources": {"requests": {"cpu": "900m", "memory": "512Mi"}}}]
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": dict(annotations)},
        "spec": {"containers": containers},
    }
    return {"kind": kind, "metadata": {"name": "web"}, "spec": {"replicas": replicas, "template": template, **spec}}
