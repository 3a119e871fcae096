"""Whether a NodePool's limits keep a pod out, and in which words: only the limits that do."""

from collections.abc import Sequence

import numpy as np

from joinery.apis.quantity import amount, text
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.pools.pool import Fit, Mask, Pool

_NODES = "nodes"


def exhausted(work: Workspace, pool: Pool, holding: Sequence[tuple[Fit, Mask]]) -> str:
    """What to say if the limits leave room for none of the types that hold the pod; else empty.

    Where minValues ask for a choice of types, it is to be kept within the limits too.
    """
    if not pool.limits:
        return ""
    within = within_limits(work, pool)
    listed = [(found, types & within) for found, types in holding]
    shown = _limits(work, pool, np.logical_or.reduce([types for _, types in holding]))
    if not any(types.any() for _, types in listed):
        return f"its limits ({shown}) leave no room for a node that holds the pod"
    if work.problem.options.best_effort_min_values:
        return ""
    lacking = [pool.too_few(types, found.columns) for found, types in listed if types.any()]
    key, left = lacking[0] or ("", 0)
    if not all(lacking):
        return ""
    values = f"{left} {'value' if left == 1 else 'values'}"
    return (
        f"its limits ({shown}) leave only {values} of {key} for the pod, and its minValues asks for "
        f"{pool.min_values[key]}"
    )


def within_limits(work: Workspace, pool: Pool) -> Mask:
    """The types of which the pool's limits leave room for one more node, after this plan's."""
    return pool.within_limits(_bought(work, pool), work.charged.get(pool.name, 0))


def _bought(work: Workspace, pool: Pool) -> int:
    return work.bought.get(pool.name, 0)


def _limits(work: Workspace, pool: Pool, holding: Mask) -> str:
    """The limits with what is left of each: ``cpu 10, of which 2 are left``;
    those that no type is within alone, if there are any.
    """
    names = [name for name in sorted(pool.limits) if name != _NODES]
    capacity, limits = pool.limited
    rest = dict(zip(names, limits - work.charged.get(pool.name, 0), strict=True))
    binding = [name for i, name in enumerate(names) if (capacity[holding, i] > rest[name]).all()]
    if _NODES in pool.limits:
        names.append(_NODES)
        rest[_NODES] = pool.limits[_NODES] - _bought(work, pool)
        binding += [_NODES] if rest[_NODES] <= 0 else []
    return "; ".join(_limit(pool, name, int(rest[name])) for name in sorted(binding or names))


def _limit(pool: Pool, name: str, left: int) -> str:
    whole = text(name, amount(name, pool.node_pool.spec.limits[name]))
    if left < 0:
        return f"{name} {whole}, exceeded by {text(name, -left)}"
    return f"{name} {whole}, of which {text(name, left)} are left"
