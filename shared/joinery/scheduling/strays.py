"""Domains that a spread did not know of, and that the plan's own nodes make real.

A spread ranges over the zones that have nodes or in which something is sold for its pods. A node bought for other pods in a zone
where nothing is sold for these is one more domain for kube-scheduler, an empty one, and the spread that looked even is not. So a
plan is looked over once more, and made again with what was found: counted as domains, or with those zones closed to all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from joinery.apis.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from joinery.scheduling.packing import Launch
from joinery.scheduling.problem import Problem
from joinery.scheduling.rules import NodeFilter, Rule
from joinery.scheduling.targets import NewNode
from joinery.scheduling.topology import Stray
from joinery.scheduling.workspace import Workspace


def strays(work: Workspace, nodes: Sequence[NewNode], launches: Sequence[Launch]) -> frozenset[Stray]:
    """Hard spreads with a domain that they did not range over and that a new node is in, one that counts for them.

    Only of pods that have a place: whoever has none minds nothing.
    """
    bought: dict[str, Mapping[str, list[NewNode]]] = {}
    found = set()
    placed = {id(batch.demand.pods) for node in nodes for batch in node.placed}
    placed |= {id(pods) for standing in work.nodes for pods, _ in standing.placed}
    for pods in (each for each in work.possible if id(each) in placed):
        for rule in work.topology.rules[id(pods)]:
            if rule.kind != "spread" or rule.weight is not None or rule.key == HOSTNAME:
                continue
            if rule.key not in bought:
                bought[rule.key] = _by_domain(rule.key, nodes, launches)
            for domain in bought[rule.key].keys() - work.topology.group(rule).domains:
                inside = _inside(rule, domain)
                if any(node.counts(inside) for node in bought[rule.key][domain]):
                    found.add(Stray(rule.identity, rule.key, domain))
    return frozenset(found)


def _inside(rule: Rule, domain: str) -> NodeFilter:
    """Which nodes of that domain count: what a node may still be elsewhere does not matter there."""
    if rule.nodes.terms is None:
        return rule.nodes
    return replace(rule.nodes, terms=tuple(term for term in rule.nodes.terms if term.get(rule.key).has(domain)))


def _by_domain(key: str, nodes: Sequence[NewNode], launches: Sequence[Launch]) -> Mapping[str, list[NewNode]]:
    found: dict[str, list[NewNode]] = {}
    for node, launch in zip(nodes, launches, strict=True):
        found.setdefault(_domain(key, node, launch), []).append(node)
    found.pop("", None)
    return found


def _domain(key: str, node: NewNode, launch: Launch) -> str:
    """Where the node is counted on to be; empty where the label is missing or still open."""
    if key == ZONE:
        return launch.offering.zone
    if key == CAPACITY_TYPE:
        return launch.offering.capacity_type
    values = node.values(key)
    return values[0] if len(values) == 1 else ""


def closable(work: Workspace, found: Iterable[Stray]) -> frozenset[str]:
    """The zones among them over which no spread ranges: closing another one would leave that spread uneven."""
    ranged = {
        domain
        for pods in work.possible
        for rule in work.topology.rules[id(pods)]
        if rule.kind == "spread" and rule.key == ZONE
        for domain in work.topology.group(rule).domains
    }
    return frozenset(stray.domain for stray in found if stray.key == ZONE) - ranged


def closed(problem: Problem, zones: frozenset[str]) -> Problem:
    """The same problem with nothing on offer in those zones."""
    types = {
        name: tuple(replace(kind, offerings=tuple(o for o in kind.offerings if o.zone not in zones)) for kind in listed)
        for name, listed in problem.instance_types.items()
    }
    return replace(problem, instance_types=types)
