"""Two indices by label: which things a selector selects (``Labelled``), and which a node reaches (``ByLabel``)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from joinery.decisions.verification.predicates import Labels
from joinery.objects.kubernetes.core import LabelSelector, LabelSelectorRequirement


def as_set(indices: Iterable[int]) -> int:
    """The set of those with these indices."""
    listed = list(indices)
    marked = bytearray(max(listed, default=0) // 8 + 1)
    for index in listed:
        marked[index // 8] |= 1 << index % 8
    return int.from_bytes(marked, "little")


class Labelled:
    """Things by their labels. A set of them is an integer with a bit for each, by its index."""

    def __init__(self, labels: Sequence[Labels]) -> None:
        self._all: int = (1 << len(labels)) - 1
        self._indices: dict[str, dict[str, list[int]]] = {}
        for index, pairs in enumerate(labels):
            for key, value in pairs.items():
                self._indices.setdefault(key, {}).setdefault(value, []).append(index)
        self._with_key: dict[str, int] = {}

    def matching(self, selector: LabelSelector | None) -> int:
        """None matches nothing, an empty selector matches everything, one with an unknown operator nothing."""
        if selector is None:
            return 0
        matched = self._all
        for key, value in selector.match_labels.items():
            matched &= self.having(key, (value,))
        for expression in selector.match_expressions:
            matched &= self._meeting(expression)
        return matched

    def _meeting(self, expression: LabelSelectorRequirement) -> int:
        match expression.operator:
            case "In":
                return self.having(expression.key, expression.values)
            case "NotIn":
                return self._all & ~self.having(expression.key, expression.values)
            case "Exists":
                return self._having_any(expression.key)
            case "DoesNotExist":
                return self._all & ~self._having_any(expression.key)
        return 0

    def having(self, key: str, values: Iterable[str]) -> int:
        """Those whose label has one of the values."""
        by_value = self._indices.get(key)
        if by_value is None:
            return 0
        return as_set(index for value in by_value.keys() & set(values) for index in by_value[value])

    def _having_any(self, key: str) -> int:
        if key not in self._with_key:
            self._with_key[key] = self.having(key, self._indices.get(key, ()))
        return self._with_key[key]


T = TypeVar("T")

#: A label, and the values of which a node must have one.
LabelCondition = tuple[str, Sequence[str]]


class ByLabel(Generic[T]):
    """``things``: each with alternatives, which are conditions that all must hold. No alternative: on every node."""

    def __init__(self, things: Iterable[tuple[T, Sequence[Sequence[LabelCondition]]]]) -> None:
        listed = list(things)
        values: dict[str, set[str]] = {}
        for key, some in (pair for _, terms in listed for term in terms for pair in term):
            values.setdefault(key, set()).update(some)
        self._near: dict[tuple[str, str], dict[int, T]] = {}
        self._anywhere: list[T] = []
        for number, (thing, terms) in enumerate(listed):
            # By the label that has the most values.
            selective = [max(term, key=lambda pair: (len(values[pair[0]]), pair[0])) for term in terms if term]
            if not selective or len(selective) < len(terms):
                self._anywhere.append(thing)
                continue
            for key, some in selective:
                for value in some:
                    self._near.setdefault((key, value), {})[number] = thing

    def near(self, labels: Labels) -> Iterator[T]:
        """Those that a node with the labels may reach, and all that it does reach."""
        found: dict[int, T] = {}
        for label in labels.items():
            found.update(self._near.get(label, {}))
        yield from self._anywhere
        yield from found.values()
