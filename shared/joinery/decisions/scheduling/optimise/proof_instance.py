"""The instance that a bound is proven for: what no packing can avoid, and nothing else, as items and bin types.

Every pod's requests, where its required terms, volumes, taints and the weights of pools let it run, which pods may not
share a node, how spreads and anti-affinity over zones and capacity types deal them out (``domain_rows``), and the
limits of pools. Nodes that exist are bin types of which there is one, at no cost, with the room that the packing left
on them. Whatever else forbids a node (pod affinity, minValues) is left out: it only makes a plan dearer, so the bound
holds without it.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product

import numpy as np

from joinery.decisions.optimizer.arrays import Ints, Mask
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance, SideConstraint
from joinery.decisions.scheduling.constraints.resources import ports_clash
from joinery.decisions.scheduling.constraints.taints import first_untolerated
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.firstfit.existing_node import ExistingNode
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.optimise.bin_types import BinTypes, PoolUse, Preferences, supplies
from joinery.decisions.scheduling.optimise.device_columns import DeviceColumns, columns_for_bound
from joinery.decisions.scheduling.optimise.domain_rows import KEYS, Item, domain_rules, inside, items_of, rows_of
from joinery.decisions.scheduling.optimise.dominance import bin_types_for
from joinery.decisions.scheduling.optimise.limited import limits_of
from joinery.decisions.scheduling.optimise.orders import Limit, exclusive, port_conflicts
from joinery.decisions.scheduling.optimise.proof_demands import ProofDemand
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.pools.reserved import is_sold_unreserved
from joinery.decisions.scheduling.topology.groups import TopologyGroup
from joinery.objects.karpenter.labels import HOSTNAME


class ProofInstances:
    """Instances for the demands of a plan's new nodes. ``pools``: with the whole room of their types, and all that
    they sell. ``preferences``: what makes prices count as other than they are, which is nothing to a bound.
    ``keys``: topology keys of which bin types say in which domain they are.
    """

    def __init__(
        self,
        work: Workspace,
        demands: Sequence[ProofDemand],
        nodes: Sequence[NewNode],
        pools: Sequence[Pool],
        preferences: Preferences | None = None,
        keys: Container[str] = KEYS,
    ) -> None:
        self._work, self._demands, self._nodes, self._pools = work, demands, nodes, pools
        self._preferences, self._keys = preferences, keys

    def plain(self) -> PackingInstance:
        """Without side constraints: every demand is one item."""
        items = [Item(index, {}) for index in range(len(self._demands))]
        return self._instance(items, with_limits=False)[0]

    def constrained(self) -> tuple[list[Item], ConstrainedInstance]:
        """With rows for domains and for the limits of pools; a demand is an item for every domain in which rules count
        it.
        """
        rules = domain_rules(self._work, self._demands, self._nodes, self._keys)
        items = items_of(self._demands, rules, self._pools, self._work)
        instance, bin_types = self._instance(items, with_limits=True)
        unforeseen: dict[tuple[object, ...], set[str]] = {}
        for domain in self._work.topology.unforeseen:
            unforeseen.setdefault(domain.rule, set()).add(domain.domain)
        no_items, no_bins = np.zeros(len(items)), np.zeros(len(instance.costs))
        existing = np.zeros(len(instance.costs) - len(bin_types.prices))
        rows = [replace(row, bin_types=no_bins) for row in rows_of(items, rules, self._demands, unforeseen)]
        for pool, resource, taken in limits_of(self._pools, bin_types):
            rows.append(SideConstraint(no_items, np.concatenate([taken, existing]), float(pool.limits[resource])))
        return items, ConstrainedInstance(
            instance=instance,
            demand_of=np.array([item.demand for item in items], dtype=np.int64),
            demands=np.array([demand.count for demand in self._demands], dtype=np.int64),
            side_constraints=tuple(rows),
        )

    def _instance(self, items: Sequence[Item], *, with_limits: bool) -> tuple[PackingInstance, BinTypes]:
        """The instance, and its bin types that are bought: those of nodes that exist come after them."""
        work, demands = self._work, [self._demands[item.demand] for item in items]
        requests = np.array([demand.row for demand in demands], dtype=np.int64)
        requests = requests.reshape(len(demands), len(work.axis.names))  # also where nothing has a domain left
        requests = np.hstack([requests, self._devices.sizes([demand.devices for demand in demands])])
        pools = self._devices.widened(self._pools)
        bin_types = bin_types_for(pools, requests, self._uses(items), self._preferences, with_limits=with_limits)
        free, open_to = _existing(work, items, demands, requests, self._devices)
        conflicts = _conflicts(work, demands, self._nodes)
        limits = [*exclusive(conflicts), *_host_spreads(work, demands, self._nodes)]
        available, supply = supplies(bin_types, work.reservations)
        numbers = np.arange(len(free), dtype=np.int64)
        instance = PackingInstance(
            sizes=requests,
            demands=np.array([demand.count for demand in demands], dtype=np.int64),
            costs=np.concatenate([bin_types.costs, np.zeros(len(free))]),
            capacities=np.concatenate([bin_types.capacities, free]),
            compatible=np.concatenate([bin_types.compatible, open_to], axis=1),
            cardinality_limits=tuple(CardinalityLimit(np.array(members), cap) for members, cap in limits),
            conflicts=conflicts,
            available=np.concatenate([available, np.ones_like(numbers)]),
            supply=np.concatenate([supply, numbers + supply.max(initial=0) + 1]),
        )
        return instance, bin_types

    @cached_property
    def _devices(self) -> DeviceColumns:
        claimed = [demand.devices for demand in self._demands]
        standing = (node.stock for node in self._work.nodes)
        return columns_for_bound(self._work.claims, claimed, self._pools, standing)

    def _uses(self, items: Sequence[Item]) -> list[PoolUse]:
        """How each item may use pools: as its demand may, in its own domains."""
        of_demand = [self._uses_of(demand) for demand in self._demands]
        return [
            replace(there, item=number)
            for number, item in enumerate(items)
            for use in of_demand[item.demand]
            if (there := inside(use, self._pools[use.pool], item))
        ]

    def _uses_of(self, demand: ProofDemand) -> list[PoolUse]:
        """Where required terms, volumes and taints let the pods run.

        Of the pools that are lighter than the first one that takes all of them, only those in which others have nodes.
        """
        uses: list[PoolUse] = []
        taken_at: int | None = None
        for index, pool in enumerate(self._pools):
            if demand.least_weight is not None and pool.weight < demand.least_weight:
                break
            is_lighter = taken_at is not None and pool.weight < taken_at
            if (is_lighter and index not in self._opened) or demand.pod_class.untolerated(pool.taints) is not None:
                continue
            of_pool = [PoolUse(-1, index, types, offerings) for types, offerings in suitable(demand, pool)]
            uses += of_pool
            if of_pool and taken_at is None and _takes_all(self._work, demand, pool):
                taken_at = pool.weight
        return uses

    @cached_property
    def _opened(self) -> frozenset[int]:
        """Pools (indices) of which nodes may be bought: some pods that they may have are taken by no heavier pool.

        Karpenter tries heavier pools first, but puts pods on any node that it is buying already, so such pods may bring
        others along.
        """
        return frozenset(
            index
            for index, pool in enumerate(self._pools)
            if any(_may_use(demand, pool) and not self._is_taken_above(demand, pool) for demand in self._demands)
        )

    def _is_taken_above(self, demand: ProofDemand, pool: Pool) -> bool:
        heavier = (other for other in self._pools if other.weight > pool.weight)
        return any(_may_use(demand, other) and _takes_all(self._work, demand, other) for other in heavier)


def _may_use(demand: ProofDemand, pool: Pool) -> bool:
    return demand.pod_class.untolerated(pool.taints) is None and any(True for _ in suitable(demand, pool))


def suitable(demand: ProofDemand, pool: Pool) -> Iterator[tuple[Mask, Mask]]:
    """The pool's types and offering columns that suit the pods, for each of their ways."""
    for way in demand.ways:
        fit = pool.fit(pool.asked(way))
        if not fit.conflict and (fit.sold & pool.has_room(demand.row)).any():
            yield fit.types, fit.columns


