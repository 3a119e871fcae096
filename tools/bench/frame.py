"""What all measurements share: a table for a terminal, promises beside what was measured, and clusters as
files: a gzipped ``kind: List`` in JSON.
"""

import gzip
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Document = dict[str, Any]

#: The command line of the environment that this runs in.
JOINERY = Path(sys.executable).with_name("joinery")
_WIDE = 220
_WORDS = {True: "ok", False: "MISSED", None: "-"}


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the promise. ``holds`` is None where nothing was measured."""

    figure: str
    target: str
    measured: str
    holds: bool | None

    @classmethod
    def of(
        cls,
        figure: str,
        target: str,
        values: Iterable[float | None],
        over_all: Callable[[list[float]], float],
        holds: Callable[[float], bool],
        shown: str = "{:.2%}",
    ) -> "Target":
        """The promise about the median, the worst or the best of those values that there are."""
        known = [value for value in values if value is not None]
        if not known:
            return cls(figure, target, "not measured", None)
        found = over_all(known)
        return cls(figure, target, shown.format(found), holds(found))

    @property
    def row(self) -> list[str]:
        """Its cells."""
        return [self.figure, self.target, self.measured, _WORDS[self.holds]]


TARGET_HEADINGS = ("figure", "target", "measured", "")


def show(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: the first column is text, and figures stand right."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False).print(table)


def spread(values: Sequence[float], shown: str = "{:.2f}") -> str:
    """The median of the values, and from the least to the most of them."""
    median, least, most = (shown.format(of(values)) for of in (statistics.median, min, max))
    return f"{median} ({least} to {most})"


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table for a page."""
    ruler = "|".join(["---", *["--:"] * (len(headings) - 1)])
    return [f"| {' | '.join(headings)} |", f"|{ruler}|", *(f"| {' | '.join(row)} |" for row in rows)]


def remarks(report: Mapping[str, Any]) -> Iterator[str]:
    """What the judge reports: a line for each kind of error and warning, with an example."""
    for severity in ("errors", "warnings"):
        found = report.get(severity, ())
        for check, number in Counter(one["check"] for one in found).most_common():
            example = next(one for one in found if one["check"] == check)
            where = " ".join(example[key] for key in ("pod", "node") if key in example)
            after = f" after {example['commands']} commands" if "commands" in example else ""
            yield f"{number} {severity}{after}: {check}: {where}: {example['reason']}"


def read(file: Path) -> list[Document]:
    """The objects of a file, gzipped or not; none of one that holds something else, such as a catalogue."""
    data = file.read_bytes()
    document = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
    return list(document.get("items", ())) if isinstance(document, dict) else []


def write(objects: Iterable[Document], file: Path) -> None:
    """The objects as a file. Equal objects give equal bytes."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}, separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), mtime=0))
