"""Draw a packing before and after for docs/packing.md: one node grown until nothing fits, and what Joinery buys
instead.

    python -m tools.pictures [--scenario tests/data/scenarios/cpu-heavy.json.gz] [--into docs/images]

    python -m tools.pictures --report    the page of `joinery plan -o html`, as README shows it (wants Chromium)

    python -m tools.pictures --history   the page of `joinery history -o html` of the demo's story (wants Chromium)

Both are drawn from the same objects and to one scale. The first is the field's common answer, in its plainest form:
pods in order of size, each onto the open node while any instance type still holds them all; the node is then the
cheapest type that does. The second is the plan of ``joinery plan``. SVG, because it stays sharp and small; light and
dark follow the reader.
"""

import argparse
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from joinery.decisions.scheduling.constraints.requirements import Requirements, read
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.packing import Launch, Packing, PlacedOffering
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.solve import solve
from joinery.gateways.ec2.offline import instance_types
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, ZONE
from joinery.objects.kubernetes.core import DaemonSet, Pod
from joinery.objects.kubernetes.quantity import Resources, fits, total
from joinery.objects.snapshot.offerings import InstanceType
from joinery_cli.page.bars import hue
from joinery_cli.page.history import page as history_page
from joinery_cli.prices import Prices
from joinery_cli.reading.inputs import load
from joinery_cli.reading.records import read_record
from joinery_cli.sources import SAMPLE, load_catalog, moment
from joinery_cli.view.costs import Costs
from joinery_cli.view.figures import amount, count, money, share
from joinery_cli.view.history import history
from joinery_cli.view.plan_groups import view
from joinery_cli.view.workloads import Filled
from simulator.story import scenario as story
from simulator.story.show import keep_records
from simulator.story.simulation import Simulation
from tools.browser.driver import browsing
from tools.template import ROOT

_PRICES = Prices(region="us-east-1", source="sample catalogue")
_WIDTH, _LEFT, _RIGHT = 860, 150, 150
_BAR, _GAP, _HEAD = 13, 4, 46
_MEASURES = ("cpu", "memory")
_STYLE = (
    "text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#16202b}"
    ".title{font-size:15px;font-weight:600}.soft{fill:#5a6775}.track{fill:#dfe4e9}.before{fill:#8b97a3}"
    "@media(prefers-color-scheme:dark){text{fill:#e6ebf0}.soft{fill:#9fadbb}.track{fill:#2d3741}.before{fill:#6b7885}}"
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    small = ROOT / "tests" / "data" / "scenarios" / "cpu-heavy.json.gz"
    parser.add_argument("--scenario", type=Path, default=small)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--history", action="store_true")
    options = parser.parse_args(arguments)
    if options.report:
        report(options.into)
        return
    if options.history:
        past(options.into)
        return
    problem = _problem(options.scenario)
    grown, solved = grow_until_full(problem), solve(problem)
    largest = _largest((*_nodes(problem, grown), *_nodes(problem, solved)))
    options.into.mkdir(parents=True, exist_ok=True)
    for name, title, packing in (("before", "One node grown until nothing fits", grown), ("after", "Joinery", solved)):
        drawn = picture(title, problem, packing, largest)
        (options.into / f"packing-{name}.svg").write_text(drawn)


def _problem(scenario: Path) -> Problem:
    snapshot = load([str(scenario)]).snapshot(moment("2026-01-01T00:00:00Z"))
    catalogue = load_catalog(None).catalog
    types = instance_types(snapshot.node_classes, catalogue)
    return Problem(snapshot=snapshot, instance_types=types, options=Options(only_marked_unschedulable=False))


# --- the common answer ---


def grow_until_full(problem: Problem) -> Packing:
    """Every node grows as long as any instance type still holds its pods.

    For one NodePool on demand, and requests alone.
    """
    asked = {pod.key: requests_of(pod) for pod in problem.snapshot.pods}
    daemons = total(requests_of(_pod_of(owner)) for owner in problem.snapshot.daemon_sets)
    types = _allowed(problem)
    launches: list[Launch] = []
    left = sorted(asked, key=lambda pod: (-asked[pod].get("cpu", 0), -asked[pod].get("memory", 0), pod))
    while left:
        inside, used = _grown(left, asked, daemons, types)
        if not inside:
            raise SystemExit(f"{left[0]} fits on no instance type")
        launches.append(_cheapest(f"grown-{len(launches) + 1}", problem, inside, used))
        left = [pod for pod in left if pod not in set(inside)]
    return Packing(launches=tuple(launches), method="grown until full")


def _grown(
    left: Sequence[str], asked: Mapping[str, Resources], daemons: Resources, types: Sequence[InstanceType]
) -> tuple[list[str], Resources]:  # fmt: skip
    """The pods of one node, and what they and the daemons use of it."""
    inside: list[str] = []
    used = daemons
    for pod in left:
        more = total((used, asked[pod]))
        if any(fits(more, kind.allocatable) for kind in types):
            inside.append(pod)
            used = more
    return inside, used


def _pod_of(owner: DaemonSet) -> Pod:
    return Pod(metadata=owner.spec.template.metadata, spec=owner.spec.template.spec)


def _allowed(problem: Problem) -> list[InstanceType]:
    """What the NodePool may buy on demand, each type with its cheapest offering alone."""
    (pool,) = problem.snapshot.node_pools
    rules = read(pool.spec.template.spec.requirements)
    anywhere = Requirements({key: allowed for key, allowed in rules.sets.items() if key not in (ZONE, CAPACITY_TYPE)})
    kinds = []
    for kind in problem.instance_types[pool.spec.template.spec.node_class_ref.name]:
        sold = [
            o for o in kind.offerings if o.available and o.capacity_type == ON_DEMAND and rules.get(ZONE).has(o.zone)
        ]
        if sold and anywhere.matches({key: values[0] for key, values in kind.labels.items() if values}):
            kinds.append(replace(kind, offerings=(min(sold, key=lambda o: (o.price, o.zone)),)))
    return kinds


def _cheapest(name: str, problem: Problem, pods: Sequence[str], used: Resources) -> Launch:
    holding = sorted(
        (kind for kind in _allowed(problem) if fits(used, kind.allocatable)), key=lambda k: k.offerings[0].price
    )
    sold = holding[0].offerings[0]
    return Launch(
        name=name, node_pool=problem.snapshot.node_pools[0].metadata.name, requirements=(), labels={}, taints=(),
        startup_taints=(), requests=used, instance_types=tuple(kind.name for kind in holding),
        offering=PlacedOffering(holding[0].name, sold.zone, sold.capacity_type, sold.price), pods=tuple(pods),
    )  # fmt: skip


# --- drawing ---


def _nodes(problem: Problem, packing: Packing) -> list[tuple[str, float, Filled]]:
    """Instance type, price and filling of every node, the dearest first."""
    return [
        (launch.offering.instance_type, launch.offering.price, node)
        for section in view(problem, packing, Costs(), _PRICES, seconds=0).sections
        for group in section.groups
        for launch, node in zip(group.launches, group.nodes, strict=True)
    ]


def _largest(nodes: Iterable[tuple[str, float, Filled]]) -> Resources:
    listed = [node.room for _, _, node in nodes]
    return {name: max(room[name] for room in listed) for name in _MEASURES}


def picture(title: str, problem: Problem, packing: Packing, largest: Resources) -> str:
    """The packing as SVG. ``largest``: the room whose bar is as long as bars may be."""
    nodes = _nodes(problem, packing)
    rows = [_row(node, _HEAD + number * _row_height(), largest) for number, node in enumerate(nodes)]
    height = _HEAD + len(nodes) * _row_height() + _GAP
    bound = f"; no plan costs less than {money(packing.lower_bound)}" if packing.lower_bound else ""
    said = f"{title}: {count(len(nodes), 'node')}, {money(packing.hourly)}/h{bound}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">'
        f'<title>{escape(said)}</title><style>{_STYLE}</style><text class="title" x="0" y="20">{escape(said)}</text>'
        f"{''.join(rows)}</svg>\n"
    )


