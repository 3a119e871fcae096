"""Why a pod went nowhere, pool by pool, in words that its owner understands."""

from collections.abc import Iterable

import numpy as np

from joinery.apis.quantity import text
from joinery.scheduling.classes import PodClass
from joinery.scheduling.packing import Reason
from joinery.scheduling.pools import Fit, Pool, fit
from joinery.scheduling.rules import Rule
from joinery.scheduling.taints import TOLERATE_PREFERRED, first_untolerated, shown
from joinery.scheduling.workspace import Workspace

_WORDS = {"cpu": "CPU", "memory": "memory", "pods": "room for pods", "ephemeral-storage": "ephemeral storage"}


def reasons_for(work: Workspace, pods: PodClass) -> tuple[Reason, ...]:
    """Every pool's reason for refusing the class; the pod's own problem where it has one."""
    if pods.problems:
        return pods.problems
    found = [_of_pool(work, pods, pool) for pool in work.pools]
    found += work.rejected_pools
    if not found:
        found = [Reason("NoNodePool", "there is no NodePool that could launch a node for it")]
    return tuple(found)


def _of_pool(work: Workspace, pods: PodClass, pool: Pool) -> Reason:
    subject = f"NodePool {pool.name}"
    taint = first_untolerated((*pods.tolerations, TOLERATE_PREFERRED), pool.node_pool.spec.template.spec.taints)
    if taint is not None:
        return Reason("Taints", f"the pod does not tolerate its taint {shown(taint)}", subject)
    fits = [fit(pool, term.intersect(v)) for term in pods.terms for v in pods.volumes.alternatives]
    possible = [found for found in fits if not found.conflict and found.types.any() and found.columns.any()]
    if not possible:
        return _conflict(pods, pool, fits, subject)
    row = work.axis.vector(pods.requests)
    for found in possible:
        sold = found.types & np.isfinite(pool.market.prices[:, found.columns]).any(axis=1)
        if sold.any() and (pool.room[sold] >= row).all(axis=1).any():
            return _beyond_size(work, pods, pool, subject)
    return _too_small(work, pods, pool, possible[0], subject)


def _conflict(pods: PodClass, pool: Pool, fits: Iterable[Fit], subject: str) -> Reason:
    first = next(iter(fits), None)
    key = first.conflict if first is not None else ""
    wanted = pods.terms[0].intersect(pods.volumes.alternatives[0]).sets.get(key)
    if first is None or wanted is None:
        return Reason("Requirements", "no instance type meets all of the pod's requirements together", subject)
    own = pool.requirements.sets.get(key)
    if own is not None:
        return Reason("Requirements", f"the pod wants {key} {wanted}, the NodePool has {key} {own}", subject)
    return Reason("Requirements", f"no node of it has {key} {wanted}", subject)


def _too_small(work: Workspace, pods: PodClass, pool: Pool, found: Fit, subject: str) -> Reason:
    """No type that is otherwise right is large enough: say for each resource how many types fall short."""
    sold = found.types & np.isfinite(pool.market.prices[:, found.columns]).any(axis=1)
    if not sold.any():
        return Reason("Offerings", "no instance type that it allows is on offer where the pod may run", subject)
    room = pool.room[sold]
    parts = []
    for name, column in work.axis.index.items():
        asked = pods.requests.get(name, 0)
        short = int((room[:, column] < asked).sum()) if asked else 0
        if short:
            parts.append(f"{short} have too little {_WORDS.get(name, name)} (the pod asks for {text(name, asked)})")
    joined = "; ".join(parts)
    return Reason("Resources", f"of {int(sold.sum())} instance types that it allows, {joined}", subject)


def _beyond_size(work: Workspace, pods: PodClass, pool: Pool, subject: str) -> Reason:
    """One pod alone would fit: limits, minValues, host ports of daemons, or topology stand in the way."""
    if pool.limits and _is_limited(work, pods, pool):
        listed = ", ".join(sorted(pool.limits))
        return Reason("Limits", f"its limits ({listed}) leave no room for a node that holds the pod", subject)
    hard = [rule for rule in work.topology.rules[id(pods)] if rule.weight is None]
    if hard:
        named = "; ".join(str(rule) for rule in hard)
        return Reason("Topology", f"no node can be added without breaking {named}{_waiting(work, hard, pods)}", subject)
    if pool.min_values:
        return Reason("MinValues", "too few instance types that hold the pod are left for its minValues", subject)
    return Reason("Topology", "other pods keep it away (anti-affinity or host ports)", subject)


def _is_limited(work: Workspace, pods: PodClass, pool: Pool) -> bool:
    if pool.limits.get("nodes", 1) <= work.bought.get(pool.name, 0):
        return True
    capacity, left = pool.limited
    row = work.axis.vector(pods.requests)
    holding = pool.types & (pool.room >= row).all(axis=1)
    return not bool(((capacity <= left - work.charged.get(pool.name, 0)).all(axis=1) & holding).any())


def _waiting(work: Workspace, rules: Iterable[Rule], pods: PodClass) -> str:
    """An affinity whose target nobody matches deserves a word of its own."""
    for rule in rules:
        if rule.kind == "affinity" and not rule.claim:
            group = work.topology.group(rule)
            if not any(group.counts.values()) and not group.selects(pods):
                return ": no pod that it wants to be near is running or planned"
    return ""