def _takes_all(work: Workspace, demand: ProofDemand, pool: Pool) -> bool:
    """Whether nothing could send one of the pods to a lighter pool.

    That could be a preference, another pod, a limit, a reservation that is used up, or a choice of terms or volumes,
    each of which is tried on all pools.
    """
    pods = demand.pod_class
    rules = work.topology.rules[pods]
    joins_others = any(rule.kind == "affinity" for rule in rules) or bool(work.topology.binding(pods).keys(rules))
    is_plain = not pool.limits and not pool.min_values and first_untolerated(pods.tolerations, pool.taints) is None
    if not is_plain or not demand.is_settled or joins_others or pods.ports:
        return False
    return is_sold_unreserved(pool, pool.fit(pool.asked(demand.ways[0])), demand.row)


def _existing(
    work: Workspace, items: Sequence[Item], demands: Sequence[ProofDemand], requests: Ints, devices: DeviceColumns
) -> tuple[Ints, Mask]:
    """Nodes that exist and could take some pod: int64[nodes, resources], their free room, and bool[items, nodes], for
    which items.
    """
    nodes = [node for node in work.nodes if not node.view.is_unlaunched and (node.free >= 0).all()]
    rows = [np.concatenate([node.free, devices.left(node.stock, node.taken)]) for node in nodes]
    free = np.array(rows, dtype=np.int64).reshape(len(nodes), requests.shape[1])
    is_open: Mask = np.asarray((free[None] >= requests[:, None]).all(axis=2))
    for number, (item, demand) in enumerate(zip(items, demands, strict=True)):
        for index in np.flatnonzero(is_open[number]):
            view = nodes[index].view
            is_open[number, index] = (
                any(way.matches(view.labels) for way in demand.ways)
                and all(view.labels.get(key) == value for key, value in item.domains.items())
                and demand.pod_class.untolerated(view.taints) is None
                and _may_join(work, demand, nodes[index])
            )
    is_useful = is_open.any(axis=0)
    return free[is_useful], is_open[:, is_useful]


