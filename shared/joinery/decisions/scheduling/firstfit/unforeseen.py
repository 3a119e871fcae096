"""Domains that spreads had not counted and that the plan's own nodes open; and domains that nothing can fill.

A spread ranges over the domains that have nodes, and over those in which something is sold for its pods. A node that is
bought for other pods, in a zone where nothing is sold for these, is one more domain to kube-scheduler, and an empty
one, so the spread is uneven. The same goes for other labels, such as the architecture, of which a node may still get
any value. So a packing that opened such domains is made again: they are counted from the start, or closed to all
pods.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.requirements import Requirements, one_of
from joinery.decisions.scheduling.constraints.topology_rules import NodeFilter, TopologyRule
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.workspace import Usage, Workspace
from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.topology.rule_groups import UnforeseenDomain
from joinery.objects.karpenter.labels import CAPACITY_TYPE, HOSTNAME, NODE_POOL, ZONE, canonical
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.offerings import InstanceType

#: A domain by its canonical key: ``(topology.kubernetes.io/zone, us-east-1a)``.
Place = tuple[str, str]


def unforeseen_domains(
    work: Workspace, nodes: Sequence[NewNode], launches: Sequence[Launch]
) -> frozenset[UnforeseenDomain]:
    """The domains of hard spreads that those had not counted, and in which a new node is that counts for them.

    Only spreads of pods that have a place matter.
    """
    bought: dict[str, Mapping[str, list[NewNode]]] = {}
    unforeseen = set()
    placed = {batch.demand.pod_class for node in nodes for batch in node.placed}
    placed |= {pod_class for standing in work.nodes for pod_class, _ in standing.placed}
    for pod_class in (pod_class for pod_class in work.possible if pod_class in placed):
        for rule in work.topology.rules[pod_class]:
            if rule.kind != "spread" or rule.weight is not None or rule.key == HOSTNAME:
                continue
            if rule.key not in bought:
                bought[rule.key] = _by_domain(rule.key, nodes, launches)
            for domain in bought[rule.key].keys() - work.topology.group(rule).domains:
                inside = _inside(rule, domain)
                if any(node.counts(inside) for node in bought[rule.key][domain]):
                    unforeseen.add(UnforeseenDomain(rule.identity, rule.key, domain))
    return frozenset(unforeseen)


def _inside(rule: TopologyRule, domain: str) -> NodeFilter:
    """The spread's filter for nodes of that domain. A node may still be elsewhere, but that does not matter there."""
    if rule.nodes.terms is None:
        return rule.nodes
    return replace(
        rule.nodes,
        terms=tuple(term for term in rule.nodes.terms if term.canonical().get(canonical(rule.key)).has(domain)),
    )


def _by_domain(key: str, nodes: Sequence[NewNode], launches: Sequence[Launch]) -> Mapping[str, list[NewNode]]:
    by_domain: dict[str, list[NewNode]] = {}
    for node, launch in zip(nodes, launches, strict=True):
        for domain in _domains(key, node, launch):
            by_domain.setdefault(domain, []).append(node)
    return by_domain


def _domains(key: str, node: NewNode, launch: Launch) -> tuple[str, ...]:
    """The domains in which the node may turn out to be.

    Its zone and capacity type are those that its launch counts on; of other labels it may have any value that is left.
    """
    if canonical(key) == ZONE:
        return (launch.offering.zone,)
    return (launch.offering.capacity_type,) if key == CAPACITY_TYPE else node.values(key)


def closable(work: Workspace, unforeseen: Iterable[UnforeseenDomain]) -> frozenset[Place]:
    """The domains in which nothing need be bought, because no spread ranges over them.

    Closing one over which a spread ranges would leave that spread uneven.
    """
    ranged = {
        (canonical(rule.key), domain)
        for pod_class in work.possible
        for rule in work.topology.rules[pod_class]
        if rule.kind == "spread"
        for domain in work.topology.group(rule).domains
    }
    places = {(canonical(domain.key), domain.domain) for domain in unforeseen}
    return frozenset(place for place in places if place[0] in _closable_keys(work)) - ranged


