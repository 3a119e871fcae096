"""Preemption: which pods of lower priority make room for one that fits nowhere (kube-scheduler ``DefaultPreemption``).

Budgets and ``preemptionPolicy`` are not asked: scenarios have priorities to see who goes, not who is spared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from joinery.objects.kubernetes.core import Pod
from simulator.actors.kubescheduler import filters
from simulator.actors.kubescheduler.topology import Topology
from simulator.actors.kubescheduler.view import NodeInfo, View


@dataclass(frozen=True)
class Preemption:
    """A node, and the pods that have to go from it."""

    node: str
    victims: tuple[Pod, ...]


def priority(pod: Pod) -> int:
    """What admission has written into the pod; none is 0."""
    return pod.spec.priority or 0


def preemption(pod: Pod, seen: View) -> Preemption | None:
    """The node where the least important pods would go, and of those the fewest; None where none would help.

    A pod waits for the pods that it has displaced before it displaces others.
    """
    if _is_waiting(pod, seen):
        return None
    found = [Preemption(name, victims) for name in seen.nodes if (victims := tuple(_victims(pod, name, seen)))]
    return min(found, key=lambda one: (max(map(priority, one.victims)), len(one.victims), one.node), default=None)


def _is_waiting(pod: Pod, seen: View) -> bool:
    node = seen.nodes.get(pod.status.nominated_node_name)
    return node is not None and any(
        other.metadata.deletion_timestamp is not None and priority(other) < priority(pod) for other in node.pods
    )


def _victims(pod: Pod, name: str, seen: View) -> Iterator[Pod]:
    """All pods of lower priority, without those that may stay; none if even that is not enough."""
    lower = [other for other in seen.nodes[name].pods if priority(other) < priority(pod)]
    staying = [other for other in seen.nodes[name].pods if priority(other) >= priority(pod)]
    if not lower or not _fits(pod, name, staying, seen):
        return
    for other in sorted(lower, key=lambda one: (-priority(one), one.metadata.creation_timestamp, one.key)):
        if _fits(pod, name, [*staying, other], seen):
            staying.append(other)
        else:
            yield other


def _fits(pod: Pod, name: str, others: list[Pod], seen: View) -> bool:
    info = NodeInfo(seen.nodes[name].node).with_pods(others)
    without = replace(seen, nodes={**seen.nodes, name: info})
    return not filters.reason(pod, info, Topology(pod, without), without)
