"""A history of decisions as one page: cost and bound, nodes, spot, evictions, interruptions and savings over time, and
every decision as a point that leads to what was decided.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from joinery_cli.page.curve import ticks
from joinery_cli.page.rendering import Figure, Frame, rendered
from joinery_cli.page.text import Html, element, join, text
from joinery_cli.prices import Prices
from joinery_cli.view.figures import count, money, monthly
from joinery_cli.view.history import History, Moment, sentences

#: In pixels of a telephone about: what is wider is drawn larger, labels included.
_WIDTH, _HEIGHT = 360, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 26
#: Classes of the style sheet, for the reasons in the order of what they save.
_REASONS = ("one", "two", "three", "four", "five")


@dataclass(frozen=True)
class _Axes:
    """From the first moment to the last (x), and from nothing to the highest value (y)."""

    first: datetime
    last: datetime
    highest: float

    def x(self, moment: datetime) -> float:
        whole = (self.last - self.first).total_seconds() or 1.0
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * (moment - self.first).total_seconds() / whole, 1)

    def y(self, value: float) -> float:
        return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value / self.highest), 1)


Value = Callable[[Moment], float | None]


def print_page(history: History) -> None:
    """The page, and nothing else, on standard output."""
    sys.stdout.write(page(history))


def page(history: History) -> str:
    """The whole page. One history gives one page, byte for byte."""
    last = history.moments[-1]
    frame = Frame(
        title=f"Joinery history: {count(len(history.moments), 'decision')}",
        kind="history, the last decision",
        now=last.now,
        headline=f"{next(sentences(history))}.",
        prices=Prices(region="", source="the records"),
        notices=(),
        workloads=(),
        figures=tuple(_figures(history)),
        explanations=(),
        explained="",
        footer=(
            "Each moment is as its record has it, before anything of what it decided was done.",
            "Evictions and savings are those that were decided; a command that was decided again counts once.",
            "The same for scripts: joinery history -o json.",
        ),
    )
    return rendered(
        "history.html", frame, "history.css", history=history, sentences=list(sentences(history))[1:],
        panels=_panels(history), reasons=list(zip(history.savings, _REASONS, strict=False)),
    )  # fmt: skip


def _figures(history: History) -> Iterator[Figure]:
    last = history.moments[-1]
    yield Figure("average", "On average", f"{money(history.average)}/h", monthly(history.average))
    yield Figure("hourly", "At last", f"{money(last.hourly)}/h", count(last.nodes, "node"))
    spot = f"{last.spot / last.nodes:.0%}" if last.nodes else "0%"
    yield Figure("spot", "Spot", spot, f"{last.spot:,} of {count(last.nodes, 'node')}")
    saved = sum(history.savings.values())
    kind = "good" if saved > 0 else ""
    yield Figure("savings", "Savings", f"{money(saved)}/h", "decided", kind=kind)
    yield Figure("evictions", "Evictions", f"{history.evictions:,}", "decided")
    yield Figure("interruptions", "Interruptions", f"{history.interrupted:,}", "nodes that EC2 took")


# --- drawings ---


def _panels(history: History) -> Html:
    lines: tuple[tuple[str, str, tuple[tuple[str, Value], ...]], ...] = (
        (
            "Cost and proven bound",
            "$/h",
            (("line", lambda one: one.hourly), ("proven", lambda one: one.bound)),
        ),
        ("Nodes", "", (("line", lambda one: one.nodes), ("spot", lambda one: one.spot))),
        ("Spot share", "%", (("line", lambda one: 100 * one.spot / one.nodes if one.nodes else None),)),
    )
    bars: tuple[tuple[str, Value], ...] = (
        ("Evictions decided", lambda one: one.evictions),
        ("Interruptions", lambda one: one.interrupted),
    )
    drawn = [_lines(history, title, unit, series) for title, unit, series in lines]
    drawn += [_bars(history, title, "", [("one", value)]) for title, value in bars]
    by_reason: list[tuple[str, Value]] = [
        (kind, lambda one, reason=reason: max(0.0, one.savings.get(reason, 0.0)))  # type: ignore[misc]
        for reason, kind in zip(history.savings, _REASONS, strict=False)
    ]
    return join([*drawn, _bars(history, "Savings decided, by reason", "$/h", by_reason)])


def _lines(history: History, title: str, unit: str, series: Sequence[tuple[str, Value]]) -> Html:
    """What a decision changes is there soon after it, so a line goes up or down at the moment itself."""
    values = [value(one) or 0.0 for _, value in series for one in history.moments]
    axes = _axes(history, max(values))
    paths = [_path(history, axes, kind, value) for kind, value in series]
    first = series[0][1]
    dots = [
        _linked(
            number,
            one,
            Html(f'<circle class="dot {text(one.door)}" cx="{axes.x(one.now)}" cy="{axes.y(value)}" r="4"/>'),
        )
        for number, one in enumerate(history.moments, 1)
        if (value := first(one)) is not None
    ]
    return _panel(title, axes, unit, [*paths, *dots])


def _path(history: History, axes: _Axes, kind: str, value: Value) -> Html:
    points = [(axes.x(one.now), axes.y(at)) for one in history.moments if (at := value(one)) is not None]
    if not points:
        return Html("")
    steps = [f"M{points[0][0]} {points[0][1]}", *(f"V{y}H{x}" for x, y in points[1:])]
    return Html(f'<path class="{kind}" d="{"".join(steps)}"/>')


def _bars(history: History, title: str, unit: str, series: Sequence[tuple[str, Value]]) -> Html:
    """One on the other, at each moment that has any."""
    sums = [sum(value(one) or 0.0 for _, value in series) for one in history.moments]
    axes = _axes(history, max(sums, default=0.0))
    parts: list[Html] = []
    for number, one in enumerate(history.moments, 1):
        below = 0.0
        for kind, value in series:
            high = value(one) or 0.0
            if high > 0:
                top, bottom = axes.y(below + high), axes.y(below)
                box = f'x="{axes.x(one.now) - 3:.1f}" y="{top}" width="6" height="{max(1.0, bottom - top):.1f}"'
                parts.append(_linked(number, one, Html(f'<rect class="{kind}" {box}/>')))
            below += high
    return _panel(title, axes, unit, parts)


def _linked(number: int, one: Moment, shape: Html) -> Html:
    said = f"{one.now:%Y-%m-%d %H:%M:%S}Z, {one.door}: {one.said[0]}"
    return Html(f'<a href="#decision-{number}" aria-label="{text(said)}"><title>{text(said)}</title>{shape}</a>')


def _axes(history: History, highest: float) -> _Axes:
    return _Axes(history.moments[0].now, history.moments[-1].now, highest * 1.08 if highest > 0 else 1.0)


def _panel(title: str, axes: _Axes, unit: str, parts: Sequence[Html]) -> Html:
    grid = []
    for value, said in ticks(0.0, axes.highest):
        if not unit and value != int(value):
            continue
        y = axes.y(value)
        grid.append(Html(f'<path class="grid" d="M{_LEFT} {y}H{_WIDTH - _RIGHT}"/>'))
        label = f"${said}" if unit == "$/h" else f"{value:,.0f}{unit}"
        grid.append(Html(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{text(label)}</text>'))
    is_short = (axes.last - axes.first).days < 2
    for moment, anchor in ((axes.first, "start"), (axes.last, "end")):
        said = f"{moment:%H:%M}" if is_short else f"{moment:%m-%d %H:%M}"
        grid.append(Html(f'<text x="{axes.x(moment)}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{said}</text>'))
    drawn = element(
        "svg", join([*grid, *parts]), viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="group", aria_label=title, class_="curve"
    )
    return element("figure", element("figcaption", text(f"{title}{', $/h' if unit == '$/h' else ''}")), drawn)
