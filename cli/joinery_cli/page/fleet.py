"""All nodes at a glance, before a decision and after it: each a bar as wide as its price and as full as it is used.

So the area of a panel is the bill, and what is not filled is paid for and not used. Both panels have one scale.
"""

from collections.abc import Iterable, Sequence

from joinery_cli.page.text import NOTHING, Html, element, join, text
from joinery_cli.view.disruption_view import DisruptionView, DrawnNode, Fate
from joinery_cli.view.figures import count, money, share

#: How wide a panel is about, in pixels, and how many nodes share a line of it.
_WIDTH, _NODES_A_LINE, _MOST_LINES = 420, 30, 14
#: More nodes than that are drawn less high.
_DENSE = 300
#: A node that costs next to nothing must still be seen.
_NARROWEST = 3
#: In the row of a command.
_PIXELS_A_NODE = 26

_FATES = {
    Fate.STAYS: "stays as it is",
    Fate.RECEIVES: "stays, and pods move to it",
    Fate.GOES: "goes",
    Fate.BOUGHT: "is bought",
}


def section(view: DisruptionView) -> Html:
    """Two panels side by side, and what their colours mean."""
    if not view.before:
        return NOTHING
    pixels = _pixels_a_dollar(view.before)
    panels = (
        _panel("Before", view.before, view.disruptions.before, pixels),
        _panel("After", view.after, view.disruptions.after, pixels),
    )
    shown = {node.fate for node in (*view.before, *view.after)}
    keys = (
        element("span", element("i", class_=f"bit {fate.value}", style="width:12px;--u:70"), text(f" {said}"))
        for fate, said in _FATES.items()
        if fate in shown
    )
    note = "A bar is a node: as wide as its price, as full as the scarcer of its CPU and memory is used."
    heading = element("summary", element("h2", text("Before and after")), element("small", text(note)))
    inside = join((element("div", *panels, class_="panels"), element("p", *keys, class_="fates soft")))
    return element("section", element("details", heading, inside, class_="part", open_="open"), id="fleet")


def _panel(name: str, nodes: Sequence[DrawnNode], hourly: float, pixels: float) -> Html:
    said = f"{name}: {count(len(nodes), 'node')}, {money(hourly)}/h{_used(nodes)}"
    kind = "fleet dense" if len(nodes) > _DENSE else "fleet"
    drawn = element("div", strip(nodes, pixels), class_=kind, role="img", aria_label=said)
    return element("div", element("h3", text(said)), drawn, class_="panel")


def _used(nodes: Iterable[DrawnNode]) -> str:
    """How much of what is paid is used."""
    priced = [node for node in nodes if node.price]
    paid = sum(node.price or 0.0 for node in priced)
    used = sum((node.price or 0.0) * min(node.use, 1.0) for node in priced)
    return f", {share(used, paid)} of it used" if paid else ""


def strip(nodes: Iterable[DrawnNode], pixels: float) -> Html:
    """Nodes as bars beside each other. ``pixels``: how wide a dollar an hour is."""
    return Html("".join(_bit(node, pixels) for node in nodes))


def command_scale(view: DisruptionView) -> float:
    """Pixels a dollar an hour in the rows of commands: a node of the mean price is as wide in all of them."""
    prices = [node.price for node in (*view.retired, *view.bought) if node.price]
    return _PIXELS_A_NODE * len(prices) / sum(prices) if prices else 1.0


def _bit(node: DrawnNode, pixels: float) -> Html:
    width = max(_NARROWEST, round((node.price or 0.0) * pixels, 1))
    price = "price unknown" if node.price is None else f"{money(node.price)}/h"
    what = " ".join(filter(None, (node.instance_type, node.capacity_type, node.zone)))
    used_of = f"{count(node.filled.pods, 'pod')}, {share(node.use, 1.0)} used"
    said = f"{node.name}: {what}, {price}, {used_of}, {_FATES[node.fate]}"
    used = min(100, round(100 * node.use))
    kind = f"bit {node.fate.value}" + ("" if node.price is not None else " unpriced")
    return Html(f'<i class="{kind}" style="width:{width:g}px;--u:{used}" title="{text(said)}"></i>')


def _pixels_a_dollar(nodes: Sequence[DrawnNode]) -> float:
    lines = min(_MOST_LINES, -(-len(nodes) // _NODES_A_LINE))
    paid = sum(node.price or 0.0 for node in nodes)
    return _WIDTH * lines / paid if paid else 1.0
