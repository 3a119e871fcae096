"""The pods of a snapshot by the node that they are on. A group that is as it was is the same object as before."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import is_

from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.derived import Derives
from joinery.objects.snapshot.pods import is_active, is_daemon, is_terminal, is_virtual

#: How many pods of two lists are compared at first.
_RUN = 64


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

    def __iter__(self) -> Iterator[PodGroup]:
        return iter(self.by_node.values())

    def following(self, pods: tuple[Pod, ...]) -> "PodGroups":
        """The groups of these pods. Costs little for those that were there before, in the same order."""
        if pods is self.pods:
            return self
        went, came = set[int](), defaultdict[str, list[Pod]](list)
        for before, after in differing(self.pods, pods):
            went.update(map(id, before))
            for pod in after:
                came[place_of(pod)].append(pod)
        left = [place_of(pod) for pod in self.pods if id(pod) in went] if went else ()
        groups = dict(self.by_node)
        for node in dict.fromkeys((*came, *left)):
            before = groups[node].pods if node in groups else ()
            there = [*(pod for pod in before if id(pod) not in went), *came[node]]
            groups[node] = PodGroup(node, tuple(sorted(there, key=_key)))
            if not there:
                del groups[node]
        return PodGroups(pods, groups)


def differing(before: tuple[Pod, ...], after: tuple[Pod, ...]) -> Iterator[tuple[tuple[Pod, ...], tuple[Pod, ...]]]:
    """The runs of pods in which two lists differ: what stands there before and after.

    Lists of an API server are in the order of names, so of two that differ in ten pods nearly all is found to be the
    same objects in long runs, which takes a thousandth of asking one after the other.
    """
    here, there = 0, 0
    while here < len(before) or there < len(after):
        same = _same(before, after, here, there)
        here, there = here + same, there + same
        first, second = here, there
        while here < len(before) and there < len(after) and before[here] is not after[there]:
            # Whichever comes first by name is not in the other list; of one name, the object is another one.
            one, other = before[here].key, after[there].key
            here, there = here + (one <= other), there + (other <= one)
        if here == len(before) or there == len(after):
            here, there = len(before), len(after)
        if (first, second) != (here, there):
            yield before[first:here], after[second:there]


def _same(before: tuple[Pod, ...], after: tuple[Pod, ...], here: int, there: int) -> int:
    """How many pods from there on are the same objects."""
    size, found = _RUN, 0
    while size:
        one, other = before[here + found : here + found + size], after[there + found : there + found + size]
        if len(one) == len(other) == size and all(map(is_, one, other)):
            found, size = found + size, 2 * size
        else:
            size //= 2
    return found


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


def claims_devices(group: PodGroup) -> bool:
    """Whether some pod of the group names a ResourceClaim or a template of some."""
    return any(pod.spec.resource_claims for pod in group.pods)


def virtual(group: PodGroup) -> tuple[Pod, ...]:
    """The pods of the group that stand for room (``pods.is_virtual``)."""
    return tuple(filter(is_virtual, group.pods))


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
