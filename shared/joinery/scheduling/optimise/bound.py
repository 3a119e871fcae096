"""A proven lower bound on what the launches of a packing must cost.

What no packing can avoid is written down as numbers, for a program to bound: every pod's requests, where its required terms, volumes,
taints and the weights of pools let it run, which pods may not share a node, how spreads and anti-affinity over zones and capacity
types deal them out (``dealing``), and the limits of pools. Nodes that exist have the room that the packing left on them, at no price; of a
capacity reservation there are so many as it has. Whatever else forbids a node (affinity, minValues) only makes a plan dearer.

Preferences are no part of that, so where they cost something no plan that keeps them is near the bound. A second bound takes those that
the plan keeps for rules.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from joinery.apis.labels import HOSTNAME
from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.bounds.exact import SMALL_DEMAND, is_small, solve_exactly
from joinery.optimizer.bounds.lower_bound import lower_bound
from joinery.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.optimizer.instance.side_constraints import ConstrainedInstance, SideConstraint
from joinery.scheduling.constraints.resources import ports_clash
from joinery.scheduling.constraints.taints import first_untolerated
from joinery.scheduling.constraints.topology_rules import Rule
from joinery.scheduling.firstfit.targets import ExistingNode, NewNode
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.optimise.bin_types import BinTypes, PoolUse, bin_types_for, supplies
from joinery.scheduling.optimise.domain_rows import Item, domain_rules, inside, items_of, rows_of
from joinery.scheduling.optimise.orders import exclusive
from joinery.scheduling.optimise.proof_demands import ProofDemand, hard_demands, keeps_preferences, kept_demands
from joinery.scheduling.optimise.weakness import WEAK, weaknesses
from joinery.scheduling.pools.pool import Pool
from joinery.scheduling.pools.reserved import is_bought

_AGREED = 1e-6
"""The price of a plan is no proof's to refute, but for what sums of floats are wrong by."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """$/h that no set of new nodes for the launched pods can undercut: under ``hard`` rules, and if preferences are ``kept`` as well.
    ``weaknesses``: why the latter is far from what the plan costs, where it is.
    """

    hard: float = 0.0
    kept: float = 0.0
    weaknesses: tuple[str, ...] = ()


def bounds(work: Workspace, nodes: Sequence[NewNode], pools: Sequence[Pool], price: float) -> Bounds:
    """Of a packing's new nodes, which cost so much; nothing is asked of one in which all is reserved. ``pools``: with all that they sell,
    also what the packing kept out of.
    """
    if all(node.reservation for node in nodes):
        return Bounds()
    proof = _Bound(work, hard_demands(work, nodes), nodes, pools)
    hard = kept = proof.price(price)
    is_small_plan = (
        sum(len(node.pods) for node in nodes) <= SMALL_DEMAND
    )  # for others that would take as long as packing them
    if is_small_plan and hard < price * (1 - _AGREED) and keeps_preferences(nodes):
        proof = _Bound(work, kept_demands(nodes), nodes, pools)
        kept = max(hard, proof.price(price))
    is_weak = price > kept * (1 + WEAK)
    return Bounds(hard=hard, kept=kept, weaknesses=proof.weaknesses() if is_weak else ())


class _Bound:
    """One proof. ``demands``: what must hold in it."""

    def __init__(
        self, work: Workspace, demands: Sequence[ProofDemand], nodes: Sequence[NewNode], pools: Sequence[Pool]
    ) -> None:
        self._work, self._demands, self._nodes = work, demands, nodes
        # What users want of a node's size is no part of the bound.
        self._pools = [replace(pool, room=pool.market.allocatable - pool.overhead) for pool in pools]
        self._is_exact = False

    def price(self, price: float) -> float:
        """$/h; no more than ``price``, which a packing has."""
        if sum(demand.count for demand in self._demands) <= SMALL_DEMAND:
            task = self._constrained()
            found = solve_exactly(task, price) if is_small(task) else None
            if found and found.bound <= price * (1 + _AGREED):
                self._is_exact = found.is_tight
                return min(found.bound, price)
            # Too large; or the plan reads some rule in another way than the rows do, and what they prove is of no use.
        return lower_bound(
            self._instance([Item(index, {}) for index in range(len(self._demands))], with_limits=False)[0]
        )

    def weaknesses(self) -> tuple[str, ...]:
        """What the proof leaves out."""
        return weaknesses(self._demands, self._nodes, self._pools, is_exact=self._is_exact)

    def _constrained(self) -> ConstrainedInstance:
        rules = domain_rules(self._work, self._demands, self._nodes)
        items = items_of(self._demands, rules, self._pools, self._work)
        instance, bin_types = self._instance(items, with_limits=True)
        none, free = np.zeros(len(items)), np.zeros(len(instance.costs) - len(bin_types.prices))
        unforeseen: dict[tuple[object, ...], set[str]] = {}
        for domain in self._work.topology.unforeseen:
            unforeseen.setdefault(domain.rule, set()).add(domain.domain)
        rows = [
            replace(row, bin_types=np.zeros(len(instance.costs)))
            for row in rows_of(items, rules, self._demands, unforeseen)
        ]
        rows += [
            SideConstraint(none, np.concatenate([taken, free]), float(most))
            for taken, most in _limits(self._pools, bin_types)
        ]
        return ConstrainedInstance(
            instance=instance,
            demand_of=np.array([item.demand for item in items], dtype=np.int64),
            demands=np.array([demand.count for demand in self._demands], dtype=np.int64),
            side_constraints=tuple(rows),
        )

    def _instance(self, items: Sequence[Item], *, with_limits: bool) -> tuple[PackingInstance, BinTypes]:
        """``with_limits``: types that take less of a limit are not the same as others."""
        work, demands = self._work, [self._demands[item.demand] for item in items]
        requests = np.array([demand.row for demand in demands], dtype=np.int64)
        places = {index: self._pool_uses(demand) for index, demand in enumerate(self._demands)}
        uses = [
            PoolUse(number, use.pool, use.types, use.offerings & inside(self._pools[use.pool], item))
            for number, item in enumerate(items)
            for use in places[item.demand]
        ]
        bin_types = bin_types_for(self._pools, requests, uses, with_limits=with_limits)
        free, open_to = _standing(work, items, demands, requests)
        clashes = _clashes(work, demands)
        available, supply = supplies(bin_types, work.reservations)
        alone = np.arange(len(free), dtype=np.int64)
        groups = [*exclusive(clashes), *_on_hosts(work, demands, self._nodes)]
        instance = PackingInstance(
            sizes=requests,
            demands=np.array([demand.count for demand in demands], dtype=np.int64),
            costs=np.concatenate([bin_types.prices, np.zeros(len(free))]),
            capacities=np.concatenate([bin_types.capacities, free]),
            compatible=np.concatenate([bin_types.compatible, open_to], axis=1),
            cardinality_limits=tuple(
                CardinalityLimit(np.array(members, dtype=np.int64), cap) for members, cap in groups
            ),
            conflicts=clashes,
            available=np.concatenate([available, np.ones_like(alone)]),
            supply=np.concatenate([supply, alone + supply.max(initial=0) + 1]),
        )
        return instance, bin_types

    def _pool_uses(self, demand: ProofDemand) -> list[PoolUse]:
        """Where required terms, volumes and taints let the pods run; below the first pool that takes all of them nothing else may be used."""
        uses: list[PoolUse] = []
        weight: int | None = None
        for index, pool in enumerate(self._pools):
            if weight is not None and pool.weight < weight:
                break
            if demand.pods.untolerated(pool.taints) is not None:
                continue
            mine = [PoolUse(-1, index, types, columns) for types, columns in _suits(demand, pool)]
            uses += mine
            if mine and _takes_all(self._work, demand, pool):
                weight = pool.weight
        return uses


def _suits(demand: ProofDemand, pool: Pool) -> Iterator[tuple[Mask, Mask]]:
    """The types and offering columns of the pool that suit the pods, for each way in which their terms and volumes may be met."""
    for wanted in demand.ways:
        found = pool.fit(wanted)
        if not found.conflict and (pool.room[found.sold] >= demand.row).all(axis=1).any():
            yield found.types, found.columns


def _takes_all(work: Workspace, demand: ProofDemand, pool: Pool) -> bool:
    """Whether nothing could send a pod to a lighter pool: no preference, no other pod, no reservation that is used
    up, and no choice of terms or volumes, each of which is tried on all pools.
    """
    pods = demand.pods
    rules = work.topology.rules[pods]
    joins_others = any(rule.kind == "affinity" for rule in rules) or bool(work.topology.keys(pods, rules))
    is_plain = not pool.limits and not pool.min_values and first_untolerated(pods.tolerations, pool.taints) is None
    if not is_plain or not demand.is_settled or joins_others or pods.ports:
        return False
    return is_bought(pool, pool.fit(demand.ways[0]), demand.row)


def _standing(
    work: Workspace, items: Sequence[Item], demands: Sequence[ProofDemand], requests: Ints
) -> tuple[Ints, Mask]:
    """The free room of nodes that exist and could take some pod (nodes x resources), and which items (items x nodes)."""
    nodes = [node for node in work.nodes if not node.view.is_reserved and (node.free >= 0).all()]
    free = np.array([node.free for node in nodes], dtype=np.int64).reshape(len(nodes), requests.shape[1])
    admits: Mask = np.asarray((free[None] >= requests[:, None]).all(axis=2))
    for number, (item, demand) in enumerate(zip(items, demands, strict=True)):
        for index in np.flatnonzero(admits[number]):
            view = nodes[index].view
            admits[number, index] = (
                any(way.matches(view.labels) for way in demand.ways)
                and all(view.labels.get(key) == value for key, value in item.domains.items())
                and demand.pods.untolerated(view.taints) is None
                and _may_join(work, demand, nodes[index])
            )
    useful = admits.any(axis=0)
    return free[useful], admits[:, useful]


def _may_join(work: Workspace, demand: ProofDemand, node: ExistingNode) -> bool:
    """Whether those that are on the node already keep none of the pods away from it, by their rules over hosts or by a port."""
    for rule in (rule for rule in demand.rules if rule.key == HOSTNAME):
        there = work.topology.group(rule).counts[node.name]
        if (rule.kind == "anti-affinity" and there) or (rule.kind == "spread" and there >= rule.max_skew):
            return False
    foreign = work.topology.foreign_over(demand.pods, HOSTNAME)
    if any(group.rule.kind == "anti-affinity" and group.owners[node.name] for group in foreign):
        return False
    return not ports_clash(demand.pods.ports, node.ports)


def _clashes(work: Workspace, demands: Sequence[ProofDemand]) -> Mask:
    """Pods that anti-affinity over hosts or a host port keeps apart, those of an demand from each other and from those of another."""
    clashes = np.zeros((len(demands), len(demands)), dtype=np.bool_)
    for index, demand in enumerate(demands):
        for rule in demand.rules:
            if rule.key == HOSTNAME and rule.kind == "anti-affinity":
                selected = _selected(work, rule, demands)
                clashes[index, selected] = clashes[selected, index] = True
    with_ports = [(index, demand.pods.ports) for index, demand in enumerate(demands) if demand.pods.ports]
    for (index, mine), (other, taken) in product(with_ports, with_ports):
        clashes[index, other] |= ports_clash(mine, taken)
    return clashes


def _on_hosts(
    work: Workspace, demands: Sequence[ProofDemand], nodes: Sequence[NewNode]
) -> Iterator[tuple[list[int], int]]:
    """Pods (items) of which a spread over hosts lets only so many share one: a node that could be launched is an empty host.

    As many as a node of the plan has, where every host has some.
    """
    owners: dict[int, tuple[list[int], int]] = {}
    for index, demand in enumerate(demands):
        for rule in demand.rules:
            group = work.topology.group(rule)
            if rule.key == HOSTNAME and rule.kind == "spread" and group.selects(demand.pods):
                most = max((group.counts[node.name] for node in nodes), default=0)
                owners.setdefault(id(group), ([], max(rule.max_skew, most)))[0].append(index)
    yield from owners.values()


def _selected(work: Workspace, rule: Rule, demands: Sequence[ProofDemand]) -> list[int]:
    group = work.topology.group(rule)
    return [index for index, demand in enumerate(demands) if group.selects(demand.pods)]


def _limits(pools: Sequence[Pool], bin_types: BinTypes) -> Iterator[tuple[Floats, int]]:
    """What a node of each kind takes of every limit, and how much of it is left."""
    for index, pool in enumerate(pools):
        mine = bin_types.pool == index
        if not mine.any() or not pool.limits:
            continue
        capacity, left = pool.limited
        for column, most in enumerate(left):
            taken = np.zeros(len(bin_types.instance_type))
            taken[mine] = capacity[bin_types.instance_type[mine], column]
            yield taken, int(most)
        if "nodes" in pool.limits:
            yield mine.astype(np.float64), pool.limits["nodes"]
