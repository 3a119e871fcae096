"""A plan for a person at a terminal: what would be bought, what fits already, what stays pending and why, what it
costs.

What matters most comes last, where the eye is when a command ends. A line has as many columns as the terminal
(``joinery_cli.output.console``), and nothing is ever cut off.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from joinery.objects.karpenter.labels import ON_DEMAND, SPOT
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.wording import shortened
from joinery_cli.explained import lines
from joinery_cli.output.console import (
    TYPE_WIDTH,
    fullness_cell,
    headed_table,
    named,
    number_range,
    print_explanation,
    print_prices,
    print_wrapped,
    printing,
    spare,
    styled,
    tinted,
    zones_of,
)
from joinery_cli.prices import Prices
from joinery_cli.view.costs import cheapest
from joinery_cli.view.figures import NOTED_COST, amount, count, money, monthly, natural, resource_heading
from joinery_cli.view.nearness import nearness
from joinery_cli.view.plan_view import Existing, Group, PlanView, Refused

#: So many resources have a column of the table.
_COLUMNS = 3
_NAMED_NODES = 10
_NAME_WIDTH = 46
#: How many preferences that were dropped are shown. One pod may name thousands.
_MOST_PREFERENCES = 20


def print_plan(plan: PlanView, *, with_pods: bool = False, is_wide: bool = False) -> None:
    """The whole plan on standard output. ``with_pods``: a line for every pod that says where it goes. ``is_wide``: all
    nodes with all columns.
    """
    with printing(is_wide=is_wide) as console:
        _print_nodes(console, plan, is_wide=is_wide)
        if with_pods and (plan.placed or plan.packing.unplaced):
            console.print(_pods(plan), "")
        _print_refused(console, plan.refused)
        _print_dropped(console, plan)
        _print_totals(console, plan)
        for explanation in plan.explanations:
            print_explanation(console, lines(explanation))


def _print_nodes(console: Console, plan: PlanView, *, is_wide: bool) -> None:
    if is_wide:
        from joinery_cli.output.wide import plan_tables

        for table in plan_tables(plan):
            console.print(table, "")
        return
    if plan.sections:
        console.print(_launches(plan), "")
    if plan.existing:
        console.print(_existing(plan.existing, _measured(plan)))
        _print_rest(console, plan.existing)


# --- launches ---


def _launches(plan: PlanView) -> Table:
    """An entry for launches of one instance type at one price, the dearest first; NodePools apart; a sum of several.

    The second line of an entry holds what belongs to the figure above it: the NodePool and the capacity type, how large
    a node is, and what one costs.
    """
    lines = _lines(plan)
    table = headed_table(f"Launch {count(len(plan.packing.launches), 'node')}")
    table.add_column("nodes", justify="right", no_wrap=True)
    table.add_column("instance type", overflow="fold", max_width=TYPE_WIDTH + spare())
    table.add_column("zone", no_wrap=True)
    for heading in ("pods", *map(resource_heading, _measured(plan)), "$/h"):
        table.add_column(heading, justify="right", no_wrap=True)
    for pool, groups in lines:
        table.add_row(*_line(pool, groups, _measured(plan)))
    if len(lines) > 1:
        table.add_row(*_sum(plan), style="bold")
    if any(len(launch.instance_types) > 1 for launch in plan.packing.launches):
        table.caption = "+N: N other types would do as well; this one is the cheapest"
        table.caption_justify = "left"
    return table


def _lines(plan: PlanView) -> list[tuple[str, list[Group]]]:
    """NodePool and groups of one type, price and capacity type, in any zone;
    pools and lines in the order of what they cost.
    """
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


def _line(pool: str, groups: Sequence[Group], resources: Sequence[str]) -> list[Text]:
    offering = groups[0].launches[0].offering
    nodes = [node for group in groups for node in group.nodes]
    launches = [launch for group in groups for launch in group.launches]
    each = styled((f"{offering.price:.4f} each", "dim")) if len(nodes) > 1 else ""
    return [
        styled(str(len(nodes))),
        styled((offering.instance_type, "bold"), (_alternatives(groups), "dim"), below=styled((pool, "dim"))),
        styled(zones_of(launches), below=tinted(offering.capacity_type)),
        styled(str(sum(node.pods for node in nodes))),
        *(fullness_cell(nodes, name) for name in resources),
        styled(f"{offering.price * len(nodes):.4f}", below=each),
    ]


def _alternatives(groups: Sequence[Group]) -> str:
    """How many other instance types the requests allow."""
    others = {len(launch.instance_types) - 1 for group in groups for launch in group.launches}
    return f" +{number_range(others)}" if max(others) > 0 else ""


def _sum(plan: PlanView) -> list[str]:
    launches = plan.packing.launches
    blank = [""] * len(_measured(plan))
    pods = str(sum(len(launch.pods) for launch in launches))
    return [str(len(launches)), "", "", pods, *blank, f"{plan.packing.hourly:.4f}"]


def _measured(plan: PlanView) -> list[str]:
    """What has a column: CPU, memory, and devices; of what is left the page and the document tell."""
    aside = ("ephemeral-storage", "hugepages-", "vpc.amazonaws.com/")
    return [name for name in plan.resources if not name.startswith(aside)][:_COLUMNS]


# --- existing capacity ---


def _existing(existing: Sequence[Existing], resources: Sequence[str]) -> Table:
    table = headed_table(f"Room on {count(len(existing), 'existing node')}")
    table.add_column("node", overflow="fold", max_width=_NAME_WIDTH + spare())
    for heading in ("+ pods", *map(resource_heading, resources)):
        table.add_column(heading, justify="right", no_wrap=True)
    for node in _by_pods(existing)[:_NAMED_NODES]:
        what = ", ".join(part for part in (node.instance_type, node.node_pool, _state(node)) if part)
        fullness = (fullness_cell([node.node], resource) for resource in resources)
        table.add_row(styled(node.name, below=styled((what, "dim"))), str(node.node.pods), *fullness)
    return table


def _state(existing: Existing) -> str:
    return "" if existing.placement.node else "launching"


def _by_pods(existing: Iterable[Existing]) -> list[Existing]:
    return sorted(existing, key=lambda existing: (-existing.node.pods, natural(existing.name)))


def _print_rest(console: Console, existing: Sequence[Existing]) -> None:
    rest = _by_pods(existing)[_NAMED_NODES:]
    if rest:
        pods = sum(one.node.pods for one in rest)
        console.print(styled((f"and {count(pods, 'pod')} on {count(len(rest), 'more node')}", "dim")))
    console.print()


# --- where every pod goes ---


def _pods(plan: PlanView) -> Table:
    """A line for each pod; what may be searched for stands in one line."""
    homes = {
        pod: (launch.name, f"new {launch.offering.instance_type}", zones_of([launch]))
        for launch in plan.packing.launches
        for pod in launch.pods
    }
    for one in plan.existing:
        homes |= {pod: (one.name, _state(one) or "there already", one.zone) for pod in one.placement.pods}
    homes |= {unplaced.pod: ("-", "pending", "") for unplaced in plan.packing.unplaced}
    table = headed_table("Where every pod goes")
    for name in ("pod", "node", "which is", "zone"):
        table.add_column(name, no_wrap=True)
    for pod in sorted(homes, key=natural):
        table.add_row(*map(styled, (pod, *homes[pod])))
    return table


# --- what did not go as wished ---


def _print_refused(console: Console, refused: Sequence[Refused]) -> None:
    if not refused:
        return
    pods = sum(len(one.pods) for one in refused)
    console.print(styled((f"Unschedulable: {count(pods, 'pod')}", "bold red")))
    for one in refused:
        console.print(styled("  ", (count(len(one.pods), "pod"), "bold"), f" {named(one.pods)}"))
        for reason in one.reasons:
            print_wrapped(console, reason, first="    • ")
    console.print()


def _print_dropped(console: Console, plan: PlanView) -> None:
    if not plan.dropped:
        return
    pods = count(len(plan.packing.relaxed), "pod")
    console.print(styled((f"Preferences dropped for {pods}", "bold yellow")))
    for preference, times in plan.dropped[:_MOST_PREFERENCES]:
        print_wrapped(console, shortened(preference), first=f"  {times} × ")
    if len(plan.dropped) > _MOST_PREFERENCES:
        console.print(f"  and {len(plan.dropped) - _MOST_PREFERENCES:,} others (-o json lists them)")
    console.print()


# --- totals ---


def _print_totals(console: Console, plan: PlanView) -> None:
    if not plan.placed and not plan.packing.unplaced:
        console.print("Nothing is pending.")
        return
    console.print(_placed(plan))
    _print_cost(console, plan)
    print_prices(console, plan.prices)
    console.print(_effort(plan))


def _placed(plan: PlanView) -> Text:
    packing = plan.packing
    existing = sum(len(one.pods) for one in packing.existing)
    homes = (
        (plan.placed - existing, f"on {count(len(packing.launches), 'new node')}"),
        (existing, f"on {count(len(packing.existing), 'existing node')}"),
    )
    taken = [(pods, where) for pods, where in homes if pods]
    shares = (f"{pods:,} {where}" if len(taken) > 1 else where for pods, where in taken)
    where = f"{':' if len(taken) > 1 else ''} {', '.join(shares)}" if taken else ""
    pending = len(packing.unplaced)
    left = (f"{pending:,} unschedulable", "bold red") if pending else "none left over"
    kept = f", and room kept for {plan.chunks:,} of buffers" if plan.chunks else ""
    return styled((f"{count(plan.placed - plan.chunks, 'pod')} placed{kept}", "bold"), f"{where}; ", left)


def _print_cost(console: Console, plan: PlanView) -> None:
    packing, costs = plan.packing, plan.costs
    if not packing.launches:
        console.print(styled(("$0/h", "bold"), ": no new node"))
    else:
        more = f", {monthly(packing.hourly)}{_on_demand(plan)}{_listed(plan)}"
        console.print(styled((f"{money(packing.hourly)}/h", "bold"), more))
    for sentence in _sentences(plan):
        print_wrapped(console, sentence, further="  ")
    for line in costs.interruptions.lines() if costs.interruptions else ():
        console.print(styled(line))
    print_wrapped(console, costs.running.sentence(), further="  ")


def _sentences(plan: PlanView) -> Iterator[str]:
    packing = plan.packing
    if packing.launches:
        yield from nearness(packing)
        if packing.resilience_cost >= NOTED_COST:
            yield f"Smaller nodes and a choice of spot types are about {money(packing.resilience_cost)}/h of it"
    if plan.costs.shares:
        yield from plan.costs.shares.sentences()
    if plan.costs.headroom:
        yield plan.costs.headroom.sentence("it")
    if plan.costs.commitments:
        yield next(iter(plan.costs.commitments.lines()))


def _on_demand(plan: PlanView) -> str:
    """What the same nodes would cost on demand, where that is something else."""
    price = plan.costs.on_demand
    return f"; on demand {money(price)}/h" if price - plan.packing.hourly >= NOTED_COST else ""


def _listed(plan: PlanView) -> str:
    """What the same nodes cost by AWS's list, where they count as something else."""
    return "" if plan.listed is None else f"; by AWS's list {money(plan.listed)}/h"


def _effort(plan: PlanView) -> Text:
    struck = ", stopped by the time limit" if plan.packing.limit_struck else ""
    return styled((f"Planned in {plan.seconds:.2f} s{struck}", "dim"))


# --- the catalogue ---


def print_catalog(types: Iterable[InstanceType], node_class: str, prices: Prices) -> None:
    """The types that can be bought, in their order."""
    table = headed_table(f"Instance types for {node_class}")
    table.add_column("instance type")
    for heading in ("cpu", "memory GiB", "pods", "zones", "on-demand $/h", "spot from $/h"):
        table.add_column(heading, justify="right")
    for kind in types:
        zones = {o.zone for o in kind.offerings if o.available}
        if zones:
            table.add_row(
                styled(kind.name), amount("cpu", kind.allocatable.get("cpu", 0)),
                amount("memory", kind.allocatable.get("memory", 0)), str(kind.allocatable.get("pods", 0)),
                str(len(zones)), _price(kind, ON_DEMAND), _price(kind, SPOT),
            )  # fmt: skip
    with printing() as console:
        console.print(table)
        print_prices(console, prices)


def _price(kind: InstanceType, capacity_type: str) -> str:
    price = cheapest(kind, capacity_type)
    return "-" if price is None else f"{price:.4f}"
