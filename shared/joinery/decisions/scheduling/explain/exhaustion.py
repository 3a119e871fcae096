"""Whether a NodePool's limits keep a pod out, and in which words: only the limits that do."""

from collections.abc import Sequence

import numpy as np

from joinery.decisions.scheduling.firstfit.workspace import Usage
from joinery.decisions.scheduling.pools.market import Mask
from joinery.decisions.scheduling.pools.pool import Fit, Pool
from joinery.objects.kubernetes.quantity import amount, in_words

_NODES = "nodes"


def exhausted(usage: Usage, pool: Pool, holding: Sequence[tuple[Fit, Mask]], *, lowers_min_values: bool) -> str | None:
    """What to say if the limits leave room for none of the types that hold the pod.

    ``holding``: what its terms leave of the pool, each with a mask of the types that hold it. Where minValues
    ask for a choice of types, the limits must leave room for that choice too.
    """
    if not pool.limits:
        return None
    within = usage.within_limits(pool)
    listed = [(fit, types & within) for fit, types in holding]
    shown = _limits(usage, pool, np.logical_or.reduce([types for _, types in holding]))
    if not any(types.any() for _, types in listed):
        return f"its limits ({shown}) leave no room for a node that holds the pod"
    if lowers_min_values:
        return None
    lacking = [pool.too_few(types, fit.columns) for fit, types in listed if types.any()]
    key, left = lacking[0] or ("", 0)
    if not all(lacking):
        return None
    values = f"{left} {'value' if left == 1 else 'values'}"
    return (
        f"its limits ({shown}) leave only {values} of {key} for the pod, and its minValues asks for "
        f"{pool.min_values[key]}"
    )


def _limits(usage: Usage, pool: Pool, holding: Mask) -> str:
    """The limits that no type is within by itself, or else all, with what is left: ``cpu 10, of which 2 are left``."""
    names = [name for name in sorted(pool.limits) if name != _NODES]
    capacity, limits = pool.limited
    rest = dict(zip(names, limits - usage.charged.get(pool.name, 0), strict=True))
    binding = [name for i, name in enumerate(names) if (capacity[holding, i] > rest[name]).all()]
    if _NODES in pool.limits:
        names.append(_NODES)
        rest[_NODES] = pool.limits[_NODES] - usage.nodes.get(pool.name, 0)
        binding += [_NODES] if rest[_NODES] <= 0 else []
    return "; ".join(_limit(pool, name, int(rest[name])) for name in sorted(binding or names))


def _limit(pool: Pool, name: str, left: int) -> str:
    whole = in_words(name, amount(name, pool.node_pool.spec.limits[name]))
    if left < 0:
        return f"{name} {whole}, exceeded by {in_words(name, -left)}"
    return f"{name} {whole}, of which {in_words(name, left)} are left"
