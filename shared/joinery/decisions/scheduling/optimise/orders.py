"""What first-fit promised: which pods need a new node, in which domains, from pools of which weight.

First-fit decides everything about a packing but the nodes themselves: what goes to existing capacity, which
preferences are kept, how a class is dealt out over zones, which tier of pools serves it. An **order** is what is left
to decide: so many pods of one class, with those domains, on nodes of that tier. Any nodes that carry out all orders
and keep the rules over hosts make a packing as right as first-fit's, so the optimizer is free to look for cheaper
ones. Each order is an item of its instance.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from joinery.decisions.optimizer.arrays import Mask
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.requirements import ValueSet
from joinery.decisions.scheduling.constraints.resources import WILDCARDS, HostPort
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.firstfit.deferral import Deferred
from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME

#: Indices of orders, and how many of their pods together may share a node.
Limit = tuple[tuple[int, ...], int]


@dataclass(eq=False)
class Order:
    """``pods`` (names) of one demand, wanted in these domains on nodes of pools of this weight. All of them on one node
    if they go ``together``. Where ``is_deferred``, first-fit has no nodes for them. ``nodes``: the numbers of those
    that carry it out by now, where pods may stay joined (``orders_of``).
    """

    demand: Demand
    domains: Domains
    weight: int
    together: bool = False
    is_deferred: bool = False
    pods: list[str] = field(default_factory=list)
    nodes: set[int] = field(default_factory=set)

    @property
    def unit(self) -> int:
        """How many of the pods are one copy of its item."""
        return len(self.pods) if self.together else 1


@dataclass(frozen=True, eq=False)
class HostRules:
    """What may not share a node. ``limits``: as ``Limit``. ``conflicts``: bool[orders, orders], pods of both never."""

    limits: tuple[Limit, ...]
    conflicts: Mask


def orders_of(nodes: Iterable[NewNode], together: Container[Demand], *, stay_joined: bool = False) -> tuple[Order, ...]:
    """What the nodes carry out; pods of one demand in the same domains and tier are one order. ``together``: demands
    whose pods share one node. ``stay_joined``: whether pods that gave a preference up may stay with those that keep it.
    """
    orders: dict[tuple[Demand, tuple[tuple[str, str], ...], int], Order] = {}
    for number, node in enumerate(nodes):
        for batch in node.placed:
            key = (batch.demand, tuple(sorted(batch.domains.items())), node.pool.weight)
            order = orders.setdefault(
                key, Order(batch.demand, batch.domains, node.pool.weight, batch.demand in together)
            )
            order.pods += batch.pods
            order.nodes |= {number} if stay_joined else set()
    return tuple(orders.values())


def order_of(deferred: Deferred) -> Order:
    """Deferred pods as an order: nothing ties them to a domain."""
    return Order(deferred.demand, {}, deferred.weight, is_deferred=True, pods=list(deferred.pods))


def gathers(node: NewNode, together: Container[Demand]) -> bool:
    """Whether pods of the node must share their host with others than their like, for an affinity or for the devices of
    a claim that they share: such a node stays as first-fit made it.
    """
    return any(
        batch.demand.pod_class.shared_claims or (batch.demand.gathers and batch.demand not in together)
        for batch in node.placed
    )


def all_together(nodes: Iterable[NewNode], topology: Topology) -> frozenset[Demand]:
    """Demands whose pods must all share one host, with none but each other, and on which no other rule over hosts
    counts. Wherever they go they go together, so they are one large item.
    """
    batches: dict[Demand, list[int]] = {}
    for batch in (batch for node in nodes for batch in node.placed):
        batches.setdefault(batch.demand, []).append(len(batch.pods))
    gathering = [demand for demand, counts in batches.items() if demand.gathers and len(counts) == 1]
    counting = _counting(batches, topology) if gathering else {}
    return frozenset(
        demand
        for demand in gathering
        if counting.get(demand.pod_class, frozenset()) <= {demand}
        and _share_one_host(demand, batches[demand][0], topology)
    )


def _counting(demands: Iterable[Demand], topology: Topology) -> Mapping[PodClass, set[Demand]]:
    """By class, the demands of which a rule over hosts counts it."""
    counting: dict[PodClass, set[Demand]] = defaultdict(set)
    for demand in demands:
        for pods in topology.selected(rule for rule in demand.variant.rules if rule.key == HOSTNAME):
            counting[pods].add(demand)
    return counting


def _share_one_host(demand: Demand, count: int, topology: Topology) -> bool:
    own = [rule for rule in demand.variant.rules if rule.key == HOSTNAME]
    pods = demand.pod_class
    return (
        not pods.ports
        and all(rule.kind == "affinity" and topology.group(rule).selects(pods) for rule in own)
        and all(topology.group(rule).counts.total() == count for rule in own)
    )


def host_rules(orders: Sequence[Order], topology: Topology) -> HostRules:
    """From spreads and anti-affinities over hosts, and from host ports.

    A spread is taken as binding everyone it counts, whoever owns it: a little stricter than kube-scheduler, and a
    plain limit.
    """
    limits: dict[Limit, None] = {}
    conflicts = np.zeros((len(orders), len(orders)), dtype=np.bool_)
    of_class: dict[PodClass, list[int]] = {}
    for index, order in enumerate(orders):
        of_class.setdefault(order.demand.pod_class, []).append(index)
    for index, order in enumerate(orders):
        for rule in order.demand.variant.rules:
            if rule.key != HOSTNAME or rule.kind == "affinity":
                continue
            selected = tuple(sorted(i for pods in topology.selected((rule,)) for i in of_class.get(pods, ())))
            if _is_preferred(rule):
                selected = tuple(other for other in selected if not _is_joined(order, orders[other], rule))
            if not selected:
                continue
            if rule.kind == "spread":
                residents = max(topology.group(rule).residents.values(), default=0)
                limits[selected, rule.max_skew - residents] = None
            else:
                conflicts[index, list(selected)] = conflicts[list(selected), index] = True
    conflicts |= port_conflicts([order.demand.pod_class.ports for order in orders])
    return HostRules((*limits, *exclusive(conflicts)), conflicts)


def are_joined(nodes: Iterable[NewNode], topology: Topology) -> bool:
    """Whether some node may have pods that prefer to be without others, and such others, which came later."""
    rules = {rule for node in nodes for batch in node.placed for rule in batch.demand.variant.rules}
    return any(max(topology.group(rule).counts.values(), default=0) > 1 for rule in rules if _is_preferred(rule))


def _is_preferred(rule: TopologyRule) -> bool:
    return rule.weight is not None and (rule.key, rule.kind) == (HOSTNAME, "anti-affinity")


def _is_joined(order: Order, other: Order, rule: TopologyRule) -> bool:
    """Whether pods that have dropped the rule are on each node of an order that keeps it, because they were placed
    later. On a single node they may stay: no preference is lost by that.
    """
    is_joined = bool(order.nodes) and order.nodes <= other.nodes
    return is_joined and len(order.pods) == 1 and rule not in other.demand.variant.rules


def apart_by_labels(orders: Sequence[Order], pools: Sequence[Pool]) -> Mask:
    """bool[orders, orders]: those that want different values of a label of which a pool's node may have any.

    Other labels are known of a bin type, so the two have none in common.
    """
    keys = sorted({key for pool in pools for key in pool.requirements if _is_open(pool, key)})
    alike: dict[tuple[ValueSet, ...], list[int]] = {}
    for index, order in enumerate(orders) if keys else ():
        wanted, _ = order.demand.fit(pools[0], order.domains)
        alike.setdefault(tuple(wanted.get(key) for key in keys), []).append(index)
    conflicts = np.zeros((len(orders), len(orders)), dtype=np.bool_)
    for (one, members), (other, others) in combinations(alike.items(), 2):
        if any(mine.intersect(theirs).is_impossible for mine, theirs in zip(one, other, strict=True)):
            conflicts[np.ix_(members, others)] = True
    return conflicts | conflicts.T


def _is_open(pool: Pool, key: str) -> bool:
    allowed = pool.requirements.sets[key]
    is_given = key not in OFFERING_KEYS and not pool.is_by_type(key)
    return is_given and (allowed.complement or len(allowed.values) > 1)


def port_conflicts(ports: Sequence[Iterable[HostPort]]) -> Mask:
    """bool[sets, sets]: which of these sets of host ports clash (``ports_clash``); all pairs at once, port by port."""
    clash = np.zeros((len(ports), len(ports)), dtype=np.bool_)
    users: dict[tuple[str, int], dict[str, list[int]]] = {}
    for index, own in enumerate(ports):
        for protocol, ip, port in own:
            users.setdefault((protocol, port), {}).setdefault(ip, []).append(index)
    for by_ip in users.values():
        everyone = sorted({index for members in by_ip.values() for index in members})
        for ip, members in by_ip.items():
            others = everyone if ip in WILDCARDS else members
            clash[np.ix_(members, others)] = clash[np.ix_(others, members)] = True
    return clash


def exclusive(conflicts: Mask) -> Iterable[Limit]:
    """Sets of orders (indices) that all conflict with each other and themselves: one pod of such a set on a node.

    The relaxation knows nothing of conflicts between two items; as a limit on a clique of the conflict graph it does,
    and one row for a clique is stronger than one for each pair. Cliques are found greedily: any will do, and the
    largest are hard to find.
    """
    seen: set[int] = set()
    for index in np.flatnonzero(conflicts.diagonal()):
        if int(index) not in seen:
            members = [int(index)]
            for other in np.flatnonzero(conflicts[index] & conflicts.diagonal()):
                if int(other) not in seen and int(other) != index and conflicts[other, members].all():
                    members.append(int(other))
            seen.update(members)
            yield tuple(sorted(members)), 1
