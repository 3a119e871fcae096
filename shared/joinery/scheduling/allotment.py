"""How many pods of a class each combination of domains should take, by the counts alone.

Where nothing but topology can stop a pod, the whole class is dealt out at once, each pod where it presses least; the final
state is what counts, not the order. Where limits may stop pods, or the end of a capacity reservation, one is dealt at a time, so
that none is dealt on the strength of another that never came.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from joinery.scheduling.purchase import Purchase
from joinery.scheduling.targets import Demand, Domains, NewNode
from joinery.scheduling.topology import UNLIMITED, Topology
from joinery.scheduling.workspace import Workspace

_COMBINATIONS = 256  # of domains over several topology keys


class Allotment:
    def __init__(self, work: Workspace, purchase: Purchase) -> None:
        self._work = work
        self._topology: Topology = work.topology
        self._purchase = purchase
        self._known: dict[int, tuple[Demand, tuple[list[Domains], bool]]] = {}
        self._is_unlimited = not any(pool.limits for pool in work.pools)

    def of(self, demand: Demand, count: int) -> list[tuple[Domains, int]]:
        """Domains and the pods they should take now, best first."""
        keys = self._topology.keys(demand.pods, demand.variant.rules)
        if not keys:
            return [({}, count)]
        combos, is_bought = self._offered(demand, keys)
        return self._shares(demand, combos, count if self._is_unlimited and is_bought else 1)

    def _offered(self, demand: Demand, keys: Sequence[str]) -> tuple[list[Domains], bool]:
        """The combinations, sought once for each demand where no reservation can run out."""
        if self._work.reservations:
            return self._combinations(demand, keys)
        known = self._known.get(id(demand))
        if known is None:
            known = self._known[id(demand)] = demand, self._combinations(demand, keys)
        return known[1]

    def _combinations(self, demand: Demand, keys: Sequence[str]) -> tuple[list[Domains], bool]:
        """Every combination of domains that some pool can offer the class, cheapest first; and whether each can be bought for."""
        found: dict[tuple[tuple[str, str], ...], float] = {}
        bought: set[tuple[tuple[str, str], ...]] = set()
        for node in self._starts(demand):
            options = [node.values(key) or ("",) for key in keys]
            for values in list(product(*options))[:_COMBINATIONS]:
                domains = {key: value for key, value in zip(keys, values, strict=True) if value}
                narrowed = node.narrowed(demand, domains)
                if narrowed is not None and _has_room(narrowed, demand) and self._defined(demand, domains, keys):
                    prices = narrowed.pool.market.prices[narrowed.types][:, narrowed.columns]
                    key = tuple(sorted(domains.items()))
                    found[key] = min(found.get(key, np.inf), float(prices.min()))
                    bought |= set() if node.reservation else {key}
        listed: list[Domains] = [dict(key) for key, _ in sorted(found.items(), key=lambda item: (item[1], item[0]))]
        return listed, len(bought) == len(found)

    def _starts(self, demand: Demand) -> Iterator[NewNode]:
        """Every sort of node that could be begun for the class."""
        for pool in self._work.pools:
            node = self._purchase.start(pool, demand, {})
            if node is not None:
                yield node
            if self._work.reservations:
                yield from self._purchase.reserved_starts(pool, demand, {})

    def _defined(self, demand: Demand, domains: Domains, keys: Sequence[str]) -> bool:
        """A node without the label is no place for a spread or an affinity over it."""
        missing = [key for key in keys if key not in domains]
        return not any(rule.key in missing and rule.kind != "anti-affinity" for rule in demand.variant.rules)

    def _shares(self, demand: Demand, combos: list[Domains], count: int) -> list[tuple[Domains, int]]:
        """Play ``count`` placements against the counts alone, each where it presses least, and take them back."""
        pods, rules = demand.pods, demand.variant.rules
        shares = [0] * len(combos)
        for cautious in (True, False):
            for _ in range(count - sum(shares)):
                best = self._least_pressed(demand, combos, cautious)
                if best is None:
                    break
                index, amount = best
                amount = min(amount, count - sum(shares)) if amount >= UNLIMITED else 1
                self._topology.record(pods, rules, combos[index], amount, lambda _: True)
                shares[index] += amount
                if sum(shares) == count:
                    break
        for index, share in enumerate(shares):
            if share:
                self._topology.record(pods, rules, combos[index], -share, lambda _: True)
        return [(combos[i], share) for i, share in enumerate(shares) if share]

    def _least_pressed(self, demand: Demand, combos: list[Domains], cautious: bool) -> tuple[int, int] | None:
        """The combination with the fewest counted pods that may take one more, and how many it may take."""
        pods, rules = demand.pods, demand.variant.rules
        best: tuple[int, int, int] | None = None
        for index, domains in enumerate(combos):
            allowed, pressure = UNLIMITED, 0
            for key, domain in domains.items():
                allowed = min(allowed, self._topology.allowance(pods, rules, key, domain, cautious=cautious))
                pressure += self._topology.pressure(pods, rules, key, domain)
            if allowed > 0 and (best is None or pressure < best[0]):
                best = (pressure, index, allowed)
        return None if best is None else (best[1], best[2])


def _has_room(node: NewNode, demand: Demand) -> bool:
    """Whether anything that the node may be holds one pod: a share dealt to a domain without would let others in elsewhere."""
    _, _, counts = node.holds(demand, np.ones_like(node.types))
    return bool((counts > 0).any())
