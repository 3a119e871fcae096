"""Which of many pods each rule selects: a bit for every pod, in one integer for every rule.

To ask every rule about every pod takes hours where thousands of workloads have rules about thousands. A condition on a
label is the union of the pods with its values, so a rule takes a few operations on integers, however many pods there
are.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_

import numpy as np

from joinery.apis.core import Pod
from joinery.scheduling.constraints.selectors import Clause
from joinery.scheduling.constraints.topology_rules import Matcher


def numbers_of(bits: int) -> list[int]:
    """The numbers of the bits that are set, in order."""
    raw = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    numbers: list[int] = np.flatnonzero(np.unpackbits(raw, bitorder="little")).tolist()
    return numbers


class Selection:
    """The pods by namespace and label; their bits are numbered in the order in which they are given."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._pods = pods
        self._all = (1 << len(pods)) - 1
        self._by_label: dict[str, Mapping[str, int]] = {}

    def of(self, matchers: Iterable[Matcher]) -> int:
        """The pods that all of them match."""
        bits = self._all
        for matcher in matchers:
            if matcher.namespaces is not None:
                bits &= _union(self._by_namespace, matcher.namespaces)
            if matcher.selector.clauses is None:
                return 0
            for clause in matcher.selector.clauses:
                bits &= self._meeting(clause)
        return bits

    def _meeting(self, clause: Clause) -> int:
        having = self._having(clause.key)
        match clause.operator:
            case "In":
                return _union(having, clause.values)
            case "NotIn":
                return self._all & ~_union(having, clause.values)
            case "Exists":
                return _union(having, having)
            case "DoesNotExist":
                return self._all & ~_union(having, having)
        return 0

    @cached_property
    def _by_namespace(self) -> Mapping[str, int]:
        return _bits((number, pod.metadata.namespace or "default") for number, pod in enumerate(self._pods))

    def _having(self, key: str) -> Mapping[str, int]:
        """The pods by their value of a label."""
        if key not in self._by_label:
            labels = ((number, pod.metadata.labels.get(key)) for number, pod in enumerate(self._pods))
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
