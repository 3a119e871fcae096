"""``-o wide``: a line for each thing, with all that is known of it in columns, as ``kubectl get -o wide`` prints.

Lines are as long as they get, for a wide terminal, ``less -S``, ``grep`` and ``awk``: nothing is wrapped or left out.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from joinery.objects.karpenter.labels import ARCH, ON_DEMAND, SPOT, ZONE
from joinery.objects.snapshot.offerings import InstanceType
from joinery_cli.output.console import headed_table, print_prices, printing, styled
from joinery_cli.prices import Prices
from joinery_cli.view.costs import cheapest
from joinery_cli.view.disruption_view import DisruptionView, DrawnNode, Fate
from joinery_cli.view.figures import age, amount, count, natural, resource_heading, share, size, unit
from joinery_cli.view.plan_view import Existing, Group, PlanView
from joinery_cli.view.top_view import TopNode, TopView
from joinery_cli.view.workloads import Filled

_MEASURED = ("cpu", "memory")
#: What a node has by the dozen for its pods' addresses: nobody chooses a type for that.
_NO_DEVICE = "vpc.amazonaws.com/pod-eni"
_LOCAL_DISK, _NETWORK = "karpenter.k8s.aws/instance-local-nvme", "karpenter.k8s.aws/instance-network-bandwidth"
_LEFT, _RIGHT = False, True


def _table(title: str, *columns: tuple[str, bool]) -> Table:
    """``columns``: heading, and whether the column's figures end below each other."""
    table = headed_table(title)
    for heading, is_right in columns:
        table.add_column(heading, justify="right" if is_right else "left", no_wrap=True)
    return table


def _row(table: Table, *cells: str) -> None:
    """A cell without a value has a dash, so that each line has as many words."""
    table.add_row(*(styled(cell or "-") for cell in cells))


def _filled(nodes: Sequence[Filled], resource: str) -> str:
    """How much of the resource is taken of one node, on average, and how much it has: ``1.8/3.9``."""
    used, whole = (
        sum(amounts.get(resource, 0) for amounts in each) / len(nodes)
        for each in ([node.used for node in nodes], [node.room for node in nodes])
    )
    return f"{size(resource, used)}/{size(resource, whole)}" if used or whole else ""


def _heading(resource: str) -> str:
    return f"{resource_heading(resource)} GiB" if unit(resource) == "GiB" else resource_heading(resource)


def _workloads(node: Filled) -> str:
    """``shop/web×3,shop/api``: what runs on a node, in one word."""
    parts = ((part.workload.name.replace(" ", "_"), len(part.pods)) for part in node.parts)
    return ",".join(f"{name}×{pods}" if pods > 1 else name for name, pods in parts)


def _price(price: float | None) -> str:
    return "" if price is None else f"{price:.4f}"


# --- plan ---


def plan_tables(plan: PlanView) -> Iterator[Table]:
    """What is bought, and what takes pods already; nothing of what there is none of."""
    if plan.sections:
        yield _launches(plan)
    if plan.existing:
        yield _existing(plan.existing, plan.resources)


def _launches(plan: PlanView) -> Table:
    """Launches that are alike to the last workload share a line."""
    columns = (
        ("nodes", _RIGHT), ("node pool", _LEFT), ("instance type", _LEFT), ("other types", _RIGHT),
        ("capacity type", _LEFT), ("zones", _LEFT), ("pods each", _RIGHT),
        *((_heading(name), _RIGHT) for name in plan.resources),
        ("$/h each", _RIGHT), ("$/h", _RIGHT), ("workloads on each", _LEFT),
    )  # fmt: skip
    table = _table(f"Launch {count(len(plan.packing.launches), 'node')}", *columns)
    for section in plan.sections:
        for group in section.groups:
            _row(table, *_launch(section.node_pool, group, plan.resources))
    return table


def _launch(pool: str, group: Group, resources: Sequence[str]) -> Iterator[str]:
    launch, node = group.launches[0], group.nodes[0]
    zones = next((one.values for one in launch.requirements if one.key == ZONE and one.operator == "In"), ())
    yield from (str(len(group.launches)), pool, launch.offering.instance_type, str(len(launch.instance_types) - 1))
    yield from (launch.offering.capacity_type, ",".join(sorted(zones)) or launch.offering.zone, str(node.pods))
    yield from (_filled(group.nodes, name) for name in resources)
    yield from (_price(launch.offering.price), _price(group.price), _workloads(node))


def _existing(existing: Sequence[Existing], resources: Sequence[str]) -> Table:
    """All nodes that take pods of the plan."""
    columns = (
        ("node", _LEFT), ("node claim", _LEFT), ("node pool", _LEFT), ("instance type", _LEFT), ("zone", _LEFT),
        ("+pods", _RIGHT), *((_heading(name), _RIGHT) for name in resources), ("workloads that come", _LEFT),
    )  # fmt: skip
    table = _table(f"Room on {count(len(existing), 'existing node')}", *columns)
    for one in sorted(existing, key=lambda one: natural(one.name)):
        placement, filled = one.placement, [_filled([one.node], name) for name in resources]
        _row(
            table, placement.node, placement.node_claim, one.node_pool, one.instance_type, one.zone,
            str(one.node.pods), *filled, _workloads(one.node),
        )  # fmt: skip
    return table


