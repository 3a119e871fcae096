"""Spreads and anti-affinity over zones and capacity types, as rows over all nodes: what the bound knows of how pods are domain_rules out.

A spread ranges over the domains that have nodes or in which something is sold for its pods (``topology``). Whoever owns it obeys, in
every domain where one of its owners is::

    pods in it - pods in any other domain <= maxSkew

of which the owners in the one domain and all counted pods in the other are a part that holds whether owners are there or not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from joinery.apis.labels import CAPACITY_TYPE, ZONE
from joinery.optimizer.arrays import Floats
from joinery.optimizer.instance.side_constraints import SideConstraint
from joinery.scheduling.firstfit.groups import Group
from joinery.scheduling.firstfit.targets import NewNode
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.optimise.proof_demands import ProofDemand
from joinery.scheduling.pools.pool import Mask, Pool

KEYS = (CAPACITY_TYPE, ZONE)
"""Offerings decide them, so it is known of every kind of node which domain it is in."""


@dataclass(frozen=True, eq=False)
class Item:
    """The pods of an demand in certain domains, by key; those that no rule tells apart are together."""

    demand: int
    domains: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class DomainRule:
    """A group whose counts bind. ``owners`` and ``counted``: demands (indices); ``before``: counts without the launched pods."""

    group: Group
    owners: tuple[int, ...]
    counted: tuple[int, ...]
    before: Mapping[str, int]


def domain_rules(work: Workspace, demands: Sequence[ProofDemand], nodes: Sequence[NewNode]) -> list[DomainRule]:
    """The groups over zones and capacity types that some demand owns, except those that the plan itself reads in another way."""
    owners: dict[int, list[int]] = {}
    groups: dict[int, Group] = {}
    for index, demand in enumerate(demands):
        for rule in demand.rules:
            group = work.topology.group(rule)
            is_known = rule.kind != "affinity" and group not in work.topology.settling
            if rule.key in KEYS and is_known and not _is_near(demand, rule.key):
                groups[id(group)] = group
                owners.setdefault(id(group), []).append(index)
    found = []
    for key, group in groups.items():
        counted = tuple(i for i, demand in enumerate(demands) if group.selects(demand.pods))
        mine = tuple(i for i in dict.fromkeys(owners[key]) if i in counted)
        before = Counter(group.counts)
        before.subtract(_launched(group, nodes))
        if mine:
            found.append(DomainRule(group, mine, counted, before))
    return found


def _is_near(demand: ProofDemand, key: str) -> bool:
    """Whether the pods must be near others, in whose domains alone they are spread: which those are a plan decides."""
    return any(rule.kind == "affinity" and rule.key == key for rule in demand.rules)


def _launched(group: Group, nodes: Iterable[NewNode]) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in nodes:
        for batch in node.placed:
            for tally, domain in batch.entry.tallies:
                if tally is group.counts:
                    found[domain] += batch.entry.count
    return found


def items_of(
    demands: Sequence[ProofDemand], rules: Iterable[DomainRule], pools: Iterable[Pool], work: Workspace
) -> list[Item]:
    """Every demand, as many times as there are domains in which rules count it."""
    values = {key: _values(key, pools, work) for key in KEYS}
    keys: dict[int, set[str]] = {}
    for one in rules:
        for demand in one.counted:
            keys.setdefault(demand, set()).add(one.group.rule.key)
    found = []
    for index in range(len(demands)):
        mine = sorted(keys.get(index, ()))
        found += [Item(index, dict(zip(mine, some, strict=True))) for some in product(*(values[key] for key in mine))]
    return found


def _values(key: str, pools: Iterable[Pool], work: Workspace) -> list[str]:
    sold = {column.value(key) or "" for pool in pools for column in pool.market.columns}
    return sorted((sold | {node.view.labels.get(key, "") for node in work.nodes}) - {""})


def inside(pool: Pool, item: Item) -> Mask:
    """The pool's offering columns in the item's domains."""
    columns = [all(c.value(key) == value for key, value in item.domains.items()) for c in pool.market.columns]
    return np.array(columns, dtype=np.bool_)


def rows_of(
    items: Sequence[Item],
    rules: Iterable[DomainRule],
    demands: Sequence[ProofDemand],
    unforeseen: Mapping[tuple[object, ...], set[str]],
) -> Iterator[SideConstraint]:
    """The rows of all rules; ``unforeseen``: domains, by the identity of a spread, that only the plan's own nodes are in."""
    for one in rules:
        rule = one.group.rule
        if rule.kind == "anti-affinity":
            if all(one.group.counts[domain] - number <= 1 for domain, number in one.before.items()):
                yield from _apart(items, one)
            continue
        domains = one.group.domains - unforeseen.get(rule.identity, set())
        if len(domains) >= rule.min_domains and _is_obeyed(one, domains):
            yield from _spread(items, one, demands, sorted(domains))


def _is_obeyed(one: DomainRule, domains: Iterable[str]) -> bool:
    """Whether the plan keeps the rule as the rows put it; if not they are no rule."""
    counts = [one.group.counts[domain] for domain in domains]
    before = [one.before.get(domain, 0) for domain in domains]
    skew = max(max(counts) - min(counts), 0) if counts else 0
    return skew <= max(one.group.rule.max_skew, max(before) - min(before) if before else 0)


def _spread(
    items: Sequence[Item], one: DomainRule, demands: Sequence[ProofDemand], domains: Sequence[str]
) -> Iterator[SideConstraint]:
    skew, key, before = one.group.rule.max_skew, one.group.rule.key, one.before
    pods = sum(demands[index].count for index in one.counted)
    for full in domains:
        here = _coefficients(items, one.owners, key, full)
        beyond = {
            empty: max(0, skew - before.get(full, 0) + before.get(empty, 0)) for empty in domains if empty != full
        }
        for empty, most in beyond.items():
            there = _coefficients(items, one.counted, key, empty)
            yield SideConstraint(here - there, np.zeros(0), float(most))
        # The sum of these rows, in whole pods.
        yield SideConstraint(here, np.zeros(0), float((pods + sum(beyond.values())) // len(domains)))


def _apart(items: Sequence[Item], one: DomainRule) -> Iterator[SideConstraint]:
    key = one.group.rule.key
    for domain in sorted({item.domains[key] for item in items if key in item.domains}):
        most = 0.0 if one.before.get(domain, 0) > 0 else 1.0
        yield SideConstraint(_coefficients(items, one.owners, key, domain), np.zeros(0), most)


def _coefficients(items: Sequence[Item], demands: Iterable[int], key: str, domain: str) -> Floats:
    mine = set(demands)
    return np.array([item.demand in mine and item.domains.get(key) == domain for item in items], dtype=np.float64)
