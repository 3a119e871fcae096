"""Stalled drains: the pods of a node that cannot be made to go are asked less and less often.

A disruption budget may keep a pod for days. Asking it every five seconds would cost as many requests and Events, and
the runs that carry them. So the time between two attempts grows as long as the drain makes no progress: it doubles, up
to a minute. Any pod that goes begins it anew.

What is remembered is an annotation on the claim (on the Node, where there is no claim): how many pods the drain waits
for, since when it is this many, and when they were asked last. A function's memory would not do, because the next run
may be another process.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.objects.annotations.drain_start import USUAL_GRACE
from joinery.objects.annotations.marks import is_believable
from joinery.objects.karpenter.labels import DRAIN_STALLED, INTERRUPTED_AT
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.claims import moment
from joinery.objects.snapshot.pods import own_grace

#: The shortest time between two attempts: a tick. The longest: a minute, less what the schedule's ring may come early.
SHORTEST, LONGEST = timedelta(seconds=5), timedelta(seconds=55)
#: How much earlier than its time an attempt may be made: ticks come in slots of the queue, and not to the second.
_TOLERANCE = timedelta(seconds=1)
#: How long something is worth ticks though nothing changes. After that the schedule's ring, once a minute, is enough:
#: attempts are as rare by then.
WORTH_TICKS = timedelta(minutes=2)
#: How long EC2's warning hurries a drain: there is no later attempt than those within its two minutes.
_HURRY = timedelta(minutes=3)
#: How early before a deadline the ticks begin again: a minute, and what the schedule's ring may come late.
_BEFORE_DEADLINE = timedelta(seconds=75)


@dataclass(frozen=True, slots=True)
class Stall:
    """``pods``: how many the drain waits for. ``since``: when it became this many. ``asked``: when they were asked."""

    pods: int
    since: datetime
    asked: datetime

    @property
    def annotation(self) -> dict[str, str]:
        said = {"pods": self.pods, "since": self.since.isoformat(), "asked": self.asked.isoformat()}
        return {DRAIN_STALLED: json.dumps(said)}


@dataclass(frozen=True, slots=True)
class Pace:
    """``is_due``: whether the pods are asked now. ``stall``: how it stands after this pass."""

    is_due: bool
    stall: Stall

    def is_worth_ticks(self, now: datetime) -> bool:
        """Whether the next attempt, or the end of the last one, comes sooner than the schedule's ring."""
        return now - self.stall.since < WORTH_TICKS


def stall_in(annotations: Mapping[str, str], now: datetime) -> Stall | None:
    """What the annotation says; None if there is none that can be read, or that can be true
    (``objects.annotations.marks``)."""
    try:
        said = json.loads(annotations.get(DRAIN_STALLED, "null"))
        since, asked = moment(str(said["since"])), moment(str(said["asked"]))
        if since is None or asked is None or not is_believable(asked, now):
            return None
        # Somebody may have edited ``since`` to be later than ``asked``: ticks would be worth it until then.
        return Stall(int(said["pods"]), min(since, asked), asked)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def pace(annotations: Mapping[str, str], pods: int, now: datetime) -> Pace:
    """Whether a drain that waits for so many pods asks them now. ``annotations``: of its claim or Node."""
    before = stall_in(annotations, now)
    if before is None or before.pods != pods:
        return Pace(is_due=True, stall=Stall(pods, now, now))
    interval = min(max(before.asked - before.since, SHORTEST), LONGEST)
    if is_hurried(annotations, now) or now - before.asked >= interval - _TOLERANCE:
        return Pace(is_due=True, stall=Stall(pods, before.since, now))
    return Pace(is_due=False, stall=before)


def is_hurried(annotations: Mapping[str, str], now: datetime) -> bool:
    """Whether EC2 takes the instance within moments, so that every tick counts."""
    warned = moment(annotations.get(INTERRUPTED_AT, ""))
    return warned is not None and abs(now - warned) < _HURRY


def is_deadline_near(deadline: datetime | None, pods: Iterable[Pod], now: datetime) -> bool:
    """Whether some of the pods have to be deleted soon, so that the node is gone by its deadline."""
    if deadline is None:
        return False
    graces = map(own_grace, pods)
    longest = max((USUAL_GRACE if grace is None else grace for grace in graces), default=timedelta())
    return deadline - longest - _BEFORE_DEADLINE <= now < deadline + _BEFORE_DEADLINE
