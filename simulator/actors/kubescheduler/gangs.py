"""The plugins GangScheduling and topology-aware placement: pods of a PodGroup are bound when so many of them can be.

Where there are fewer pods than the group's minimum, nothing is said of them: kube-scheduler does not even try.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.podgroups import PodGroup
from simulator.actors.kubescheduler.view import View

#: Where a pod may go, if anywhere, beside those that are placed in the view.
Choose = Callable[[Pod, View], str]


def group_of(pod: Pod, groups: Mapping[str, PodGroup]) -> tuple[str, PodGroup] | None:
    """The group that the pod must be placed with; None for a pod that is placed by itself."""
    key = _key(pod)
    group = groups.get(key)
    if group is None or (group.minimum < 2 and not group.topology_key):
        return None
    return key, group


def _key(pod: Pod) -> str:
    """namespace/name of the group that the pod names; empty if it names none."""
    named = pod.spec.scheduling_group
    return f"{pod.metadata.namespace or 'default'}/{named.pod_group_name}" if named else ""


def running(key: str, view: View) -> list[tuple[str, Pod]]:
    """The group's pods that have a node, each with its node."""
    return [(info.name, pod) for info, pod in view.placed() if _key(pod) == key]


def placements(
    key: str, group: PodGroup, members: Sequence[Pod], view: View, choose: Choose
) -> Mapping[str, str] | None:
    """By pod (namespace/name) the node, of those that can be bound now: enough of them, or None. ``members``: the
    group's pods that wait, the most urgent first.
    """
    there = running(key, view)
    for part in _domains(group, [name for name, _ in there], view):
        trial = replace(part, nodes={name: info.with_pods(()) for name, info in part.nodes.items()})
        found: dict[str, str] = {}
        for pod in members:
            if node := choose(pod, trial):
                trial.nodes[node].take(pod)
                found[pod.key] = node
        if found and len(there) + len(found) >= group.minimum:
            return found
    return None


def _domains(group: PodGroup, taken: Sequence[str], view: View) -> Iterator[View]:
    """The nodes of each domain in which all of the group may be; all nodes where it may be anywhere."""
    key = group.topology_key
    if not key:
        yield view
        return
    values = {info.labels[key] for info in view.nodes.values() if key in info.labels}
    here = {view.nodes[name].labels.get(key, "") for name in taken}
    for value in sorted(values if not here else values & here if len(here) == 1 else ()):
        yield replace(view, nodes={name: one for name, one in view.nodes.items() if one.labels.get(key) == value})
