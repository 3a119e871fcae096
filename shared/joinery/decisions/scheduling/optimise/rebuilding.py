"""Nodes that carry out orders: they become an instance, the optimizer packs it, and its patterns become nodes.

The nodes are built by the same code that first-fit buys with, so requirements, host rules, limits and minValues are
checked again pod by pod, and pods that a node does not take after all are bought for singly. So no rule has a second
implementation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.bounds.exact import SMALL_DEMAND, is_small, solve_exactly
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance
from joinery.decisions.optimizer.relaxation.core import CoreSelection
from joinery.decisions.optimizer.relaxation.relaxation import relax
from joinery.decisions.optimizer.search import pack
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.firstfit.buying import Buyer
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.new_nodes import FairPrice, NewNodes, is_open_to
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.optimise.bin_types import BinTypes, PoolUse, Preferences, supplies
from joinery.decisions.scheduling.optimise.device_columns import DeviceColumns
from joinery.decisions.scheduling.optimise.dominance import bin_types_for
from joinery.decisions.scheduling.optimise.limited import are_kept, limit_rows
from joinery.decisions.scheduling.optimise.orders import Order, apart_by_labels, host_rules
from joinery.decisions.scheduling.optimise.unfinished import best_of_both
from joinery.decisions.scheduling.pools.pool import Pool


@dataclass(frozen=True, eq=False)
class Better:
    """Nodes that carry out the same orders for less. ``resilience_cost``: $/h, about what preferred node sizes and the
    choice of spot types add to their price. ``waiting``: deferred pods (names) that time was up for.
    """

    buyer: Buyer
    resilience_cost: float
    waiting: Mapping[PodClass, Sequence[str]]


@dataclass(frozen=True, eq=False)
class Incumbent:
    """Nodes that are right: all that are ``bought``, and those that may change with what each costs ($/h, as their size
    is preferred).
    """

    bought: NewNodes
    nodes: Sequence[NewNode]
    costs: Sequence[float]


class _Packed(NamedTuple):
    """Bins (``patterns``) of an instance. ``resilience_cost``: as ``Better`` has it."""

    bin_types: BinTypes
    instance: PackingInstance
    patterns: Sequence[Pattern]
    resilience_cost: float


class Rebuilding:
    """One attempt to carry out the orders with other nodes.

    ``waiting``: for each order the names of its pods that have no node yet. ``across_tiers``: they may also be in
    heavier pools than they were, which users would rather have used. ``requests``: int64[orders, resources and columns
    of devices], of one copy; ``pools`` have room in these columns too. ``ranks``: of each order, when it is served.
    """

    def __init__(
        self,
        work: Workspace,
        orders: Sequence[Order],
        kept: Sequence[NewNode],
        preferences: Preferences,
        *,
        across_tiers: bool,
    ) -> None:
        self._work, self._orders, self._preferences, self._across_tiers = work, orders, preferences, across_tiers
        self._waiting = [sorted(order.pods) for order in orders]
        self._nodes = NewNodes(work, prefix="best/" if across_tiers else "better/")
        for node in kept:
            self._nodes.adopt(node)
        claimed = [order.demand.pod_class.devices for order in orders]
        devices = DeviceColumns(claimed, (stock for pool in work.pools for stock in pool.stocks))
        requests = np.hstack([np.array([order.demand.requests for order in orders]), devices.sizes(claimed)])
        self._requests: Ints = requests * np.array([[order.unit] for order in orders], dtype=np.int64)
        self._pools = devices.widened(work.pools)
        self._ranks = list(map(devices.rank, claimed))

    def run(self, effort: Effort, incumbent: Incumbent) -> Better | None:
        """Nodes that carry out all orders; None where that failed."""
        with effort.rebuilding():
            packed = self._packed(effort, incumbent)
        if not packed.patterns and effort.is_over():
            # To buy for all of the pods one by one is what first-fit has done already, or will do.
            return None
        effort.begin_placing()
        # The dearest first, so that what the limit of a pool refuses are the cheap ones.
        for pattern in sorted(packed.patterns, key=lambda pattern: -packed.instance.costs[pattern.bin_type]):
            if effort.is_late() and self._may_wait(pattern):
                continue
            self._build(packed.bin_types, pattern)
            effort.bought = self._nodes.size
        buyer = self._bought_for_the_rest(packed.instance, effort)
        if buyer is None:
            return None
        waiting = {order.demand.pod_class: names for order, names in zip(self._orders, self._waiting, strict=True)}
        return Better(buyer, packed.resilience_cost, {pods: names for pods, names in waiting.items() if names})

    def _packed(self, effort: Effort, incumbent: Incumbent) -> _Packed:
        """The bins to buy; where time is up, nodes of the incumbent are kept in place of some."""
        requests = self._requests
        uses = _pool_uses(self._work, self._orders, across_tiers=self._across_tiers)
        bin_types = bin_types_for(self._pools, requests, uses, self._preferences)
        instance = self._instance(requests, bin_types)
        is_paid = np.array_equal(bin_types.costs, bin_types.prices)
        selection = None if is_paid else CoreSelection(instance, bin_types.prices, effort.patience())
        patterns = pack(instance, _blocks(bin_types, self._work.pools), effort, selection)
        if effort.is_over():
            patterns, nodes = best_of_both(instance, self._orders, patterns, incumbent.nodes, incumbent.costs)
            self._keep(nodes if patterns else ())
        is_limited = any(self._work.pools[int(index)].limits for index in np.unique(bin_types.pool))
        if is_limited and int(instance.demands.sum()) <= SMALL_DEMAND and not effort.is_over():
            bin_types, instance, patterns = self._within_limits(incumbent, uses, bin_types, instance, patterns, effort)
        return _Packed(bin_types, instance, patterns, selection.preference_cost() if selection else 0.0)

    def _within_limits(
        self,
        incumbent: Incumbent,
        uses: Sequence[PoolUse],
        bin_types: BinTypes,
        instance: PackingInstance,
        packed: list[Pattern],
        effort: Effort,
    ) -> tuple[BinTypes, PackingInstance, list[Pattern]]:
        """Bins that keep the limits of pools, where few pods need some and they cost less than the incumbent; they are
        of more bin types. What was ``packed`` keeps them only by chance.
        """
        rows = limit_rows(self._work.pools, bin_types, self._nodes, incumbent.bought)
        cutoff = min(sum(incumbent.costs), cost_of(instance, packed) if are_kept(packed, rows) else np.inf)
        many = bin_types_for(self._pools, instance.sizes, uses, self._preferences, with_limits=True)
        larger = self._instance(instance.sizes, many)
        rows = limit_rows(self._work.pools, many, self._nodes, incumbent.bought)
        constrained = ConstrainedInstance(
            instance=larger,
            demand_of=np.arange(len(larger.demands)),
            demands=larger.demands,
            side_constraints=tuple(rows),
        )
        result = solve_exactly(constrained, cutoff, patience=effort.patience()) if is_small(constrained) else None
        if result is None or result.patterns is None:
            return bin_types, instance, packed
        return many, larger, list(result.patterns)

    def _instance(self, requests: Ints, bin_types: BinTypes) -> PackingInstance:
        rules = host_rules(self._orders, self._work.topology)
        available, supply = supplies(bin_types, self._nodes.reservations.remaining())
        return PackingInstance(
            sizes=requests,
            demands=np.array([len(order.pods) // order.unit for order in self._orders], dtype=np.int64),
            costs=bin_types.costs,
            capacities=bin_types.capacities,
            compatible=bin_types.compatible,
            cardinality_limits=tuple(CardinalityLimit(np.array(members), cap) for members, cap in rules.limits),
            conflicts=rules.conflicts | apart_by_labels(self._orders, self._work.pools),
            available=available,
            supply=supply,
        )

    def _keep(self, nodes: Sequence[NewNode]) -> None:
        """Take over these nodes, which carry out orders as they are."""
        placed = set[str]()
        for node in nodes:
            self._nodes.adopt(node)
            for batch in node.placed:
                self._work.topology.count_again(batch.record)
                placed.update(batch.pods)
        self._waiting = [[name for name in names if name not in placed] for names in self._waiting]

    def _may_wait(self, pattern: Pattern) -> bool:
        """Whether its pods are all deferred. Others had nodes, and these are bought in place of them all."""
        return all(self._orders[item].is_deferred for item in np.flatnonzero(pattern.counts))

    def _build(self, bin_types: BinTypes, pattern: Pattern) -> None:
        """Buy the pattern's nodes; pods that one does not take after all wait again."""
        pool = self._work.pools[int(bin_types.pool[pattern.bin_type])]
        instance_type = int(bin_types.instance_type[pattern.bin_type])
        reserved = bin_types.offerings[pattern.bin_type] if bin_types.reservations[pattern.bin_type] else None
        served = sorted(map(int, np.flatnonzero(pattern.counts)), key=self._ranks.__getitem__)
        items = [(item, int(pattern.counts[item]) * self._orders[item].unit) for item in served]
        is_repeatable = False
        for _ in range(pattern.copies):
            wanted = [
                (self._orders[item].demand, self._orders[item].domains, self._next(item, count))
                for item, count in items
            ]
            if is_repeatable:
                self._nodes.repeat(wanted)
                continue
            node, taken = self._nodes.build(pool, instance_type, wanted, reserved=reserved)
            for (item, _), (_, _, names), count in zip(items, wanted, taken, strict=True):
                self._waiting[item] += names[count:]
            # A node that took all its pods is repeated without asking again, if nothing runs out by it.
            is_whole = all(len(names) == count for (_, _, names), count in zip(wanted, taken, strict=True))
            is_repeatable = is_whole and not (pool.limits or node.reservation)

    def _next(self, item: int, count: int) -> list[str]:
        """The next pods of the order, which wait no longer."""
        names, self._waiting[item] = self._waiting[item][:count], self._waiting[item][count:]
        return names

    def _bought_for_the_rest(self, instance: PackingInstance, effort: Effort) -> Buyer | None:
        """First-fit for the pods that still wait, at the relaxation's duals; None if some get no node. Once time is up
        deferred pods go on waiting.
        """
        buyer = Buyer(self._work, self._nodes, effort)
        if any(self._waiting):
            self._nodes.fair_price = self._fair_price(instance, effort)
        for index, order in enumerate(self._orders):
            names, may_wait = self._waiting[index], order.is_deferred and effort.is_over()
            if not names or may_wait:
                continue
            tier = next(tier for tier in self._work.tiers if tier[0].weight == order.weight)
            self._waiting[index] = names[buyer.buy(tier, order.demand, order.domains, names) :]
            if self._waiting[index] and not (order.is_deferred and effort.is_over()):
                return None
        return buyer

    def _fair_price(self, instance: PackingInstance, effort: Effort) -> FairPrice:
        """What the relaxation's duals say of each demand."""
        solution = relax(instance, is_swift=True, patience=effort.patience()).solve(instance.demands)
        if solution is None:
            return self._nodes.fair_price
        duals = zip(self._orders, solution.item_duals, strict=True)
        by_demand = {order.demand: float(dual) / order.unit for order, dual in duals if dual > 0}
        return by_demand.get


