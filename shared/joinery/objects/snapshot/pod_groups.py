"""The pods of a snapshot by the node that they are on. A group that is as it was is the same object as before."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.derived import Derives
from joinery.objects.snapshot.pods import is_active, is_daemon, is_terminal


@dataclass(frozen=True, eq=False)
class PodGroup(Derives):
    """The pods that are bound to one node or nominated for it, by name; of those without a node, ``node`` is empty."""

    node: str
    pods: tuple[Pod, ...]


@dataclass(frozen=True, eq=False)
class PodGroups:
    """``pods``: all of a snapshot, in its order. ``by_node``: their groups."""

    pods: tuple[Pod, ...] = ()
    by_node: Mapping[str, PodGroup] = field(default_factory=dict)
    _by_id: Mapping[int, Pod] = field(default_factory=dict)

    def __iter__(self) -> Iterator[PodGroup]:
        return iter(self.by_node.values())

    def following(self, pods: tuple[Pod, ...]) -> "PodGroups":
        """The groups of these pods. Costs a microsecond for ten pods that were there before."""
        if pods is self.pods:
            return self
        # Ids, because to compare thirty thousand pods would take as long as to group them. Those of the pods of before
        # are not given to others, because these groups keep the pods.
        by_id = {id(pod): pod for pod in pods}
        newcomers: dict[str, list[Pod]] = defaultdict(list)
        for key, pod in by_id.items():
            if key not in self._by_id:
                newcomers[place_of(pod)].append(pod)
        went = (pod for key, pod in self._by_id.items() if key not in by_id)
        groups = dict(self.by_node)
        for node in dict.fromkeys((*newcomers, *map(place_of, went))):
            before = groups[node].pods if node in groups else ()
            there = [*(pod for pod in before if id(pod) in by_id), *newcomers[node]]
            groups[node] = PodGroup(node, tuple(sorted(there, key=_key)))
            if not there:
                del groups[node]
        return PodGroups(pods, groups, by_id)


def place_of(pod: Pod) -> str:
    """The node that a pod is bound to or nominated for; empty if there is none."""
    return pod.spec.node_name or pod.status.nominated_node_name


def living(group: PodGroup) -> tuple[Pod, ...]:
    """The pods of the group that have not ended."""
    return tuple(pod for pod in group.pods if not is_terminal(pod))


def of_daemon_sets(group: PodGroup) -> tuple[Pod, ...]:
    """The pods of the group that are DaemonSets'."""
    return tuple(filter(is_daemon, group.pods))


def unbound(group: PodGroup) -> tuple[Pod, ...]:
    """The pods of the group that are alive and not bound to any node."""
    return tuple(pod for pod in group.pods if not pod.spec.node_name and is_active(pod))


def by_key(group: PodGroup) -> Mapping[str, Pod]:
    """The pods of the group by namespace/name."""
    return {pod.key: pod for pod in group.pods}


def _key(pod: Pod) -> str:
    return pod.key


def merged(groups: Iterable[Mapping[str, Pod]]) -> Mapping[str, Pod]:
    """All of them together."""
    pods: dict[str, Pod] = {}
    for group in groups:
        pods |= group
    return pods
