"""Why a pod went nowhere, pool by pool, in words that its owner understands.

Every reason must be true by itself: what is named here would keep the pod pending even if all else were well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from joinery.apis.labels import WELL_KNOWN, is_restricted
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.requirements import Requirements
from joinery.scheduling.constraints.resources import ports_clash
from joinery.scheduling.constraints.taints import shown
from joinery.scheduling.constraints.topology_rules import Rule
from joinery.scheduling.explain.blockers import blocking_rules
from joinery.scheduling.explain.shortfall import counted, shortages
from joinery.scheduling.firstfit.exhaustion import exhausted
from joinery.scheduling.firstfit.targets import ExistingNode
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.packing import Reason
from joinery.scheduling.pools.choice import is_possible
from joinery.scheduling.pools.pool import OFFERING_KEYS, Fit, Mask, Pool, there_are
from joinery.scheduling.pools.reserved import spent

_ALLOWED = "instance type that it allows"


def reasons_for(work: Workspace, pods: PodClass) -> tuple[Reason, ...]:
    """Every pool's reason for refusing the class; the pod's own problem where it has one."""
    if pods.problems:
        return pods.problems
    if pods in work.held:
        return (work.held[pods],)
    contradiction = _contradiction(pods)
    if contradiction is not None:
        return (contradiction,)
    found = [reason for pool in work.pools for reason in _of_pool(work, pods, pool)]
    found += work.rejected_pools
    if not found:
        found = [Reason("NoNodePool", "there is no NodePool that could launch a node for it"), *_of_nodes(work, pods)]
    return tuple(found)


def _contradiction(pods: PodClass) -> Reason | None:
    """The label of which the pod's own rules, or its volumes', leave no value."""
    wanted = [term.intersect(v).canonical() for term in pods.terms for v in pods.volumes.alternatives]
    empty = [next((key for key in sorted(w) if w.sets[key].is_impossible), None) for w in wanted]
    if not empty or not all(empty):
        return None
    key = empty[0] or ""
    if all(term.canonical().get(key).is_impossible for term in pods.terms):
        whose = "its node selector and affinity"
    elif all(volume.canonical().get(key).is_impossible for volume in pods.volumes.alternatives):
        whose = "its volumes"
    else:
        whose = "its volumes, node selector and affinity together"
    return Reason("Requirements", f"{whose} leave no value for {key}")


def _of_pool(work: Workspace, pods: PodClass, pool: Pool) -> tuple[Reason, ...]:
    subject = f"NodePool {pool.name}"
    taint = pods.untolerated(pool.taints)
    if taint is not None:
        return (Reason("Taints", f"the pod does not tolerate its taint {shown(taint)}", subject),)
    whole = replace(pool, types=pool.types | pool.crowded)
    choices = [(term.canonical(), v.canonical()) for term in pods.terms for v in pods.volumes.alternatives]
    fits = [whole.fit(term.intersect(v)) for term, v in choices]
    possible = [found for found in fits if not found.conflict]
    if not possible:
        which = next(i for i, choice in enumerate(choices) if not _is_contradictory(*choice))
        return (Reason("Requirements", _conflict(*choices[which], whole, fits[which].conflict), subject),)
    sold = [(found, types) for found in possible if (types := _sold(pool, found)).any()]
    if not sold:
        return (_unsold(work, pool, possible),)
    row = work.axis.vector(pods.requests)
    holding = [(found, types & (pool.room >= row).all(axis=1)) for found, types in sold]
    large = [(found, types) for found, types in holding if types.any()]
    if not large:
        types = sold[0][1]
        words = counted(int(types.sum()), _ALLOWED, shortages(work.axis, pods, pool.room[types], pool.overhead[types]))
        return (Reason("Resources", words, subject),)
    columns = np.logical_or.reduce([_selling(pool, found, types) for found, types in large])
    if used := _used_up(work, pool, columns):
        return (Reason("Reserved", used, subject),)
    return _beyond_size(work, pods, pool, large)


def _sold(pool: Pool, found: Fit) -> Mask:
    sold: Mask = found.types & np.isfinite(pool.market.prices[:, found.columns]).any(axis=1)
    return sold


def _unsold(work: Workspace, pool: Pool, possible: Sequence[Fit]) -> Reason:
    subject = f"NodePool {pool.name}"
    if used := _used_up(work, pool, np.logical_or.reduce([found.columns for found in possible])):
        return Reason("Reserved", used, subject)
    return Reason("Offerings", "no instance type that it allows is on offer where the pod may run", subject)


def _used_up(work: Workspace, pool: Pool, columns: Mask) -> str:
    """What to say of a pod that could be in none of the columns but capacity reservations of which nothing is left; else empty."""
    return "" if not work.reservations or (columns & pool.bought).any() else spent(pool, columns, work.left_reserved)


def _selling(pool: Pool, found: Fit, types: Mask) -> Mask:
    """The offering columns in which any of the types is sold where the pod may run."""
    selling: Mask = found.columns & np.isfinite(pool.market.prices[types]).any(axis=0)
    return selling


# --- labels ---


def _is_contradictory(term: Requirements, volume: Requirements) -> bool:
    return any(allowed.is_impossible for allowed in term.intersect(volume).sets.values())


def _conflict(term: Requirements, volume: Requirements, pool: Pool, key: str) -> str:
    """What the pod wants, by one of its terms, or its volume, that the pool's nodes do not have."""
    wanted = term.intersect(volume)
    who = "the pod wants" if key in term.sets else "its volume demands"
    own = pool.requirements.sets.get(key)
    if own is not None and own.intersect(wanted.sets[key]).is_impossible:
        return f"{who} {key} {wanted.sets[key]}, the NodePool has {key} {own}"
    if is_restricted(key):
        return f"{who} {key} {wanted.sets[key]}, and no new node can be promised that label"
    if key not in WELL_KNOWN and key not in pool.market.type_keys and key not in OFFERING_KEYS:
        return f"{who} {key} {wanted.sets[key]}, and no node of it has the label {key}"
    other = _partner(pool, wanted, key)
    if other:
        return f"no {_ALLOWED} has {other} {wanted.sets[other]} and {key} {wanted.sets[key]} together"
    return f"no {_ALLOWED} has {key} {wanted.sets[key]}{there_are(pool, key)}"