def _row_height() -> int:
    return len(_MEASURES) * (_BAR + _GAP) + 2 * _GAP


def _row(node: tuple[str, float, Filled], top: int, largest: Resources) -> str:
    kind, price, filled = node
    text = (
        f'<text x="0" y="{top + 11}">{escape(kind)}</text>'
        f'<text class="soft" x="0" y="{top + 28}">{money(price)}/h</text>'
    )
    bars = [_bar(filled, name, top + number * (_BAR + _GAP), largest[name]) for number, name in enumerate(_MEASURES)]
    return text + "".join(bars)


def _bar(filled: Filled, resource: str, top: int, largest: int) -> str:
    scale = (_WIDTH - _LEFT - _RIGHT) / largest
    room, used = filled.room[resource], filled.used.get(resource, 0)
    shapes = [_piece("track", _LEFT, top, room * scale), _piece("before", _LEFT, top, filled.before[resource] * scale)]
    x = _LEFT + filled.before[resource] * scale
    for part in filled.parts:
        width = part.workload.requests.get(resource, 0) * len(part.pods) * scale
        shapes.append(_piece("", x, top, width, f' fill="hsl({hue(part.workload):.0f} 62% 60%)"'))
        x += width
    unit = "cpu" if resource == "cpu" else "GiB"
    said = f"{amount(resource, room)} {unit}, {share(used, room)} full"
    return f'{"".join(shapes)}<text class="soft" x="{_WIDTH - _RIGHT + 8}" y="{top + 11}">{said}</text>'


def _piece(kind: str, x: float, y: float, width: float, more: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<rect{name} x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}"{more}/>'


def report(into: Path) -> None:
    """The page for 200 pods of services, always of the same moment and prices."""
    scenario = ROOT / "tests" / "data" / "scenarios" / "services-200.json.gz"
    given = ["--catalog", str(SAMPLE), "--now", "2026-07-01T09:00:00Z", "-o", "html"]
    command = [str(ROOT / ".venv/bin/joinery"), "plan", "-f", str(scenario), *given]
    _photograph(subprocess.run(command, capture_output=True, check=True).stdout.decode(), into / "report.png")


def past(into: Path) -> None:
    """The page of what was decided in the story of `make demo`."""
    simulation = Simulation(story.load())
    with simulation.running():
        simulation.engine.run_until(simulation.end)
    with TemporaryDirectory() as folder:
        keep_records(simulation, Path(folder))
        records = [read_record(str(file)) for file in sorted(Path(folder).glob("**/*.gz"))]
        _photograph(history_page(history(records)), into / "history.png")


def _photograph(page: str, picture: Path) -> None:
    with TemporaryDirectory() as folder, browsing(Path(folder)) as browser:
        file = Path(folder) / "page.html"
        file.write_text(page)
        browser.open(file, width=1280, height=700).picture(picture)


if __name__ == "__main__":
    main()
