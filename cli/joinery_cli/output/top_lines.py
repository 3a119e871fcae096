"""``joinery top`` as lines of a terminal, from 80 columns on: a pure function of what is shown and how.

The screen and the printed table have the same lines. A name that is too long is cut in its middle, because names differ
at their ends; a sentence is cut at its end, and whole where its node is selected.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from joinery_cli.notices import Severity, UserNotice
from joinery_cli.output.console import printing
from joinery_cli.output.visible import visible
from joinery_cli.output.wide import top_table
from joinery_cli.view.figures import age, count, money, natural
from joinery_cli.view.top_view import Phase, TopNext, TopNode, TopPods, TopPool, TopView, fullness

#: From so many columns on, nodes have a bar.
_WIDE = 100
#: Columns of the sums, and of sentences that are printed whole.
_SUMMARY_WIDTH, _UNCUT = 120, 100_000
_BAR = 10
_MARKS = " ▏▎▍▌▋▊▉█"
_PHASES = {
    Phase.LAUNCHING: "yellow",
    Phase.BOOTING: "yellow",
    Phase.STAYS: "dim",
    Phase.GOES: "magenta",
    Phase.LEAVING: "red",
}
_CAPACITY_TYPES = {"on-demand": "od", "reserved": "res"}

#: The heading of notices, which is folded at first.
NOTICES = "notices"
#: By what nodes can be sorted, in the order in which a key goes through them.
SORTS: Mapping[str, Callable[[TopNode], Any]] = {
    "price": lambda node: (-(node.price or 0.0), natural(node.name)),
    "fullness": lambda node: (node.drawn.use, natural(node.name)),
    "age": lambda node: (-(node.age or timedelta()), natural(node.name)),
    "state": lambda node: (list(_PHASES).index(node.phase) if node.phase is not Phase.STAYS else 9, node.code),
    "name": lambda node: natural(node.name),
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """How it is looked at. ``width``: columns. ``wanted``: what a line must contain; all where it is empty. ``folded``:
    keys of headings whose lines are hidden.
    """

    width: int = 80
    sort: str = "price"
    wanted: str = ""
    folded: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Line:
    """``key``: what it is of, the same from one refresh to the next. ``node``: its name, of a node's line. ``whole``:
    what it says without anything cut off, where that is something else.
    """

    key: str
    text: Text
    node: str = ""
    whole: str = ""
    is_heading: bool = False


# --- above the lines ---


def summary(view: TopView, width: int, state: str = "") -> Text:
    """What all of it comes to, in three lines. ``state``: a word about the screen."""
    nodes, waiting = count(len(view.nodes), "node"), count(view.waiting, "pod")
    wait = "waits" if view.waiting == 1 else "wait"
    spot = f"{view.spot / len(view.nodes):.0%} spot" if view.nodes else "no spot"
    pods = f"{waiting} {wait}" + (f", {view.homeless:,} without a place" if view.homeless else "")
    pods += f"; room for {view.room:,} is lacking" if view.room else ""
    pods += f", {view.homeless_room:,} without a place" if view.homeless_room else ""
    moment = f"{view.now:%Y-%m-%d %H:%M:%S}Z"
    first = _spread(view.source, f"[{state}] {moment}" if state else moment, width)
    kept = f", {money(view.seen.headroom.total)}/h of it headroom" if view.seen.headroom else ""
    second = _cut(f"{nodes}, {money(view.hourly)}/h{kept}; {spot}; {pods}", width)
    bars = [_gauge(name, fullness(view.nodes, name)) for name in ("cpu", "memory")]
    third = Text("  ").join(bars)
    room = width - cell_len(third.plain) - 2
    if view.seen.disruptions.lower_bound > 0 and room > len("bound $0.0000/h"):
        third.append("  ").append(_cut(_bound(view), room), style="green")
    return Text("\n").join((Text(first, style="bold"), Text(second), third))


def _bound(view: TopView) -> str:
    """How near the nodes' price is to what is proven, in few words."""
    decision = view.seen.disruptions
    savings = f", saves {money(view.seen.savings)}/h" if view.seen.savings > 0 else ""
    return f"bound {money(decision.lower_bound)}/h{savings}"


