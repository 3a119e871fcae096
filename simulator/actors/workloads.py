"""Workload controllers: what recreates pods, and what cleans up after nodes that went.

A Deployment's pod is replaced as soon as it is asked to go, under a new name; a StatefulSet's only once it has gone,
under its own. A DaemonSet has a pod on every node that it tolerates.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.core import (
    Affinity,
    DaemonSet,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    Taint,
    Toleration,
)
from joinery.objects.kubernetes.rollouts import DeploymentStrategy
from simulator.actors.base import Alarm, Stage
from simulator.actors.deployments import Deployments, suffix
from simulator.actors.kubescheduler.filters import matches_node_affinity
from simulator.actors.kubescheduler.view import NodeInfo, tolerates
from simulator.engine import Turn
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.budgets import is_ready
from simulator.kubernetes.resources import with_fields

LATENCY = timedelta(milliseconds=200)
#: How long pods of a Node that is gone are kept (pod garbage collection).
ORPHANS_KEPT = timedelta(seconds=20)
#: How long the cloud controller takes to delete the Node of an instance that is gone.
NODE_KEPT = timedelta(seconds=10)
_DAEMONS_TOLERATE = [
    Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
    for name, effect in (
        ("not-ready", keys.NO_EXECUTE),
        ("unreachable", keys.NO_EXECUTE),
        ("disk-pressure", keys.NO_SCHEDULE),
        ("memory-pressure", keys.NO_SCHEDULE),
        ("pid-pressure", keys.NO_SCHEDULE),
        ("unschedulable", keys.NO_SCHEDULE),
    )
]


@dataclass(frozen=True)
class Workload:
    """A Deployment or a StatefulSet. ``strategy`` and ``paused`` are a Deployment's."""

    kind: str
    name: str
    namespace: str
    replicas: int
    template: PodTemplateSpec
    strategy: DeploymentStrategy = DeploymentStrategy()
    paused: bool = False

    @property
    def uid(self) -> str:
        return f"uid-{self.kind.lower()}-{self.namespace}-{self.name}"

    def owns(self, pod: Pod) -> bool:
        return any(owner.uid == self.uid for owner in pod.metadata.owner_references)

    def pod(self, name: str) -> Pod:
        owner = OwnerReference(api_version="apps/v1", kind=self.kind, name=self.name, uid=self.uid, controller=True)
        return _pod(self.template, name, self.namespace, owner)


def _pod(template: PodTemplateSpec, name: str, namespace: str, owner: OwnerReference) -> Pod:
    meta = template.metadata
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace=namespace, labels=meta.labels, annotations=meta.annotations, owner_references=[owner]
        ),
        spec=template.spec,
        status=PodStatus(phase="Pending"),
    )


