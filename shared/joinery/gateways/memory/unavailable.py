"""What would be asked for in vain: offerings that EC2 was out of a moment ago, and requests that were refused."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol

from joinery.objects.annotations.marks import MOST_AHEAD
from joinery.objects.refusals import Refusal, Refusals
from joinery.objects.snapshot.offerings import OfferingKey

#: How long an offering stays marked (Karpenter for AWS `UnavailableOfferingsTTL`).
MARKED_FOR = timedelta(minutes=3)
#: No mark that is true ends later than this from now. One that does would keep an offering from being bought for ever.
LONGEST_MARK = MARKED_FOR + MOST_AHEAD


class UnavailableOfferings(Protocol):
    """The offerings that are marked unavailable: asking again so soon would cost a launch that fails.

    Both methods raise ``UnavailableError`` where they cannot be read or written.
    """

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        """Those that are marked at that moment, but for marks that last longer than any of ours."""
        ...

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        """Mark them for three minutes from ``now``. Marking again extends the time. ``reason`` is for people."""
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
