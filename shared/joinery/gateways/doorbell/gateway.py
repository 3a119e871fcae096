"""Bells: messages without data that say "look now". A lost, late or repeated bell costs time, never correctness.

A bell's queue delivers late on purpose, and all rings within one slot of time are one message. A slot is as long as the
delay, so a message is delivered only after its slot has ended. Therefore the door that it wakes sees whatever any ring
of that slot was about, and no ring is dropped as the duplicate of a message that was handled already. A FIFO queue can
be delayed only as a whole: the template's ``DelaySeconds`` are these same numbers.

A door that rings itself, because something is in progress, may say before which moment there is nothing to see. Then
its message comes back to it slot by slot, unread, until that moment, or until somebody else rings. Such rings are
messages of their own: a ring that says "look now" is never taken for one of them.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Protocol

from joinery.objects.errors import JoineryError, together

#: Seconds after which all rings of a run have ended, with an answer or without. After one that nobody answers, the
#: others are not tried.
LONGEST_RING = 2.0


class Bell(Enum):
    """Which door to wake; the value is the queue's message group."""

    PROVISIONING = "provisioning"
    LIFECYCLE = "lifecycle"
    DISRUPTION = "disruption"


#: Provisioning waits for the other pods of the same deployment; lifecycle looks at what is in progress every so often;
#: disruption, for which nobody waits, decides about many changes together (Karpenter disruption, polling period).
DELAYS: Mapping[Bell, timedelta] = {
    Bell.PROVISIONING: timedelta(seconds=1),
    Bell.LIFECYCLE: timedelta(seconds=5),
    Bell.DISRUPTION: timedelta(seconds=10),
}

#: For how long the next run of a door may be postponed (``lifecycle.state.waiting``): until the schedule wakes it.
LONGEST_REST = timedelta(minutes=1)
_NOT_BEFORE = "notBefore"


class Doorbell(Protocol):
    def ring(self, bell: Bell, not_before: datetime | None = None) -> None:
        """Wake a door after the bell's delay. Rings of one slot are one. Raises ``UnavailableError``.

        ``not_before``: when there is something to see for it, if nobody else rings (``message``). Rings with one are
        one in their slot, too, of which the first counts.
        """
        ...


class Tokens(Protocol):
    """By what the webhook knows its caller."""

    def valid(self) -> frozenset[str]:
        """The tokens of known callers. Raises ``JoineryError`` if there never were any."""
        ...


def ring_each(doorbell: Doorbell, *bells: Bell) -> None:
    """Wake several doors. One whose queue does not answer keeps no other asleep: what failed is raised after all."""
    failures: list[Exception] = []
    for bell in bells:
        try:
            doorbell.ring(bell)
        except JoineryError as error:
            failures.append(error)
    if failures:
        raise together(failures)


def slot(bell: Bell, now: datetime) -> int:
    """Which of the bell's slots a moment is in, counted from 1970."""
    return int(now.timestamp() // DELAYS[bell].total_seconds())


def deduplication_id(cluster: str, bell: Bell, now: datetime, *, rests: bool = False) -> str:
    """What makes rings of one slot the same message to SQS. ``rests``: whether they say before when not to look."""
    return f"{cluster}-{bell.value}-{slot(bell, now)}{'-rests' if rests else ''}"


def message(not_before: datetime | None) -> str:
    """The body of a ring's message."""
    return json.dumps({} if not_before is None else {_NOT_BEFORE: not_before.isoformat()})


def not_before(body: object, now: datetime) -> datetime | None:
    """The moment that a body says, no later than any that we write; None for one that says none, so that its door
    looks.
    """
    try:
        said: Any = json.loads(body) if isinstance(body, str) else None
        moment = datetime.fromisoformat(said[_NOT_BEFORE])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return min(moment, now + LONGEST_REST) if moment.tzinfo is not None else None
