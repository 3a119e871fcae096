"""Pools by the values that their templates allow for labels: of hundreds of pools, each for one team, few are asked."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.pools.pool import Pool


class PoolsByLabel:
    """Which pools may suit requirements at all, as far as the labels tell for which templates list values."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._having: dict[str, dict[str, set[int]]] = {}
        listing: dict[str, set[int]] = defaultdict(set)
        for number, pool in enumerate(pools):
            for key, allowed in pool.requirements.sets.items():
                if not allowed.complement and not allowed.absent:
                    listing[key].add(number)
                    for value in allowed.values:
                        self._having.setdefault(key, defaultdict(set))[value].add(number)
        self._others = {key: set(range(len(pools))) - numbers for key, numbers in listing.items()}

    def suitable(self, wanted: Requirements) -> Iterator[Pool]:
        """In their order; of any other ``Pool.fit`` says that it conflicts."""
        numbers: set[int] | None = None
        for key, allowed in wanted.canonical().sets.items():
            if key in self._others and not allowed.complement:
                having = self._having.get(key, {})
                suiting = self._others[key].union(*(having[value] for value in allowed.values if value in having))
                numbers = suiting if numbers is None else numbers & suiting
        return iter(self._pools) if numbers is None else (self._pools[number] for number in sorted(numbers))
