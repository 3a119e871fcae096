"""In which order first-fit places classes; and in which once time is up.

**Chains.** A class whose pod affinity waits for the pods of another comes after it. The longest chain that runs into no
class twice is exponential to find: a dozen workloads that all want to be near each other have a billion chains. So no
chain is followed far, the search of a class ends as soon as it has found one of that length, and it ends after so many
steps in any case. What it has found by then decides an order, and nothing else.

**Turns.** One user's pods must not take all of the time that is left. So once time is up namespaces take turns of a few
classes each, in first-fit's order within a turn: pods of a high priority go first, but not thousands of them. Classes
that no NodePool sells a node for come last: to see that takes a tenth of the time of trying them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.resources import driver_of
from joinery.decisions.scheduling.firstfit.options import FirstFitOptions
from joinery.decisions.scheduling.topology.topology import Topology

T = TypeVar("T", bound=Hashable)

#: How many classes a chain has at most.
LONGEST_CHAIN = 8
#: How many steps are taken for all classes together, at most: about half a second.
_MOST_STEPS = 200_000
#: Classes of a namespace in one turn: as many workloads as most have.
_TURN = 16


def ordered(classes: Sequence[PodClass], topology: Topology, options: FirstFitOptions) -> list[PodClass]:
    """By priority, then those that few free volumes suit, then usually those that others' affinity waits for,
    then by size."""
    chain = depths(_ahead_of(classes, topology))
    return sorted(
        classes,
        key=lambda pod_class: (
            -pod_class.priority,
            _volumes_to_choose_from(pod_class),
            *options.sort_key(pod_class.name, chain[pod_class], _sizes(pod_class)),
            pod_class.name,
        ),
    )


def _ahead_of(classes: Iterable[PodClass], topology: Topology) -> Mapping[PodClass, list[PodClass]]:
    """By class those that must be placed before it, because its pod affinity waits for theirs."""
    ahead_of: dict[PodClass, list[PodClass]] = {}
    for pod_class in classes:
        affinities = [rule for rule in topology.rules[pod_class] if rule.kind == "affinity"]
        wanted = topology.selected(affinities) if affinities else ()
        ahead_of[pod_class] = [other for other in wanted if other is not pod_class]
    return ahead_of


def _volumes_to_choose_from(pod_class: PodClass) -> float:
    """A volume that suits a small claim may be the only one that suits a large one."""
    choices = [choice for choices in pod_class.volumes.choices for choice in choices]
    volumes = (len(choice.stock.volumes) - choice.stock.first(choice.size) for choice in choices)
    return sum(volumes) if choices else float("inf")


def _sizes(pod_class: PodClass) -> tuple[int, int, int]:
    """What makes a class hard to place: special resources, then CPU, then memory."""
    usual = {"cpu", "memory", "pods", "ephemeral-storage"}
    special = [name for name in pod_class.requests if name not in usual and not driver_of(name)]
    return len(special), pod_class.requests.get("cpu", 0), pod_class.requests.get("memory", 0)


def in_turns(classes: Sequence[PodClass], is_sold: Callable[[PodClass], bool]) -> Iterator[PodClass]:
    """The classes, which come in first-fit's order. ``is_sold``: whether a node for one pod of it could be bought."""
    before, turns = Counter[str](), dict[PodClass, int]()
    for pod_class in classes:
        turns[pod_class] = before[pod_class.namespace] // _TURN
        before[pod_class.namespace] += 1
    unsold = []
    for pod_class in sorted(classes, key=turns.__getitem__):
        if is_sold(pod_class):
            yield pod_class
        else:
            unsold.append(pod_class)
    yield from unsold


def depths(ahead_of: Mapping[T, Collection[T]]) -> Mapping[T, int]:
    """Of each class the length of its chain. ``ahead_of``: by class, those that its affinity waits for.

    Circles end where they began.
    """
    most_steps = _MOST_STEPS // max(1, len(ahead_of))
    return {one: _ChainSearch(ahead_of, most_steps).depth(one, frozenset({one})) for one in ahead_of}


class _ChainSearch(Generic[T]):
    """The search for one class. ``steps``: how many it may still take."""

    def __init__(self, ahead_of: Mapping[T, Collection[T]], steps: int) -> None:
        self._ahead_of = ahead_of
        self._steps = steps

    def depth(self, one: T, chain: frozenset[T]) -> int:
        """How many come before it that are not in the chain, which it is the end of."""
        longest, most = 0, LONGEST_CHAIN - len(chain)
        for other in self._ahead_of[one]:
            if longest == most or self._steps <= 0:
                break
            if other not in chain:
                self._steps -= 1
                longest = max(longest, 1 + self.depth(other, chain | {other}))
        return longest
