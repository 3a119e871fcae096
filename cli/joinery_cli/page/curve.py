"""What the cluster costs, with what evictions count as, against how many pods are evicted for it, as a drawing.

The lower bound is of both together, so the points are too: none is below it, and the chosen one is nearly the lowest.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from joinery.decisions.disruption.decision import CurvePoint
from joinery_cli.page.text import NOTHING, Html, element, join, text
from joinery_cli.view.disruption_view import DisruptionView
from joinery_cli.view.figures import count, money

#: In pixels of a telephone about: what is wider is drawn larger, labels included.
_WIDTH, _HEIGHT = 520, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 18, 34, 48
_TICKS = 5
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class _Axes:
    """Where evictions (x) and $/h (y) are drawn."""

    most: float
    lowest: float
    highest: float

    def x(self, pods: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * pods / self.most, 1)

    def y(self, hourly: float) -> float:
        whole = self.highest - self.lowest
        return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (self.highest - hourly) / whole, 1)


def section(view: DisruptionView) -> Html:
    """The drawing, with the chosen point marked; nothing where there is nothing to choose."""
    points = sorted(view.disruptions.curve, key=lambda point: (point.pods, -point.hourly))
    if len(points) < 2 or points[-1].pods == 0:
        return NOTHING
    note = "the cheapest nodes found for a growing number of evictions, with what these count as"
    heading = element("summary", element("h2", text("Cost against evictions")), element("small", text(note)))
    drawn = element(
        "figure", _drawing(points, view.disruptions.lower_bound), element("figcaption", text(_said(points)))
    )
    return element("section", element("details", heading, drawn, class_="part", open_="open"), id="curve")


def _said(points: Sequence[CurvePoint]) -> str:
    chosen = next((point for point in points if point.is_chosen), None)
    last = points[-1]
    all_of_it = f"With {count(last.pods, 'eviction')} the nodes would cost {_priced(last)}."
    if chosen is None:
        return all_of_it
    here = f"Chosen: {count(chosen.pods, 'eviction')}, {_priced(chosen)}."
    return here if chosen is last else f"{here} {all_of_it}"


def _total(point: CurvePoint) -> float:
    return point.hourly + point.moves


def _priced(point: CurvePoint) -> str:
    """``$0.3477/h, and $0.3677/h with what they count as``."""
    with_moves = f", and {money(_total(point))}/h with what they count as" if point.moves else ""
    return f"{money(point.hourly)}/h{with_moves}"


def _drawing(points: Sequence[CurvePoint], bound: float) -> Html:
    prices = [_total(point) for point in points] + ([bound] if bound > 0 else [])
    lowest, highest = min(prices), max(prices)
    margin = (highest - lowest) * 0.06 or highest * 0.06 or 1.0
    axes = _Axes(most=points[-1].pods, lowest=max(0.0, lowest - margin), highest=highest + margin)
    parts = [*_grid(axes), _line(points, axes), *_dots(points, axes)]
    if bound > 0:
        parts.insert(-len(points), _bound(bound, axes))
    label = f"A curve from {count(points[0].pods, 'eviction')} to {count(points[-1].pods, 'eviction')}. {_said(points)}"
    return element("svg", join(parts), viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label, class_="curve")


def _grid(axes: _Axes) -> Iterator[Html]:
    bottom = _HEIGHT - _BOTTOM
    yield _label(8, 16, "$/h of nodes, and of what evictions count as", "start")
    for hourly, said in ticks(axes.lowest, axes.highest):
        y = axes.y(hourly)
        yield _straight(_LEFT, y, _WIDTH - _RIGHT, y, "grid")
        yield _label(_LEFT - 8, y + 4, f"${said}/h", "end")
    for pods, _ in ticks(0, axes.most):
        if pods == int(pods):
            yield _label(axes.x(pods), bottom + 20, f"{int(pods):,}", "middle")
    yield _label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 4, "evictions", "middle")


def ticks(low: float, high: float) -> Iterator[tuple[float, str]]:
    """About five round numbers within the range, and how they are written."""
    rough = (high - low) / _TICKS
    exponent = math.floor(math.log10(rough))
    step = next(10.0**exponent * factor for factor in _STEPS if 10.0**exponent * factor >= rough)
    decimals = max(0, -math.floor(math.log10(step)) + (step / 10.0**exponent == 2.5))
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield number * step, f"{number * step:,.{decimals}f}"


def _line(points: Sequence[CurvePoint], axes: _Axes) -> Html:
    corners = "L".join(f"{axes.x(point.pods)} {axes.y(_total(point))}" for point in points)
    return Html(f'<path class="line" d="M{corners}"/>')


def _dots(points: Iterable[CurvePoint], axes: _Axes) -> Iterator[Html]:
    for point in points:
        kind, radius = ("dot chosen", 6) if point.is_chosen else ("dot", 3)
        said = f"{count(point.pods, 'eviction')}: {_priced(point)}"
        yield Html(
            f'<circle class="{kind}" cx="{axes.x(point.pods)}" cy="{axes.y(_total(point))}" r="{radius}">'
            f"<title>{text(said)}</title></circle>"
        )


def _bound(bound: float, axes: _Axes) -> Html:
    y = axes.y(bound)
    # The line begins high on the left, so the words have room there.
    label = _label(_LEFT + 6, y - 5, f"proven bound, moves included: {money(bound)}/h", "start")
    return join((_straight(_LEFT, y, _WIDTH - _RIGHT, y, "proven"), label))


def _straight(x: float, y: float, to_x: float, to_y: float, kind: str) -> Html:
    return Html(f'<path class="{kind}" d="M{x} {y}L{to_x} {to_y}"/>')


def _label(x: float, y: float, said: str, anchor: str) -> Html:
    return Html(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{text(said)}</text>')
