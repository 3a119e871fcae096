"""``joinery doctor``: what is installed, reachable, allowed, stale or throttled, and what to do about it."""
