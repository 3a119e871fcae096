"""The days' figures as a table."""

import statistics
from collections.abc import Sequence
from typing import Any

from rich.table import Table

_COLUMNS = (
    ("$", "dollars", ".2f"),
    ("evictions", "evictions", ".0f"),
    ("a pod-day", "evictionsAPodDay", ".2f"),
    ("again in 1 h", "evictedAgainWithinAnHour", ".0f"),
    ("job hours lost", "lostJobHours", ".1f"),
    ("pod hours waited", "waitingPodHours", ".1f"),
    ("nodes bought", "launched", ".0f"),
    ("gone in 1 h", "retiredWithinAnHour", ".0f"),
    ("before they paid", "retiredBeforeTheyPaid", ".0f"),
)


def table(results: Sequence[dict[str, Any]]) -> Table:
    """A row for each day and rule; with several days, also the mean and the least and most of each rule."""
    shown = Table(box=None, header_style="dim", pad_edge=False)
    shown.add_column("day")
    shown.add_column("rule")
    for heading, *_ in _COLUMNS:
        shown.add_column(heading, justify="right")
    for result in results:
        shown.add_row(result["day"], result["rule"], *(format(result[key], shape) for _, key, shape in _COLUMNS))
    rules = list(dict.fromkeys(result["rule"] for result in results))
    if len(results) > len(rules):
        for rule in rules:
            mine = [result for result in results if result["rule"] == rule]
            shown.add_row("mean (least to most)", rule, *(_spread(mine, key, shape) for _, key, shape in _COLUMNS))
    return shown


def _spread(results: Sequence[dict[str, Any]], key: str, shape: str) -> str:
    values = [result[key] for result in results]
    return f"{format(statistics.mean(values), shape)} ({format(min(values), shape)}-{format(max(values), shape)})"
