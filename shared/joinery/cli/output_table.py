"""A plan for a person: what would be bought, what fits already, what stays pending and why, what it costs.

Rich decides on colours: only on a terminal.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from joinery.apis.quantity import Resources
from joinery.scheduling.packing import ExistingPlacement, Launch, Packing, Relaxed, Unplaced
from joinery.state.offerings import InstanceType

_WIDTH = 120
_NAMED_PODS = 3
_GIB = 2**30

Room = Mapping[tuple[str, str], Resources]
"""NodePool and instance type to what such a node holds."""


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def print_plan(packing: Packing, *, room: Room, seconds: float) -> None:
    """The whole plan on standard output."""
    console = _console()
    if packing.launches:
        console.print(_launches(packing.launches, room), "")
    if packing.existing:
        console.print(_existing(packing.existing), "")
    _print_unplaced(console, packing.unplaced)
    _print_relaxed(console, packing.relaxed)
    _print_totals(console, packing, seconds)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")


def _launches(launches: Sequence[Launch], room: Room) -> Table:
    """One line for launches that are alike, the dearest first."""
    alike: dict[tuple[str, str, str, str, float], list[Launch]] = defaultdict(list)
    for launch in launches:
        o = launch.offering
        alike[(launch.node_pool, o.instance_type, o.zone, o.capacity_type, o.price)].append(launch)
    table = _table(f"Launch {_count(len(launches), 'node')}")
    for heading in ("nodes", "NodePool", "instance type", "zone", "capacity"):
        table.add_column(heading, justify="right" if heading == "nodes" else "left", no_wrap=True)
    for heading in ("pods", "cpu", "memory GiB", "$/h each", "$/h"):
        table.add_column(heading, justify="right", no_wrap=True)
    for key, group in sorted(alike.items(), key=lambda item: (-item[0][4] * len(item[1]), item[0])):
        pool, kind, zone, capacity, price = key
        holds = room.get((pool, kind), {})
        table.add_row(
            str(len(group)), pool, f"[bold]{kind}[/bold]", zone, f"[{_tint(capacity)}]{capacity}[/]",
            str(sum(len(launch.pods) for launch in group)),
            _filled(group, holds, "cpu"), _filled(group, holds, "memory"),
            f"{price:.4f}", f"{price * len(group):.4f}",
        )  # fmt: skip
    return table


def _tint(capacity_type: str) -> str:
    return "cyan" if capacity_type == "spot" else "default"


def _filled(group: Sequence[Launch], holds: Resources, resource: str) -> str:
    """How full the nodes are on average: ``3.9/4.0  97%``."""
    used = sum(launch.requests.get(resource, 0) for launch in group) / len(group)
    whole = holds.get(resource, 0)
    if not whole:
        return _amount(resource, used)
    share = used / whole
    colour = "green" if share > 0.8 else "default"
    return f"{_amount(resource, used)}/{_amount(resource, whole)} [{colour}]{share:4.0%}[/]"


def _amount(resource: str, value: float) -> str:
    return f"{value / 1000:.1f}" if resource == "cpu" else f"{value / _GIB:.1f}"


def _existing(existing: Sequence[ExistingPlacement]) -> Table:
    table = _table(f"Room on {_count(len(existing), 'existing node')}")
    table.add_column("node")
    table.add_column("NodeClaim")
    table.add_column("pods", justify="right")
    table.add_column("")
    for placement in existing:
        name = escape(placement.node) or "[dim]on its way[/dim]"
        table.add_row(name, escape(placement.node_claim), str(len(placement.pods)), _named(placement.pods))
    return table


def _print_unplaced(console: Console, unplaced: Sequence[Unplaced]) -> None:
    if not unplaced:
        return
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for pod in unplaced:
        alike[tuple(str(reason) for reason in pod.reasons)].append(pod.pod)
    console.print(f"[bold red]Unschedulable: {_count(len(unplaced), 'pod')}[/bold red]")
    for reasons, pods in sorted(alike.items(), key=lambda item: (-len(item[1]), item[1])):
        console.print(f"  [bold]{_count(len(pods), 'pod')}[/bold] {_named(pods)}")
        for reason in reasons:
            console.print(f"    • {escape(reason)}", highlight=False)
    console.print()


def _print_relaxed(console: Console, relaxed: Sequence[Relaxed]) -> None:
    if not relaxed:
        return
    dropped = Counter(preference for pod in relaxed for preference in pod.dropped)
    console.print(f"[bold yellow]Preferences dropped for {_count(len(relaxed), 'pod')}[/bold yellow]")
    for preference, times in sorted(dropped.items(), key=lambda item: (-item[1], item[0])):
        console.print(f"  {times} × {escape(preference)}", highlight=False)
    console.print()


def _print_totals(console: Console, packing: Packing, seconds: float) -> None:
    placed = sum(len(launch.pods) for launch in packing.launches) + sum(len(e.pods) for e in packing.existing)
    if not placed and not packing.unplaced:
        console.print("Nothing is pending.")
        return
    console.print(
        f"[bold]{_count(placed, 'pod')} placed[/bold], {len(packing.unplaced)} unschedulable; "
        f"[bold]${packing.hourly:.4f}[/bold]/h, at best ${packing.lower_bound:.4f}/h (gap {packing.gap:.1%}); "
        f"{packing.method}, {seconds:.2f} s{', stopped by the time limit' if packing.limit_struck else ''}",
        highlight=False,
    )


def _named(pods: Sequence[str]) -> str:
    shown = ", ".join(escape(pod) for pod in pods[:_NAMED_PODS])
    return f"{shown} and {len(pods) - _NAMED_PODS} more" if len(pods) > _NAMED_PODS else shown


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
                kind.name, _amount("cpu", kind.allocatable.get("cpu", 0)),
                _amount("memory", kind.allocatable.get("memory", 0)), str(kind.allocatable.get("pods", 0)),
                str(len(zones)), _price(kind, "on-demand"), _price(kind, "spot"),
            )  # fmt: skip
    _console().print(table)


def _cheapest(kind: InstanceType) -> float:
    return min((o.price for o in kind.offerings if o.available), default=float("inf"))


def _price(kind: InstanceType, capacity_type: str) -> str:
    prices = [o.price for o in kind.offerings if o.available and o.capacity_type == capacity_type]
    return f"{min(prices):.4f}" if prices else "-"
