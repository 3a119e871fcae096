"""Parts of an instance that ask for nearly the same, as those of two zones do over which every workload spreads.

What is found for one of them, its **leader**, is most of what the other one needs: bins of the same types with the same
items on them. So the leader alone is packed from nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns


@dataclass(frozen=True, eq=False)
class Likeness:
    """What stands for what in an instance that is like its leader.

    ``items``: int64[items], the leader's item for each of its own. ``bin_types``: int64[bin types of the leader], its
    own bin type for each; -1 where it has none.
    """

    instance: PackingInstance
    items: Ints
    bin_types: Ints

    def read(self, patterns: Patterns) -> Patterns:
        """The leader's patterns, as far as this instance has their bin types and items."""
        bin_types, counts = self.bin_types[patterns.bin_types], patterns.counts[:, self.items]
        counts = np.minimum(counts, self.instance.demands)
        is_right = (bin_types >= 0) & counts.any(axis=1)
        is_right &= ~((counts > 0) & ~self.instance.compatible.T[bin_types]).any(axis=1)
        return Patterns(bin_types[is_right], counts[is_right])

    def taken_over(self, patterns: Sequence[Pattern]) -> tuple[list[Pattern], Ints]:
        """The leader's bins, as often as this instance has the copies for all of what is on them; and int64[items], the
        copies that are left.
        """
        taken, residual = list[Pattern](), self.instance.demands.copy()
        for pattern in patterns:
            own = self.read(Patterns(np.array([pattern.bin_type]), pattern.counts[None]))
            for bin_type, counts in zip(own.bin_types, own.counts, strict=True):
                held = counts > 0
                copies = min(pattern.copies, int((residual[held] // counts[held]).min()))
                if copies and counts.sum() == pattern.counts.sum():
                    taken.append(Pattern(int(bin_type), counts, copies))
                    residual = residual - counts * copies
        return taken, residual


def in_order(instances: Sequence[PackingInstance]) -> Iterator[tuple[int, tuple[int, Likeness] | None]]:
    """The instances (indices), each with its leader, if it has one; leaders come first."""
    led, leaders = list[tuple[int, tuple[int, Likeness]]](), list[int]()
    looks = [_Look(instance) for instance in instances]
    # What has the most bin types may have all of another one's.
    for number in sorted(range(len(instances)), key=lambda number: -len(instances[number].costs)):
        found = ((leader, looks[number].like(looks[leader])) for leader in leaders)
        leader, likeness = next(((one, found) for one, found in found if found is not None), (number, None))
        if likeness is None:
            leaders.append(number)
            yield number, None
        else:
            led.append((number, (leader, likeness)))
    yield from led


class _Look:
    """By what items and bin types of an instance are known again: an item by its size and how many share a bin, of
    equal ones those with the most copies first; a bin type by its capacity and cost.
    """

    def __init__(self, instance: PackingInstance) -> None:
        self._instance = instance
        self._items: dict[tuple[bytes, int], list[int]] = defaultdict(list)
        for item in np.argsort(-instance.demands, kind="stable").tolist():
            self._items[instance.sizes[item].tobytes(), int(instance.most_by_rules[item])].append(item)
        bins = zip(instance.capacities, instance.costs, strict=True)
        self._bin_types = {(held.tobytes(), round(float(cost), 9)): at for at, (held, cost) in enumerate(bins)}
        is_single = all(len(limit.items) == 1 for limit in instance.cardinality_limits)
        # Else items are not told apart by these alone.
        self._is_plain = is_single and not instance.has_conflicting_items and not instance.is_limited.any()

    def like(self, leader: "_Look") -> Likeness | None:
        """How to read the other one as a leader; None where it differs in what there is, or too much in how much."""
        instance, own = self._instance, self._bin_types
        if not (self._is_plain and leader._is_plain) or own.keys() - leader._bin_types.keys():
            return None
        items: Ints = np.zeros(len(instance.demands), dtype=np.int64)
        for look, alike in self._items.items():
            others = leader._items.get(look, [])
            if len(others) < len(alike):
                return None
            items[alike] = others[: len(alike)]
        demands = np.zeros(len(leader._instance.demands), dtype=np.int64)
        demands[items] = instance.demands
        if np.abs(demands - leader._instance.demands).sum() > tuning.UNLIKE * instance.demands.sum():
            return None
        bin_types: Ints = np.full(len(leader._instance.costs), -1)
        for bin_look, bin_type in leader._bin_types.items():
            bin_types[bin_type] = own.get(bin_look, -1)
        return Likeness(instance, items, bin_types)
