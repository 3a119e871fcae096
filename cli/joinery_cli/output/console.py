"""Printing for a person at a terminal: tables, sentences and figures that all commands print alike.

A line has as many columns as the terminal, eighty where there is none, and more only where a name is longer than that:
nothing is ever cut off. Rich decides on colours: only on a terminal. No text is read as markup: names and messages are
anybody's, and a pair of brackets of two of them, or of two lines, would be a tag.
"""

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap

from rich.console import Console
from rich.table import Table
from rich.text import Text

from joinery.decisions.scheduling.packing import Launch
from joinery_cli.output.visible import visible
from joinery_cli.prices import Prices
from joinery_cli.view.figures import amount, share, size, unit
from joinery_cli.view.plan_view import zones_allowed
from joinery_cli.view.workloads import Filled

#: Columns where there is no terminal, and the fewest that are laid out for.
WIDTH, _NARROWEST = 80, 60
#: What no table exceeds: Rich takes a terminal to be so wide, or it would cut figures off.
_WIDEST, _UNBOUNDED = 250, 100_000
ZONE_WIDTH, TYPE_WIDTH = 15, 19
_NAMED_PODS = 3
_FULL = 0.8


@contextmanager
def printing(*, is_wide: bool = False) -> Iterator[Console]:
    """A console that cuts nothing off; no line ends in blanks. ``is_wide``: tables may be as wide as they get."""
    width = _UNBOUNDED if is_wide else _WIDEST
    console = Console(width=width, soft_wrap=True, highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        yield console
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def width() -> int:
    """How many columns there are."""
    if not sys.stdout.isatty():
        return WIDTH
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, _NARROWEST), _WIDEST)


def spare() -> int:
    """How many columns there are beyond eighty, for names."""
    return max(0, width() - WIDTH)


def styled(*parts: str | tuple[str, str], below: Text | str = "") -> Text:
    """Texts beside each other, some with their style, and what is ``below`` them. Nothing in them steers a terminal."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    line = Text.assemble(*((visible(said), style) for said, style in pairs))
    return line.append("\n").append(below) if below else line


def headed_table(title: str) -> Table:
    """An empty table under a heading."""
    return Table(
        title=visible(title), title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim"
    )


def print_explanation(console: Console, lines: Iterable[str]) -> None:
    """What was asked for by ``--explain``: a heading, and what is said of it."""
    heading, *rest = lines
    console.print("", styled((heading, "bold")), sep="\n")
    for line in rest:
        console.print(styled(line))


def print_wrapped(console: Console, said: str, *, first: str = "", further: str | None = None) -> None:
    """A sentence in lines of the terminal's width; a name is never broken.

    ``first``, ``further``: what the first line and the others begin with; the others by default with as many blanks.
    """
    for line in wrap(
        visible(said),
        width(),
        initial_indent=first,
        subsequent_indent=" " * len(first) if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        console.print(line)


def print_prices(console: Console, prices: Prices) -> None:
    """Whose prices these are: louder where they are not the cluster's own."""
    console.print(styled(prices.origin))
    if prices.is_estimate:
        console.print(styled((prices.doubt, "bold yellow")))


def zones_of(launches: Sequence[Launch]) -> str:
    """``any of 5 zones`` where a launch may choose; ``us-east-1a``, or several nodes' zones as ``us-east-1a,b,f``.

    A zone alone is named however long it is, as a local zone's is: ``eu-central-1-ham-1a``.
    """
    choices = {choice for launch in launches if (choice := zones_allowed(launch)) > 1}
    if choices:
        return f"any of {number_range(choices)} zones"
    zones = sorted({launch.offering.zone for launch in launches})
    regions = {zone[:-1] for zone in zones}
    listed = ",".join((zones[0], *(zone[-1] for zone in zones[1:]))) if len(regions) == 1 else ", ".join(zones)
    return listed if len(zones) == 1 or len(listed) <= ZONE_WIDTH + spare() else f"{len(zones)} zones"


def number_range(numbers: Iterable[int]) -> str:
    """``3``, or ``3-7``."""
    smallest, largest = min(numbers := set(numbers)), max(numbers)
    return str(smallest) if smallest == largest else f"{smallest}-{largest}"


def tinted(capacity_type: str) -> Text:
    """Spot stands out."""
    return styled((capacity_type, "cyan" if capacity_type == "spot" else "dim"))


def fullness_cell(nodes: Sequence[Filled], resource: str) -> Text:
    """How full the nodes are together, and below how large one is: ``97%``, ``of 3.9``."""
    used = sum(node.used.get(resource, 0) for node in nodes) / len(nodes)
    whole = sum(node.room.get(resource, 0) for node in nodes) / len(nodes)
    if not whole:
        return styled(amount(resource, used) if used else "")
    measure = "Gi" if unit(resource) == "GiB" else ""
    size_of_one = styled((f"of {size(resource, whole)}{measure}", "dim"))
    return styled((share(used, whole), "green" if used > _FULL * whole else ""), below=size_of_one)


def named(pods: Sequence[str]) -> str:
    """The first few pods, and how many more there are."""
    shown = ", ".join(pods[:_NAMED_PODS])
    return f"{shown} and {len(pods) - _NAMED_PODS} more" if len(pods) > _NAMED_PODS else shown
