"""A plan for a person at a terminal: what would be bought, what fits already, what stays pending and why, what it costs.

What matters most comes last, where the eye is when a command ends. Rich decides on colours: only on a terminal.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from joinery.cli.figures import TELLING, amount, count, money, monthly, natural, share, size, unit
from joinery.cli.plan_view import Existing, Filled, Group, PlanView, Refused
from joinery.state.offerings import InstanceType

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Wider than any table: a narrow terminal wraps a line, and no figure is ever cut off.
_WIDTH = 250
_NAMED_PODS = 3
_NOTED_COST = 0.01  # $/h
_NAMED_NODES = 10
_FULL = 0.8


@contextmanager
def _printing() -> "Iterator[Console]":
    """A console that cuts nothing off; no line ends in blanks."""
    console = Console(width=_WIDTH, soft_wrap=True, highlight=False)
    with console.capture() as captured:
        yield console
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def print_plan(plan: PlanView) -> None:
    """The whole plan on standard output."""
    with _printing() as console:
        if plan.sections:
            console.print(_launches(plan), "")
        if plan.existing:
            console.print(_existing(plan.existing, plan.resources))
            _print_rest(console, plan.existing)
        _print_refused(console, plan.refused)
        _print_dropped(console, plan)
        _print_totals(console, plan)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")


# --- launches ---


def _launches(plan: PlanView) -> Table:
    """One line for launches of one instance type at one price, the dearest first; NodePools apart; a sum of several lines."""
    lines = _lines(plan)
    table = _table(f"Launch {count(len(plan.packing.launches), 'node')}")
    for heading in ("nodes", "NodePool", "instance type", "zone", "capacity"):
        table.add_column(heading, justify="right" if heading == "nodes" else "left", no_wrap=True)
    for heading in ("or any of", "pods", *(_heading(name) for name in plan.resources), "$/h each", "$/h"):
        table.add_column(heading, justify="right", no_wrap=True)
    for pool, groups in lines:
        table.add_row(*_line(pool, groups, plan.resources))
    if len(lines) > 1:
        table.add_row(*_sum(plan), style="bold")
    return table


def _lines(plan: PlanView) -> list[tuple[str, list[Group]]]:
    """NodePool and groups of one type, price and capacity type, in any zone; pools and lines in the order of what they cost."""
    alike: dict[tuple[str, str, str, float], list[Group]] = defaultdict(list)
    pools: dict[str, float] = defaultdict(float)
    for section in plan.sections:
        pools[section.node_pool] += section.price
        for group in section.groups:
            offering = group.launches[0].offering
            alike[(section.node_pool, offering.instance_type, offering.capacity_type, offering.price)].append(group)
    costs = {key: sum(group.price for group in groups) for key, groups in alike.items()}
    ranked = sorted(alike, key=lambda key: (-pools[key[0]], key[0], -costs[key], key))
    return [(key[0], alike[key]) for key in ranked]


def _line(pool: str, groups: Sequence[Group], resources: Sequence[str]) -> list[str]:
    offering = groups[0].launches[0].offering
    nodes = [node for group in groups for node in group.nodes]
    return [
        str(len(nodes)), escape(pool), f"[bold]{offering.instance_type}[/bold]", _zones(groups), _tinted(offering.capacity_type),
        _alternatives(groups), str(sum(node.pods for node in nodes)),
        *(_filled(nodes, name) for name in resources),
        f"{offering.price:.4f}", f"{offering.price * len(nodes):.4f}",
    ]  # fmt: skip


def _zones(groups: Sequence[Group]) -> str:
    """``us-east-1a``, or several that differ in their last letter as ``us-east-1a,b,f``."""
    zones = sorted({launch.offering.zone for group in groups for launch in group.launches})
    regions = {zone[:-1] for zone in zones}
    return ",".join((zones[0], *(zone[-1] for zone in zones[1:]))) if len(regions) == 1 else ",".join(zones)


def _alternatives(groups: Sequence[Group]) -> str:
    """How many instance types the requests allow."""
    numbers = {len(launch.instance_types) for group in groups for launch in group.launches}
    return str(min(numbers)) if len(numbers) == 1 else f"{min(numbers)}-{max(numbers)}"


def _sum(plan: PlanView) -> list[str]:
    launches = plan.packing.launches
    blank = [""] * len(plan.resources)
    pods = str(sum(len(launch.pods) for launch in launches))
    return [str(len(launches)), "", "", "", "", "", pods, *blank, "", f"{plan.packing.hourly:.4f}"]


def _tinted(capacity_type: str) -> str:
    return f"[cyan]{capacity_type}[/cyan]" if capacity_type == "spot" else capacity_type


def _heading(resource: str) -> str:
    return f"memory {unit(resource)}" if resource == "memory" else unit(resource)


def _filled(nodes: Sequence[Filled], resource: str) -> str:
    """How full the nodes are together, and how large one is: ``97% of 3.9``."""
    used = sum(node.used.get(resource, 0) for node in nodes) / len(nodes)
    whole = sum(node.room.get(resource, 0) for node in nodes) / len(nodes)
    if not whole:
        return amount(resource, used) if used else ""
    colour = "green" if used > _FULL * whole else "default"
    return f"[{colour}]{share(used, whole)}[/] of {size(resource, whole):>4}"


# --- existing capacity ---


def _existing(existing: Sequence[Existing], resources: Sequence[str]) -> Table:
    table = _table(f"Room on {count(len(existing), 'existing node')}")
    for heading in ("node", "NodePool", "instance type"):
        table.add_column(heading, no_wrap=True)
    for heading in ("+ pods", *(_heading(name) for name in resources)):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in _by_pods(existing)[:_NAMED_NODES]:
        name = escape(one.name) if one.placement.node else f"{escape(one.name)} [dim](on its way)[/dim]"
        fullness = (_filled([one.node], resource) for resource in resources)
        pods = _named(one.placement.pods, most=1)
        table.add_row(name, escape(one.node_pool), one.instance_type, str(one.node.pods), *fullness, pods)
    return table


def _by_pods(existing: Iterable[Existing]) -> list[Existing]:
    return sorted(existing, key=lambda one: (-one.node.pods, natural(one.name)))


def _print_rest(console: Console, existing: Sequence[Existing]) -> None:
    rest = _by_pods(existing)[_NAMED_NODES:]
    if rest:
        pods = sum(one.node.pods for one in rest)
        console.print(f"[dim]and {count(pods, 'pod')} on {count(len(rest), 'more node')}[/dim]")
    console.print()


# --- what did not go as wished ---


def _print_refused(console: Console, refused: Sequence[Refused]) -> None:
    if not refused:
        return
    pods = sum(len(one.pods) for one in refused)
    console.print(f"[bold red]Unschedulable: {count(pods, 'pod')}[/bold red]")
    for one in refused:
        console.print(f"  [bold]{count(len(one.pods), 'pod')}[/bold] {_named(one.pods)}")
        for reason in one.reasons:
            console.print(f"    • {escape(reason)}")
    console.print()


def _print_dropped(console: Console, plan: PlanView) -> None:
    if not plan.dropped:
        return
    pods = count(len(plan.packing.relaxed), "pod")
    console.print(f"[bold yellow]Preferences dropped for {pods}[/bold yellow]")
    for preference, times in plan.dropped:
        console.print(f"  {times} × {escape(preference)}")
    console.print()


# --- totals ---


def _print_totals(console: Console, plan: PlanView) -> None:
    if not plan.placed and not plan.packing.unplaced:
        console.print("Nothing is pending.")
        return
    for line in (_placed(plan), _cost(plan), _effort(plan)):
        console.print(line)


def _placed(plan: PlanView) -> str:
    packing = plan.packing
    existing = sum(len(one.pods) for one in packing.existing)
    homes = (
        (plan.placed - existing, len(packing.launches), "new node"),
        (existing, len(packing.existing), "existing node"),
    )
    taken = [(pods, count(nodes, noun)) for pods, nodes, noun in homes if pods]
    where = (
        f" on {taken[0][1]}"
        if len(taken) == 1
        else ", " + " and ".join(f"{pods:,} on {nodes}" for pods, nodes in taken)
    )
    pending = len(packing.unplaced)
    left = f"[bold red]{pending:,} unschedulable[/bold red]" if pending else "none unschedulable"
    return f"[bold]{count(plan.placed, 'pod')} placed[/bold]{where if taken else ''}; {left}"


def _cost(plan: PlanView) -> str:
    packing = plan.packing
    if not packing.launches:
        return "[bold]$0/h[/bold]: no new node"
    within = f", so at most {packing.gap:.1%} above the best possible" if packing.gap < TELLING else ""
    return (
        f"[bold]{money(packing.hourly)}/h[/bold] ({monthly(packing.hourly)}); proven bound {money(packing.lower_bound)}/h"
        f"{within}{_resilience(packing.resilience_cost)}"
    )


def _resilience(hourly: float) -> str:
    return (
        f"; smaller nodes and a choice of spot types are about {money(hourly)}/h of it" if hourly >= _NOTED_COST else ""
    )


def _effort(plan: PlanView) -> str:
    struck = ", stopped by the time limit" if plan.packing.limit_struck else ""
    return f"[dim]{plan.packing.method}, {plan.seconds:.2f} s{struck}[/dim]"


def _named(pods: Sequence[str], *, most: int = _NAMED_PODS) -> str:
    shown = ", ".join(escape(pod) for pod in pods[:most])
    return f"{shown} and {len(pods) - most} more" if len(pods) > most else shown


# --- the catalogue ---


def print_catalog(types: Iterable[InstanceType], node_class: str) -> None:
    """The types that can be bought, the cheapest first."""
    table = _table(f"Instance types for EC2NodeClass {node_class}")
    table.add_column("instance type")
    for heading in ("cpu", "memory GiB", "pods", "zones", "on-demand $/h", "spot from $/h"):
        table.add_column(heading, justify="right")
    for kind in sorted(types, key=lambda kind: (_cheapest(kind), kind.name)):
        zones = {o.zone for o in kind.offerings if o.available}
        if zones:
            table.add_row(
                kind.name, amount("cpu", kind.allocatable.get("cpu", 0)),
                amount("memory", kind.allocatable.get("memory", 0)), str(kind.allocatable.get("pods", 0)),
                str(len(zones)), _price(kind, "on-demand"), _price(kind, "spot"),
            )  # fmt: skip
    with _printing() as console:
        console.print(table)


def _cheapest(kind: InstanceType) -> float:
    return min((o.price for o in kind.offerings if o.available), default=float("inf"))


def _price(kind: InstanceType, capacity_type: str) -> str:
    prices = [o.price for o in kind.offerings if o.available and o.capacity_type == capacity_type]
    return f"{min(prices):.4f}" if prices else "-"
