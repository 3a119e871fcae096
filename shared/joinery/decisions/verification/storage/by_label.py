"""Things that nodes with certain labels reach, found by a label: thousands of them are on a node each."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from joinery.decisions.verification.predicates import Labels

T = TypeVar("T")

Condition = tuple[str, Sequence[str]]
"""A label, and the values of which a node has one."""


class ByLabel(Generic[T]):
    """``things``: each with alternatives, which are conditions that all must hold. No alternative: on every node."""

    def __init__(self, things: Iterable[tuple[T, Sequence[Sequence[Condition]]]]) -> None:
        listed = list(things)
        values: dict[str, set[str]] = {}
        for key, some in (pair for _, terms in listed for term in terms for pair in term):
            values.setdefault(key, set()).update(some)
        self._near: dict[tuple[str, str], dict[int, T]] = {}
        self._anywhere: list[T] = []
        for number, (thing, terms) in enumerate(listed):
            # By the label that tells most of them apart.
            telling = [max(term, key=lambda pair: (len(values[pair[0]]), pair[0])) for term in terms if term]
            if not telling or len(telling) < len(terms):
                self._anywhere.append(thing)
                continue
            for key, some in telling:
                for value in some:
                    self._near.setdefault((key, value), {})[number] = thing

    def near(self, labels: Labels) -> Iterator[T]:
        """Those that a node with the labels may reach, and all that it does reach."""
        found: dict[int, T] = {}
        for label in labels.items():
            found.update(self._near.get(label, {}))
        yield from self._anywhere
        yield from found.values()
