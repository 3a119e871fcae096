"""What our annotations on a CapacityBuffer say: when it counts, and of which capacity types its nodes may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from joinery.objects.karpenter.cron import Window, window
from joinery.objects.karpenter.labels import BUFFER_CAPACITY_TYPES, BUFFER_SCHEDULE, ON_DEMAND, RESERVED, SPOT

_TYPES = (SPOT, ON_DEMAND, RESERVED)


@dataclass(frozen=True, slots=True)
class LocalWindow:
    """A window by the clocks of a time zone. On the days on which these are changed it opens and closes by them, too,
    so that it lasts an hour more or less.
    """

    window: Window
    zone: tzinfo

    def is_open(self, now: datetime) -> bool:
        """Whether it is open at that moment. One that never comes is never open: nobody pays for what never begins."""
        local = now.astimezone(self.zone).replace(tzinfo=UTC)
        begins = self.window.schedule.next_after(local - self.window.length)
        return begins is not None and begins <= local


@lru_cache(maxsize=256)
def schedule_of(text: str) -> tuple[LocalWindow, ...]:
    """``from 30 7 * * mon-fri for 11h in Europe/Berlin``, several of them separated by semicolons; UTC where no zone is
    named.

    Raises ``ValueError`` for anything else.
    """
    return tuple(_window(part.strip(), text) for part in text.split(";"))


def _window(part: str, text: str) -> LocalWindow:
    match part.split():
        case ["from", *schedule, "for", length] if schedule:
            zone = "UTC"
        case ["from", *schedule, "for", length, "in", zone] if schedule:
            pass
        case _:
            raise ValueError(f'{text!r}: {part!r} is not "from CRON for DURATION in ZONE"')
    try:
        return LocalWindow(window(" ".join(schedule), length), _zone(zone))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # only for buffers with a schedule

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}; they are called as Europe/Berlin is") from error


def is_in_force(annotations: Mapping[str, str], now: datetime) -> bool:
    """Whether the buffer counts at that moment: always, where it has no schedule.

    Raises ``ValueError`` naming the annotation, for a schedule that cannot be read.
    """
    text = annotations.get(BUFFER_SCHEDULE)
    if text is None:
        return True
    try:
        return any(one.is_open(now) for one in schedule_of(text))
    except ValueError as error:
        raise ValueError(f"the annotation {BUFFER_SCHEDULE}: {error}") from error


def capacity_types(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The capacity types that the buffer's nodes may be of, in place of what its pods ask for; empty where these say.

    Raises ``ValueError`` naming the annotation, for anything but such types.
    """
    text = annotations.get(BUFFER_CAPACITY_TYPES)
    if text is None:
        return ()
    types = tuple(sorted({part.strip() for part in text.split(",")}))
    if unknown := [one for one in types if one not in _TYPES]:
        raise ValueError(f"the annotation {BUFFER_CAPACITY_TYPES}: {unknown[0]!r} is none of {', '.join(_TYPES)}")
    return types
