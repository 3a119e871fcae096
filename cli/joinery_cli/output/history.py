"""A history of decisions for a person at a terminal, and as a document."""

from collections.abc import Iterator, Mapping
from typing import Any

from joinery_cli.output.console import headed_table, printing, styled
from joinery_cli.output.json import DIGITS, moment_text, rounded_down
from joinery_cli.view.costs import CURRENCY
from joinery_cli.view.history import History, Moment, sentences


def print_history(history: History) -> None:
    """A line for each record, and below what all of them come to."""
    table = headed_table("Decisions")
    for heading, justify in (("moment", "left"), ("nodes", "right"), ("spot", "right"), ("$/h", "right")):
        table.add_column(heading, justify="right" if justify == "right" else "left", no_wrap=True)
    for heading in ("bound", "evict", "int."):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("decided", overflow="fold", max_width=30)
    for one in history.moments:
        table.add_row(*map(styled, _cells(one)))
    with printing() as console:
        console.print(table, "")
        for line in sentences(history):
            console.print(styled(line))


def _cells(one: Moment) -> Iterator[str]:
    yield f"{one.now:%m-%d %H:%M}"
    yield str(one.nodes)
    yield f"{one.spot / one.nodes:.0%}" if one.nodes else "-"
    yield f"{one.hourly:.4f}"
    yield "-" if one.bound is None else f"{one.bound:.4f}"
    yield str(one.evictions or "-")
    yield str(one.interrupted or "-")
    yield one.said[0]


def history_document(history: History) -> Mapping[str, Any]:
    """The History document, as ``joinery history -o json`` prints it."""
    return {
        "apiVersion": "joinery.dev/v1",
        "kind": "History",
        "currency": CURRENCY,
        "average": round(history.average, DIGITS),
        "savings": {reason: round(dollars, DIGITS) for reason, dollars in history.savings.items()},
        "evictions": history.evictions,
        "interruptions": history.interrupted,
        "moments": [_moment(moment) for moment in history.moments],
    }


def _moment(one: Moment) -> Mapping[str, Any]:
    return {
        "now": moment_text(one.now),
        "record": one.record,
        "door": one.door,
        "nodes": one.nodes,
        "spot": one.spot,
        "hourly": round(one.hourly, DIGITS),
        "unpriced": one.unpriced,
        "lowerBound": None if one.bound is None else max(0.0, rounded_down(one.bound)),
        "evictions": one.evictions,
        "interruptions": one.interrupted,
        "savings": {reason: round(dollars, DIGITS) for reason, dollars in one.savings.items()},
        "bought": round(one.bought, DIGITS),
        "launches": one.launches,
        "decided": one.said,
    }
