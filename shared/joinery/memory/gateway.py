"""What EC2 was out of lately: capacity pools that are not worth asking again for three minutes."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol

from joinery.state.offerings import OfferingKey

#: How long a pool stays marked (Karpenter for AWS `UnavailableOfferingsTTL`).
MARKED_FOR = timedelta(minutes=3)


class OfferingMemory(Protocol):
    def unavailable(self, now: datetime) -> frozenset[OfferingKey]:
        """The pools still marked at that moment. ``UnavailableError``."""
        ...

    def mark_unavailable(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        """Mark for three minutes from ``now``; marking again extends it. ``UnavailableError``."""
        ...
