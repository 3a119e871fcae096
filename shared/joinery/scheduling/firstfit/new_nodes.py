"""New nodes: which are being bought, and putting pods on them.

A node may grow into a larger instance type while that does not make it poorer value than it was (``value.grown``); growing
until nothing fits, the common way, ends on the one type that holds everything and pays for it.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from joinery.apis.labels import HOSTNAME
from joinery.scheduling.firstfit.ledger import Newcomer
from joinery.scheduling.firstfit.limits import Limits
from joinery.scheduling.firstfit.manners import USUAL, Manner
from joinery.scheduling.firstfit.opened import OpenedNodes
from joinery.scheduling.firstfit.reservations import Reservations
from joinery.scheduling.firstfit.targets import Batch, Demand, Domains, NewNode, empty_node, present
from joinery.scheduling.firstfit.topology import Topology
from joinery.scheduling.firstfit.value import bearable_ratio, best_start, fair_price_of_one, grown
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.pools.pool import OFFERING_KEYS, Amounts, Mask, Pool, Prices

FairPrice = Callable[[Demand], float | None]
"""The fair price of one pod ($/h) by its dual in a relaxation; None for a demand that the relaxation did not know."""


class Purchase:
    """The nodes of one packing. ``fair_price`` may be set once a relaxation has priced the classes; ``prefix`` keeps the names of its
    nodes apart from those of another packing and of nodes that exist. ``kept_back``: reservations for which other pods have nothing else.
    ``manner``: how it is gone about.
    """

    def __init__(self, work: Workspace, manner: Manner = USUAL, *, prefix: str = "new/") -> None:
        self._cautious = manner.cautious
        self._minds_newcomers = bool(work.topology.settling) and not manner.heedless
        self._work = work
        self._prefix = prefix
        self._topology: Topology = work.topology
        self._limits = {pool.name: Limits(pool) for pool in work.pools}
        self.reservations = Reservations(work.reservations)
        self.kept_back: frozenset[str] = frozenset()
        self._relaxes = work.problem.options.best_effort_min_values
        self._units = work.units
        self._refused: dict[tuple[object, ...], int] = {}
        self._least_prices: dict[str, Prices] = {}
        self.tiers = [tuple(group) for _, group in groupby(work.pools, key=lambda pool: pool.weight)]
        self.opened = OpenedNodes(len(work.axis.names))
        self.fair_price: FairPrice = lambda demand: None

    def note_usage(self) -> None:
        """Tell the workspace what the new nodes take of limits and leave of reservations, for the reasons."""
        self._work.bought = Counter(node.pool.name for node in self.opened.nodes)
        self._work.charged = {name: self._limits[name].spent for name in self._work.bought}
        self._work.left_reserved = self.reservations.remaining()

    def into_tier(self, tier: Sequence[Pool], demand: Demand, domains: Domains, names: list[str]) -> None:
        """Pools of one weight: nodes being bought first, then more of them."""
        pools = [pool for pool in tier if is_open_to(pool, demand, self._topology)]
        if not pools or not names:
            return
        if self._work.reservations:
            self._into_reservations(pools, demand, domains, names)
        self._into_opened(pools, demand, domains, names)
        while names and self._open(pools, demand, domains, names):
            pass
        if self._relaxes and self._work.reservations:
            self._begin_reserved(pools, demand, domains, names, relaxing=True)
        if names and (needs_neighbours(demand) or self._minds_newcomers):
            self._grow(pools, demand, domains, names)

    def into_opened(self, tier: Sequence[Pool], demand: Demand, domains: Domains, names: list[str]) -> None:
        """Pools of one weight: only nodes being bought."""
        self._grow([pool for pool in tier if is_open_to(pool, demand, self._topology)], demand, domains, names)

    def _grow(self, pools: Sequence[Pool], demand: Demand, domains: Domains, names: list[str]) -> None:
        """For pods that have no other place nodes grow, whatever they cost then: those of the pods that they must share a host with."""
        while names and (cheapest := self._cheapest_growth(pools, demand, domains, len(names))) is not None:
            index, node, count, rows = cheapest
            batch = [names.pop(0) for _ in range(count)]
            self.put(index, node, demand, domains, batch, rows)

    def _cheapest_growth(
        self, pools: Sequence[Pool], demand: Demand, domains: Domains, wanted: int
    ) -> tuple[int, NewNode, int, Amounts] | None:
        """The node that grows for the least price a pod: its index, what it may be then, for how many pods, and as which types (rows)."""
        best, least = None, np.inf
        for index, opened in enumerate(self.opened.nodes):
            allowed = min(self._allowed_on_host(demand, opened.name), wanted) if opened.pool in pools else 0
            node = opened.narrowed(demand, domains) if allowed > 0 else None
            if node is None:
                continue
            most, rows, counts = node.holds(demand, self._limits[node.pool.name].mask(node))
            fitting = np.minimum(counts, min(most, allowed))
            if not fitting.any() or not may_start(self._topology, demand, int(fitting.max()), wanted):
                continue
            growth = node.least_prices[rows] - self.opened.price[index]
            each = np.where(fitting > 0, growth / np.maximum(fitting, 1), np.inf)
            count = int(fitting[each.argmin()])
            if each.min() < least - 1e-12:
                best, least = (index, node, count, rows[counts >= count]), float(each.min())
        return best

    def _into_reservations(self, pools: Sequence[Pool], demand: Demand, domains: Domains, names: list[str]) -> None:
        """What is reserved is paid for already: no bought node grows while it has room."""
        self._into_opened(pools, demand, domains, names, reserved=True)
        self._begin_reserved(pools, demand, domains, names)

    def _begin_reserved(
        self, pools: Sequence[Pool], demand: Demand, domains: Domains, names: list[str], *, relaxing: bool = False
    ) -> None:
        while names and (best := self._best_reserved(pools, demand, domains, len(names), relaxing)) is not None:
            node, count, rows = best
            batch = [names.pop(0) for _ in range(count)]
            self.put(self.opened.append(node), node, demand, domains, batch, rows)

    def _into_opened(
        self, pools: Sequence[Pool], demand: Demand, domains: Domains, names: list[str], *, reserved: bool = False
    ) -> None:
        units = {pool.name: self._unit(demand, pool) for pool in pools}
        for index in self.opened.promising(demand, len(names), units) if names else ():
            if reserved and not self.opened.nodes[int(index)].reservation:
                continue
            self._into_open(int(index), demand, domains, names)
            if not names:
                return

    def _best_reserved(
        self, pools: Sequence[Pool], demand: Demand, domains: Domains, wanted: int, relaxing: bool
    ) -> tuple[NewNode, int, Amounts] | None:
        """A node in the reservation that is cheapest for the pods it would hold: large ones are not spent on few.

        With how many of the wanted pods it takes, and the types (rows) that hold them. ``relaxing``: minValues that cannot be met
        are lowered.
        """
        best, lowest = None, np.inf
        promising = (node for pool in pools for node in self._promising_reserved(pool, demand, domains, wanted))
        for node in (node for node in promising if self._bears(node, demand, domains)):
            node, most, rows, counts = self._holding(node, demand, relaxing=relaxing)
            most = min(most, self._allowed_on_host(demand, node.name), wanted)
            if most <= 0 or not may_start(self._topology, demand, most, wanted):
                continue
            holding = rows[counts >= most]
            price = float(node.least_prices[holding].min()) / most
            if best is None or price < lowest * (1 - 1e-9):
                best, lowest = (node, most, holding), price
        return best

    def _promising_reserved(self, pool: Pool, demand: Demand, domains: Domains, wanted: int) -> list[NewNode]:
        """A fresh node in the reservation of the pool that is cheapest for the pods it would hold; in each, where minValues decide."""
        if pool.min_values:
            return self.reserved_starts(pool, demand, domains)
        columns = np.array(self._open_reservations(pool, demand, domains), dtype=np.int64)
        rows, asked = pool.market.reserved_row[columns], demand.asked
        counts = (pool.room[rows][:, asked] // demand.row[asked]).min(
            axis=1, initial=1 if demand.pods.ports else wanted
        )
        most = np.minimum(counts, self._allowed_on_host(demand, self._next_name(pool)))
        usable = (most >= (wanted if is_host_bound(self._topology, demand) else 1)) & (pool.room[rows] >= 0).all(axis=1)
        usable &= (demand.fit(pool, domains)[1].types & pool.types & self._limits[pool.name].mask(None))[rows]
        each = np.where(usable, pool.market.prices[rows, columns] / np.maximum(most, 1), np.inf)
        if not np.isfinite(each).any():
            return []
        first = int(columns[(each <= each.min() * (1 + 1e-9)).argmax()])
        return self._begun(pool, demand, domains, [first])

    def reserved_starts(self, pool: Pool, demand: Demand, domains: Domains, keys: Sequence[str] = ()) -> list[NewNode]:
        """A fresh node in each reservation of the pool that suits the pods and has some left; of those that are alike in one.

        ``keys``: labels of offerings. Then in the cheapest that holds a pod, for each combination of their values.
        """
        columns = self._open_reservations(pool, demand, domains)
        if columns and keys and set(keys) <= set(OFFERING_KEYS):
            rows, market = pool.market.reserved_row[columns], pool.market
            holds = (pool.room[rows] >= demand.row).all(axis=1) & demand.fit(pool, domains)[1].types[rows]
            first: dict[tuple[str | None, ...], int] = {}
            for index in np.argsort(market.prices[rows, columns], kind="stable"):
                if holds[index]:
                    offering = market.columns[columns[index]]
                    first.setdefault(tuple(offering.value(key) for key in keys), columns[index])
            columns = list(first.values())
        return self._begun(pool, demand, domains, columns)

    def _open_reservations(self, pool: Pool, demand: Demand, domains: Domains) -> list[int]:
        """The columns of the reservations that suit the pods and have some left; of those that are alike one."""
        _, found = demand.fit(pool, domains)
        if found.conflict or not self._limits[pool.name].more_nodes():
            return []
        chosen: dict[Hashable, int] = {}
        for column in np.flatnonzero(found.columns & pool.columns & pool.market.reserved):
            known = pool.market.columns[column].reservation
            name = known.id if known else ""
            if name not in self.kept_back and self.reservations.left(name) > 0:
                chosen.setdefault(pool.market.likeness[column], int(column))
        return list(chosen.values())

    def _begun(self, pool: Pool, demand: Demand, domains: Domains, columns: Sequence[int]) -> list[NewNode]:
        """A fresh node in each of these reservations, as far as that suits the pods."""
        masks = (np.arange(len(pool.columns)) == column for column in columns)
        blanks = (self._empty(pool, reserved=alone) for alone in masks)
        return [node for blank in blanks if (node := blank.narrowed(demand, domains)) is not None]

    def reserved_nodes(self, demand: Demand) -> Iterator[NewNode]:
        """The nodes that are launched in a reservation so far, as far as they are open to the class."""
        for node in self.opened.nodes:
            if node.reservation and not demand.is_repelled(node.pool.taints):
                narrowed = node.narrowed(demand, {})
                if narrowed is not None:
                    yield narrowed

    def _into_open(self, index: int, demand: Demand, domains: Domains, names: list[str]) -> None:
        """As many pods as leave the node good value; where one refuses all, others of its shape are not asked again."""
        opened = self.opened.nodes[index]
        alike = (demand, tuple(domains.items()), self.opened.shape(index))
        refused = self._refused.get(alike, 0)
        wanted = len(names) if len(names) <= refused else min(self._allowed_on_host(demand, opened.name), len(names))
        if wanted <= refused:
            return
        node, count = opened.narrowed(demand, domains), 0
        if node is not None:
            within = self._limits[node.pool.name].mask(node)
            affordable = within if node.min_values else within & self._affordable(index, node, demand, wanted)
            most, rows, counts = node.holds(demand, affordable)
            if most > 0 and not may_start(self._topology, demand, most, len(names)):
                return
            count = self._growth(index, demand, node.least_prices[rows], counts, min(most, wanted))
            if count > 0:
                _, rows, counts = node.holds(demand, within)
                batch = [names.pop(0) for _ in range(count)]
                self.put(index, node, demand, domains, batch, rows[counts >= count])
        if not count and not opened.pool.limits:
            self._refused[alike] = wanted

    def _affordable(self, index: int, node: NewNode, demand: Demand, wanted: int) -> Mask:
        """The types that so many pods could justify: a few of all that the node may be, so that most refusals are cheap."""
        price, fair_price = self.opened.price[index], self.opened.fair_price[index]
        bearable = bearable_ratio(price, fair_price) * (fair_price + wanted * self._unit(demand, node.pool))
        affordable: Mask = node.least_prices <= max(bearable, price) + 1e-9
        return affordable

    def _growth(self, index: int, demand: Demand, prices: Prices, counts: Amounts, most: int) -> int:
        if most <= 0:
            return 0
        price, fair_price = self.opened.price[index], self.opened.fair_price[index]
        unit = self._unit(demand, self.opened.nodes[index].pool)
        return grown(prices, counts, most, price=price, fair_price=fair_price, unit=unit)

    def _allowed_on_host(self, demand: Demand, host: str) -> int:
        return self._topology.allowance(demand.pods, demand.variant.rules, HOSTNAME, host, cautious=self._cautious)

    def _unit(self, demand: Demand, pool: Pool) -> float:
        """The fair price of one pod of the class in the pool."""
        priced = self.fair_price(demand)
        if priced is not None:
            return priced
        key = (demand.pods, pool.name)
        if key not in self._units:
            self._units[key] = fair_price_of_one(pool, demand) if is_open_to(pool, demand, self._topology) else 0.0
        return self._units[key]

    def start(self, pool: Pool, demand: Demand, domains: Domains) -> NewNode | None:
        return self._empty(pool).narrowed(demand, domains) if is_open_to(pool, demand, self._topology) else None

    def _empty(self, pool: Pool, *, reserved: Mask | None = None) -> NewNode:
        node = empty_node(pool, self._next_name(pool), self._work.axis, reserved=reserved)
        if reserved is None:
            known = self._least_prices.get(pool.name)
            if known is None:
                known = self._least_prices[pool.name] = node.least_prices
            node.least_prices = known
        self._topology.furnish(node.name, pool.name)
        return node

    def _next_name(self, pool: Pool) -> str:
        return f"{self._prefix}{pool.name}-{len(self.opened.nodes) + 1}"

    def adopt(self, node: NewNode) -> None:
        """Take over a node of another packing as it is; what it gets more is not that packing's."""
        node = replace(node, placed=list(node.placed))
        fair_price = sum(self._unit(batch.demand, node.pool) * len(batch.pods) for batch in node.placed)
        self.opened.replace(self.opened.append(node), node, fair_price)
        self._charge(node)

    def build(
        self,
        pool: Pool,
        row: int,
        wanted: Sequence[tuple[Demand, Domains, list[str]]],
        *,
        reserved: Mask | None = None,
    ) -> NewNode:
        """Buy a node of that instance type (its row), or a cheaper one that does, and move the pods onto it that it takes.

        ``reserved``: the column of the reservation in which it is launched instead. Returns the node; an empty one if it takes none.
        """
        limits, index, fair_price = self._limits[pool.name], -1, 0.0
        node = self._empty(pool, reserved=reserved)
        if node.reservation and self.reservations.left(node.reservation) <= 0:
            return node
        for demand, domains, names in wanted:
            grown = node.narrowed(demand, domains) if index >= 0 or limits.more_nodes() else None
            if grown is None:
                continue
            most, rows, counts = grown.holds(demand, limits.mask(grown))
            room = int(counts[rows == row].max(initial=0))
            count = min(most, room, len(names), self._allowed_on_host(demand, node.name))
            if count > 0:
                index = self.opened.append(grown) if index < 0 else index
                node = grown
                batch = [names.pop(0) for _ in range(count)]
                fair_price += self._unit(demand, pool) * count
                self._take(node, demand, count, rows[counts >= count])
                self._charge(node)
                self._settle(node, demand, domains, tuple(batch))
        if index >= 0:
            self.opened.replace(index, node, fair_price)
        return node

    def repeat(self, wanted: Sequence[tuple[Demand, Domains, list[str]]]) -> None:
        """Buy one more node like the last one, for as many other pods, in a pool without limits."""
        last = self.opened.nodes[-1]
        node = replace(last, name=self._next_name(last.pool), placed=[])
        self._topology.furnish(node.name, last.pool.name)
        node.least_prices = last.least_prices
        self.opened.repeat(node)
        self._charge(node)
        for demand, domains, names in wanted:
            self._settle(node, demand, domains, tuple(names))
            names.clear()

    def _open(self, pools: Sequence[Pool], demand: Demand, domains: Domains, names: list[str]) -> bool:
        """Buy one more node for the first pods; False if no pool can."""
        for pool in pools:
            limits = self._limits[pool.name]
            node = self.start(pool, demand, domains) if limits.more_nodes() else None
            if node is None or not self._bears(node, demand, domains):
                continue
            node, most, rows, counts = self._holding(node, demand, relaxing=self._relaxes)
            most = min(most, self._allowed_on_host(demand, node.name), len(names))
            if most > 0:
                host_bound = is_host_bound(self._topology, demand)
                count = most if host_bound else best_start(node.least_prices[rows], counts, most)
                batch = [names.pop(0) for _ in range(count)]
                self.put(self.opened.append(node), node, demand, domains, batch, rows[counts >= count])
                if not pool.limits and not demand.gathers:
                    while len(names) >= most:  # the next node would begin just like this one
                        batch, names[:count] = names[:count], []
                        self.repeat([(demand, domains, batch)])
                return True
        return False

    def _bears(self, node: NewNode, demand: Demand, domains: Domains) -> bool:
        """Keep a fresh node to the types whose DaemonSets' pods are borne by spreads that count them. Whether there are any."""
        if self._minds_newcomers:
            node.types = node.types & self._topology.bearable(demand.pods, demand.variant.rules, domains, node.pool)
        return bool(node.types.any())

    def _holding(self, node: NewNode, demand: Demand, *, relaxing: bool) -> tuple[NewNode, int, Amounts, Amounts]:
        """A fresh node, its minValues lowered if that must and may be, and what it holds within the limits (``NewNode.holds``)."""
        allowed = self._limits[node.pool.name].mask(None)
        most, rows, counts = node.holds(demand, allowed)
        if most <= 0 and node.min_values and relaxing:
            node = node.with_relaxed_min_values(rows, counts)
            most, rows, counts = node.holds(demand, allowed)
        return node, most, rows, counts

    def put(self, index: int, node: NewNode, demand: Demand, domains: Domains, batch: list[str], rows: Amounts) -> None:
        """Put the pods on the node, which may be of these types (rows) then."""
        self._take(node, demand, len(batch), rows)
        self.opened.replace(index, node, self._unit(demand, node.pool) * len(batch))
        self._charge(node)
        self._settle(node, demand, domains, tuple(batch))

    def _take(self, node: NewNode, demand: Demand, count: int, rows: Amounts) -> None:
        types = np.zeros_like(node.types)
        types[rows] = True
        node.types = types
        for nodes in self._topology.watching(demand.pods):
            node.settle(nodes)
        for group in self._topology.settling:
            node.settle_daemons(group.brought.get(node.pool.name))
        node.used = node.used + demand.row * count
        node.ports = node.ports | demand.pods.ports

    def _charge(self, node: NewNode) -> None:
        """Count it against its pool's limits, and against the reservation that it takes a place of."""
        self._limits[node.pool.name].charge(node)
        self.reservations.charge(node)

    def _settle(self, node: NewNode, demand: Demand, domains: Domains, pods: tuple[str, ...]) -> None:
        """Note the pods on the node and in the counts."""
        where = {**present(domains), HOSTNAME: node.name}
        newcomer = _newcomer(node) if self._topology.settling else None
        entry = self._topology.record(
            demand.pods, demand.variant.rules, where, len(pods), node.counts, newcomer=newcomer
        )
        node.placed.append(Batch(demand, domains, pods, entry))


def _newcomer(node: NewNode) -> Newcomer:
    pinned = frozenset(key for batch in node.placed for key, domain in batch.domains.items() if domain)
    return Newcomer(node.pool.name, node.cheapest(), pinned)


def is_open_to(pool: Pool, demand: Demand, topology: Topology) -> bool:
    """Whether neither taints of the pool nor the DaemonSets' pods on its nodes keep the class away."""
    if demand.is_repelled(pool.taints):
        return False
    return not topology.barring(demand.pods, demand.variant.rules, pool.name)


def is_host_bound(topology: Topology, demand: Demand) -> bool:
    """Whether the class must gather on one host and none is chosen yet."""
    return any(
        rule.key == HOSTNAME and rule.kind == "affinity" and topology.may_begin(topology.group(rule), demand.pods)
        for rule in demand.variant.rules
    )


def needs_neighbours(demand: Demand) -> bool:
    """Whether the class must share a host with other pods."""
    return any(
        rule.key == HOSTNAME and rule.kind == "affinity" and rule.weight is None for rule in demand.variant.rules
    )


def may_start(topology: Topology, demand: Demand, room: int, count: int) -> bool:
    """A group that must share a host starts only where all of it fits."""
    return room >= count or not is_host_bound(topology, demand)
