"""Free PersistentVolumes, place by place: thousands of claims may choose from them, and thousands of nodes reach some.

A claim chooses from a **stock**: all volumes of one place that are of its kind, whatever their size, and it binds the
smallest that is left and is large enough. So claims of all sizes share the stocks, and to find a volume takes as long
in a long stock as in a short one.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from joinery.decisions.scheduling.constraints.requirements import Requirements, one_of
from joinery.objects.karpenter.labels import HOSTNAME


class Sized(NamedTuple):
    """A volume by its size in bytes, and its name. They sort as kube-scheduler prefers them."""

    size: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """Free volumes of one kind in one place, the smallest first. Compared by identity.

    key       the label by which nodes of the place differ in what they reach; empty where all reach all of it
    by_value  what nodes with a value of that label reach
    """

    volumes: tuple[Sized, ...]
    key: str = ""
    by_value: Mapping[str, "Stock"] = field(default_factory=dict)

    @property
    def largest(self) -> int:
        """Bytes of the largest volume; -1 for none."""
        return self.volumes[-1].size if self.volumes else -1

    def at(self, labels: Mapping[str, str]) -> "Stock":
        """What a node of the place with these labels reaches."""
        return self.by_value.get(labels.get(self.key, ""), EMPTY) if self.key else self

    def first(self, size: int) -> int:
        """The index of the smallest volume that has so many bytes."""
        return bisect_left(self.volumes, Sized(size, ""))

    def has(self, volume: Sized) -> bool:
        index = bisect_left(self.volumes, volume)
        return index < len(self.volumes) and self.volumes[index] == volume


EMPTY = Stock(())


class Taken:
    """The names of volumes that are taken, and what is left of stocks."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self._next: dict[Stock, dict[int, int]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        self._names.add(name)

    def first_left(self, stock: Stock, index: int) -> int:
        """The index of the first volume from ``index`` on that is left; past the last one if none is.

        Taken volumes are passed over once: then it is known where they end.
        """
        following = self._next.setdefault(stock, {})
        passed: list[int] = []
        while index < len(stock.volumes) and stock.volumes[index].name in self._names:
            passed.append(index)
            index = following.get(index, index + 1)
        following.update(dict.fromkeys(passed, index))
        return index


class VolumePlaces:
    """Where volumes are, by what they demand of a node.

    Where that differs in the host alone it is one place, on any of the hosts, and so it is for any other label that
    only nodes that are there have: what a node reaches is asked node by node.
    """

    def __init__(self, demands: Mapping[str, Iterable[Requirements]], may_be_new: Callable[[str], bool]) -> None:
        """``demands``: by volume, what it demands of a node; any one will do. ``may_be_new``: whether a node that is to
        come may have a label.
        """
        named: dict[str, set[str]] = {}
        for requirements in (one for listed in demands.values() for one in listed):
            for key, allowed in requirements.sets.items():
                if not may_be_new(key) and not allowed.complement and allowed.values:
                    named.setdefault(key, set()).update(allowed.values)
        most = Counter({key: len(values) for key, values in named.items()})
        self._keys = [HOSTNAME, *(key for key, _ in most.most_common() if key != HOSTNAME)]
        self._beside: dict[object, Requirements] = {}
        self._spots = {name: tuple(map(self._spot, listed)) for name, listed in demands.items()}

    def _spot(self, requirements: Requirements) -> tuple[object, str, frozenset[str]]:
        """The place, and the label by which its nodes differ, with the values that will do."""
        listed = (key for key in self._keys if key in requirements.sets)
        key = next((key for key in listed if not (one := requirements.sets[key]).complement and one.values), "")
        beside = {name: allowed for name, allowed in requirements.sets.items() if name != key or not key}
        place = frozenset(beside.items()), key
        self._beside.setdefault(place, Requirements(beside))
        return place, key, requirements.sets[key].values if key else frozenset()

    def stocks(self, volumes: Iterable[Sized]) -> Iterator[tuple[Requirements, Stock]]:
        """The volumes, which are sorted, by place, and what each place demands of a node."""
        there: dict[object, tuple[str, dict[Sized, None], dict[str, list[Sized]]]] = {}
        for volume in volumes:
            for place, key, values in self._spots[volume.name]:
                _, listed, by_value = there.setdefault(place, (key, {}, {}))
                listed[volume] = None
                for value in values:
                    by_value.setdefault(value, []).append(volume)
        for place, (key, listed, by_value) in there.items():
            parts = {value: Stock(tuple(dict.fromkeys(some))) for value, some in by_value.items()}
            any_value = Requirements({key: one_of(parts)} if key else {})
            yield self._beside[place].intersect(any_value), Stock(tuple(listed), key, parts)
