"""Pods as a person looks at them: workloads instead of thousands of pods, and nodes filled with them.

Pods of one owner with equal requests are one **workload**. Tables, pages and pictures of plans and of disruptions draw
these.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property

from joinery.decisions.scheduling.constraints.resources import PODS, requests_of
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import Resources, total
from joinery.objects.snapshot.pods import buffer_of, is_virtual, wanted_by
from joinery_cli.view.figures import natural

_NUMBER = re.compile(r"-\d+$")
_TEMPLATE_HASH = "pod-template-hash"
_WEIGHED = ("cpu", "memory")


@dataclass(frozen=True, slots=True, eq=False)
class DrawnWorkload:
    """Pods of one owner that ask for the same. ``name`` is ``namespace/owner``, ``requests`` those of one pod."""

    name: str
    requests: Resources
    pods: int
    number: int
    """By what all its pods take of the plan, the largest first; it decides the colour."""


@dataclass(frozen=True, slots=True)
class WorkloadPart:
    """The pods of one workload on a node."""

    workload: DrawnWorkload
    pods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A node and what will be on it. ``before`` is taken already: by daemons, or by pods that run there."""

    room: Resources
    before: Resources
    parts: tuple[WorkloadPart, ...]

    @cached_property
    def used(self) -> Resources:
        """With everything on it."""
        asked = (
            {name: value * len(part.pods) for name, value in part.workload.requests.items()} for part in self.parts
        )
        return total((self.before, *asked))

    @property
    def pods(self) -> int:
        return sum(len(part.pods) for part in self.parts)


#: The workload of each pod that is looked at, by its namespace/name.
WorkloadOf = Mapping[str, DrawnWorkload]


#: The owner, and what one pod asks for.
_Likeness = tuple[str, tuple[tuple[str, int], ...]]


def workloads_of(*groups: Iterable[Pod]) -> tuple[WorkloadOf, ...]:
    """The workloads of each group of pods. A pod may be in several groups, and ask for something else in each."""
    likenesses = [{pod.key: _likeness(pod) for pod in group} for group in groups]
    alike: dict[_Likeness, set[str]] = defaultdict(set)
    for group in likenesses:
        for pod, likeness in group.items():
            alike[likeness].add(pod)
    workloads = dict(zip(alike, _numbered(alike), strict=True))
    return tuple({pod: workloads[likeness] for pod, likeness in group.items()} for group in likenesses)


def _likeness(pod: Pod) -> _Likeness:
    asked = {name: value for name, value in requests_of(pod).items() if value and name != PODS}
    return owner_of(pod), tuple(sorted(asked.items()))


def owner_of(pod: Pod) -> str:
    """namespace/name of what the pod is a copy of: its Deployment, Job or the like;
    without an owner its name less a number. Of room the buffer, or the ProvisioningRequest.
    """
    if is_virtual(pod):
        return f"{wanted_by(pod)} ({'headroom' if buffer_of(pod) else 'ProvisioningRequest'})"
    metadata = pod.metadata
    owner = next((o.name for o in metadata.owner_references if o.controller), "")
    template = metadata.labels.get(_TEMPLATE_HASH)
    stem = owner.removesuffix(f"-{template}") if template else owner
    return f"{metadata.namespace or 'default'}/{stem or _NUMBER.sub('', metadata.name)}"


def subject_of(pod: Pod) -> str:
    """Whom a notice about the pod names: ``pods of default/web``, or the pod that nobody owns."""
    return f"pods of {owner_of(pod)}" if pod.metadata.owner_references else f"Pod {pod.key}"


def _numbered(alike: Mapping[_Likeness, Sized]) -> list[DrawnWorkload]:
    """The workloads in the given order, numbered by what all their pods take together."""
    everything = total({name: value * len(pods) for name, value in asked} for (_, asked), pods in alike.items())

    def size(key: _Likeness) -> float:
        asked = dict(key[1])
        return len(alike[key]) * sum(asked.get(name, 0) / max(1, everything.get(name, 0)) for name in _WEIGHED)

    ranked = sorted(alike, key=lambda key: (-size(key), key))
    numbers = {key: number for number, key in enumerate(ranked)}
    return [
        DrawnWorkload(name=key[0], requests=dict(key[1]), pods=len(pods), number=numbers[key])
        for key, pods in alike.items()
    ]


def parts_of(pods: Iterable[str], workload_of: WorkloadOf) -> tuple[WorkloadPart, ...]:
    """The pods of one node by workload, the largest workload first."""
    by_workload: dict[DrawnWorkload, list[str]] = defaultdict(list)
    for pod in pods:
        by_workload[workload_of[pod]].append(pod)
    listed = sorted(by_workload.items(), key=lambda item: item[0].number)
    return tuple(WorkloadPart(workload, tuple(sorted(members, key=natural))) for workload, members in listed)
