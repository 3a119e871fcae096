"""Pods as a person looks at them: workloads instead of thousands of pods, and nodes filled with them.

Pods of one owner with equal requests are one **workload**. Tables, pages and pictures of plans and of disruptions draw
these.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from joinery.apis.core import Pod
from joinery.apis.quantity import Resources, total
from joinery.cli.view.figures import natural
from joinery.scheduling.constraints.resources import PODS, requests_of

_NUMBER = re.compile(r"-\d+$")
_TEMPLATE_HASH = "pod-template-hash"
_WEIGHED = ("cpu", "memory")


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Pods of one owner that ask for the same. ``name`` is ``namespace/owner``, ``requests`` those of one pod."""

    name: str
    requests: Resources
    pods: int
    number: int
    """By what all its pods take of the plan, the largest first; it decides the colour."""


@dataclass(frozen=True, slots=True)
class Part:
    """The pods of one workload on a node."""

    workload: Workload
    pods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A node and what will be on it. ``before`` is taken already: by daemons, or by pods that run there."""

    room: Resources
    before: Resources
    parts: tuple[Part, ...]

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


WorkloadOf = Mapping[str, Workload]
"""The workload of each pod that is looked at, by its namespace/name."""


def workloads_of(pods: Iterable[Pod], looked_at: Container[str]) -> WorkloadOf:
    """The workloads of those pods that are ``looked_at`` (namespace/name)."""
    alike: dict[tuple[str, tuple[tuple[str, int], ...]], list[str]] = defaultdict(list)
    for pod in pods:
        if pod.key in looked_at:
            asked = {name: value for name, value in requests_of(pod).items() if value and name != PODS}
            alike[(owner_of(pod), tuple(sorted(asked.items())))].append(pod.key)
    return {
        pod: workload
        for workload, members in zip(_numbered(alike), alike.values(), strict=True)
        for pod in members
    }  # fmt: skip


def owner_of(pod: Pod) -> str:
    """namespace/name of what the pod is a copy of: its Deployment, Job or the like;
    without an owner its name less a number.
    """
    metadata = pod.metadata
    owner = next((o.name for o in metadata.owner_references if o.controller), "")
    template = metadata.labels.get(_TEMPLATE_HASH)
    stem = owner.removesuffix(f"-{template}") if template else owner
    return f"{metadata.namespace or 'default'}/{stem or _NUMBER.sub('', metadata.name)}"


def subject_of(pod: Pod) -> str:
    """Whom a notice about the pod names: ``pods of default/web``, or the pod that nobody owns."""
    return f"pods of {owner_of(pod)}" if pod.metadata.owner_references else f"Pod {pod.key}"


def _numbered(alike: Mapping[tuple[str, tuple[tuple[str, int], ...]], Sequence[str]]) -> list[Workload]:
    """The workloads in the given order, numbered by what all their pods take together."""
    everything = total({name: value * len(pods) for name, value in asked} for (_, asked), pods in alike.items())

    def size(key: tuple[str, tuple[tuple[str, int], ...]]) -> float:
        asked = dict(key[1])
        return len(alike[key]) * sum(asked.get(name, 0) / max(1, everything.get(name, 0)) for name in _WEIGHED)

    ranked = sorted(alike, key=lambda key: (-size(key), key))
    numbers = {key: number for number, key in enumerate(ranked)}
    return [
        Workload(name=key[0], requests=dict(key[1]), pods=len(pods), number=numbers[key]) for key, pods in alike.items()
    ]


def parts_of(pods: Iterable[str], workload_of: WorkloadOf) -> tuple[Part, ...]:
    """The pods of one node by workload, the largest workload first."""
    by_workload: dict[Workload, list[str]] = defaultdict(list)
    for pod in pods:
        by_workload[workload_of[pod]].append(pod)
    listed = sorted(by_workload.items(), key=lambda item: item[0].number)
    return tuple(Part(workload, tuple(sorted(members, key=natural))) for workload, members in listed)
