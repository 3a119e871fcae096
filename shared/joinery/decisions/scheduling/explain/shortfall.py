"""Counting what falls short, in words: "of 12 instance types that it allows, 9 have too little memory"."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.resources import PODS, driver_of
from joinery.decisions.scheduling.pools.market import Amounts, Axis
from joinery.objects.kubernetes.quantity import in_words

#: Of more resources that nobody offers a sentence only says how many there are.
_SHOWN = 3
_WORDS = {"cpu": "CPU", "memory": "memory", "pods": "room for pods", "ephemeral-storage": "ephemeral storage"}


def counted(total: int, what: str, parts: Iterable[tuple[int, str]]) -> str:
    """A sentence about ``total`` things and how many have which defect; the defect is said in the plural, after "have".

    ``what`` is their name in the singular, with "s" as its plural. Beside a defect that all of them have, others are no
    news.
    """
    listed = [(number, defect) for number, defect in parts if number]
    if of_all := [defect for number, defect in listed if number == total]:
        have = _and(of_all)
        return f"the one {what} has {have}" if total == 1 else f"all {total:,} {_plural(what)} have {have}"
    joined = [f"{number:,} {'has' if number == 1 else 'have'} {defect}" for number, defect in listed]
    return f"of {total:,} {_plural(what)}, {_and(joined)}"


def _plural(what: str) -> str:
    head, _, rest = what.partition(" that ")
    return f"{head}s that {rest}" if rest else f"{head}s"


def _and(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


@dataclass(frozen=True, slots=True)
class Shortage:
    """How many things have too little of a resource, and that in words, after "have"."""

    resource: str
    number: int
    words: str


def shortages(axis: Axis, pod_class: PodClass, room: Amounts, taken: Amounts | None = None) -> list[Shortage]:
    """For each resource of which some row of ``room`` has too little, how many rows have.

    ``taken``: what DaemonSets took of each row already.
    """
    listed = (_shortage(axis, name, pod_class.requests, room, taken) for name in axis.index if name)
    unoffered, number = axis.unoffered(pod_class.requests), len(room)
    shown = [f"no {name}" for name in unoffered[:_SHOWN]]
    if more := len(unoffered) - _SHOWN:
        shown += [f"none of {more:,} other resources"] if more > 0 else []
    return [
        *(shortage for shortage in listed if shortage is not None),
        *(Shortage(name, number, words) for name, words in zip(unoffered, shown, strict=False)),
    ]


def _shortage(
    axis: Axis, name: str, requests: Mapping[str, int], room: Amounts, taken: Amounts | None
) -> Shortage | None:
    column, asked = axis.index[name], requests.get(name, 0)
    short = room[:, column] < asked
    if not short.any():
        return None
    number = int(short.sum())
    most = int(taken[short, column].max()) if taken is not None else 0
    if asked and not most and (room[short, column] <= 0).all() and name not in _WORDS:
        return Shortage(name, number, f"no {name}")
    driver = driver_of(name)
    if driver:
        return Shortage(name, number, f"too few attachments for volumes of {driver} (the pod has {asked})")
    parts = [f"the pod asks for {in_words(name, asked)}"] if asked else []
    parts += [f"DaemonSets take up to {in_words(name, most)}"] if most else []
    why = f"({', '.join(parts)})" if parts else "for what runs there without the pod"
    return Shortage(name, number, f"too little {_WORDS.get(name, name)} {why}")


def requests_in_words(pod_class: PodClass) -> str:
    """``cpu 500m, memory 1Gi``; that a pod is one pod goes without saying."""
    asked = (
        f"{name} {in_words(name, value)}"
        for name, value in sorted(pod_class.requests.items())
        if value and name != PODS and not driver_of(name)
    )
    return ", ".join(asked) or "nothing"
