"""The scheduling loop: pods in order of priority and age, filters, scores, bind or say why not."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from joinery.gateways.kubernetes.gateway import Event
from joinery.objects.kubernetes.core import Condition, Pod
from joinery.objects.kubernetes.podgroups import PodGroup
from simulator.actors.base import Alarm, Stage
from simulator.actors.kubescheduler import filters, gangs, scores
from simulator.actors.kubescheduler.preemption import preemption, priority
from simulator.actors.kubescheduler.topology import Topology
from simulator.actors.kubescheduler.view import View, view
from simulator.actors.volumes import provision
from simulator.engine import Turn
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.resources import with_fields

NAME = "default-scheduler"
GANG = "node(s) have no room for enough pods of its group"
LATENCY = timedelta(milliseconds=100)
#: A pod that stays pending gets another Event, the same one counted up, no sooner than this.
QUIET = timedelta(seconds=30)


class KubeScheduler:
    """Wakes when pods, nodes or volumes change, and tries every pod that has no node.

    ``plugin``: a filter of the cluster's own, which says why a node cannot take a pod, or nothing.
    """

    def __init__(self, stage: Stage, plugin: Callable[[Pod, str], str] = lambda pod, node: "") -> None:
        self._plugin = plugin
        self._cluster = stage.cluster
        self._clock = stage.clock
        self._rng = stage.engine.rng("kube-scheduler")
        self._alarm = Alarm(stage.engine, Turn.SCHEDULER, LATENCY, self.schedule)
        self._said: dict[str, tuple[str, datetime]] = {}
        self._cluster.api.watch(self._notice)

    def schedule(self) -> int:
        """One pass over the pending pods. Returns how many were bound."""
        pending = [pod for pod in self._cluster.pods.values() if _is_pending(pod)]
        if not pending:
            return 0
        seen, groups = view(self._cluster), self._cluster.api.objects("PodGroup")
        bound, tried = 0, set[str]()
        for pod in sorted(pending, key=_order):
            own = gangs.group_of(pod, groups)
            if own is None:
                bound += self._try(pod, seen, pending)
            elif own[0] not in tried:
                tried.add(own[0])
                bound += self._try_gang(*own, seen, pending)
        return bound

    def _try_gang(self, key: str, group: PodGroup, seen: View, pending: list[Pod]) -> int:
        """Bind enough of a gang's pods, or none. Returns how many were bound."""
        groups = {key: group}
        members = sorted((pod for pod in pending if gangs.group_of(pod, groups)), key=_order)
        if len(gangs.running(key, seen)) + len(members) < group.minimum:
            return 0

        def choose(pod: Pod, trial: View) -> str:
            reasons = self._reasons(pod, trial, pending)
            feasible = [name for name, why in reasons.items() if not why]
            return self._best(pod, feasible, trial) if feasible else ""

        found = gangs.placements(key, group, members, seen, choose)
        for pod in members:
            if found is not None and pod.key in found:
                self._bind(pod, found[pod.key], seen)
                pending.remove(pod)
            else:
                self._fail(pod, {name: why or GANG for name, why in self._reasons(pod, seen, pending).items()})
        return len(found or ())

    def _notice(self, change: Change) -> None:
        if change.kind in ("Node", "PersistentVolumeClaim", "PersistentVolume", "PodGroup"):
            self._alarm.set()
        if change.kind == "Pod" and (change.after is None or _is_pending(change.after)) and not _only_marked(change):
            self._alarm.set()

    def _try(self, pod: Pod, seen: View, pending: list[Pod]) -> bool:
        reasons = self._reasons(pod, seen, pending)
        feasible = [name for name, why in reasons.items() if not why]
        if pod.status.nominated_node_name in feasible:
            feasible = [pod.status.nominated_node_name]
        if not feasible:
            self._fail(pod, reasons)
            self._preempt(pod, seen)
            return False
        self._bind(pod, self._best(pod, feasible, seen), seen)
        pending.remove(pod)
        return True

    def _reasons(self, pod: Pod, seen: View, pending: list[Pod]) -> dict[str, str]:
        """By node, why it cannot take the pod; empty for one that can."""
        nominated = [other for other in pending if _reserves(other, pod)]
        topology = Topology(pod, seen)
        return {
            name: filters.reason(pod, info, topology, seen)
            or self._plugin(pod, name)
            or _reserved(pod, name, seen, nominated)
            for name, info in seen.nodes.items()
        }

    def _best(self, pod: Pod, feasible: list[str], seen: View) -> str:
        if len(feasible) == 1:
            return feasible[0]
        scored = scores.total_scores(pod, [seen.nodes[name] for name in feasible], seen)
        top = max(scored.values())
        return self._rng.choice(sorted(name for name, score in scored.items() if score > top - 1e-9))

    def _bind(self, pod: Pod, node: str, seen: View) -> None:
        info = seen.nodes[node]
        for _, claim in filters.claims_of(pod, seen):
            if claim is not None and not claim.spec.volume_name:
                provision(self._cluster, claim, info.node)
        scheduled = Condition(type="PodScheduled", status="True", last_transition_time=self._clock.now())
        bound = with_fields(
            pod,
            spec=with_fields(pod.spec, node_name=node),
            status=with_fields(pod.status, conditions=_replaced(pod, scheduled)),
        )
        self._cluster.api.update(bound)
        info.take(bound)
        self._cluster.emit(_event(pod, "Scheduled", f"Successfully assigned {pod.key} to {node}"), reporter=NAME)

    def _fail(self, pod: Pod, reasons: dict[str, str]) -> None:
        message = _message(reasons)
        marked = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
        current = next((condition for condition in pod.status.conditions if condition.type == "PodScheduled"), None)
        if current is None or (current.status, current.reason, current.message) != ("False", "Unschedulable", message):
            self._cluster.api.update(
                with_fields(pod, status=with_fields(pod.status, conditions=_replaced(pod, marked)))
            )
        if self._is_news(pod.metadata.uid, message):
            self._cluster.emit(_event(pod, "FailedScheduling", message, warning=True), reporter=NAME)

    def _preempt(self, pod: Pod, seen: View) -> None:
        """Have pods of lower priority end where that makes room. The pod is bound once they have."""
        chosen = preemption(pod, seen)
        if chosen is None:
            return
        current = self._cluster.api.current(pod)
        nominated = with_fields(current, status=with_fields(current.status, nominated_node_name=chosen.node))
        self._cluster.api.update(nominated)
        for victim in chosen.victims:
            self._cluster.emit(
                _event(victim, "Preempted", f"Preempted by pod {pod.metadata.uid} on node {chosen.node}"), reporter=NAME
            )
            if victim.metadata.deletion_timestamp is None:
                self._cluster.delete(victim)

    def _is_news(self, uid: str, message: str) -> bool:
        now, (said, at) = self._clock.now(), self._said.get(uid, ("", self._clock.now()))
        if said == message and now - at < QUIET:
            return False
        self._said[uid] = (message, now)
        return True


