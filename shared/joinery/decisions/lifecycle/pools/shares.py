"""A share on demand that is short, as its NodePool shows it: a condition meanwhile, in our own domain. It is no part of
``Ready``: nodes are bought of the pool, and those that come make up for it.
"""

from joinery.objects.karpenter.conditions import Observation, drop, put, true
from joinery.objects.karpenter.labels import OWN_GROUP
from joinery.objects.karpenter.meta import Condition
from joinery.objects.snapshot.pool_shares import PoolShare

#: Named like the Event, which says the same of a plan.
SHARE_NOT_KEPT = f"{OWN_GROUP}/OnDemandShareNotKept"


def with_share(conditions: list[Condition], share: PoolShare | None, at: Observation) -> list[Condition]:
    """The conditions with one that says how much the NodePool's share lacks, if it has one that is short."""
    if share is None or not share.lacking:
        return drop(conditions, SHARE_NOT_KEPT)
    return put(conditions, true(SHARE_NOT_KEPT, at, str(share), reason="TooFewOnDemand"))
