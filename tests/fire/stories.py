"""The stories: for each door what it does, as short as it can be told.

A new one is a ``Story`` in ``STORIES``: what there is, and what happens. Everything that can go wrong is tried on it.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from joinery.gateways.ec2.gateway import LaunchRequest, Override
from joinery.objects.annotations.canaries import verdicts_of
from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.core import Condition
from simulator.cloud.network import Image
from simulator.engine import Turn
from simulator.kubernetes.budgets import is_ready
from simulator.kubernetes.resources import from_document, with_fields, with_metadata
from simulator.story.scenario import Running
from simulator.story.simulation import Simulation
from tests.fire.telling import Document, Story
from tests.functional.canarying import NEW, crashing

_TERMS = [{"tags": {"karpenter.sh/discovery": "simulated"}}]
NODE_CLASS: Document = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "role": "joinery-node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": _TERMS,
        "securityGroupSelectorTerms": _TERMS,
    },
}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
STORAGE_CLASS: Document = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "gp3"},
    "provisioner": "ebs.csi.aws.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def node_pool(name: str = "default", capacity_type: str = "spot", **template: Any) -> Document:
    """A NodePool of one capacity type."""
    wanted = {"key": keys.CAPACITY_TYPE, "operator": "In", "values": [capacity_type]}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": [wanted], **template}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": spec}},
    }


def when_empty(pool: Document) -> Document:
    """The NodePool, of which only empty nodes are disrupted."""
    return {**pool, "spec": {**pool["spec"], "disruption": {"consolidationPolicy": "WhenEmpty"}}}


def static(replicas: int, capacity_type: str = "spot") -> Document:
    """A NodePool that has so many nodes, whatever the pods."""
    pool = node_pool(capacity_type=capacity_type)
    return {**pool, "spec": {**pool["spec"], "replicas": replicas}}


def surging(workload: Document) -> Document:
    """The workload, whose pods ask for their successors before they are evicted."""
    template = workload["spec"]["template"]
    metadata = {**template["metadata"], "annotations": {keys.SURGE_BEFORE_EVICTION: "true"}}
    return {**workload, "spec": {**workload["spec"], "template": {**template, "metadata": metadata}}}


def pods(replicas: int = 2, *, kind: str = "Deployment", name: str = "web", **spec: Any) -> Document:
    """A workload of pods of one vCPU. ``spec``: more of their specs."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": name, "resources": resources}], **spec},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": template},
    }


def budget(name: str = "web", **limit: int) -> Document:
    """A PodDisruptionBudget that lets go of one pod at a time, or has another limit."""
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**(limit or {"maxUnavailable": 1}), "selector": selector},
    }


def volume_claim(name: str) -> Document:
    """A PersistentVolumeClaim that is bound when its pod is."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"]},
    }


def database() -> tuple[Document, ...]:
    """A StatefulSet of one pod with a volume."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return STORAGE_CLASS, volume_claim("data"), pods(1, kind="StatefulSet", name="db", volumes=[volume])


def running(
    age: str = "1h",
    capacity_type: str = "spot",
    *,
    pool: str = "default",
    zone: str = "us-east-1a",
    size: str = "xlarge",
) -> Running:
    """A node of four vCPUs, or of another size."""
    return Running(instance_type=f"m6a.{size}", node_pool=pool, zone=zone, capacity_type=capacity_type, age=age)


# --- what happens -----------------------------------------------------------------------------------------------------


def apply(simulation: Simulation, *documents: Document) -> None:
    """``kubectl apply``."""
    simulation.apply(documents)


def interrupt(simulation: Simulation) -> None:
    """A spot warning for the first instance."""
    simulation.ec2.interrupt(simulation.instances[0])


def delete_claim(simulation: Simulation) -> None:
    """``kubectl delete nodeclaim`` of the first."""
    simulation.world.cluster.delete_node_claim(next(iter(simulation.world.cluster.node_claims.values())))


def delete_node(simulation: Simulation) -> None:
    """``kubectl delete node`` of the first."""
    simulation.world.cluster.delete_node(next(iter(simulation.world.cluster.nodes.values())))