# --- disrupt ---


def nodes_table(view: DisruptionView) -> Table:
    """Each node there is or will be: what becomes of it, by which command, and the rules that keep it."""
    columns = (
        ("node", _LEFT), ("node claim", _LEFT), ("node pool", _LEFT), ("instance type", _LEFT), ("zone", _LEFT),
        ("capacity type", _LEFT), ("pods", _RIGHT), *((_heading(name), _RIGHT) for name in _MEASURED),
        ("full", _RIGHT), ("$/h", _RIGHT), ("what", _LEFT), ("command", _RIGHT), ("why", _LEFT),
    )  # fmt: skip
    commands = {node.name: one for one in view.commands for node in (*one.retired, *one.bought)}
    kept = {
        name: f"{group.code.value}: {message}"
        for group in reversed(view.staying)
        for message, names in group.messages
        for name in names
    }
    table = _table(f"{count(len(view.before), 'node')} before, {count(len(view.after), 'node')} after", *columns)
    for node in (*sorted(view.before, key=lambda node: natural(node.name)), *view.bought):
        command = commands.get(node.name)
        number, why = (str(command.number), command.command.reason.value) if command else ("", kept.get(node.name, ""))
        _row(table, *_node(node), node.fate.value, number, why)
    return table


def _node(node: DrawnNode) -> Iterator[str]:
    is_bought = node.fate is Fate.BOUGHT
    kind = f"{node.instance_type}+{node.alternatives}" if node.alternatives else node.instance_type
    yield from ("" if is_bought else node.name, node.claim, node.node_pool, kind, node.zone.replace(" ", "_"))
    yield from (node.capacity_type, str(node.filled.pods))
    yield from (_filled([node.filled], name) for name in _MEASURED)
    yield from (share(node.use, 1.0), _price(node.price))


# --- top ---


def top_table(view: TopView) -> Table:
    """Of each node every column."""
    columns = (
        ("node", _LEFT), ("node claim", _LEFT), ("node pool", _LEFT), ("instance type", _LEFT), ("zone", _LEFT),
        ("capacity type", _LEFT), ("$/h", _RIGHT), ("pods", _RIGHT), *((_heading(name), _RIGHT) for name in _MEASURED),
        ("full", _RIGHT), ("age", _RIGHT), ("phase", _LEFT), ("until", _LEFT), ("rule", _LEFT), ("why", _LEFT),
    )  # fmt: skip
    table = _table("Nodes", *columns)
    for node in view.nodes:
        _row(table, *_top_node(node))
    return table


def _top_node(node: TopNode) -> Iterator[str]:
    drawn = node.drawn
    yield from (node.name, drawn.claim, drawn.node_pool, drawn.instance_type, drawn.zone, drawn.capacity_type)
    yield from (_price(node.price), str(drawn.filled.pods))
    yield from (_filled([drawn.filled], name) for name in _MEASURED)
    yield from (share(drawn.use, 1.0), age(node.age), node.phase.value)
    yield from (f"{node.until:%Y-%m-%dT%H:%M:%SZ}" if node.until else "", node.code, node.why)


# --- catalog ---


def print_catalog(types: Iterable[InstanceType], node_class: str, prices: Prices) -> None:
    """The types that can be bought, in their order: what kubelet leaves of each, its devices, and where it is sold."""
    columns = (
        ("instance type", _LEFT), ("arch", _LEFT), ("cpu", _RIGHT), ("memory GiB", _RIGHT), ("pods", _RIGHT),
        ("devices", _LEFT), ("local disk GB", _RIGHT), ("network Mbps", _RIGHT), ("on-demand $/h", _RIGHT),
        ("$/h per cpu", _RIGHT), ("spot from $/h", _RIGHT), ("spot saves", _RIGHT), ("zones", _LEFT),
    )  # fmt: skip
    table = _table(f"Instance types for {node_class}", *columns)
    for kind in types:
        if any(offering.available for offering in kind.offerings):
            _row(table, *_type(kind))
    with printing(is_wide=True) as console:
        console.print(table)
        print_prices(console, prices)


def _type(kind: InstanceType) -> Iterator[str]:
    sold = [offering for offering in kind.offerings if offering.available]
    on_demand, spot = cheapest(kind, ON_DEMAND), cheapest(kind, SPOT)
    cores = kind.capacity.get("cpu", 0) / 1000
    yield from (kind.name, _label(kind, ARCH))
    yield from (amount(name, kind.allocatable.get(name, 0)) for name in _MEASURED)
    yield str(kind.allocatable.get("pods", 0))
    devices = (name for name in sorted(kind.capacity) if "/" in name and name != _NO_DEVICE and kind.capacity[name])
    yield ",".join(f"{unit(name)}×{kind.capacity[name]}" for name in devices)
    yield from (_label(kind, _LOCAL_DISK), _label(kind, _NETWORK))
    yield from (_price(on_demand), _price(on_demand / cores if on_demand and cores else None), _price(spot))
    yield f"{1 - spot / on_demand:.0%}" if spot and on_demand else ""
    yield ",".join(sorted({one.zone for one in sold}))


def _label(kind: InstanceType, key: str) -> str:
    return ",".join(kind.labels.get(key, ()))
