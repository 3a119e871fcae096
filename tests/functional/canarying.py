"""A cluster of three nodes to whose node class somebody publishes a new image, for tests."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace as changed

from joinery.objects.annotations.canaries import CanaryVerdict, verdicts_of
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Condition, ContainerState, ContainerStateWaiting, ContainerStatus, Pod
from simulator import builders
from simulator.actors.base import Stage
from simulator.actors.kubescheduler.scheduler import KubeScheduler
from simulator.actors.workloads import Caretakers, WorkloadControllers, workload
from simulator.cloud.network import Image
from simulator.world import World
from tests.functional.crashing import DEPLOYMENT
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand

NEW = "ami-new-amd64"
NODES = 3


def crashing(pod: Pod, since: datetime) -> Pod:
    """The pod, whose container is in a crash loop."""
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))
    others = [condition for condition in pod.status.conditions if condition.type != "Ready"]
    status = changed(
        pod.status,
        conditions=[*others, Condition(type="Ready", status="False", last_transition_time=since)],
        container_statuses=[ContainerStatus(name="web", restart_count=5, state=waiting)],
    )
    return changed(pod, status=status)


class Rollout:
    """Three pods that may not share a node, on three nodes, whose NodePool has no budgets.

    ``fuse``: what the controllers' calls go through.
    """

    def __init__(self, fuse: Fuse | None = None, *, replicas: int | None = None, **settings: Any) -> None:
        self.fuse = fuse or Fuse()
        self.world = World(seed=7)
        self.stand = Stand(self.world, gateways=self.fuse.protect(self.world.gateways), **settings)
        pool = builders.node_pool(
            requirements=["karpenter.k8s.aws/instance-size=xlarge", "kubernetes.io/arch=amd64"],
            budgets=[],
            consolidationPolicy="WhenEmpty",
            replicas=replicas,
        )
        self.world.cluster.add(builders.node_class(), pool)
        stage = Stage(self.stand.engine, self.world.cluster, self.world.cloud)
        KubeScheduler(stage)
        WorkloadControllers(stage).apply(workload(DEPLOYMENT))
        Caretakers(stage)
        for _ in range(6):
            self.run(1, consolidates=False)
        assert len(self.stand.claims) == NODES

    # --- what happens ---

    def publish(self) -> None:
        """A new image, which the node class selects from now on. All nodes have drifted then."""
        images = self.world.cloud.network.images
        images[:0] = [Image(f"ami-new-{arch}", f"al2023-{arch}", arch, "al2023") for arch in ("amd64", "arm64")]
        self.fuse.outlives(self.stand.live)
        self.fuse.outlives(self.stand.live)

    def run(self, rounds: int, *, boots: bool = True, consolidates: bool = True, seconds: int = 10) -> None:
        """So many rounds of all doors, in which pods move and new instances boot."""
        for _ in range(rounds):
            self.stand.wait(seconds)
            self.fuse.outlives(self.stand.provision)
            self.fuse.outlives(self.stand.live)
            if consolidates:
                self.fuse.outlives(self.stand.consolidate)
            if boots:
                self.stand.boot()
            self.fuse.outlives(self.stand.live)

    def crash(self, pod: Pod) -> None:
        """Its container is in a crash loop from now on."""
        self.world.cluster.api.update(crashing(pod, self.world.clock.now()))

    def annotate(self, key: str, value: str | None) -> None:
        """Annotate the node class, or remove the annotation."""
        before = self.node_class
        annotations = {name: text for name, text in before.metadata.annotations.items() if name != key}
        if value is not None:
            annotations[key] = value
        metadata = before.metadata.model_copy(update={"annotations": annotations})
        self.world.cluster.api.update(before.model_copy(update={"metadata": metadata}))

    # --- what there is ---

    @property
    def node_class(self) -> EC2NodeClass:
        found = self.world.cluster.node_classes["default"]
        assert isinstance(found, EC2NodeClass)
        return found

    @property
    def verdict(self) -> CanaryVerdict | None:
        """On the new image."""
        return verdicts_of(self.node_class).get(NEW)

    @property
    def moved(self) -> list[NodeClaim]:
        """The claims whose nodes booted the new image."""
        return [claim for claim in self.stand.claims if claim.status.image_id == NEW]

    @property
    def outdated(self) -> list[NodeClaim]:
        return [claim for claim in self.stand.claims if claim.status.image_id not in ("", NEW)]

    def pods_on(self, claim: NodeClaim) -> list[Pod]:
        name = self.world.cluster.node_claims[claim.metadata.name].status.node_name
        return [pod for pod in self.world.cluster.pods.values() if name and pod.spec.node_name == name]

    def canary(self) -> NodeClaim:
        """The node that has the new image and a pod, once there is one."""
        for _ in range(12):
            self.run(1)
            if self.moved and self.pods_on(self.moved[0]):
                return self.moved[0]
        raise AssertionError("there is no canary")
