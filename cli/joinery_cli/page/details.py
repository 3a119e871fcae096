"""What a row of the page shows when it is unfolded: which pods, and what the launch request says."""

from collections.abc import Iterable, Sequence

from joinery.decisions.scheduling.packing import Launch
from joinery.objects.karpenter.labels import INSTANCE_TYPE
from joinery.objects.karpenter.meta import Requirement, Taint
from joinery_cli.page.text import Html, element, join, text
from joinery_cli.view.figures import amount, count, in_order, listed, unit
from joinery_cli.view.plan_view import Group
from joinery_cli.view.workloads import Filled

#: In a large plan a row names only the first alternatives.
_FEW_TYPES = 8


def inside(group: Group, *, with_names: bool, detailed: bool) -> Html:
    """The inside of a group's row. ``with_names``: of all its pods; ``detailed``: all that the request says."""
    launch = group.launches[0]
    parts = [_workloads(group.nodes[0]), _request(launch, detailed=detailed)]
    if with_names:
        nodes = zip(group.launches, group.nodes, strict=True)
        parts.append(element("ol", join(named_on(one.name, _pods(node)) for one, node in nodes)))
    return element("div", join(parts), class_="inside")


def named(pods: Iterable[str]) -> Html:
    """Names of pods, all of them. The filter looks for them here, between the commas."""
    return element("span", text(", ".join(pods)), class_="names")


def named_on(node: str, pods: Iterable[str]) -> Html:
    """A node by name, and its pods."""
    return element("li", element("b", text(f"{node}: ")), named(pods), class_="home")


def _pods(node: Filled) -> Iterable[str]:
    return (pod for part in node.parts for pod in part.pods)


def _workloads(node: Filled) -> Html:
    headings = (element("th", text(name)) for name in ("on each node", "pods", "each asks for"))
    rows = [
        (f"swatch c{part.workload.number}", part.workload.name, f"{len(part.pods):,}", listed(part.workload.requests))
        for part in node.parts
    ]
    if any(node.before.values()):
        rows.append(("swatch before", "daemons", "", listed(node.before)))
    return element("table", element("tr", *headings), *(_line(*row) for row in rows))


def _line(swatch: str, name: str, pods: str, requests: str) -> Html:
    first = element("td", element("span", class_=swatch), text(f" {name}"))
    return element("tr", first, element("td", text(pods)), element("td", text(requests)))


def _request(launch: Launch, *, detailed: bool) -> Html:
    facts = [("Requests", _amounts(launch)), ("Instance types", _types(launch.instance_types, detailed=detailed))]
    if detailed:
        facts += [
            ("Requirements", "; ".join(_requirement(r) for r in launch.requirements if r.key != INSTANCE_TYPE)),
            ("Labels", ", ".join(f"{key}={value}" for key, value in sorted(launch.labels.items()))),
            ("Taints", ", ".join(_taint(taint) for taint in launch.taints)),
            ("Startup taints", ", ".join(_taint(taint) for taint in launch.startup_taints)),
        ]
    if launch.min_values_relaxed:
        facts.append(("minValues", "relaxed: not enough instance types hold these pods"))
    said = [(element("dt", text(name)), element("dd", text(value))) for name, value in facts if value]
    return element("dl", *(part for pair in said for part in pair))


def _amounts(launch: Launch) -> str:
    asked = [f"{amount(name, launch.requests[name])} {unit(name)}" for name in in_order(launch.requests)]
    return ", ".join((*asked, count(launch.requests.get("pods", 0), "pod")))


def _types(types: Sequence[str], *, detailed: bool) -> str:
    if detailed or len(types) <= _FEW_TYPES:
        return ", ".join(types)
    return f"{', '.join(types[:_FEW_TYPES])} and {len(types) - _FEW_TYPES} more"


def _requirement(requirement: Requirement) -> str:
    least = f" (at least {requirement.min_values})" if requirement.min_values is not None else ""
    return f"{requirement.key} {requirement.operator} {', '.join(requirement.values)}".rstrip() + least


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
