"""Which capacity reservations pools may use, how many nodes each takes, and which pods have nothing else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from joinery.apis.nodeclaim import NodeClaim
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.pools.pool import Amounts, Fit, Mask, Pool
from joinery.state.claims import awaited_reservations


def stock(pools: Iterable[Pool], claims: Iterable[NodeClaim]) -> Mapping[str, int]:
    """How many nodes each reservation takes: the least that anyone says,
    less the claims (of our cloud) that are about to be launched in it.
    """
    found: dict[str, int] = {}
    for column in (column for pool in pools for column in pool.market.columns):
        if column.reservation is not None:
            known = column.reservation
            found[known.id] = min(found.get(known.id, known.remaining), known.remaining)
    for name in (name for claim in claims for name in awaited_reservations(claim)):
        found[name] = max(found.get(name, 0) - 1, 0)
    return found


def reserved_columns(pool: Pool, columns: Mask) -> Iterator[tuple[str, Mask]]:
    """The reservations among the columns: id, and a mask of that one alone."""
    for index in np.flatnonzero(columns & pool.columns & pool.market.reserved):
        alone = np.zeros_like(columns)
        alone[index] = True
        known = pool.market.columns[index].reservation
        yield known.id if known else "", alone


def spent(pool: Pool, columns: Mask, left: Mapping[str, int]) -> str:
    """The reservations among the columns, in words, if nothing is left of any; else empty."""
    found = sorted(reserved_columns(pool, columns), key=lambda each: each[0])
    if not found or any(left.get(name, 0) > 0 for name, _ in found):
        return ""
    had = {name: pool.market.columns[int(alone.argmax())].reservation for name, alone in found}
    each = (f"{name} had {known.remaining if known and known.remaining else 'none'}" for name, known in had.items())
    return f"nothing is left of the capacity reservations that it may use ({', '.join(each)})"


def is_bought(pool: Pool, found: Fit, row: Amounts) -> bool:
    """Whether something that holds such a pod is sold as spot or on-demand."""
    return not found.conflict and bool((pool.room[found.bought] >= row).all(axis=1).any())


def needed(pools: Sequence[Pool], pods: PodClass, row: Amounts) -> frozenset[str]:
    """The reservations that could hold the class, if nothing else can; empty if it may be bought for."""
    fits = [
        (pool, pool.fit(term.intersect(v))) for pool in pools for term in pods.terms for v in pods.volumes.alternatives
    ]
    if any(is_bought(pool, found, row) for pool, found in fits):
        return frozenset()
    return frozenset(
        name
        for pool, found in fits
        if not found.conflict
        for name, alone in reserved_columns(pool, found.columns)
        if np.isfinite(pool.market.prices[found.types & (pool.room >= row).all(axis=1)][:, alone]).any()
    )