def _gauge(name: str, full: float) -> Text:
    return Text(f"{name} ").append_text(_bar(full, _BAR)).append(f" {full:4.0%}")


def _bar(full: float, width: int) -> Text:
    eighths = round(min(max(full, 0.0), 1.0) * width * 8)
    whole, rest = divmod(eighths, 8)
    filled = "█" * whole + (_MARKS[rest] if rest else "")
    return Text(filled, style="green" if full > 0.8 else "yellow" if full > 0.5 else "red").append(
        "·" * (width - len(filled)), style="dim"
    )


# --- the lines ---


def lines(view: TopView, look: Look) -> Iterator[Line]:
    """All lines below the summary: pods that wait, what comes next, the nodes by NodePool, what was found odd."""
    yield from _section("pods", _pods_heading(view), [_pods(one, look) for one in view.pending], look)
    yield from _section("next", "Next", [_next(one, view.now, look) for one in view.coming], look)
    for pool in view.pools:
        nodes = sorted(pool.nodes, key=SORTS[look.sort])
        yield from _section(f"pool/{pool.name}", _pool(pool, look), [_node(one, view.now, look) for one in nodes], look)
    notices = [_notice(notice, look) for notice in view.seen.notices]
    yield from _section(NOTICES, f"What to know: {len(notices)}", notices, look)


def _section(key: str, heading: str, inside: Sequence[Line], look: Look) -> Iterator[Line]:
    """A heading and its lines; nothing where none is wanted."""
    wanted = [line for line in inside if _is_wanted(line, heading, look.wanted)]
    if not wanted:
        return
    mark = "▸" if key in look.folded else "▾"
    yield Line(key, Text(_cut(f"{mark} {visible(heading)}", look.width), style="bold"), is_heading=True)
    if key not in look.folded:
        yield from wanted


def _is_wanted(line: Line, heading: str, wanted: str) -> bool:
    words = wanted.lower().split()
    said = f"{heading} {line.key} {line.text.plain}".lower()
    return all(word in said for word in words)


def _pods_heading(view: TopView) -> str:
    room = f", and room for {view.room:,} more" if view.room else ""
    return f"Pods that wait: {view.waiting:,}{room}"


def _pool(pool: TopPool, look: Look) -> str:
    name = f"NodePool {pool.name}" if pool.name else "Nodes of no NodePool"
    full = f"cpu {pool.fullness('cpu'):.0%}, memory {pool.fullness('memory'):.0%}"
    lacking = pool.share.lacking if pool.share else 0
    short = f"; lacks {lacking} on demand" if lacking else ""
    sort = f"; by {look.sort}" if look.sort != "price" else ""
    return f"{name}: {count(len(pool.nodes), 'node')}, {money(pool.hourly)}/h, {full}{short}{sort}"


