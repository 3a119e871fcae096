"""How soon lifecycle looks again at a boot or a command that is still in progress.

Ever later, because the webhook wakes lifecycle at once when a node joins or becomes ready. If that message is lost, the
change is seen late by a quarter of the time that it took.
"""

from datetime import datetime, timedelta

#: The share of the time that has passed, and the longest time: the schedule wakes lifecycle every minute.
_SHARE, _LONGEST = 0.25, timedelta(minutes=1)


def backoff_since(moment: datetime, now: datetime) -> timedelta:
    """How long to wait before the next look at what began at that moment."""
    return min(max(now - moment, timedelta()) * _SHARE, _LONGEST)