def unbuyable(work: Workspace, usage: Usage, left: Iterable[PodClass], nodes: Sequence[NewNode]) -> frozenset[Place]:
    """The empty domains in which nothing can be added for the pods that are left, though their spreads range over them.

    Something is sold there, so a plan would rather use them. But other nodes have used up the limits by now, or
    minValues forbid it. kube-scheduler counts only domains that have nodes, so the rest is better placed without them.
    """
    places, keys, inhabited = set[Place](), _closable_keys(work), dict[str, set[str | None]]()
    for pod_class in left:
        for rule in work.topology.rules[pod_class]:
            key = canonical(rule.key)
            if rule.kind == "spread" and rule.weight is None and key in keys:
                if rule.key not in inhabited:
                    standing = {view.labels.get(rule.key) for view in work.views}
                    inhabited[rule.key] = standing.union(*(node.values(key) for node in nodes))
                empty = work.topology.group(rule).domains - inhabited[rule.key]
                places |= {(key, domain) for domain in empty if not _can_buy(work, usage, pod_class, key, domain)}
    return frozenset(places)


def _can_buy(work: Workspace, usage: Usage, pod_class: PodClass, key: str, domain: str) -> bool:
    """Whether a node for such a pod could be added in the domain, apart from rules about pods and from volumes."""
    row, is_strict = work.axis.asked(pod_class.requests), not work.problem.options.best_effort_min_values
    pools = (pool for pool in work.pools if pod_class.untolerated(pool.taints) is None)
    for pool, term in product(pools, pod_class.terms):
        fit = pool.fit(pool.asked(term).intersect(Requirements({key: one_of((domain,))})).canonical())
        types = fit.types & usage.within_limits(pool) & pool.types & pool.has_room(row)
        types &= np.isfinite(pool.market.prices[:, fit.columns]).any(axis=1)
        if types.any() and not fit.conflict and not (is_strict and pool.too_few(types, fit.columns)):
            return True
    return False


def _closable_keys(work: Workspace) -> set[str]:
    """The labels of which new nodes need not have every value: an offering, an instance type or a NodePool decides."""
    of_pools = (pool.market.type_keys | pool.requirements.sets.keys() for pool in work.pools)
    return {ZONE, CAPACITY_TYPE}.union(*of_pools) - {HOSTNAME}


def closed(problem: Problem, places: frozenset[Place]) -> Problem:
    """The same problem with nothing on offer there."""
    types = {
        name: tuple(_without(kind, places) for kind in listed if not _is_tied(kind, places))
        for name, listed in problem.instance_types.items()
    }
    sold = {ZONE, CAPACITY_TYPE}.union(*(kind.labels for listed in types.values() for kind in listed))
    own = [place for place in places if place[0] not in sold]
    pools = tuple(_forbidden(pool, own) for pool in problem.snapshot.node_pools)
    return replace(problem, instance_types=types, snapshot=replace(problem.snapshot, node_pools=pools))


def _forbidden(pool: NodePool, places: Iterable[Place]) -> NodePool:
    """The NodePool, none of whose new nodes come to these places by a label that is its own."""
    template = pool.spec.template
    keys = {canonical(key) for key in (*template.metadata.labels, *(it.key for it in template.spec.requirements))}
    more = [
        Requirement(key=key, operator="NotIn", values=[domain])
        for key, domain in sorted(places)
        if key in {NODE_POOL, *keys}
    ]
    return pool.requiring(more) if more else pool


def _is_tied(kind: InstanceType, places: frozenset[Place]) -> bool:
    """Whether every node of the type is in one of them."""
    return any(kind.labels.get(key) == (domain,) for key, domain in places if key not in (ZONE, CAPACITY_TYPE))


def _without(kind: InstanceType, places: frozenset[Place]) -> InstanceType:
    offerings = (o for o in kind.offerings if places.isdisjoint({(ZONE, o.zone), (CAPACITY_TYPE, o.capacity_type)}))
    return replace(kind, offerings=tuple(offerings))
