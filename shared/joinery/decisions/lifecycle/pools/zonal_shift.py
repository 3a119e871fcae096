"""A zonal shift, as NodePools show it: a condition while it lasts, an Event when it begins and when it is over.

The condition is also what remembers the shift between runs. Its type is in our own domain, and it is no part of
``Ready``: the pool is used, only not in that zone.
"""

from collections.abc import Iterable, Sequence

from joinery.decisions.scheduling.constraints.requirements import read
from joinery.objects.actions import Announce
from joinery.objects.karpenter.conditions import Observation, drop, find, put, true
from joinery.objects.karpenter.labels import OWN_GROUP, ZONE, ZONE_ID
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodepool import NodePool

SHIFTED = f"{OWN_GROUP}/ZonalShift"


def with_shift(
    conditions: list[Condition],
    pool: NodePool,
    node_class: NodeClass | None,
    shifted: frozenset[str] | None,
    at: Observation,
) -> list[Condition]:
    """The conditions with one that names the zones of the pool that are shifted away from, if there are any.

    ``shifted``: the ids of all zones that are; None where nobody could say, and then nothing changes.
    """
    if shifted is None or node_class is None:
        return conditions
    away = _zones_of(pool, node_class, shifted)
    if not away:
        return drop(conditions, SHIFTED)
    text = f"nothing is bought in {', '.join(away)}: traffic is shifted away from there"
    return put(conditions, true(SHIFTED, at, text, reason="ZonalShiftActive"))


def _zones_of(pool: NodePool, node_class: NodeClass, shifted: frozenset[str]) -> Sequence[str]:
    """Name and id of every shifted zone that the pool could buy in."""
    allowed = read(pool.requirements).canonical()
    return sorted(
        f"{zone} ({zone_id})"
        for zone, zone_id in set(node_class.zones)
        if zone_id in shifted and allowed.get(ZONE).has(zone) and allowed.get(ZONE_ID).has(zone_id)
    )


def shift_events(before: NodePool, after: NodePool) -> Iterable[Announce]:
    """Events where the pool's zones have changed (Karpenter for AWS, zonal shift)."""
    was, now = (find(pool.status.conditions, SHIFTED) for pool in (before, after))
    if now is not None and (was is None or was.message != now.message):
        yield Announce("ZonalShiftActive", now.message, after)
    if now is None and was is not None:
        yield Announce("ZonalShiftCleared", f"nodes are bought in all zones again (before: {was.message})", after)
