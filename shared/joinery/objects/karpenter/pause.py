"""Pauses: hours in which nothing is bought for a NodePool, its nodes go, and a namespace's buffers keep no room.

``joinery.dev/pause`` says when, by the clocks of a time zone: on a NodePool for its nodes, on a Namespace for its
buffers, and with ``all`` before it on any NodePool for the whole cluster. ``joinery.dev/paused`` is a person's word
about the same object, which goes first: ``true``, or since when it runs again though a pause has begun. Windows that
follow upon each other are one pause.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from joinery.objects.karpenter.cron import LocalWindow, local_windows
from joinery.objects.karpenter.labels import PAUSE, PAUSED
from joinery.objects.wording import rfc3339

if TYPE_CHECKING:
    from joinery.objects.karpenter.nodepool import NodePool

#: So long before a pause ends nodes are bought again: they are there when it ends. A node takes two to four minutes.
LEAD = timedelta(minutes=5)
#: Nobody may notice a pause that is not longer: of what is left of it beside ``LEAD``, nodes go once a minute.
SHORTEST = LEAD + timedelta(minutes=1)
_NEVER, _EVERYWHERE = "never", "all"
#: How many windows are followed that come one upon another: those of a week.
_MOST = 16
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Pause:
    """``since``, ``until``: None for one that a person has begun, and ends. ``whose``: what is paused, in words."""

    whose: str
    since: datetime | None = None
    until: datetime | None = None

    @property
    def in_words(self) -> str:
        """Until when, without what."""
        return f"paused until {rfc3339(self.until)}" if self.until else "paused until somebody resumes it"

    def __str__(self) -> str:
        return f"{self.whose} is {self.in_words}"


@lru_cache(maxsize=256)
def pause_of(text: str) -> tuple[bool, tuple[LocalWindow, ...]]:
    """Whether it is about the whole cluster, and the windows; none for ``never``.

    ``from 0 20 * * mon-fri for 11h in Europe/Berlin``, several of them separated by semicolons; ``all from ...``.
    Raises ``ValueError`` for anything else.
    """
    word, _, rest = text.strip().partition(" ")
    if text.strip() == _NEVER:
        return False, ()
    return (True, local_windows(rest)) if word == _EVERYWHERE else (False, local_windows(text))


def is_too_short(text: str) -> bool:
    """Whether no window of a pause is long enough for it to do anything for certain. Raises ``ValueError``."""
    _, windows = pause_of(text)
    return bool(windows) and all(one.window.length <= SHORTEST for one in windows)


def paused_of(text: str) -> datetime | None:
    """``true`` is None; else the moment since when it runs again. Raises ``ValueError`` for anything else."""
    if text.strip() == "true":
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(f'{text!r} is neither "true" nor a moment such as 2026-01-31T07:00:00Z')
    return moment


def pauses(pools: Iterable["NodePool"], now: datetime) -> Mapping[str, Pause]:
    """The pauses that are in force, by NodePool."""
    listed = list(pools)
    if not any(PAUSE in pool.metadata.annotations or PAUSED in pool.metadata.annotations for pool in listed):
        return {}
    everywhere = _everywhere(pool.metadata.annotations for pool in listed)
    found = {}
    for pool in listed:
        name, annotations = pool.metadata.name, pool.metadata.annotations
        pause = _pause(annotations, everywhere, f"NodePool {name}", now)
        if pause is not None:
            found[name] = pause
    return found


def pause_of_buffers(
    namespace: str, annotations: Mapping[str, str], pools: Iterable["NodePool"], now: datetime
) -> Pause | None:
    """The pause of a namespace's buffers that is in force. ``annotations``: those of the Namespace."""
    return pause_by(annotations, (pool.metadata.annotations for pool in pools), f"namespace {namespace}", now)


def pause_by(
    annotations: Mapping[str, str], of_pools: Iterable[Mapping[str, str]], whose: str, now: datetime
) -> Pause | None:
    """The pause that is in force by an object's annotations and those of all NodePools. ``whose``: in words."""
    return _pause(annotations, _everywhere(of_pools), whose, now)


def _everywhere(of_pools: Iterable[Mapping[str, str]]) -> tuple[LocalWindow, ...]:
    """The windows that are about the whole cluster, by the annotations of all NodePools."""
    said = map(_read, of_pools)
    return tuple(window for is_everywhere, windows in said if is_everywhere for window in windows)


def _read(annotations: Mapping[str, str]) -> tuple[bool, tuple[LocalWindow, ...]]:
    """An annotation that cannot be read pauses nothing: its NodePool is not valid, and says so."""
    try:
        return pause_of(annotations[PAUSE]) if PAUSE in annotations else (True, ())
    except ValueError:
        return True, ()


def _pause(
    annotations: Mapping[str, str], everywhere: tuple[LocalWindow, ...], whose: str, now: datetime
) -> Pause | None:
    is_everywhere, own = _read(annotations)
    # What says something of its own goes by that alone, and not by what is said of all.
    pause = _in_windows(everywhere if is_everywhere else own, whose, now)
    try:
        resumed = paused_of(annotations[PAUSED]) if PAUSED in annotations else datetime.min.replace(tzinfo=now.tzinfo)
    except ValueError:
        return pause
    if resumed is None:
        return Pause(whose)
    return pause if pause is not None and (pause.since is None or pause.since > resumed) else None


def _in_windows(windows: tuple[LocalWindow, ...], whose: str, now: datetime) -> Pause | None:
    """Of windows that follow upon each other, as one; None from ``LEAD`` before the end of the last on."""
    if not any(one.is_open(now) for one in windows):
        return None
    since, until = now, now
    for _ in range(_MOST):
        before = since if since == now else since - _INSTANT
        since = min((opens for one in windows if (opens := one.opened(before))), default=since)
        until = max((closes for one in windows if (closes := one.closes(until))), default=until)
    return Pause(whose, since, until) if now < until - LEAD else None
