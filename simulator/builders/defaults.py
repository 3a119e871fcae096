"""The moment and the zones that builders use unless a test says otherwise."""

from datetime import datetime

#: When a test's world begins.
EPOCH = datetime.fromisoformat("2026-08-24T08:00:00+00:00")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


def zone_id(zone: str) -> str:
    """``use1-az1`` for ``us-east-1a``, the way EC2 writes them."""
    return f"use1-az{ord(zone[-1]) - ord('a') + 1}"
