"""Capacity reservations: which ones a pool may use, and how many more nodes each takes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.pools.market import Amounts, Mask
from joinery.decisions.scheduling.pools.pool import Fit, Pool
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import awaited_reservations


def nodes_left(pools: Iterable[Pool], claims: Iterable[NodeClaim]) -> Mapping[str, int]:
    """How many more nodes each capacity reservation takes, by its id.

    Several node classes may report one reservation. Where their counts differ, the smallest holds.
    ``claims`` (of our cloud) that are about to be launched in a reservation are not in those counts yet, and come off.
    """
    left: dict[str, int] = {}
    for column in (column for pool in pools for column in pool.market.columns):
        if (reservation := column.reservation) is not None:
            left[reservation.id] = min(left.get(reservation.id, reservation.remaining), reservation.remaining)
    for reservation_id in (reservation_id for claim in claims for reservation_id in awaited_reservations(claim)):
        left[reservation_id] = max(left.get(reservation_id, 0) - 1, 0)
    return left


def reserved_columns(pool: Pool, columns: Mask) -> Iterator[tuple[str, Mask]]:
    """The capacity reservations among the pool's columns: the id, and bool[columns] with that column alone."""
    for index in np.flatnonzero(columns & pool.columns & pool.market.reserved):
        alone = np.zeros_like(columns)
        alone[index] = True
        reservation = pool.market.columns[index].reservation
        yield reservation.id if reservation else "", alone


def used_up(pool: Pool, types: Mask, columns: Mask, left: Mapping[str, int]) -> str | None:
    """If nothing is left of any capacity reservation of these types among the columns, a sentence that names them; else
    None.
    """
    usable = _reservations_of(pool, types)
    named = sorted(reserved_columns(pool, columns), key=lambda named: named[0])
    masks = {name: alone for name, alone in named if name in usable}
    if not masks or any(left.get(reservation_id, 0) > 0 for reservation_id in masks):
        return None
    reservations = {name: pool.market.columns[int(alone.argmax())].reservation for name, alone in masks.items()}
    had = ", ".join(
        f"{name} had {reservation.remaining if reservation and reservation.remaining else 'none'}"
        for name, reservation in reservations.items()
    )
    return f"nothing is left of the capacity reservations that it may use ({had})"


def _reservations_of(pool: Pool, types: Mask) -> frozenset[str]:
    """The ids of the capacity reservations of these types, whether anything is left of them or not."""
    offerings = (offering for row in np.flatnonzero(types) for offering in pool.market.types[int(row)].offerings)
    return frozenset(offering.reservation_id for offering in offerings) - {""}


def is_sold_unreserved(pool: Pool, fit: Fit, request: Amounts) -> bool:
    """Whether some type that holds one such pod is sold as spot or on-demand. ``request``: int64[resources]."""
    return not fit.conflict and bool((fit.unreserved & pool.has_room(request)).any())


def only_reservations(pools: Sequence[Pool], pod_class: PodClass, request: Amounts) -> frozenset[str]:
    """The capacity reservations that could hold a pod of the class, if nothing else can.

    Empty if spot or on-demand would do: then the class does not compete for reservations. ``request``:
    int64[resources], what one pod asks for.
    """
    fits = [
        (pool, pool.fit(pool.asked(term.intersect(volume_term))))
        for pool in pools
        for term in pod_class.terms
        for volume_term in pod_class.volumes.alternatives
    ]
    if any(is_sold_unreserved(pool, fit, request) for pool, fit in fits):
        return frozenset()
    return frozenset(
        reservation_id
        for pool, fit in fits
        if not fit.conflict
        for reservation_id, alone in reserved_columns(pool, fit.columns)
        if np.isfinite(pool.market.prices[fit.types & pool.has_room(request)][:, alone]).any()
    )