def _node(node: TopNode, now: datetime, look: Look) -> Line:
    drawn, is_wide = node.drawn, look.width >= _WIDE
    room = look.width - (2 + 12 + 1 + 4 + 1 + 4 + 1 + 6 + 1 + 4 + 1 + 3 + 2) - (7 if is_wide else 0)
    name_width = min(max(15, room // 3), 34)
    text = Text("  ")
    text.append(middle(node.name.partition(".")[0], name_width).ljust(name_width) + " ")
    text.append(middle(drawn.instance_type or "?", 12).ljust(13))
    text.append(_zone(drawn.zone).ljust(5))
    capacity_type = _CAPACITY_TYPES.get(drawn.capacity_type, drawn.capacity_type)
    text.append(f"{capacity_type[:4]:<5}", style="cyan" if drawn.capacity_type == "spot" else "")
    text.append(f"{_price(node.price):>6} ")
    if is_wide:
        text.append_text(_bar(drawn.use, 6)).append(" ")
    text.append(f"{drawn.use:4.0%} ")
    text.append(f"{age(node.age):>3} ")
    text.append(_cut(_said(node, now), max(0, look.width - cell_len(text.plain))), _PHASES[node.phase])
    return Line(f"node/{node.name}", text, node=node.name)


def _said(node: TopNode, now: datetime) -> str:
    """``goes (Empty): its node runs no pods``, ``ConsolidateAfter 4m: …``; of a node without a rule the sentence."""
    left = f" {age(node.until - now)}" if node.until and node.until > now else ""
    match node.phase:
        case Phase.STAYS:
            return f"{node.code}{left}: {node.why}" if node.code else node.why
        case Phase.GOES:
            return f"goes ({node.code}): {node.why}"
        case phase:
            return f"{phase.value}: {node.why}"


def _pods(one: TopPods, look: Look) -> Line:
    waiting = f"{age(one.waiting):>4} "
    text = Text(f"  {len(one.pods):>4} ").append(waiting, style="dim")
    width = min(max(20, look.width // 4), 44)
    text.append(middle(one.owner, width).ljust(width) + " ")
    said = f"→ {one.home}" if one.home else "; ".join(one.reasons)
    text.append(_cut(said, max(0, look.width - cell_len(text.plain))), style="" if one.home else "red")
    homeless = [f"  • {reason}" for reason in one.reasons] or [f"  {said}"]
    whole = "\n".join([f"{count(len(one.pods), 'pod')}: {', '.join(one.pods)}", *homeless])
    return Line(f"pods/{one.owner}/{one.home}/{one.pods[0]}", text, whole=whole)


def _next(one: TopNext, now: datetime, look: Look) -> Line:
    when = "now" if one.at is None else "due" if one.at <= now else f"in {age(one.at - now)}"
    text = Text(f"  {when:<7}", style="")
    said = f"{visible(one.subject)}: {visible(one.what)}"
    return Line(
        f"next/{one.subject}/{one.what}", text.append(_cut(said, look.width - cell_len(text.plain))), whole=said
    )


def print_view(view: TopView) -> None:
    """All of it on standard output, as wide as the terminal is."""
    console = Console(highlight=False, emoji=False, soft_wrap=True)
    look = Look(width=max(80, console.width), folded=frozenset({NOTICES}))
    console.print(summary(view, look.width))
    for line in lines(view, look):
        console.print(line.text)


def print_wide(view: TopView) -> None:
    """All of it, whole: sums, pods that wait, what comes next, what to know; and of each node every column."""
    with printing(is_wide=True) as console:
        console.print(summary(view, _SUMMARY_WIDTH))
        for line in lines(view, Look(width=_UNCUT)):
            if not line.key.startswith(("pool/", "node/")):
                console.print(line.text)
        if view.nodes:
            console.print(top_table(view))


def _notice(notice: UserNotice, look: Look) -> Line:
    text = Text(
        f"  {_cut(str(notice), look.width - 2)}", style="yellow" if notice.severity is Severity.WARNING else "dim"
    )
    return Line(f"notice/{notice}", text, whole=str(notice))


# --- words of few letters ---


def middle(name: str, width: int) -> str:
    """A name in so many columns, cut in its middle where it is longer."""
    shown = visible(name)
    if cell_len(shown) <= width:
        return shown
    head = (width - 1) // 2
    return f"{shown[:head]}…{shown[len(shown) - (width - 1 - head) :]}"


def _cut(said: str, width: int) -> str:
    shown = visible(said)
    return shown if cell_len(shown) <= width else f"{shown[: max(0, width - 1)]}…"


def _zone(zone: str) -> str:
    """``1a`` of us-east-1a: what a cluster's zones differ in."""
    return zone.rpartition("-")[2][:4] or "-"


def _price(price: float | None) -> str:
    return "-" if price is None else f"{price:.4f}" if price < 10 else f"{price:.2f}"


def _spread(left: str, right: str, width: int) -> str:
    """Both at their ends of the line."""
    room = width - len(right) - 1
    return f"{_cut(left, room).ljust(room)} {right}"
