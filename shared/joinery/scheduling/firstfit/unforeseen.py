"""Domains that a spread did not know of, and that the plan's own nodes make real.

A spread ranges over the zones that have nodes or in which something is sold for its pods. A node bought for other pods
in a zone where nothing is sold for these is one more domain for kube-scheduler, an empty one, and the spread that
looked even is not. The same goes for other labels, such as the architecture, which a node may still have any value of.
So a plan is looked over once more, and made again with what was found: counted as domains, or closed to all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from joinery.apis.labels import CAPACITY_TYPE, HOSTNAME, ZONE, canonical
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.requirements import Requirements, one_of
from joinery.scheduling.constraints.topology_rules import NodeFilter, Rule
from joinery.scheduling.firstfit.exhaustion import within_limits
from joinery.scheduling.firstfit.groups import UnforeseenDomain
from joinery.scheduling.firstfit.targets import NewNode
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.packing import Launch
from joinery.scheduling.problem import Problem
from joinery.state.offerings import InstanceType

Place = tuple[str, str]
"""A domain by its canonical key: ``(topology.kubernetes.io/zone, us-east-1a)``."""


def unforeseen_domains(
    work: Workspace, nodes: Sequence[NewNode], launches: Sequence[Launch]
) -> frozenset[UnforeseenDomain]:
    """Hard spreads with a domain that they did not range over and that a new node is in, one that counts for them.

    Only of pods that have a place: whoever has none minds nothing.
    """
    bought: dict[str, Mapping[str, list[NewNode]]] = {}
    found = set()
    placed = {batch.demand.pods for node in nodes for batch in node.placed}
    placed |= {pods for standing in work.nodes for pods, _ in standing.placed}
    for pods in (pod_class for pod_class in work.possible if pod_class in placed):
        for rule in work.topology.rules[pods]:
            if rule.kind != "spread" or rule.weight is not None or rule.key == HOSTNAME:
                continue
            if rule.key not in bought:
                bought[rule.key] = _by_domain(rule.key, nodes, launches)
            for domain in bought[rule.key].keys() - work.topology.group(rule).domains:
                inside = _inside(rule, domain)
                if any(node.counts(inside) for node in bought[rule.key][domain]):
                    found.add(UnforeseenDomain(rule.identity, rule.key, domain))
    return frozenset(found)


def _inside(rule: Rule, domain: str) -> NodeFilter:
    """Which nodes of that domain count: what a node may still be elsewhere does not matter there."""
    if rule.nodes.terms is None:
        return rule.nodes
    return replace(
        rule.nodes,
        terms=tuple(term for term in rule.nodes.terms if term.canonical().get(canonical(rule.key)).has(domain)),
    )


def _by_domain(key: str, nodes: Sequence[NewNode], launches: Sequence[Launch]) -> Mapping[str, list[NewNode]]:
    found: dict[str, list[NewNode]] = {}
    for node, launch in zip(nodes, launches, strict=True):
        for domain in _domains(key, node, launch):
            found.setdefault(domain, []).append(node)
    return found


def _domains(key: str, node: NewNode, launch: Launch) -> tuple[str, ...]:
    """Where the node is counted on to be, of zones and capacity types;
    of other labels, whatever it may turn out to have.
    """
    if canonical(key) == ZONE:
        return (launch.offering.zone,)
    return (launch.offering.capacity_type,) if key == CAPACITY_TYPE else node.values(key)


def closable(work: Workspace, unforeseen: Iterable[UnforeseenDomain]) -> frozenset[Place]:
    """Those that one may do without and over which no spread ranges:
    closing another one would leave that spread uneven.
    """
    ranged = {
        (canonical(rule.key), domain)
        for pods in work.possible
        for rule in work.topology.rules[pods]
        if rule.kind == "spread"
        for domain in work.topology.group(rule).domains
    }
    places = {(canonical(domain.key), domain.domain) for domain in unforeseen}
    return frozenset(place for place in places if place[0] in _sold_keys(work)) - ranged


def unbuyable(work: Workspace, left: Iterable[PodClass], nodes: Sequence[NewNode]) -> frozenset[Place]:
    """The domains without a node, old or new, over which spreads of pods that are left range, and in which none can be
    added for them.

    Something is sold there, so a plan would rather use them; but limits that other nodes have used up by now, or
    minValues, forbid it. kube-scheduler knows only domains of nodes, so the rest is better placed without them.
    """
    found, sold = set[Place](), _sold_keys(work)
    for pods in left:
        for rule in work.topology.rules[pods]:
            key = canonical(rule.key)
            if rule.kind == "spread" and rule.weight is None and key in sold:
                there = {view.labels.get(rule.key) for view in work.views}.union(*(n.values(key) for n in nodes))
                empty = work.topology.group(rule).domains - there
                found |= {(key, domain) for domain in empty if not _can_buy(work, pods, key, domain)}
    return frozenset(found)


def _can_buy(work: Workspace, pods: PodClass, key: str, domain: str) -> bool:
    """Whether one more node for such a pod could be added in the domain, rules about pods and volumes apart."""
    row, is_strict = work.axis.vector(pods.requests), not work.problem.options.best_effort_min_values
    pools = (pool for pool in work.pools if pods.untolerated(pool.taints) is None)
    for pool, term in product(pools, pods.terms):
        found = pool.fit(term.intersect(Requirements({key: one_of((domain,))})).canonical())
        types = found.types & within_limits(work, pool) & pool.types & (pool.room >= row).all(axis=1)
        types &= np.isfinite(pool.market.prices[:, found.columns]).any(axis=1)
        if types.any() and not found.conflict and not (is_strict and pool.too_few(types, found.columns)):
            return True
    return False


def _sold_keys(work: Workspace) -> set[str]:
    """The labels that an offering or an instance type decides, so that some can be left unsold."""
    return {ZONE, CAPACITY_TYPE}.union(*(pool.market.type_keys for pool in work.pools))


def closed(problem: Problem, places: frozenset[Place]) -> Problem:
    """The same problem with nothing on offer there."""
    types = {
        name: tuple(_without(kind, places) for kind in listed if not _is_tied(kind, places))
        for name, listed in problem.instance_types.items()
    }
    return replace(problem, instance_types=types)


def _is_tied(kind: InstanceType, places: frozenset[Place]) -> bool:
    """Whether every node of the type is in one of them."""
    return any(kind.labels.get(key) == (domain,) for key, domain in places if key not in (ZONE, CAPACITY_TYPE))


def _without(kind: InstanceType, places: frozenset[Place]) -> InstanceType:
    offerings = (o for o in kind.offerings if places.isdisjoint({(ZONE, o.zone), (CAPACITY_TYPE, o.capacity_type)}))
    return replace(kind, offerings=tuple(offerings))