def lose_node(simulation: Simulation) -> None:
    """Somebody removes the finalizers of the first Node and deletes it: its kubelet runs on, and nobody sees it."""
    simulation.world.cluster.remove(next(iter(simulation.world.cluster.nodes.values())))


def end_instance(simulation: Simulation) -> None:
    """Somebody terminates the first instance by hand."""
    simulation.world.cloud.terminate(simulation.instances[:1])


def launch_unknown(simulation: Simulation) -> None:
    """An instance with the cluster's tags that no claim knows, as a lost answer leaves behind."""
    (node_class,) = simulation.world.cluster.node_classes.values()
    simulation.world.cloud.launch(
        LaunchRequest(
            token="nobody-knows",
            count=1,
            node_pool="default",
            node_class=node_class,
            capacity_type="spot",
            overrides=(Override("m6a.large", "us-east-1a", 0.04, 29),),
            labels={},
        )
    )


def scale_down(simulation: Simulation) -> None:
    """One of two replicas is enough."""
    apply(simulation, pods(1, affinity=APART))


def break_kernel(simulation: Simulation) -> None:
    """The node monitoring agent has called the first Node broken for longer than that is borne."""
    node = next(iter(simulation.world.cluster.nodes.values()))
    since = simulation.engine.clock.now() - timedelta(minutes=31)
    broken = Condition(type="KernelReady", status="False", reason="SoftLockup", last_transition_time=since)
    status = with_fields(node.status, conditions=[*node.status.conditions, broken])
    simulation.world.cluster.api.update(with_fields(node, status=status))


def none_of(*, capacity_type: str = "", instance_type: str = "") -> Callable[[Simulation], bool]:
    """Whether there are no claims of that kind any more."""

    def are_gone(simulation: Simulation) -> bool:
        labels = [claim.metadata.labels for claim in simulation.world.cluster.node_claims.values()]
        return not any(
            of_claim[keys.CAPACITY_TYPE] == capacity_type or of_claim[keys.INSTANCE_TYPE] == instance_type
            for of_claim in labels
        )

    return are_gone


def buy_on_demand(simulation: Simulation) -> None:
    """The pool is for on-demand nodes from now on: its spot nodes have drifted."""
    pool = from_document("NodePool", static(2, "on-demand"))
    before = simulation.world.cluster.node_pools["default"]
    simulation.world.cluster.api.update(before.model_copy(update={"spec": pool.spec}))


#: How long the person who looks after a bad image takes to say that it is good.
_LOOKS_FOR = timedelta(seconds=90)


def publish(simulation: Simulation) -> None:
    """A new image, whose first node has a pod that crashes. A person looks, and lets it go on all the same."""
    images = simulation.world.cloud.network.images
    images[:0] = [Image(f"ami-new-{arch}", f"al2023-{arch}", arch, "al2023") for arch in ("amd64", "arm64")]
    _crash_on_canary(simulation)


def _crash_on_canary(simulation: Simulation) -> None:
    """Once the first node with the new image has a pod, that one is in a crash loop."""
    cluster = simulation.world.cluster
    nodes = {claim.status.node_name for claim in cluster.node_claims.values() if claim.status.image_id == NEW}
    pod = next((pod for pod in cluster.pods.values() if pod.spec.node_name in nodes and is_ready(pod)), None)
    if pod is None:
        simulation.engine.after(timedelta(seconds=5), Turn.SCENARIO, lambda: _crash_on_canary(simulation))
        return
    cluster.api.update(crashing(pod, simulation.engine.clock.now()))
    _approve_what_failed(simulation)


def _approve_what_failed(simulation: Simulation) -> None:
    """Once the image has failed, a person looks for a while, approves it and deletes the pod."""
    if NEW not in verdicts_of(simulation.world.cluster.node_classes["default"]):
        simulation.engine.after(timedelta(seconds=5), Turn.SCENARIO, lambda: _approve_what_failed(simulation))
    else:
        simulation.engine.after(_LOOKS_FOR, Turn.SCENARIO, lambda: _approve(simulation))


