"""The timeline and the bill on a terminal: aligned, in colour where there is any,
and the same bytes for the same story.
"""

from collections.abc import Sequence
from datetime import datetime

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simulator.story.bill import Item
from simulator.story.speech import tail
from simulator.story.timeline import Entry

WIDTH = 80
#: From here on an entry's subject has a column of its own, and instances have their whole names.
_ROOMY = 110
_ICONS = {
    "scene": ("§", "bold"),
    "create": ("+", "white"),
    "waits": ("…", "yellow"),
    "rings": ("♪", "cyan"),
    "packs": ("▦", "magenta"),
    "launches": ("▲", "green"),
    "joins": ("→", "blue"),
    "registers": ("◆", "blue"),
    "completes": ("●", "green"),
    "binds": ("■", "white"),
    "all run": ("▶", "bold green"),
    "warns": ("!", "bold red"),
    "retires": ("✂", "red"),
    "gives up": ("▼", "magenta"),
    "covered": ("⇄", "green"),
    "taints": ("⊘", "yellow"),
    "restarts": ("↻", "yellow"),
    "evicts": ("↷", "yellow"),
    "end": ("-", "yellow"),
    "left": ("←", "blue"),
    "stopped": ("□", "red"),
    "closed": ("✓", "green"),
    "avoids": ("∅", "red"),
    "failed": ("✗", "bold red"),
}


def console(width: int | None = None) -> Console:
    """A console as wide as the terminal, or of one fixed width where there is none."""
    terminal = Console(highlight=False, markup=False)
    if terminal.is_terminal and width is None:
        return terminal
    return Console(highlight=False, markup=False, width=width or WIDTH)


def title(out: Console, text: str, seed: int, start: datetime) -> None:
    out.print(Text(text, style="bold"))
    said = f"{start:%A, %d %B %Y}, seed {seed}; times in UTC, at the end $/h of all nodes"
    out.print(Text(said, style="dim"))
    out.print()


def line(out: Console, entry: Entry) -> None:
    """One entry; a scene gets a rule of its own."""
    if entry.word == "scene":
        out.print()
        out.print(Text(f"{entry.at:%H:%M:%S}  {entry.subject}", style="bold underline"))
        return
    icon, style = _ICONS.get(entry.word, ("·", ""))
    who, word, subject = (
        Text(entry.who, style="cyan"),
        Text(f"{icon} {entry.word}", style=style),
        Text(entry.subject, style="bold"),
    )
    columns: tuple[tuple[int, Text], ...] = ((12, who), (11, word), (15, subject))
    why = Text(entry.why)
    if out.width < _ROOMY:
        columns, why = columns[:2], Text.assemble(subject, "  ", why)
    row = Table.grid(padding=(0, 1), expand=True)
    for width in (8, *(width for width, _ in columns)):
        row.add_column(width=width, no_wrap=True)
    row.add_column(ratio=1)
    row.add_column(width=7, justify="right", no_wrap=True)
    at, hourly = Text(f"{entry.at:%H:%M:%S}", style="dim"), Text(f"{entry.hourly:.4f}", style="dim")
    row.add_row(at, *(text for _, text in columns), why, hourly)
    out.print(row)


def invoice(out: Console, items: Sequence[Item]) -> None:
    """The bill."""
    is_roomy = out.width >= _ROOMY
    table = Table(title="The bill", title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    if not is_roomy:
        table.box, table.padding = None, (0, 1, 0, 0)
    for name in ("instance", "pool", "type", "zone", "bought"):
        table.add_column(name)
    for name in ("hours", "$/h", "$"):
        table.add_column(name, justify="right")
    table.add_column("")
    for item in items:
        table.add_row(
            item.instance_id if is_roomy else tail(item.instance_id),
            item.node_pool, item.instance_type, item.zone, item.capacity_type,
            f"{item.hours:.3f}", f"{item.hourly:.4f}", f"{item.cost:.4f}", "" if item.still else "gone",
        )  # fmt: skip
    table.add_section()
    still = sum(item.hourly for item in items if item.still)
    table.add_row(
        "total",
        "",
        "",
        "",
        "",
        f"{sum(i.hours for i in items):.3f}",
        f"{still:.4f}",
        f"{sum(i.cost for i in items):.4f}",
        "",
    )
    out.print()
    out.print(table)


def leaked(out: Console, leaks: Sequence[str], causes: Sequence[str] = ()) -> None:
    """What leaked, and what may be its cause; nothing, if all is well."""
    out.print()
    if not leaks:
        out.print(
            Text(
                "What leaked: nothing. "
                "Every instance has its claim and its node, every pod has a node, no finalizer is left.",
                style="bold green",
            )
        )
        return
    out.print(Text(f"What leaked: {len(leaks)}", style="bold red"))
    for text in leaks:
        out.print(Text(f"  {text}", style="red"))
    if causes:
        out.print(Text("Its cause may be:", style="bold"))
    for text in causes:
        out.print(Text(f"  {text}"))
