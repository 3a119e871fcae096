"""Which nodes of a NodePool were disrupted lately: what its rate (``joinery.dev/disruption-rate``) counts.

Nothing is kept in a function's memory. A claim that is in a disruption command says so itself, and since when, until
its node is gone. Claims are gone within minutes and a rate may speak of a day, so while a pool has a rate, lifecycle
remembers them in an annotation on the pool (``joinery.dev/disrupted-lately``). Reading the same claims again changes
nothing: a run that was stopped anywhere is simply repeated.

A node counts from the start of its command. One whose command was rolled back does not count.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from joinery.objects.annotations.disruption import record_of
from joinery.objects.karpenter.disruption import MOST_REMEMBERED, VOLUNTARY, rate_of
from joinery.objects.karpenter.labels import DISRUPTED_LATELY, DISRUPTION_RATE, NODE_POOL, RETIRED_FOR
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.decoding import decode_each, with_entries


class Retirement(msgspec.Struct, frozen=True, order=True):
    """``at``: since when the claim of that name is disrupted."""

    at: datetime
    claim: str


def retirements(pool: NodePool, claims: Iterable[NodeClaim], now: datetime) -> tuple[Retirement, ...]:
    """The nodes of the pool that were disrupted within the time of its rate, the oldest first; none without a rate.

    ``claims``: ours, of whatever pool. Raises ``ValueError`` for a rate that cannot be read.
    """
    text = pool.metadata.annotations.get(DISRUPTION_RATE)
    if text is None:
        return ()
    length = rate_of(text).length
    # Nothing was disrupted later than now, whatever somebody wrote into the annotation.
    by_claim = {one.claim: Retirement(min(one.at, now), one.claim) for one in _remembered(pool)}
    for claim in claims:
        if claim.metadata.labels.get(NODE_POOL) != pool.metadata.name:
            continue
        since = _disrupted_since(claim)
        if since is None:
            by_claim.pop(claim.metadata.name, None)
        else:
            by_claim[claim.metadata.name] = Retirement(since, claim.metadata.name)
    lately = sorted(one for one in by_claim.values() if now - one.at < length)
    # A rate speaks of no more. The newest are the last to be forgotten, so older ones change nothing.
    return tuple(lately[-MOST_REMEMBERED:])


def with_retirements(pool: NodePool, claims: Iterable[NodeClaim], now: datetime) -> NodePool:
    """The pool with the annotation as it has to be. While its rate cannot be read, nothing is forgotten."""
    annotations = pool.metadata.annotations
    if DISRUPTION_RATE not in annotations and DISRUPTED_LATELY not in annotations:
        return pool
    try:
        lately = retirements(pool, claims, now)
    except ValueError:
        return pool
    kept = with_entries(annotations, DISRUPTED_LATELY, lately)
    return with_metadata(pool, annotations=kept)


def _disrupted_since(claim: NodeClaim) -> datetime | None:
    """Since when the claim goes because that is worth it; None if it stays, or goes for another reason."""
    record = record_of(claim)
    if record is not None:
        return record.started if record.reason in VOLUNTARY and not record.rollback else None
    is_voluntary = claim.metadata.annotations.get(RETIRED_FOR) in [reason.value for reason in VOLUNTARY]
    return claim.metadata.deletion_timestamp if is_voluntary else None


def _remembered(pool: NodePool) -> tuple[Retirement, ...]:
    """What the annotation says, as far as it can be read: anybody may edit it."""
    listed = decode_each(pool.metadata.annotations.get(DISRUPTED_LATELY, "[]"), Retirement)
    return tuple(one for one in listed if one.at.tzinfo is not None)