def _approve(simulation: Simulation) -> None:
    cluster = simulation.world.cluster
    moved = [claim for claim in cluster.node_claims.values() if claim.status.image_id == NEW]
    assert len(moved) == 1, "the drift was not halted"
    node_class = cluster.node_classes["default"]
    annotations = {**node_class.metadata.annotations, keys.CANARY_APPROVED: NEW}
    cluster.api.update(with_metadata(node_class, annotations=annotations))
    for pod in [pod for pod in cluster.pods.values() if not is_ready(pod)]:
        cluster.api.delete(pod)


def all_have_moved(simulation: Simulation) -> bool:
    """Whether every node has the new image."""
    return {claim.status.image_id for claim in simulation.world.cluster.node_claims.values()} == {NEW}


STORIES = (
    Story(
        "two pods apart get two nodes",
        lambda simulation: apply(simulation, pods(affinity=APART)),
        (NODE_CLASS, node_pool()),
    ),
    Story(
        # A pod for each node: what replaces one is one node, whichever pool EC2 still has.
        "a spot warning replaces a node before it drains",
        interrupt,
        (NODE_CLASS, node_pool(), pods(affinity=APART)),
        (running(), running(zone="us-east-1b")),
    ),
    Story(
        "an old node is replaced",
        lambda _: None,
        (NODE_CLASS, node_pool(capacity_type="on-demand"), pods(2)),
        (running("720h1m", "on-demand"),),
    ),
    Story(
        "kubectl delete nodeclaim drains by budgets, and volumes are detached first",
        delete_claim,
        (NODE_CLASS, node_pool(), budget(), pods(2), *database()),
        (running(),),
    ),
    Story("kubectl delete node replaces it", delete_node, (NODE_CLASS, node_pool(), pods(2)), (running(),)),
    Story(
        "an instance that somebody terminated is replaced",
        end_instance,
        (NODE_CLASS, node_pool(), pods(2)),
        (running(),),
    ),
    Story("a Node that vanished is replaced", lose_node, (NODE_CLASS, node_pool(), pods(2)), (running(),)),
    Story(
        "an instance that nobody knows is terminated",
        launch_unknown,
        (NODE_CLASS, node_pool(), pods(2)),
        (running(),),
    ),
    Story(
        "a node that is empty is given up",
        scale_down,
        (NODE_CLASS, when_empty(node_pool()), pods(affinity=APART)),
        (running(), running(zone="us-east-1b")),
        # Whoever is killed with the Lease in hand keeps all others from deciding for longer than a story is quiet.
        is_over=lambda simulation: len(simulation.world.cluster.node_claims) == 1,
    ),
    Story(
        "a broken node is repaired",
        break_kernel,
        (NODE_CLASS, node_pool(), pods(2)),
        (running(),),
        {"node_repair": "replace"},
    ),
    Story(
        # Without a deadline, before which everything may come to something else.
        "a pod's successor comes by a rollout before its node goes",
        delete_claim,
        (NODE_CLASS, node_pool(), surging(pods(1))),
        (running(),),
    ),
    Story(
        "the successor of a single replica that its budget keeps comes by a rollout",
        delete_claim,
        (NODE_CLASS, node_pool(), budget(minAvailable=1), pods(1)),
        (running(),),
        {"surge_single_replicas": "true"},
    ),
    Story(
        "drifted nodes of a static pool are replaced",
        buy_on_demand,
        (NODE_CLASS, static(2)),
        (running(), running(zone="us-east-1b")),
        is_over=none_of(capacity_type="spot"),
    ),
    Story(
        "a node that is too large is replaced by a small one",
        lambda _: None,
        (NODE_CLASS, node_pool(capacity_type="on-demand"), pods(1)),
        (running(capacity_type="on-demand", size="4xlarge"),),
        is_over=none_of(instance_type="m6a.4xlarge"),
    ),
    Story(
        "an image that fails on its first node halts the drift, until a person approves it",
        publish,
        (NODE_CLASS, when_empty(node_pool(capacity_type="on-demand")), pods(affinity=APART)),
        (running(capacity_type="on-demand"), running(capacity_type="on-demand", zone="us-east-1b")),
        {"canary": "1 node for 1m"},
        is_over=all_have_moved,
    ),
)  # fmt: skip
