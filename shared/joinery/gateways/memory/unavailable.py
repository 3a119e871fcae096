"""What would fail again: offerings that EC2 was out of a moment ago, and requests that were refused."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from joinery.objects.annotations.marks import MOST_AHEAD
from joinery.objects.refusals import Refusal, Refusals
from joinery.objects.snapshot.offerings import OfferingKey, is_of_class
from joinery.objects.snapshot.shortages import LONGEST

#: No mark that is true ends later than this from now. One that does would keep an offering from being bought for ever.
LONGEST_MARK = LONGEST + MOST_AHEAD


class UnavailableOfferings(Protocol):
    """The offerings that are marked unavailable: asking again so soon would cost a launch that fails.

    All methods raise ``UnavailableError`` where they cannot be read or written.
    """

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        """Those that are marked at that moment, and what follows from them (``objects.snapshot.shortages``), but for
        marks that last longer than any of ours.
        """
        ...

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        """Mark them for three minutes from ``now``, or twice as long as the last time. ``reason`` is for people.

        The last time is known from what was read last.
        """
        ...

    def forget(self, pools: Iterable[OfferingKey]) -> None:
        """Instances were launched from these pools, so what was known of them is over."""
        ...


class RefusedRequests(Protocol):
    """What was refused (``joinery.objects.refusals``). Nothing raises: what cannot be kept is known to this process
    alone."""

    def at(self, now: datetime) -> Refusals:
        """Those that are remembered at that moment."""
        ...

    def note(self, refusals: Iterable[Refusal]) -> None:
        """Remember them."""
        ...

    def forget(self, requests: Iterable[str]) -> None:
        """They were granted."""
        ...


class RememberedRefusals:
    """Implements ``RefusedRequests``, until the process ends."""

    def __init__(self) -> None:
        self._known: dict[str, Refusal] = {}

    def at(self, now: datetime) -> Refusals:
        self._known = {request: known for request, known in self._known.items() if known.is_remembered(now)}
        return self._known

    def note(self, refusals: Iterable[Refusal]) -> None:
        self._known |= {refusal.request: refusal for refusal in refusals}

    def forget(self, requests: Iterable[str]) -> None:
        for request in requests:
            self._known.pop(request, None)


class UnavailableToMember:
    """Implements ``UnavailableOfferings`` for a member: what EC2 is out of is so for all clusters of the account and
    zone, and known to all. Only what a node class lacks is the cluster's own (``class_scope``): another's class of that
    name is another class.
    """

    def __init__(self, known: UnavailableOfferings, cluster: str) -> None:
        self._known, self._own = known, f"{cluster}:"

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        marked = (self._here(pool) for pool in self._known.at(now))
        return frozenset(pool for pool in marked if pool is not None)

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        self._known.mark([self._there(pool) for pool in pools], now=now, reason=reason)

    def forget(self, pools: Iterable[OfferingKey]) -> None:
        self._known.forget([self._there(pool) for pool in pools])

    def _there(self, pool: OfferingKey) -> OfferingKey:
        return replace(pool, scope=self._own + pool.scope) if is_of_class(pool.scope) else pool

    def _here(self, pool: OfferingKey) -> OfferingKey | None:
        if not is_of_class(pool.scope):
            return pool
        is_own = pool.scope.startswith(self._own)
        return replace(pool, scope=pool.scope.removeprefix(self._own)) if is_own else None
