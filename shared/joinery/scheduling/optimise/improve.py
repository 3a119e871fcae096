"""Cheaper nodes for what first-fit promised: orders become lots of numbers, the optimiser packs them, and its patterns become nodes.

The nodes are built by the same code that first-fit buys with, so requirements, host rules, limits and minValues are checked
again pod by pod, and whatever a pattern got wrong is bought singly. The new nodes replace first-fit's only if they cost less and
leave every count per domain as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from joinery.apis.quantity import total
from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.optimizer.instance.patterns import Pattern
from joinery.optimizer.relaxation.core import CoreSelection
from joinery.optimizer.relaxation.relaxation import relax
from joinery.optimizer.search import pack
from joinery.scheduling.constraints.resources import requests_of
from joinery.scheduling.firstfit.buying import Buyer
from joinery.scheduling.firstfit.new_nodes import FairPrice, NewNodes, is_open_to
from joinery.scheduling.firstfit.reservations import must_reserve
from joinery.scheduling.firstfit.targets import NewNode
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.optimise.bin_types import BinTypes, PoolUse, bin_types_for, spot_factor, supplies
from joinery.scheduling.optimise.orders import Order, gathers, host_rules, orders_of
from joinery.scheduling.pools.node_size import factors
from joinery.scheduling.pools.pool import Pool


@dataclass(frozen=True, eq=False)
class Better:
    """Nodes that carry out the same orders for less. ``resilience_cost``: about what preferred node sizes and the choice of spot types cost, in $/h."""

    buyer: Buyer
    resilience_cost: float


def cheaper(work: Workspace, bought: NewNodes, effort: Effort) -> Better | None:
    """Nodes that cost less as their size is preferred; None if none were found, there is no time to look for them, or all are in
    reservations, which are paid for.
    """
    nodes = bought.opened.nodes
    if effort.is_over() or all(node.reservation for node in nodes):
        return None
    kept, free = _divided(work, nodes)
    orders = orders_of(free)
    if not orders:
        return None
    scales = _factors(work, nodes)
    before = work.topology.saved()
    for node in free:
        for batch in node.placed:
            work.topology.erase(batch.entry)
    attempt = _Rebuilt(work, orders, kept, list(scales.values()))
    found = attempt.run(effort)
    if (
        found is None
        or _cost(work, found.nodes, scales) >= _cost(work, bought, scales) - 1e-9
        or work.topology.differs(before)
    ):
        work.topology.restore(before)
        return None
    return Better(found, attempt.resilience_cost)


def _factors(work: Workspace, nodes: Sequence[NewNode]) -> dict[str, Floats]:
    """By pool, what the price of each type counts as, given all pods that run in pools of its weight or are to run there."""
    found: dict[str, Floats] = {}
    for weight, pools in groupby(work.pools, key=lambda pool: pool.weight):
        tier = list(pools)
        names = {pool.name for pool in tier}
        running = total(requests_of(pod) for view in work.views if view.pool in names for pod in view.pods)
        demand = sum((n.used for n in nodes if n.pool.weight == weight), work.axis.vector(running))
        found |= {pool.name: factors(pool, demand, work.problem.options.node_size) for pool in tier}
    return found


def _cost(work: Workspace, bought: NewNodes, scales: Mapping[str, Floats]) -> float:
    opened, spot_types = bought.opened, work.problem.options.spot_types
    prices = zip(opened.nodes, opened.price, strict=True)
    return sum(price * float(scales[n.pool.name][n.cheapest()]) * spot_factor(n, spot_types) for n, price in prices)


def _divided(work: Workspace, nodes: Sequence[NewNode]) -> tuple[list[NewNode], list[NewNode]]:
    """Nodes that stay as they are, and those that may change.

    Pods that gather on a host stay, and those that have nothing but a capacity reservation; so does a limited pool's node while
    lighter pools are used too: another packing might leave room under the limit, and then those pods would be in the wrong pool.
    """
    lightest = min((node.pool.weight for node in nodes), default=0)
    stays = [
        gathers(node) or _has_no_choice(work, node) or (bool(node.pool.limits) and node.pool.weight > lightest)
        for node in nodes
    ]
    kept = [node for node, stay in zip(nodes, stays, strict=True) if stay]
    return kept, [node for node, stay in zip(nodes, stays, strict=True) if not stay]


def _has_no_choice(work: Workspace, node: NewNode) -> bool:
    pools = [pool for pool in work.pools if pool.weight == node.pool.weight]
    return bool(node.reservation) and any(must_reserve(pools, b.demand, b.domains) for b in node.placed)


class _Rebuilt:
    """One attempt. ``pods`` are those of each order that still need a node."""

    def __init__(
        self, work: Workspace, orders: Sequence[Order], kept: Sequence[NewNode], scales: Sequence[Floats]
    ) -> None:
        self.resilience_cost = 0.0
        self._scales = scales
        self._work = work
        self._orders = orders
        self._pods = [sorted(order.pods) for order in orders]
        self._nodes = NewNodes(work, prefix="better/")
        for node in kept:
            self._nodes.adopt(node)

    def run(self, effort: Effort) -> Buyer | None:
        """A buyer whose nodes carry out all orders; None where that failed."""
        requests = np.array([order.row for order in self._orders], dtype=np.int64)
        uses = _pool_uses(self._work, self._orders)
        bin_types = bin_types_for(self._work.pools, requests, uses, self._scales, self._work.problem.options.spot_types)
        instance = self._instance(requests, bin_types)
        survey = CoreSelection(instance, bin_types.prices)
        patterns = pack(instance, _places(bin_types, self._work.pools), effort, survey)
        self.resilience_cost = survey.preference_cost()
        for pattern in sorted(patterns, key=lambda pattern: -instance.costs[pattern.bin_type]):
            self._build(bin_types, pattern)
        return self._finished(instance)

    def _instance(self, requests: Ints, bin_types: BinTypes) -> PackingInstance:
        rules = host_rules(self._orders, self._work.topology)
        available, supply = supplies(bin_types, self._nodes.reservations.remaining())
        return PackingInstance(
            sizes=requests,
            demands=np.array([len(order.pods) for order in self._orders], dtype=np.int64),
            costs=bin_types.costs,
            capacities=bin_types.capacities,
            compatible=bin_types.compatible,
            cardinality_limits=tuple(
                CardinalityLimit(np.array(members, dtype=np.int64), cap) for members, cap in rules.groups
            ),
            conflicts=rules.clashes,
            available=available,
            supply=supply,
        )

    def _build(self, bin_types: BinTypes, pattern: Pattern) -> None:
        """Buy the pattern's nodes; pods that one does not take after all stay for later."""
        pool, row = (
            self._work.pools[int(bin_types.pool[pattern.bin_type])],
            int(bin_types.instance_type[pattern.bin_type]),
        )
        reserved = bin_types.offerings[pattern.bin_type] if bin_types.reservations[pattern.bin_type] else None
        items = [(int(item), int(pattern.counts[item])) for item in np.flatnonzero(pattern.counts)]
        is_alike = False
        for _ in range(pattern.copies):
            wanted = [(self._orders[item].demand, self._orders[item].domains, self._take(item, n)) for item, n in items]
            if is_alike:
                self._nodes.repeat(wanted)
                continue
            node, taken = self._nodes.build(pool, row, wanted, reserved=reserved)
            for (item, _), (_, _, names), count in zip(items, wanted, taken, strict=True):
                self._pods[item] += names[count:]
            is_whole = all(len(names) == count for (_, _, names), count in zip(wanted, taken, strict=True))
            is_alike = is_whole and not (pool.limits or node.reservation)

    def _take(self, item: int, count: int) -> list[str]:
        names, self._pods[item] = self._pods[item][:count], self._pods[item][count:]
        return names

    def _finished(self, instance: PackingInstance) -> Buyer | None:
        """Buy singly for the pods that are left, at the program's prices."""
        buyer = Buyer(self._work, self._nodes)
        if any(self._pods):
            self._nodes.fair_price = self._fair_price(instance)
        for order, names in zip(self._orders, self._pods, strict=True):
            tier = next(tier for tier in self._nodes.tiers if tier[0].weight == order.weight)
            if buyer.buy(tier, order.demand, order.domains, names) < len(names):
                return None
        return buyer

    def _fair_price(self, instance: PackingInstance) -> FairPrice:
        answer = relax(instance, is_swift=True).solve(instance.demands)
        if answer is None:
            return self._nodes.fair_price
        known = {
            id(order.demand): float(worth)
            for order, worth in zip(self._orders, answer.item_duals, strict=True)
            if worth > 0
        }
        return lambda demand: known.get(id(demand))


def _pool_uses(work: Workspace, orders: Sequence[Order]) -> list[PoolUse]:
    """Which types and offerings of which pools may carry out each order."""
    uses = []
    for item, order in enumerate(orders):
        for index, pool in enumerate(work.pools):
            if pool.weight != order.weight or not is_open_to(pool, order.demand, work.topology):
                continue
            _, found = order.demand.fit(pool, order.domains)
            if not found.conflict:
                uses.append(PoolUse(item, index, found.types, found.columns))
    return uses


def _places(bin_types: BinTypes, pools: Sequence[Pool]) -> Ints:
    """A number for every kind: bin_types that share a zone, directly or through others, share it."""
    zones = [
        {pools[int(pool)].market.columns[i].zone for i in np.flatnonzero(columns)}
        for pool, columns in zip(bin_types.pool, bin_types.offerings, strict=True)
    ]
    joined: list[set[str]] = []
    for mine in zones:
        touching = [known for known in joined if known & mine]
        joined = [known for known in joined if not known & mine] + [mine.union(*touching)]
    joined.sort(key=min)
    return np.array([next(i for i, known in enumerate(joined) if mine <= known) for mine in zones], dtype=np.int64)
