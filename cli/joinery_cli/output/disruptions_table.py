"""A decision about nodes for a person at a terminal: command by command what goes and why, what is bought, where pods
move; what stays; what it saves, what it counts as, and how near that is to the best.

What matters most comes last, where the eye is when a command ends.
"""

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from joinery_cli.explained_nodes import lines
from joinery_cli.notices import some_of
from joinery_cli.output.console import (
    headed_table,
    print_explanation,
    print_prices,
    print_wrapped,
    printing,
    styled,
)
from joinery_cli.view.disruption_view import CommandView, DisruptionView, DrawnNode, Fate, StayingGroup
from joinery_cli.view.disruption_words import headline, moves, result, rule, totals
from joinery_cli.view.figures import count, money, natural, share

#: So many commands are printed node by node; each of the others in one line.
_SHOWN_COMMANDS = 20
_SHOWN_LINES = 8
_SHOWN_MESSAGES = 3


def print_disruptions(view: DisruptionView, *, with_pods: bool = False, is_wide: bool = False) -> None:
    """The whole decision on standard output.

    ``with_pods``: all commands with all their nodes, and a line for every pod that moves. ``is_wide``: a line for every
    node, with all columns.
    """
    with printing(is_wide=is_wide) as console:
        if is_wide:
            from joinery_cli.output.wide import nodes_table

            console.print(nodes_table(view), "")
        _print_commands(console, view.commands, is_whole=with_pods)
        if with_pods and view.evicted:
            console.print(_pods(view), "")
        _print_staying(console, view.staying)
        _print_totals(console, view)
        for explanation in view.explanations:
            print_explanation(console, lines(explanation))


# --- commands ---


def _print_commands(console: Console, commands: Sequence[CommandView], *, is_whole: bool) -> None:
    if not commands:
        return
    console.print(styled((f"What goes and what comes: {count(len(commands), 'command')}, in this order", "bold")))
    shown = commands if is_whole else commands[:_SHOWN_COMMANDS]
    for view in shown:
        _print_command(console, view, is_whole=is_whole)
    rest = commands[len(shown) :]
    if rest:
        going = sum(len(view.retired) for view in rest)
        coming = sum(len(view.bought) for view in rest)
        bought = f", {coming:,} bought" if coming else ""
        saved = money(sum(view.command.savings for view in rest))
        more = f"and {count(len(rest), 'more command')}: {count(going, 'node')} retired{bought}; saves {saved}/h"
        console.print(styled((f"{more}; --pods lists them", "dim")))
    console.print()


def _print_command(console: Console, view: CommandView, *, is_whole: bool) -> None:
    heading = f"{view.number}  {view.command.reason.value}: {result(view)}"
    console.print(styled((heading, "bold")))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for _ in range(5):
        table.add_column(no_wrap=True)
    for _ in range(3):
        table.add_column(no_wrap=True, justify="right")
    for sign, colour, nodes in (("-", "red", view.retired), ("+", "green", view.bought)):
        lines = [(node,) for node in nodes] if is_whole else _lines(nodes)
        shown = lines if is_whole else lines[:_SHOWN_LINES]
        for alike in shown:
            table.add_row(styled("  ", (sign, colour)), *_line(alike))
        rest = [node for alike in lines[len(shown) :] for node in alike]
        if rest:
            price = sum(node.price or 0.0 for node in rest)
            more = styled((f"{len(rest):,} more", "dim"))
            table.add_row(styled("  ", (sign, colour)), more, "", "", "", "", "", f"{price:.4f}")
    console.print(table)
    for sentence in filter(None, (view.command.message, moves(view))):
        print_wrapped(console, sentence, first="     ")


def _lines(nodes: Sequence[DrawnNode]) -> list[tuple[DrawnNode, ...]]:
    """Nodes that share a line. New ones of one kind do: their names are made for this decision and say nothing."""
    alike: dict[tuple[str, ...], list[DrawnNode]] = defaultdict(list)
    for node in nodes:
        own = "" if node.fate is Fate.BOUGHT else node.name
        alike[own, node.instance_type, str(node.alternatives), node.zone, node.capacity_type].append(node)
    return [tuple(group) for group in alike.values()]


def _line(alike: Sequence[DrawnNode]) -> list[Text]:
    """The figures are of all of them: their pods, how full they are on average, and what they cost together."""
    node = alike[0]
    others = f" +{node.alternatives}" if node.alternatives else ""
    use = sum(one.use for one in alike) / len(alike)
    return [
        styled(node.name if len(alike) == 1 else count(len(alike), "node")),
        styled(node.instance_type, (others, "dim")),
        styled((node.zone.removeprefix("any of "), "dim")),
        styled((node.capacity_type, "dim")),
        styled(count(sum(one.filled.pods for one in alike), "pod")),
        styled(share(use, 1.0)),
        styled("-" if node.price is None else f"{sum(one.price or 0.0 for one in alike):.4f}"),
    ]


# --- where every pod goes ---


def _pods(view: DisruptionView) -> Table:
    """A line for each pod that moves; what may be searched for stands in one line."""
    lines = [
        (
            pod,
            route.source or "-",
            route.target,
            "bought" if route.is_target_new else "there already",
            str(command.number),
        )
        for command in view.commands
        for route in command.routes
        for pod in route.pods
    ]
    table = headed_table("Where every pod goes")
    for name in ("pod", "from", "to", "which is", "command"):
        table.add_column(name, no_wrap=True, justify="right" if name == "command" else "left")
    for line in sorted(lines, key=lambda entry: natural(entry[0])):
        table.add_row(*map(styled, line))
    return table


# --- what stays ---


def _print_staying(console: Console, groups: Sequence[StayingGroup]) -> None:
    if not groups:
        return
    nodes = {name for group in groups for name in group.nodes}
    console.print(styled((f"Staying: {count(len(nodes), 'node')}", "bold")))
    for group in groups:
        line = f"{count(len(group.nodes), 'node')}, {rule(group.code)}: {some_of(group.nodes)}"
        print_wrapped(console, line, first="  ", further="      ")
        for message, names in group.messages[:_SHOWN_MESSAGES]:
            times = f" ({count(len(names), 'node')})" if len(group.messages) > 1 and len(names) > 1 else ""
            print_wrapped(console, f"{message}{times}", first="    • ")
        rest = len(group.messages) - _SHOWN_MESSAGES
        if rest > 0:
            console.print(styled((f"    and {count(rest, 'more reason')}; --explain NODE prints a node's own", "dim")))
    console.print()


# --- totals ---


def _print_totals(console: Console, view: DisruptionView) -> None:
    console.print(styled((headline(view), "bold")))
    for sentence in totals(view):
        print_wrapped(console, sentence, further="  ")
    print_prices(console, view.prices)
    struck = ", stopped by the time limit" if view.disruptions.limit_struck else ""
    console.print(styled((f"Decided in {view.seconds:.2f} s{struck}", "dim")))
