"""In which order classes are placed when time is up: one user's pods must not take all of the time that is left.

Until then first-fit's order packs best. From then on namespaces take turns of a few classes each, in first-fit's order
within a turn: pods of a high priority go first, but not thousands of them. Classes that no NodePool sells a node for
come last: to see that takes a tenth of the time of trying them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from joinery.decisions.scheduling.constraints.podclasses import PodClass

_TURN = 16
"""Classes of a namespace in one turn: as many workloads as most have."""


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
