"""How many classes come before each, where the pod affinity of one waits for the pods of another.

The longest chain that runs into no class twice is exponential to find: a dozen workloads that all want to be near each
other have a billion chains. So no chain is followed far, the search of a class ends as soon as it has found one of
that length, and it ends after so many steps in any case. What it has found by then decides an order, and nothing else.
"""

from collections.abc import Collection, Hashable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

#: How many classes a chain has at most.
LONGEST_CHAIN = 8
#: How many steps are taken for all classes together, at most: about half a second.
_MOST_STEPS = 200_000


def depths(ahead_of: Mapping[T, Collection[T]]) -> Mapping[T, int]:
    """Of each class the length of its chain. ``ahead_of``: by class, those that its affinity waits for.

    Circles end where they began.
    """
    most_steps = _MOST_STEPS // max(1, len(ahead_of))
    return {one: _Search(ahead_of, most_steps).depth(one, frozenset({one})) for one in ahead_of}


class _Search(Generic[T]):
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