def _is_pending(pod: Pod) -> bool:
    gone = pod.metadata.deletion_timestamp is not None or pod.status.phase in ("Succeeded", "Failed")
    ours = pod.spec.scheduler_name in ("", NAME)
    return not pod.spec.node_name and not gone and ours and not pod.spec.scheduling_gates


def _only_marked(change: Change) -> bool:
    """Whether only the condition changed that the scheduler itself writes: that must not wake it again."""
    before, after = change.before, change.after
    if before is None or after is None:
        return False
    same: bool = before.spec == after.spec and before.metadata.labels == after.metadata.labels
    return same and bool(before.status.nominated_node_name == after.status.nominated_node_name)


def _order(pod: Pod) -> tuple[int, object, str]:
    return (-priority(pod), pod.metadata.creation_timestamp, pod.key)


def _reserves(other: Pod, pod: Pod) -> bool:
    """Whether ``pod`` must leave room for ``other``: another pod that is nominated to a node, of no lower priority."""
    if other is pod or not other.status.nominated_node_name:
        return False
    return priority(other) >= priority(pod)


def _reserved(pod: Pod, name: str, seen: View, nominated: list[Pod]) -> str:
    """Why the pod cannot go to the node if the pods nominated to it are there too.

    kube-scheduler filters such a node twice, with and without them, and it must pass both times.
    """
    here = [other for other in nominated if other.status.nominated_node_name == name]
    if not here:
        return ""
    with_them = seen.with_pods(name, here)
    return filters.reason(pod, with_them.nodes[name], Topology(pod, with_them), with_them)


def _replaced(pod: Pod, condition: Condition) -> list[Condition]:
    return [*(other for other in pod.status.conditions if other.type != condition.type), condition]


def _message(reasons: dict[str, str]) -> str:
    """``0/3 nodes are available: 1 Insufficient cpu, 2 node(s) …``"""
    counted = sorted(f"{number} {why}" for why, number in Counter(reasons.values()).items())
    if not counted:
        return "no nodes available to schedule pods"
    return f"0/{len(reasons)} nodes are available: {', '.join(counted)}."


def _event(pod: Pod, reason: str, message: str, *, warning: bool = False) -> Event:
    meta = pod.metadata
    return Event(reason, message, "Pod", meta.name, uid=meta.uid, namespace=meta.namespace, warning=warning)
