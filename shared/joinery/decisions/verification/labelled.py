"""Which of many things a label selector selects: pods, volumes."""

from collections.abc import Iterable, Sequence

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
