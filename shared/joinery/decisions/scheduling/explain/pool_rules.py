"""A NodePool's rules and a pod's, one after another, with how many instance types each leaves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import Requirements, one_of
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.explain.explanation import RuleCount
from joinery.decisions.scheduling.explain.shortfall import requests_in_words
from joinery.decisions.scheduling.explain.stages import Asked, TermInPool, stages
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, Mask
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.reason import ReasonCode
from joinery.decisions.scheduling.topology.rule_groups import ANY_NEW_NODE
from joinery.objects.karpenter.labels import HOSTNAME

#: So many labels that a pod asks for have a line of their own; it may ask for thousands.
_SHOWN = 50


def rule_counts(asked: Asked) -> Iterator[RuleCount]:
    """Rule by rule, how many instance types are left; rules that say nothing of this pod or pool are not mentioned."""
    pool = asked.pool
    yield RuleCount("requirements of the NodePool", int((pool.types | pool.crowded).sum()))
    ways: Sequence[TermInPool] = ()
    for stage in stages(asked):
        yield from _WORDS.get(stage.code, _silent)(asked, stage.ways)
        if stage.reason is not None:
            return
        ways = stage.ways
    types = np.logical_or.reduce([way.types for way in ways])
    columns = np.logical_or.reduce([way.fit.columns for way in ways])
    if pool.limits:
        types = types & asked.usage.within_limits(pool)
        limits = ", ".join(f"{name} {pool.node_pool.spec.limits[name]}" for name in sorted(pool.limits))
        yield RuleCount(f"limits ({limits})", int(types.sum()))
        if not types.any():
            return
    for rule in asked.hard_rules():
        domains, types, columns = _open_to(asked, rule, types, columns)
        left = _sold(pool, types, columns)
        yield RuleCount(f"{rule}{domains}", left)
        if not left:
            return


def _open_to(asked: Asked, rule: TopologyRule, types: Mask, columns: Mask) -> tuple[str, Mask, Mask]:
    """What is left where the rule, and rules of others over the same key,
    allow one more pod; first in words, if not everywhere.
    """
    topology, pool, key = asked.work.topology, asked.pool, rule.key

    def admits(domain: str) -> bool:
        return topology.allowance(asked.pod_class, (rule,), key, domain, cautious=False) > 0

    if key == HOSTNAME:
        return "", (types if admits(ANY_NEW_NODE) else np.zeros_like(types)), columns
    offered = sorted(asked.work.offered(pool, asked.pod_class, key))
    domains = [domain for domain in offered if admits(domain)]
    words = f": {', '.join(domains) or 'nowhere'}" if len(domains) < len(offered) else ""
    allowed = one_of(domains)
    if key in OFFERING_KEYS:
        return words, types, columns & pool.market.column_mask(key, allowed)
    if key in pool.market.type_keys:
        return words, types & pool.market.type_mask(key, allowed), columns
    return words, (types if domains else np.zeros_like(types)), columns


def _sold(pool: Pool, types: Mask, columns: Mask) -> int:
    """How many of the types are to be had in some of the columns."""
    return int((types & np.isfinite(pool.market.prices[:, columns]).any(axis=1)).sum())


def _silent(asked: Asked, ways: Sequence[TermInPool]) -> Iterator[RuleCount]:
    yield from ()


def _taints(asked: Asked, ways: Sequence[TermInPool]) -> Iterator[RuleCount]:
    if asked.pool.taints:
        tolerated = bool(ways) and asked.pod_class.untolerated(asked.pool.taints) is None
        yield RuleCount("taints", int((asked.pool.types | asked.pool.crowded).sum()) if tolerated else 0)


def _labels(asked: Asked, ways: Sequence[TermInPool]) -> Iterator[RuleCount]:
    """One line for each label that the pod or its volumes ask for, by the way that leaves most."""
    ways = ways or asked.ways()  # all of them, to show which label none of them meets
    best = max(ways, key=lambda way: (not way.fit.conflict, int(way.types.sum())))
    wanted = best.wanted
    whole = replace(asked.pool, types=asked.pool.types | asked.pool.crowded, peculiar=None)
    keys = sorted(wanted)
    steps = [(f"{key} {wanted.sets[key]}", number) for number, key in enumerate(keys[:_SHOWN], start=1)]
    if len(keys) > _SHOWN:
        steps.append((f"{len(keys) - _SHOWN:,} more labels", len(keys)))
    for words, number in steps:
        met = whole.fit(Requirements({name: wanted.sets[name] for name in keys[:number]}))
        yield RuleCount(words, 0 if met.conflict else _sold(asked.pool, met.types, met.columns))
        if met.conflict:
            return
    if len(ways) > 1:
        yield RuleCount(f"any of {len(ways)} terms or volumes", _left(ways))
    any_kind = replace(asked, pool=replace(asked.pool, peculiar=None)).ways() if asked.pool.peculiar is not None else ()
    if _left(ways) < _left([way for way in any_kind if not way.fit.conflict]):
        yield RuleCount("ordinary types, because nobody names kinds of them", _left(ways))


def _offerings(asked: Asked, ways: Sequence[TermInPool]) -> Iterator[RuleCount]:
    sold = _left(ways)
    if sold < _left(asked.ways()):
        yield RuleCount("available offerings", sold)


def _requests(asked: Asked, ways: Sequence[TermInPool]) -> Iterator[RuleCount]:
    beside = ", beside DaemonSets" if asked.pool.overhead.any() else ""
    yield RuleCount(f"requests ({requests_in_words(asked.pod_class)}{beside})", _left(ways))


def _host_ports(asked: Asked, ways: Sequence[TermInPool]) -> Iterator[RuleCount]:
    if asked.pod_class.ports:
        yield RuleCount("host ports", _left(ways))


def _min_values(asked: Asked, ways: Sequence[TermInPool]) -> Iterator[RuleCount]:
    if asked.pool.min_values:
        yield RuleCount("minValues", _left(ways))


def _left(ways: Sequence[TermInPool]) -> int:
    return int(np.logical_or.reduce([way.types for way in ways]).sum()) if ways else 0


_WORDS: dict[ReasonCode, Callable[[Asked, Sequence[TermInPool]], Iterator[RuleCount]]] = {
    ReasonCode.TAINTS: _taints,
    ReasonCode.REQUIREMENTS: _labels,
    ReasonCode.OFFERINGS: _offerings,
    ReasonCode.RESOURCES: _requests,
    ReasonCode.HOST_PORTS: _host_ports,
    ReasonCode.MIN_VALUES: _min_values,
}