def _partner(pool: Pool, wanted: Requirements, key: str) -> str:
    """Another key without which this one could be met; empty if it cannot be met at all."""
    if pool.fit(Requirements({key: wanted.sets[key]})).conflict:
        return ""
    pairs = (Requirements({other: wanted.sets[other], key: wanted.sets[key]}) for other in wanted if other != key)
    return next((other for pair in pairs if pool.fit(pair).conflict for other in pair if other != key), "")


# --- one pod alone would fit ---


def _beyond_size(
    work: Workspace, pods: PodClass, pool: Pool, holding: Sequence[tuple[Fit, Mask]]
) -> tuple[Reason, ...]:
    """Host ports of daemons, minValues, rules about other pods, or limits stand in the way.

    ``holding``: for each way in which the pod may use the pool, the types that hold it. Limits are named where a node more would
    help: alone if no rule closes the pool, else after the rule; not where rules and minValues together leave no domain to buy in.
    """
    subject = f"NodePool {pool.name}"
    if barring := work.topology.barring(pods, _hard_rules(work, pods), pool.name):
        listed = "; ".join(dict.fromkeys(map(str, barring)))
        return (Reason("Topology", f"the pod and those of DaemonSets on its nodes keep apart: {listed}", subject),)
    types = np.logical_or.reduce([types for _, types in holding])
    if pods.ports and all(ports_clash(pods.ports, pool.ports[i]) for i in np.flatnonzero(types)):
        taken = ", ".join(f"{port}/{protocol}" for protocol, _, port in sorted(pods.ports))
        return (Reason("HostPorts", f"DaemonSets take one of its host ports ({taken}) on every node", subject),)
    if words := _too_few_values(work, pool, holding):
        return (Reason("MinValues", words, subject),)
    words, is_total = blocking_rules(work.topology, pods, lambda key: work.offered(pool, pods, key))
    rules, limits = Reason("Topology", words, subject), exhausted(work, pool, holding)
    if not limits or not (is_total or pods in work.dealt):
        return (rules,)
    return (*((rules,) if is_total else ()), Reason("Limits", limits, subject))


def _hard_rules(work: Workspace, pods: PodClass) -> list[Rule]:
    return [rule for rule in work.topology.rules[pods] if rule.weight is None]


def _too_few_values(work: Workspace, pool: Pool, holding: Sequence[tuple[Fit, Mask]]) -> str:
    """What to say if too few values of some label are left for minValues however the pod is read; else empty."""
    if work.problem.options.best_effort_min_values or any(
        is_possible(pool, types, found.columns, pool.min_values) for found, types in holding
    ):
        return ""
    key, left = next((few for found, types in holding if (few := pool.too_few(types, found.columns))), ("", 0))
    if not key:
        least = ", ".join(f"{pool.min_values[key]} of {key}" for key in sorted(pool.min_values))
        return f"no {pool.launch_types} types, which is all that a launch can carry, have the values that its minValues asks for ({least})"
    words = f"only {left} {'value' if left == 1 else 'values'} of {key} {'is' if left == 1 else 'are'} left"
    return f"{words} for the pod, and its minValues asks for {pool.min_values[key]}"


# --- clusters that buy nothing ---


def _of_nodes(work: Workspace, pods: PodClass) -> Iterable[Reason]:
    """Why no existing node takes the pod, for clusters in which nothing else could."""
    nodes = [node for node in work.nodes if not node.view.is_reserved]
    if not nodes:
        return
    tainted = [n for n in nodes if pods.untolerated(n.view.taints)]
    elsewhere = [n for n in nodes if n not in tainted and not _selects(pods, n)]
    rest = [n for n in nodes if n not in tainted and n not in elsewhere]
    parts = [(len(tainted), "a taint that the pod does not tolerate"), (len(elsewhere), "other labels than it wants")]
    small = [n for n in rest if (n.free < work.axis.vector(pods.requests)).any()]
    if small:
        parts += shortages(work.axis, pods, np.array([n.free for n in small]))
    parts.append((len(rest) - len(small), "rules about other pods, host ports or volumes against it"))
    yield Reason("ExistingNodes", counted(len(nodes), "existing node", parts))


def _selects(pods: PodClass, node: ExistingNode) -> bool:
    return any(term.intersect(v).matches(node.view.labels) for term in pods.terms for v in pods.volumes.alternatives)
