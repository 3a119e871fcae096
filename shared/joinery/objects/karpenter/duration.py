"""Durations as the API writes them: ``720h``, ``1h30m``, ``Never``.

The grammar is Go's ``time.ParseDuration``: NodePools use whole hours, minutes and seconds only (the schema says so),
but annotations such as ``karpenter.sh/do-not-disrupt`` take any Go duration, and a value that went through Karpenter
reads ``720h0m0s``.
"""

import re
from datetime import timedelta
from functools import lru_cache

NEVER = "Never"

_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"[+-]?(?:{_PART.pattern})+")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_LARGEST = 2**63 / 1e9  # Go counts nanoseconds in 63 bits: 292 years


@lru_cache(1024)
def parse(text: str) -> timedelta | None:
    """The duration, None for ``Never``.

    Raises:
        ValueError: the text is no duration, or exceeds 292 years.
    """
    if text == NEVER:
        return None
    if text in ("0", "+0", "-0"):
        return timedelta()
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if seconds >= _LARGEST:
        raise ValueError(f"{text!r} is too long a duration")
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


def spoken(time: timedelta) -> str:
    """For a person: ``20 s``, ``4 min``, ``1 h 30 min``, ``3 days``: two units at most, none of them in vain."""
    seconds = round(time.total_seconds())
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 100:
        return f"{seconds} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 600:
        return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")
    return f"{hours} h" if hours < 72 else f"{round(hours / 24)} days"
