"""Spreads and anti-affinity over zones and capacity types as side constraints: what a bound knows of how pods are
dealt out.

A spread ranges over the domains that have nodes, or in which something is sold for its pods (``topology/topology``).
kube-scheduler (PodTopologySpread) checks it when an owner is placed, so it holds in every domain that has an owner::

    counted pods in this domain - counted pods in any other domain <= maxSkew

Whether a domain has an owner is not linear. With the owners alone in place of this domain's counted pods, the row
holds everywhere: where there is an owner it is weaker than the rule, and where there is none its left side is at most
zero.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from joinery.decisions.optimizer.arrays import Floats
from joinery.decisions.optimizer.instance.side_constraints import SideConstraint
from joinery.decisions.scheduling.constraints.requirements import Requirements, one_of
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.optimise.bin_types import PoolUse
from joinery.decisions.scheduling.optimise.proof_demands import ProofDemand
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.topology.groups import TopologyGroup
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ZONE

#: Topology keys that offerings decide, so that it is known of every bin type which domain it is in.
KEYS = (CAPACITY_TYPE, ZONE)


@dataclass(frozen=True, eq=False)
class Item:
    """The pods of a demand (index) in certain domains, by topology key;
    in any where no rule counts them by that key.
    """

    demand: int
    domains: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class DomainRule:
    """A topology group whose rule is a row. ``owners`` and ``counted``: demands (indices), the owners among the
    counted.

    ``before``: counted pods by domain, without those that are launched.
    """

    group: TopologyGroup
    owners: tuple[int, ...]
    counted: tuple[int, ...]
    before: Mapping[str, int]


def domain_rules(
    work: Workspace, demands: Sequence[ProofDemand], nodes: Sequence[NewNode], keys: Container[str]
) -> list[DomainRule]:
    """The groups over these keys that some demand owns, except those whose domains are still open."""
    owners: dict[TopologyGroup, list[int]] = {}
    for index, demand in enumerate(demands):
        for rule in demand.rules:
            group = work.topology.group(rule)
            is_readable = rule.kind != "affinity" and group not in work.topology.daemons.spreads
            if rule.key in keys and is_readable and not _is_near_others(demand, rule.key):
                owners.setdefault(group, []).append(index)
    rules = []
    for group, owning in owners.items():
        counted = tuple(index for index, demand in enumerate(demands) if group.selects(demand.pod_class))
        counted_owners = tuple(index for index in dict.fromkeys(owning) if index in counted)
        before = Counter(group.counts)
        before.subtract(_launched(group, nodes))
        if counted_owners:
            rules.append(DomainRule(group, counted_owners, counted, before))
    return rules


def _is_near_others(demand: ProofDemand, key: str) -> bool:
    """Whether the pods must be near others. Then they are spread over those others' domains only, and which those are
    a plan decides.
    """
    return any(rule.kind == "affinity" and rule.key == key for rule in demand.rules)


def _launched(group: TopologyGroup, nodes: Iterable[NewNode]) -> Counter[str]:
    """Launched pods that the group counts, by domain."""
    launched: Counter[str] = Counter()
    for batch in (batch for node in nodes for batch in node.placed):
        for counting, domain in batch.record.counted:
            if counting is group:
                launched[domain] += batch.record.count
    return launched


def items_of(
    demands: Sequence[ProofDemand], rules: Iterable[DomainRule], pools: Iterable[Pool], work: Workspace
) -> list[Item]:
    """Every demand, once for each combination of domains in which rules count it."""
    domains = {rule.group.rule.key: _domains(rule.group.rule.key, pools, work) for rule in rules}
    keys: dict[int, set[str]] = {}
    for rule in rules:
        for demand in rule.counted:
            keys.setdefault(demand, set()).add(rule.group.rule.key)
    items = []
    for demand in range(len(demands)):
        counted_by = sorted(keys.get(demand, ()))
        choices = product(*(domains[key] for key in counted_by))
        items += [Item(demand, dict(zip(counted_by, choice, strict=True))) for choice in choices]
    return items


def _domains(key: str, pools: Iterable[Pool], work: Workspace) -> list[str]:
    """Where something is sold, and where nodes are."""
    sold = {value for pool in pools for value in _values(key, pool)}
    return sorted((sold | {node.view.labels.get(key, "") for node in work.nodes}) - {""})


def _values(key: str, pool: Pool) -> Iterable[str]:
    """The domains of nodes of the pool. Of a label that may have any value there is none to count on."""
    if key in OFFERING_KEYS:
        return (column.value(key) or "" for column in pool.market.columns)
    if key in pool.market.type_keys:
        return (value for it in pool.market.types for value in it.labels.get(key, ()))
    allowed = pool.requirements.sets.get(key)
    return () if allowed is None or allowed.complement else allowed.values


def inside(use: PoolUse, pool: Pool, item: Item) -> PoolUse | None:
    """The use with what the pool has in the item's domains; None where it has nothing there."""
    types, offerings = use.types, use.offerings
    for key, value in item.domains.items():
        allowed = one_of((value,))
        if key in OFFERING_KEYS:
            offerings = offerings & pool.market.column_mask(key, allowed)
        elif key in pool.market.type_keys:
            types = types & pool.market.type_mask(key, allowed)
        elif set(_values(key, pool)) != {value}:
            return None
    return replace(use, types=types, offerings=offerings)


