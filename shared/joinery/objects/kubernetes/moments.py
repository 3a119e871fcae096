"""Moments as Kubernetes writes them, for sentences that people read beside objects."""

from datetime import datetime


def rfc3339(moment: datetime) -> str:
    """To the second, as in ``metadata.creationTimestamp``: ``2026-01-01T00:00:00Z``.

    Another zone than UTC stays as it was written: the first and the last moments that there are have no other.
    """
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