def _may_join(work: Workspace, demand: ProofDemand, node: ExistingNode) -> bool:
    """Whether the pods on the node let these join them: by rules over hosts of either, and by host ports."""
    for rule in (rule for rule in demand.rules if rule.key == HOSTNAME):
        counted = work.topology.group(rule).counts[node.name]
        if (rule.kind == "anti-affinity" and counted) or (rule.kind == "spread" and counted >= rule.max_skew):
            return False
    foreign = work.topology.binding(demand.pod_class).foreign_over(HOSTNAME)
    if any(group.rule.kind == "anti-affinity" and group.owners[node.name] for group in foreign):
        return False
    return not ports_clash(demand.pod_class.ports, node.ports)


def _conflicts(work: Workspace, demands: Sequence[ProofDemand], nodes: Sequence[NewNode]) -> Mask:
    """bool[demands, demands]: pods that anti-affinity over hosts or a host port keeps apart, from their like or from
    others.

    What is only preferred keeps nobody apart who shares a node of the plan: pods that gave it up came there later.
    """
    together = {pair for node in nodes for pair in product((batch.demand.identity for batch in node.placed), repeat=2)}
    conflicts = np.zeros((len(demands), len(demands)), dtype=np.bool_)
    for index, demand in enumerate(demands):
        for rule in demand.rules:
            if rule.key == HOSTNAME and rule.kind == "anti-affinity":
                selected = _selected(work, rule, demands)
                if rule.weight is not None:
                    selected = [
                        other
                        for other in selected
                        if rule in demands[other].rules or (demand.identity, demands[other].identity) not in together
                    ]
                conflicts[index, selected] = conflicts[selected, index] = True
    conflicts |= port_conflicts([demand.pod_class.ports for demand in demands])
    return conflicts


def _selected(work: Workspace, rule: TopologyRule, demands: Sequence[ProofDemand]) -> list[int]:
    selected = set(work.topology.selected((rule,)))
    return [index for index, demand in enumerate(demands) if demand.pod_class in selected] if selected else []


def _host_spreads(work: Workspace, demands: Sequence[ProofDemand], nodes: Sequence[NewNode]) -> list[Limit]:
    """Demands (indices) of which a spread over hosts lets only so many pods share one.

    That is maxSkew, because a node that could be launched is an empty host. Where every host has some already it is
    more, but no more than a node of the plan has.
    """
    owners: dict[TopologyGroup, list[int]] = {}
    caps: dict[TopologyGroup, int] = {}
    for index, demand in enumerate(demands):
        for rule in demand.rules:
            group = work.topology.group(rule)
            if rule.key == HOSTNAME and rule.kind == "spread" and group.selects(demand.pod_class):
                most = max((group.counts[node.name] for node in nodes), default=0)
                caps.setdefault(group, max(rule.max_skew, most))
                owners.setdefault(group, []).append(index)
    return [(tuple(members), caps[group]) for group, members in owners.items()]
