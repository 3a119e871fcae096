"""Which offerings EC2 was out of a moment ago.

Asking again so soon would cost a launch that fails, and a plan made in vain.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol

from joinery.state.offerings import OfferingKey

#: How long an offering stays marked (Karpenter for AWS `UnavailableOfferingsTTL`).
MARKED_FOR = timedelta(minutes=3)


class UnavailableOfferings(Protocol):
    """The offerings that are marked unavailable.

    Both methods raise ``UnavailableError`` where they cannot be read or written.
    """

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        """Those that are marked at that moment."""
        ...

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        """Mark them for three minutes from ``now``. Marking again extends the time. ``reason`` is for people."""
        ...
