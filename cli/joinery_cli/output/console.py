"""Printing for a person at a terminal: tables, sentences and figures that all commands print alike.

A line has eighty columns, and more only where a name is longer than that: nothing is ever cut off. Rich decides on
colours: only on a terminal.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap

from rich.console import Console
from rich.markup import escape as unmarked
from rich.table import Table

from joinery.decisions.scheduling.packing import Launch
from joinery_cli.output.visible import visible
from joinery_cli.prices import Prices
from joinery_cli.view.figures import amount, share, size, unit
from joinery_cli.view.plan_view import zones_allowed
from joinery_cli.view.workloads import Filled

WIDTH = 80
#: What no table exceeds: Rich takes a terminal to be so wide, or it would cut figures off.
_WIDEST = 250
ZONE_WIDTH, TYPE_WIDTH = 15, 19
_NAMED_PODS = 3
_FULL = 0.8


@contextmanager
def printing() -> Iterator[Console]:
    """A console that cuts nothing off; no line ends in blanks."""
    console = Console(width=_WIDEST, soft_wrap=True, highlight=False, emoji=False)
    with console.capture() as captured:
        yield console
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def escape(text: str) -> str:
    """A text of others: no markup, and nothing that steers a terminal."""
    return unmarked(visible(text))


def headed_table(title: str) -> Table:
    """An empty table under a heading."""
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")


def print_explanation(console: Console, lines: Iterable[str]) -> None:
    """What was asked for by ``--explain``: a heading, and what is said of it."""
    heading, *rest = lines
    console.print("", f"[bold]{escape(heading)}[/bold]", sep="\n")
    for line in rest:
        console.print(escape(line))


def print_wrapped(console: Console, said: str, *, first: str, further: str = "") -> None:
    """A sentence in lines of the table's width; a name is never broken.

    ``first``, ``further``: what the first line and the others begin with; the others by default with as many blanks.
    """
    lines = wrap(
        said,
        WIDTH,
        initial_indent=first,
        subsequent_indent=further or " " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
    console.print("\n".join(escape(line) for line in lines))


def price_lines(prices: Prices) -> Iterator[str]:
    """Whose prices these are: louder where they are not the cluster's own."""
    yield escape(prices.origin)
    if prices.is_estimate:
        yield f"[bold yellow]{escape(prices.doubt)}[/bold yellow]"


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
    return listed if len(zones) == 1 or len(listed) <= ZONE_WIDTH else f"{len(zones)} zones"


def number_range(numbers: Iterable[int]) -> str:
    """``3``, or ``3-7``."""
    smallest, largest = min(numbers := set(numbers)), max(numbers)
    return str(smallest) if smallest == largest else f"{smallest}-{largest}"


def tinted(capacity_type: str) -> str:
    """Spot stands out."""
    return f"[cyan]{capacity_type}[/cyan]" if capacity_type == "spot" else f"[dim]{capacity_type}[/dim]"


def fullness_cell(nodes: Sequence[Filled], resource: str) -> str:
    """How full the nodes are together, and below how large one is: ``97%``, ``of 3.9``."""
    used = sum(node.used.get(resource, 0) for node in nodes) / len(nodes)
    whole = sum(node.room.get(resource, 0) for node in nodes) / len(nodes)
    if not whole:
        return amount(resource, used) if used else ""
    colour = "green" if used > _FULL * whole else "default"
    measure = "Gi" if unit(resource) == "GiB" else ""
    return f"[{colour}]{share(used, whole)}[/]\n[dim]of {size(resource, whole)}{measure}[/dim]"


def named(pods: Sequence[str]) -> str:
    """The first few pods, and how many more there are."""
    shown = ", ".join(escape(pod) for pod in pods[:_NAMED_PODS])
    return f"{shown} and {len(pods) - _NAMED_PODS} more" if len(pods) > _NAMED_PODS else shown
