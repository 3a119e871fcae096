"""For how long what is waited for is left alone.

It is looked at ever less often, because the webhook rings at once when a node joins or gets fit for pods. Where nobody
rings, what has come is seen later by a quarter of the time that it took.
"""

from datetime import datetime, timedelta

#: Of the time that something has lasted, for how much longer it is left alone; at most until the schedule's next ring.
_PATIENCE, _LONGEST = 0.25, timedelta(minutes=1)


def rest_since(moment: datetime, now: datetime) -> timedelta:
    """How long nobody needs to look again at what has been going on, and was waited for, since that moment."""
    return min(max(now - moment, timedelta()) * _PATIENCE, _LONGEST)