def by_domain(pools: Iterable[Pool], keys: Iterable[str]) -> list[Pool]:
    """The pools, those whose nodes may have any of several values of such a label once for each."""
    split = list(pools)
    for key in keys:
        split = [one for pool in split for one in _by_value(pool, key)]
    return split


def _by_value(pool: Pool, key: str) -> list[Pool]:
    if key in OFFERING_KEYS or key in pool.market.type_keys:
        return [pool]
    pinned = (Requirements({key: one_of((value,))}) for value in sorted(_values(key, pool)))
    return [replace(pool, requirements=pool.requirements.intersect(one)) for one in pinned] or [pool]


def rows_of(
    items: Sequence[Item],
    rules: Iterable[DomainRule],
    demands: Sequence[ProofDemand],
    unforeseen: Mapping[tuple[object, ...], set[str]],
) -> Iterator[SideConstraint]:
    """The rows of all rules, without coefficients of bins. ``unforeseen``: domains, by the identity of a spread, that
    only new nodes are in.

    A rule that the plan itself does not keep as the rows put it gives none: the rows then read it more strictly than
    kube-scheduler.
    """
    for rule in rules:
        spread = rule.group.rule
        if spread.kind == "anti-affinity":
            if all(rule.group.counts[domain] - before <= 1 for domain, before in rule.before.items()):
                yield from _apart(items, rule)
            continue
        domains = rule.group.domains - unforeseen.get(spread.identity, set())
        if len(domains) >= spread.min_domains and _is_kept(rule, domains):
            yield from _spread(items, rule, demands, sorted(domains))


def _is_kept(rule: DomainRule, domains: Iterable[str]) -> bool:
    """Whether the plan's counts differ by no more than maxSkew, or than they did before."""
    counts = [rule.group.counts[domain] for domain in domains]
    before = [rule.before.get(domain, 0) for domain in domains]
    skew = max(max(counts) - min(counts), 0) if counts else 0
    return skew <= max(rule.group.rule.max_skew, max(before) - min(before) if before else 0)


def _spread(
    items: Sequence[Item], rule: DomainRule, demands: Sequence[ProofDemand], domains: Sequence[str]
) -> Iterator[SideConstraint]:
    skew, key, before = rule.group.rule.max_skew, rule.group.rule.key, rule.before
    pods = sum(demands[index].count for index in rule.counted)
    for full in domains:
        owners_here = _coefficients(items, rule.owners, key, full)
        # A skew that was there before is nobody's fault: then no more owners may come, so never less than 0.
        allowed = {
            other: max(0, skew - before.get(full, 0) + before.get(other, 0)) for other in domains if other != full
        }
        for other, upper in allowed.items():
            counted_there = _coefficients(items, rule.counted, key, other)
            yield SideConstraint(owners_here - counted_there, np.zeros(0), float(upper))
        # The sum of these rows: owners here, times all domains, are at most all pods and what is allowed. In whole
        # pods it is stronger.
        upper = (pods + sum(allowed.values())) // len(domains)
        yield SideConstraint(owners_here, np.zeros(0), float(upper))


def _apart(items: Sequence[Item], rule: DomainRule) -> Iterator[SideConstraint]:
    """At most one owner in a domain; none where a counted pod is already."""
    key = rule.group.rule.key
    for domain in sorted({item.domains[key] for item in items if key in item.domains}):
        upper = 0.0 if rule.before.get(domain, 0) > 0 else 1.0
        yield SideConstraint(_coefficients(items, rule.owners, key, domain), np.zeros(0), upper)


def _coefficients(items: Sequence[Item], demands: Iterable[int], key: str, domain: str) -> Floats:
    """float64[items]: one for items of these demands in the domain."""
    chosen = set(demands)
    return np.array([item.demand in chosen and item.domains.get(key) == domain for item in items], dtype=np.float64)
