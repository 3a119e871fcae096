"""Disruption as users speak of it: why a node is disrupted, and the values of our annotations about it.

The reasons stand in annotations, conditions, Events and metrics.
"""

import re
from datetime import timedelta
from enum import StrEnum

from joinery.apis import duration

_DOLLARS = re.compile(r"\d{1,9}(\.\d+)?|\.\d+")


class DisruptionReason(StrEnum):
    """Why a node goes. The first three are what budgets of NodePools name (Karpenter ``DisruptionReason``)."""

    EMPTY = "Empty"
    UNDERUTILIZED = "Underutilized"
    DRIFTED = "Drifted"
    EXPIRED = "Expired"
    INTERRUPTED = "Interrupted"
    REBALANCE = "Rebalance"
    UNHEALTHY = "Unhealthy"
    #: A replacement whose command was rolled back, and that nobody uses.
    ABANDONED = "Abandoned"


def dollars_of(text: str) -> float:
    """``0.05`` as a number of dollars. Raises ``ValueError`` for anything else, and from a billion dollars on."""
    if not _DOLLARS.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is no amount of dollars, such as 0.05")
    return float(text)


def payback_of(text: str) -> timedelta:
    """``1h30m`` as a time in which savings must repay moves. Raises ``ValueError`` for anything that is none."""
    try:
        length = duration.parse(text)
    except ValueError:
        length = None
    if length is None or length < timedelta():
        raise ValueError(f"{text!r} is no duration, such as 30m or 1h30m")
    return length