class WorkloadControllers:
    """Keeps the pods of every workload at their number."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._cluster = stage.cluster
        self._rng = stage.engine.rng("workloads")
        self._deployments = Deployments(stage.cluster, self._rng)
        self._stateful_sets: dict[str, Workload] = {}
        self._alarm = Alarm(stage.engine, Turn.WORKLOADS, LATENCY, self.reconcile)
        self._cluster.api.watch(self._notice)

    def apply(self, workload: Workload) -> None:
        """Create it, or change its number of replicas."""
        if workload.kind == "StatefulSet":
            self._stateful_sets[workload.uid] = workload
            self._cluster.scale(workload.uid, workload.replicas)
        else:
            self._deployments.apply(
                ObjectMeta(name=workload.name, namespace=workload.namespace, uid=workload.uid),
                workload.replicas,
                workload.template,
                strategy=workload.strategy,
                paused=workload.paused,
            )
        self._alarm.set()

    def delete(self, namespace: str, name: str) -> None:
        """Delete a StatefulSet, and its pods with it."""
        deleted = [one for one in self._stateful_sets.values() if (one.namespace, one.name) == (namespace, name)]
        for workload in deleted:
            del self._stateful_sets[workload.uid]
            for pod in [pod for pod in self._cluster.pods.values() if workload.owns(pod)]:
                self._cluster.delete(pod)

    def reconcile(self) -> None:
        self._deployments.reconcile()
        for workload in self._stateful_sets.values():
            self._keep_in_order(workload, [pod for pod in self._cluster.pods.values() if workload.owns(pod)])

    def _keep_in_order(self, workload: Workload, owned: list[Pod]) -> None:
        there = {pod.metadata.name for pod in owned}
        for number in range(workload.replicas):
            if f"{workload.name}-{number}" not in there:
                self._cluster.api.create(workload.pod(f"{workload.name}-{number}"))

    def _notice(self, change: Change) -> None:
        if change.kind == "Deployment":
            is_due = None not in (change.before, change.after) and change.before.spec != change.after.spec
        elif change.kind == "Pod":
            is_due = _is_going(change) or _became_ready(change)
        else:
            is_due = False
        if is_due:
            self._alarm.set()


def _is_going(change: Change) -> bool:
    return change.after is None or change.after.metadata.deletion_timestamp is not None


def _became_ready(change: Change) -> bool:
    return change.before is not None and not is_ready(change.before) and is_ready(change.after)


class DaemonSetController:
    """A pod on every node for every DaemonSet, bound by the scheduler like any other."""

    def __init__(self, stage: Stage) -> None:
        self._cluster = stage.cluster
        self._rng = stage.engine.rng("daemonsets")
        self._alarm = Alarm(stage.engine, Turn.WORKLOADS, LATENCY, self.reconcile)
        self._cluster.api.watch(self._notice)

    def reconcile(self) -> None:
        there = {_pair(pod) for pod in self._cluster.pods.values()}
        for _, daemon in sorted(self._cluster.api.objects("DaemonSet").items()):
            for name, node in sorted(self._cluster.nodes.items()):
                if (daemon.metadata.uid, name) not in there and _wants(daemon, node):
                    self._cluster.api.create(self._pod_for(daemon, name))

    def _pod_for(self, daemon: DaemonSet, node: str) -> Pod:
        meta = daemon.metadata
        owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name=meta.name, uid=meta.uid, controller=True)
        spec = with_fields(
            daemon.spec.template.spec,
            tolerations=[*daemon.spec.template.spec.tolerations, *_DAEMONS_TOLERATE],
            affinity=_pinned(daemon.spec.template.spec.affinity, node),
        )
        template = with_fields(daemon.spec.template, spec=spec)
        return _pod(template, f"{meta.name}-{suffix(self._rng)}", meta.namespace, owner)

    def _notice(self, change: Change) -> None:
        if change.kind in ("Node", "DaemonSet") or (change.kind == "Pod" and change.after is None):
            self._alarm.set()


def _pair(pod: Pod) -> tuple[str, str]:
    """The UID of the pod's DaemonSet and the name of its node; empty for a pod of no DaemonSet."""
    owners = [owner.uid for owner in pod.metadata.owner_references if owner.kind == "DaemonSet"]
    if not owners:
        return ("", "")
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution  # type: ignore[union-attr]
    return (owners[0], terms.node_selector_terms[0].match_fields[0].values[0])  # type: ignore[union-attr]


def _pinned(affinity: Affinity | None, node: str) -> Affinity:
    """The node by name, as the DaemonSet controller writes it, in place of the template's required terms."""
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
    only = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    pinned = NodeAffinity(required_during_scheduling_ignored_during_execution=only)
    return with_fields(affinity or Affinity(), node_affinity=pinned)


