"""Cron expressions of disruption budgets, read as Karpenter reads them.

Karpenter uses the Go library robfig/cron v3 (`ParseStandard`): five fields or a macro, names of months and weekdays,
lists, ranges and steps, ``?`` for ``*``, Sunday as 0 and never as 7. Everything is in UTC. Python's libraries read
other dialects, so this is a parser of our own (docs/decisions/0041).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import product

from joinery.objects.karpenter import duration

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
_WEEKDAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_ANY = ("*", "?")
#: How many calendar years after the first are searched for the next time (robfig/cron `SpecSchedule.Next`).
_YEARS = 5
#: By how much clocks are put forward or back at most: two hours, at a station in the Antarctic.
_CHANGE = timedelta(hours=2)
#: From this year on each day comes within ``_YEARS``, if it comes at all: it is a leap year.
_ANY_YEAR = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five fields: what it is called in errors, its least and greatest value, and names for values."""

    name: str
    least: int
    greatest: int
    names: Mapping[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("weekday", 0, 6, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression: the values that each field allows.

    ``minutes`` and ``hours`` are sorted, ``weekdays`` count from Sunday, 0. ``is_either_day``: both the day of the
    month and the weekday are restricted, and then it is enough that one of them fits (crontab(5)).
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_either_day: bool

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time after the moment (in UTC), not at it; None if there is none in the next five years."""
        day = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
        while day.year <= moment.year + _YEARS:
            if self._fits(day):
                times = (day.replace(hour=hour, minute=minute) for hour, minute in product(self.hours, self.minutes))
                if (first := next((time for time in times if time > moment), None)) is not None:
                    return first
            day += timedelta(days=1)
        return None

    def _fits(self, day: datetime) -> bool:
        fits_month, fits_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        fits_day = fits_month or fits_weekday if self.is_either_day else fits_month and fits_weekday
        return fits_day and day.month in self.months


@dataclass(frozen=True, slots=True)
class Window:
    """A time that comes again and again: from each moment of ``schedule`` on, for ``length``."""

    schedule: Cron
    length: timedelta

    def is_open(self, now: datetime) -> bool:
        """Whether it is open at that moment, in UTC.

        It ends before the moment that is ``length`` after its beginning. A schedule that never comes counts as open:
        nobody writes a limit in order not to have it (Karpenter does the same).
        """
        begins = self.schedule.next_after(now - self.length)
        return begins is None or begins <= now

    def closes(self, now: datetime) -> datetime | None:
        """When it ends of which ``now`` is in it; None where it is not open, or never closes."""
        begins = self.schedule.next_after(now - self.length)
        return None if begins is None or begins > now else begins + self.length


@dataclass(frozen=True, slots=True)
class LocalWindow:
    """A window by the clocks of a time zone. On the days on which these are changed it opens and closes by them, too,
    so that it lasts an hour more or less. A time that they leave out comes when it would have come without the change,
    and of one that comes twice the first counts.
    """

    window: Window
    zone: tzinfo

    def is_open(self, now: datetime) -> bool:
        """Whether it is open at that moment."""
        return self._times(now) is not None

    def opened(self, now: datetime) -> datetime | None:
        """When it began, of which ``now`` is in it; None where it is not open."""
        times = self._times(now)
        return times[0] if times else None

    def closes(self, now: datetime) -> datetime | None:
        """When it ends of which ``now`` is in it; None where it is not open."""
        times = self._times(now)
        return times[1] if times else None

    def _times(self, now: datetime) -> tuple[datetime, datetime] | None:
        """When that began, and when it ends, which opened first of those that are open."""
        local, length = now.astimezone(self.zone).replace(tzinfo=UTC), self.window.length
        begins = self.window.schedule.next_after(local - length - _CHANGE)
        while begins is not None and begins <= local + _CHANGE:
            opened, closes = self._moment(begins), self._moment(begins + length)
            if opened <= now < closes:
                return opened, closes
            begins = self.window.schedule.next_after(begins)
        return None

    def _moment(self, local: datetime) -> datetime:
        """The moment at which the clocks show this time."""
        return local.replace(tzinfo=self.zone).astimezone(UTC)


@lru_cache(maxsize=256)
def local_windows(text: str) -> tuple[LocalWindow, ...]:
    """``from 30 7 * * mon-fri for 11h in Europe/Berlin``, several of them separated by semicolons; UTC where no zone is
    named.

    Raises ``ValueError`` for anything else.
    """
    return tuple(_local_window(part.strip(), text) for part in text.split(";"))


def _local_window(part: str, text: str) -> LocalWindow:
    match part.split():
        case ["from", *schedule, "for", length] if schedule:
            zone = "UTC"
        case ["from", *schedule, "for", length, "in", zone] if schedule:
            pass
        case _:
            raise ValueError(f'{text!r}: {part!r} is not "from CRON for DURATION in ZONE"')
    try:
        return LocalWindow(_that_opens(window(" ".join(schedule), length), length), _zone(zone))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error


def _that_opens(one: Window, length: str) -> Window:
    """Raises ``ValueError`` for a window that is never open: a mistake, of which nobody would hear."""
    if one.length <= timedelta(0):
        raise ValueError(f"duration {length!r} is none")
    if one.schedule.next_after(_ANY_YEAR) is None:
        raise ValueError("its day never comes")
    return one


def _zone(name: str) -> tzinfo:
    # Whoever has no such window does not wait for its import.
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}; they are called as Europe/Berlin is") from error


def window(schedule: str, length: str) -> Window:
    """The window of a cron expression and a duration. Raises ``ValueError`` naming the one that cannot be read."""
    try:
        parsed = parse(schedule)
    except ValueError as error:
        raise ValueError(f"schedule {schedule!r}: {error}") from error
    lasts = duration.parse(length)
    if lasts is None:
        raise ValueError(f"duration {length!r} does not end")
    return Window(parsed, lasts)


@lru_cache(maxsize=256)
def parse(text: str) -> Cron:
    """Read an expression.

    Raises:
        ValueError: it is none; the message names the field.
    """
    fields = _MACROS.get(text.strip(), text).split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"{text!r} has {len(fields)} fields, not {len(_FIELDS)}")
    minutes, hours, days, months, weekdays = (_values(part, field) for part, field in zip(fields, _FIELDS, strict=True))
    return Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=weekdays,
        is_either_day=not _is_any(fields[2]) and not _is_any(fields[4]),
    )


def _is_any(text: str) -> bool:
    """Whether the field says nothing. With a step it says something (robfig/cron `getRange`)."""
    return any(part.removesuffix("/1") in _ANY for part in text.split(","))


def _values(text: str, field: _Field) -> frozenset[int]:
    parts = [part for part in text.split(",") if part]
    if not parts:
        raise ValueError(f"the {field.name} is empty")
    return frozenset(value for part in parts for value in _range(part, field))


def _range(text: str, field: _Field) -> range:
    """``*``, ``a``, ``a-b``, each with ``/step``. ``a/step`` goes on to the field's greatest value."""
    span, slash, step_text = text.partition("/")
    step = _number(step_text, field) if slash else 1
    low, dash, high = span.partition("-")
    if span in _ANY:
        first, last = field.least, field.greatest
    else:
        first = _value(low, field)
        last = _value(high, field) if dash else field.greatest if slash else first
    if not (field.least <= first <= last <= field.greatest and step > 0):
        raise ValueError(f"the {field.name} {text!r} is not between {field.least} and {field.greatest}")
    return range(first, last + 1, step)


def _value(text: str, field: _Field) -> int:
    return field.names[text.lower()] if text.lower() in field.names else _number(text, field)


def _number(text: str, field: _Field) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"the {field.name} has {text!r}, which is not a number")
    return int(text)
