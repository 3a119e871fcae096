"""In which domains something can be bought for a class, and at what price: what the allotment deals pods out over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, product
from typing import NamedTuple

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import one_of
from joinery.decisions.scheduling.firstfit.buying import Buyer
from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.new_nodes import is_open_to
from joinery.decisions.scheduling.firstfit.options import FirstFitOptions
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, Amounts
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import canonical

#: Combinations of domains over several topology keys that one kind of node is tried in; more would take too long.
_COMBINATIONS = 256


@dataclass(frozen=True)
class Offered:
    """Combinations of domains, the best first.

    ``are_bought``: whether a node can be bought in each; else some have nothing but capacity reservations.
    """

    combinations: list[Domains]
    are_bought: bool


class _Rank(NamedTuple):
    """How a combination ranks in one pool. ``price``: $/h of the cheapest offering there."""

    minus_weight: int
    lowers_min_values: bool
    price: float


class DomainOffers:
    """The combinations of domains that some pool or reservation can offer a class."""

    def __init__(self, work: Workspace, buyer: Buyer, options: FirstFitOptions) -> None:
        self._work = work
        self._topology: Topology = work.topology
        self._nodes, self._reserved = buyer.nodes, buyer.reserved
        self._fitting = options.fitting
        self._relaxes = work.problem.options.best_effort_min_values
        self._offers: dict[tuple[Demand | str, ...], Offered] = {}

    @cached_property
    def _keys_of_some(self) -> frozenset[str]:
        """Keys that nodes of some pools have and nodes of others lack: there "no such label" is a domain of its own."""
        return frozenset().union(*(pool.requirements.sets.keys() | pool.market.type_keys for pool in self._work.pools))

    def over(self, demand: Demand, keys: Sequence[str]) -> Offered:
        """Every combination of domains of these keys that some pool can offer the class.

        Those of heavier pools come first, then those that keep to minValues, then the cheapest. They are remembered
        unless a reservation can run out meanwhile.
        """
        if self._work.reservations:
            return self._combinations(demand, keys)
        if (demand, *keys) not in self._offers:
            self._offers[demand, *keys] = self._combinations(demand, keys)
        return self._offers[demand, *keys]

    def _combinations(self, demand: Demand, keys: Sequence[str]) -> Offered:
        offers: dict[tuple[tuple[str, str], ...], _Rank] = {}
        bought: set[tuple[tuple[str, str], ...]] = set()
        for node in self.starts(demand, keys):
            prices: PinnedPrices | None = None
            options = [self._options(node, demand, key) for key in keys]
            for values in islice(product(*options), _COMBINATIONS):
                named = zip(keys, values, strict=True)
                domains = {key: value for key, value in named if value or key in self._keys_of_some}
                if not self._work.reservations and decides(node, domains, keys):
                    prices = prices or PinnedPrices(node, demand, fitting=self._fitting)
                    price = prices.least(domains)
                    rank = None if price is None else _Rank(-node.pool.weight, False, price)
                else:
                    rank = self._rank(node, demand, domains, keys)
                if rank is not None:
                    key = tuple(sorted(domains.items()))
                    offers[key] = min(offers.get(key, rank), rank)
                    bought |= set() if node.reservation else {key}
        best_first = sorted(offers.items(), key=lambda item: (item[1], item[0]))
        return Offered([dict(key) for key, _ in best_first], len(bought) == len(offers))

    def _rank(self, node: NewNode, demand: Demand, domains: Domains, keys: Sequence[str]) -> _Rank | None:
        """How a node in these domains ranks among others; None where it is no place for the class.

        A domain without room takes no share: its share would let pods into others that must stay out without it.
        """
        missing = [key for key in keys if not domains.get(key)]
        if any(rule.key in missing and rule.kind != "anti-affinity" for rule in demand.variant.rules):
            return None  # a node without the label is no place for a spread or an affinity over it
        narrowed = node.narrowed(demand, domains)
        if narrowed is None:
            return None
        most, _, counts = narrowed.holds(demand, np.ones_like(narrowed.types))
        if not most and not (self._relaxes and counts.max(initial=0)):
            return None
        types = holding(narrowed, demand) if self._fitting else narrowed.types
        prices = narrowed.pool.market.prices[types][:, narrowed.columns]
        return _Rank(-node.pool.weight, not most, float(prices.min()))

    def _options(self, node: NewNode, demand: Demand, key: str) -> Sequence[str]:
        """The domains of the key that the node may be pinned to.

        Where its minValues ask for several, it cannot be. Then as many as they ask for, in all ways, if nothing but
        anti-affinity wants to know which it is: the pods keep apart from those in any of them.
        """
        values, least = self._values(node, key), node.min_values.get(canonical(key), 0)
        if (
            least < 2
            or self._relaxes
            or not self._topology.only_keeps_apart(demand.pod_class, demand.variant.rules, key)
        ):
            return values or ("",)
        return [",".join(chosen) for chosen in islice(combinations(values, least), _COMBINATIONS)]

    def _values(self, node: NewNode, key: str) -> tuple[str, ...]:
        """The domains of the key that the node may be in. Of a label that may have any value, one that nothing else has
        stands for all; and each that nodes of an earlier packing had.
        """
        values, allowed = node.values(key), node.requirements.get(key)
        if not allowed.complement or not values:
            return values
        opened = {it.domain for it in self._topology.unforeseen if it.key == key and allowed.has(it.domain)}
        return tuple(sorted({*values, *opened}))

    def starts(self, demand: Demand, keys: Sequence[str]) -> Iterator[NewNode]:
        """A fresh node of each pool and reservation for the class; open nodes in reservations, which may be full."""
        suitable = self._work.pools_by_label.suitable(demand.requirements)
        for pool in (pool for pool in suitable if is_open_to(pool, demand, self._topology)):
            node = self._nodes.start(pool, demand, {})
            if node is not None:
                yield node
            if self._work.reservations:
                yield from self._reserved.starts(pool, demand, {}, keys)
        if self._work.reservations:
            yield from self._reserved.open_to(demand)


class PinnedPrices:
    """What a fresh node for a class costs once it is pinned to domains that only its offerings decide.

    To pin it takes columns away and leaves its types as they are, so each column is asked once, and hundreds of
    combinations of columns need no nodes of their own.
    """

    def __init__(self, node: NewNode, demand: Demand, *, fitting: bool) -> None:
        self._market = node.pool.market
        fit = np.where(node.columns, self._market.prices[holding(node, demand)], np.inf)
        prices = fit if fitting else np.where(node.columns, self._market.prices[node.types], np.inf)
        self._least = prices.min(axis=0, initial=np.inf)
        self._has_room = np.isfinite(fit).any(axis=0)

    def least(self, domains: Domains) -> float | None:
        """$/h of the cheapest offering there (``fitting``: that holds a pod); None where nothing there holds one."""
        columns = np.ones_like(self._has_room)
        for key, value in domains.items():
            columns &= self._market.column_mask(key, one_of((value,)))
        return float(self._least[columns].min()) if (columns & self._has_room).any() else None


def holding(node: NewNode, demand: Demand) -> Amounts:
    """The types that the node may be and that hold a pod (rows)."""
    _, rows, counts = node.holds(demand, np.ones_like(node.types))
    fit: Amounts = rows[counts > 0]
    return fit


def decides(node: NewNode, domains: Domains, keys: Sequence[str]) -> bool:
    """Whether offerings alone decide about these domains; minValues ask for more than the cheapest of them."""
    return (
        not node.min_values and set(keys) <= set(OFFERING_KEYS) and len(domains) == len(keys) and all(domains.values())
    )
