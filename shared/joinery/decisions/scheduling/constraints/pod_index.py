"""Which of many pods each rule selects: a bit for every pod, in one integer for every rule.

To ask every rule about every pod takes hours where thousands of workloads have rules about thousands. A condition on a
label is the union of the pods with its values, so a rule takes a few operations on integers, however many pods there
are.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from operator import and_, or_

import numpy as np

from joinery.decisions.scheduling.constraints.selectors import Clause, SelectedNamespaces, Selector
from joinery.decisions.scheduling.constraints.topology_rules import Matcher
from joinery.objects.kubernetes.core import Pod


def numbers_of(bits: int) -> list[int]:
    """The numbers of the bits that are set, in order."""
    raw = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    numbers: list[int] = np.flatnonzero(np.unpackbits(raw, bitorder="little")).tolist()
    return numbers


class PodIndex:
    """The pods by namespace and label; their bits are numbered in the order in which they are given."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._names = [pod.metadata.namespace or "default" for pod in pods]
        self._labelled = _Labelled([pod.metadata.labels for pod in pods])
        self._in_listed: tuple[_Labelled, int] | None = None

    def selected_by(self, matchers: Iterable[Matcher]) -> int:
        """The pods that all of them match. Their namespaces, if selected, are of one cluster."""
        bits = self._labelled.all
        for matcher in matchers:
            bits &= self._labelled.matching(matcher.selector)
            if bits and matcher.namespaces is not None:
                bits &= self._inside(matcher.namespaces)
        return bits

    def _inside(self, namespaces: frozenset[str] | SelectedNamespaces) -> int:
        if not isinstance(namespaces, SelectedNamespaces):
            return _union(self._by_namespace, namespaces)
        if self._in_listed is None:
            of_listed = [namespaces.labels.get(name, {}) for name in self._names]
            listed = sum(1 << number for number, name in enumerate(self._names) if name in namespaces.labels)
            self._in_listed = _Labelled(of_listed), listed
        labelled, listed = self._in_listed
        return labelled.matching(namespaces.selector) & listed | _union(self._by_namespace, namespaces.named)

    @cached_property
    def _by_namespace(self) -> Mapping[str, int]:
        return _bits(enumerate(self._names))


class _Labelled:
    """Sets of labels, each with the bit of its number."""

    def __init__(self, labels: Sequence[Mapping[str, str]]) -> None:
        self._labels = labels
        self.all = (1 << len(labels)) - 1
        self._by_label: dict[str, Mapping[str, int]] = {}
        self._having_any: dict[str, int] = {}

    def matching(self, selector: Selector) -> int:
        """Those that the selector matches."""
        if selector.clauses is None:
            return 0
        return reduce(and_, map(self._meeting, selector.clauses), self.all)

    def _meeting(self, clause: Clause) -> int:
        having = self._having(clause.key)
        match clause.operator:
            case "In":
                return _union(having, clause.values)
            case "NotIn":
                return self.all & ~_union(having, clause.values)
            case "Exists":
                return self._with(clause.key)
            case "DoesNotExist":
                return self.all & ~self._with(clause.key)
        return 0

    def _with(self, key: str) -> int:
        """Those that have the label."""
        if key not in self._having_any:
            having = self._having(key)
            self._having_any[key] = _union(having, having)
        return self._having_any[key]

    def _having(self, key: str) -> Mapping[str, int]:
        """By value of a label those that have it."""
        if key not in self._by_label:
            labels = ((number, one.get(key)) for number, one in enumerate(self._labels))
            self._by_label[key] = _bits((number, value) for number, value in labels if value is not None)
        return self._by_label[key]


def _bits(values: Iterable[tuple[int, str]]) -> Mapping[str, int]:
    """By value, the numbers that have it as bits."""
    bits: dict[str, int] = defaultdict(int)
    for number, value in values:
        bits[value] |= 1 << number
    return dict(bits)


def _union(having: Mapping[str, int], values: Iterable[str]) -> int:
    return reduce(or_, (having[value] for value in values if value in having), 0)