def _pool_uses(work: Workspace, orders: Sequence[Order], *, across_tiers: bool) -> list[PoolUse]:
    """Which types and offerings of which pools may carry out each order: of its tier, or of heavier ones too."""
    uses = []
    for item, order in enumerate(orders):
        for index, pool in enumerate(work.pools):
            is_of_tier = pool.weight >= order.weight if across_tiers else pool.weight == order.weight
            if not is_of_tier or not is_open_to(pool, order.demand, work.topology):
                continue
            _, fit = order.demand.fit(pool, order.domains)
            if not fit.conflict:
                uses.append(PoolUse(item, index, fit.types, fit.columns))
    return uses


def _blocks(bin_types: BinTypes, pools: Sequence[Pool]) -> Ints:
    """int64[bin types]: those that share a zone, directly or through others, are in one block
    (``optimizer/instance/decomposition``).
    """
    zones = [
        {pools[int(pool)].market.columns[column].zone for column in np.flatnonzero(offerings)}
        for pool, offerings in zip(bin_types.pool, bin_types.offerings, strict=True)
    ]
    blocks: list[set[str]] = []
    for own in zones:
        touching = [block for block in blocks if block & own]
        blocks = [block for block in blocks if not block & own] + [own.union(*touching)]
    blocks.sort(key=min)
    return np.array([next(i for i, block in enumerate(blocks) if own <= block) for own in zones], dtype=np.int64)