def _wants(daemon: DaemonSet, node: Node) -> bool:
    """Whether the DaemonSet puts a pod there: selector and required affinity match, taints are tolerated."""
    if node.metadata.deletion_timestamp is not None:
        return False
    tolerations = [*daemon.spec.template.spec.tolerations, *_DAEMONS_TOLERATE, _NOT_READY]
    repelling: list[Taint] = [taint for taint in node.spec.taints if taint.effect != keys.PREFER_NO_SCHEDULE]
    return matches_node_affinity(Pod(spec=_plain(daemon)), NodeInfo(node)) and all(
        tolerates(tolerations, taint) for taint in repelling
    )


_NOT_READY = Toleration(key="node.kubernetes.io/not-ready", operator="Exists")


def _plain(daemon: DaemonSet) -> PodSpec:
    spec = daemon.spec.template.spec
    return PodSpec(node_selector=spec.node_selector, affinity=spec.affinity)


class Caretakers:
    """The cloud controller deletes Nodes whose instance is gone;
    pod garbage collection deletes pods of Nodes that are.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._cluster = stage.cluster
        self._cluster.api.watch(self._notice)

    def instance_gone(self, instance_id: str) -> None:
        for node in list(self._cluster.nodes.values()):
            if node.spec.provider_id.endswith(f"/{instance_id}"):
                self._silence(node)
                self._stage.engine.after(NODE_KEPT, Turn.KUBELET, partial(self._delete_node, node))

    def _silence(self, node: Node) -> None:
        """Its kubelet no longer reports: Ready becomes Unknown."""
        conditions = [with_fields(condition, status="Unknown") for condition in node.status.conditions]
        self._cluster.api.update(with_fields(node, status=with_fields(node.status, conditions=conditions)))

    def _delete_node(self, node: Node) -> None:
        current = self._cluster.nodes.get(node.metadata.name)
        if current is not None and current.metadata.uid == node.metadata.uid:
            self._cluster.delete_node(current)

    def _notice(self, change: Change) -> None:
        if change.kind == "Node" and change.after is None:
            name = change.before.metadata.name
            self._stage.engine.after(ORPHANS_KEPT, Turn.KUBELET, partial(self._collect, name))

    def _collect(self, name: str) -> None:
        for pod in list(self._cluster.pods.values()):
            if pod.spec.node_name == name and name not in self._cluster.nodes:
                self._cluster.remove(pod)


class GarbageCollector:
    """Deletes what nobody owns any more once its owner has gone (kube-controller-manager, in the background)."""

    def __init__(self, stage: Stage) -> None:
        self._cluster = stage.cluster
        self._gone: list[str] = []
        self._alarm = Alarm(stage.engine, Turn.WORKLOADS, LATENCY, self.collect)
        self._cluster.api.watch(self._notice)

    def collect(self) -> None:
        gone, self._gone = set(self._gone), []
        for kind in _OWNED:
            for item in list(self._cluster.api.objects(kind).values()):
                owners = {owner.uid for owner in item.metadata.owner_references}
                if owners and owners <= gone and item.metadata.deletion_timestamp is None:
                    self._cluster.delete(item)

    def _notice(self, change: Change) -> None:
        if change.after is None and change.kind in _OWNERS:
            self._gone.append(change.before.metadata.uid)
            self._alarm.set()


_OWNERS = frozenset({"Deployment", "ReplicaSet", "DaemonSet", "NodePool", "NodeClaim"})
_OWNED = ("ReplicaSet", "Pod", "NodeClaim", "Node")


def workload(document: dict[str, Any]) -> Workload:
    """A Deployment or StatefulSet document. Raises ``KeyError`` or ``msgspec.ValidationError`` for what is neither."""
    import msgspec

    meta, spec = document["metadata"], document["spec"]
    template = msgspec.convert(spec["template"], PodTemplateSpec)
    return Workload(
        document["kind"],
        meta["name"],
        meta.get("namespace", "default"),
        int(spec.get("replicas", 1)),
        template,
        strategy=msgspec.convert(spec.get("strategy", {}), DeploymentStrategy),
        paused=bool(spec.get("paused", False)),
    )
