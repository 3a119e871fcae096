"""Shortages: what EC2 was out of is left alone for a while, ever longer and ever wider while that lasts.

To ask for it again costs a launch that fails: seconds, a claim that is written and given up, and a round of planning.
So a pool that EC2 is still out of after its time is left alone twice as long, up to an hour; a launch from it ends
that. And what is out again and again in many places is left alone in all of them: a zone in which EC2 is out of one
type after the other would be asked for each of the others.

What comes back by itself as soon as something of the account ends is never left alone for longer: a quota, the
addresses of a subnet. Whoever raises a quota should not wait an hour for it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from joinery.objects.karpenter.labels import SHARED_TENANCY
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.snapshot.offerings import OfferingKey, covers, full_subnets, is_subnet, scopes_of
from joinery.objects.snapshot.quotas import is_quota

#: How long a pool is left alone the first time (Karpenter for AWS ``UnavailableOfferingsTTL``), and at most.
MARKED_FOR, LONGEST = timedelta(minutes=3), timedelta(hours=1)
#: How long after its end a shortage is remembered: whoever finds the pool out again by then doubles it.
REMEMBERED = timedelta(hours=1)
#: In how many zones a type, and how many types in a zone, have to be out again and again.
_MANY_ZONES, _MANY_TYPES = 3, 10


@dataclass(frozen=True, slots=True)
class Shortage:
    """``until``: when the pool may be asked for again. ``lasts``: how long it is left alone."""

    until: datetime
    lasts: timedelta = MARKED_FOR

    @property
    def is_lasting(self) -> bool:
        """Whether EC2 was out of it again when its time was over."""
        return self.lasts > MARKED_FOR


#: What EC2 was out of, now or lately.
Shortages = Mapping[OfferingKey, Shortage]


def renewed(pool: OfferingKey, before: Shortage | None, now: datetime) -> Shortage:
    """The shortage of a pool that EC2 is out of now. ``before``: the last one that is known of it.

    Two runs that find the same at the same time find one shortage.
    """
    if before is None or now >= before.until + REMEMBERED or is_quota(pool.scope) or is_subnet(pool.scope):
        return Shortage(now + MARKED_FOR)
    lasts = before.lasts if now < before.until else min(2 * before.lasts, LONGEST)
    return Shortage(now + lasts, lasts)


def unavailable(shortages: Shortages, now: datetime) -> frozenset[OfferingKey]:
    """What is not to be asked for now."""
    current = {pool: shortage for pool, shortage in shortages.items() if now < shortage.until}
    return frozenset(current) | _widened(pool for pool, shortage in current.items() if shortage.is_lasting)


def as_met_by(
    node_class: NodeClass, unavailable: Iterable[OfferingKey], *, tenancy: str = SHARED_TENANCY, partition: str = ""
) -> frozenset[OfferingKey]:
    """What EC2 is out of, as instances of a class meet it: those of its own scopes, without the scope; quotas with it.

    A zone has nothing for a class whose subnets there are all full, though it may have something for another.
    ``partition``: of the class's placement group, empty for any.
    """
    known = frozenset(unavailable)
    own = scopes_of(node_class, tenancy, partition)
    met = (replace(pool, scope="") for pool in known if pool.scope in own)
    full = full_subnets(known)
    reached = {zone for subnet, zone in node_class.subnets if subnet not in full}
    closed = {zone for _, zone in node_class.subnets} - reached
    quotas = (pool for pool in known if is_quota(pool.scope))
    return frozenset((*met, *quotas, *(OfferingKey("", zone, "") for zone in closed)))


def refuted(shortages: Shortages, pools: Iterable[OfferingKey]) -> frozenset[OfferingKey]:
    """The shortages that are over, because instances were launched from these pools."""
    return frozenset(
        shortage for pool in pools for shortage in shortages if shortage.scope == pool.scope and covers(shortage, pool)
    )


def _widened(lasting: Iterable[OfferingKey]) -> frozenset[OfferingKey]:
    """Types that are out everywhere, and zones that are out of everything, as far as these tell."""
    zones_of, types_in = defaultdict[OfferingKey, set[str]](set), defaultdict[OfferingKey, set[str]](set)
    for pool in lasting:
        # A reservation or a placement group says nothing of what is outside of it.
        if pool.instance_type and pool.zone and not pool.reservation and not pool.scope:
            zones_of[OfferingKey(pool.instance_type, "", pool.capacity_type)].add(pool.zone)
            types_in[OfferingKey("", pool.zone, pool.capacity_type)].add(pool.instance_type)
    everywhere = (wide for wide, zones in zones_of.items() if len(zones) >= _MANY_ZONES)
    everything = (wide for wide, types in types_in.items() if len(types) >= _MANY_TYPES)
    return frozenset((*everywhere, *everything))
