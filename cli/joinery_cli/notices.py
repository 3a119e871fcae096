"""What a person should hear beside a plan: lines, and how serious each is.

A **warning** says that the plan may not be what was meant: something is wrong, missing, or not done. A **note** says
what was done with the files that nobody has to mend. Both are data: standard error, the JSON document and the page have
the same. Files that cannot be used are refused with all that is
wrong, because whoever has to mend them wants to hear of all of it at once.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from joinery.objects.errors import ConfigurationError
from joinery.objects.wording import shortened
from joinery_cli.output.visible import line_of

#: How many things that are wrong with files are printed.
_MOST = 20
_NAMED = 3
#: How a problem begins that has a line.
_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+): ")
#: How many doubts about the same subjects are printed: whoever wrote one list of thousands reads no thousands of lines.
_MOST_DOUBTS = 10


class Severity(StrEnum):
    """Whether somebody may have to do something."""

    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class UserNotice:
    """One line."""

    severity: Severity
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.message}"

    def document(self) -> Mapping[str, str]:
        """As the Plan document has it."""
        return {"severity": self.severity.value, "message": self.message}


def warning(message: object) -> UserNotice:
    """Something may have to be mended."""
    return UserNotice(Severity.WARNING, shortened(str(message)))


def note(message: object) -> UserNotice:
    """Nothing has to be mended."""
    return UserNotice(Severity.NOTE, shortened(str(message)))


def warnings_of(doubts: Iterable[tuple[str, str]], whose: str = "") -> Iterator[UserNotice]:
    """A warning for each doubt, naming all its subjects, after ``whose``. ``doubts``: subject and doubt of each."""
    subjects: dict[str, dict[str, None]] = defaultdict(dict)
    for subject, doubt in doubts:
        subjects[doubt][subject] = None
    doubts_of: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for doubt, named in subjects.items():
        doubts_of[tuple(named)].append(doubt)
    for of, listed in doubts_of.items():
        about = f"{whose}{some_of(of)}"
        yield from (warning(f"{about}: {doubt}") for doubt in listed[:_MOST_DOUBTS])
        if len(listed) > _MOST_DOUBTS:
            yield warning(f"{about}: {len(listed) - _MOST_DOUBTS:,} more such warnings")


def tell(notices: Iterable[UserNotice]) -> None:
    """Each on a line of standard error."""
    for notice in notices:
        print(line_of(notice), file=sys.stderr)


@contextmanager
def working(on: str, *, after: float = 1.0) -> Iterator[Callable[[str], None]]:
    """Say on standard error, if that is a terminal, what takes longer than so many seconds, while it does.

    Yields what says how far it is: ``said("12 of 90")``.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from threading import Timer

    from rich.console import Console

    status = Console(stderr=True, markup=False).status(f"{on} …")
    timer = Timer(after, status.start)
    timer.start()
    try:
        yield lambda far: status.update(f"{on}: {far} …")
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def writing(*, after: float = 1.0) -> AbstractContextManager[object]:
    """The same for what is printed, where that goes into a file or a pipe: on the terminal it is seen itself."""
    return nullcontext() if sys.stdout.isatty() else working("writing", after=after)


_Item = TypeVar("_Item")


def counted(items: Sequence[_Item], on: str, *, after: float = 1.0) -> Iterator[_Item]:
    """The items one by one; standard error says, if it is a terminal, how many of them are done."""
    with working(on, after=after) as said:
        for number, item in enumerate(items):
            said(f"{number:,} of {len(items):,}")
            yield item


def some_of(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _in_order(problems: Sequence[str]) -> list[str]:
    """File after file as they were read, and in each by line, as whoever mends them goes through it."""
    places = [_PLACE.match(problem) for problem in problems]
    first: dict[str, int] = {}
    keys = []
    for number, place in enumerate(places):
        file = place["file"] if place else problems[number]
        keys.append((first.setdefault(file, number), int(place["line"]) if place else 0, number))
    return [problems[number] for _, _, number in sorted(keys)]


class RefusedFilesError(ConfigurationError):
    """Everything that is wrong with the files. ``problems``, as texts: file, line, object and field of each."""

    def __init__(self, problems: Sequence[object]) -> None:
        self._first = _in_order([str(problem) for problem in problems[:_MOST]])
        self._more = len(problems) - len(self._first)
        super().__init__("; ".join(self._first))

    def lines(self) -> Iterator[str]:
        """A line for each problem, and one for how many more there are."""
        yield from self._first
        if self._more:
            yield f"and {self._more:,} more"
