"""A plan as one page: what is bought drawn to scale, what it costs, how near to the best that is, and what stays
pending.

A plan of 10,000 pods must stay a page that opens: nodes that are alike are one row,
bars have a piece a workload, long sections fold, and names are left out where there are too many.
"""

import sys
from collections.abc import Iterable, Sequence
from functools import partial

from joinery.decisions.scheduling.packing import Launch
from joinery.objects.karpenter.labels import INSTANCE_TYPE
from joinery.objects.karpenter.meta import Requirement, Taint
from joinery_cli.explained import lines
from joinery_cli.page.bars import scale_of
from joinery_cli.page.rendering import Figure, Frame, rendered
from joinery_cli.view.figures import MOST_GAP, amount, count, in_order, money, monthly, unit
from joinery_cli.view.nearness import nearness
from joinery_cli.view.plan_view import PlanView
from joinery_cli.view.workloads import Filled

#: Up to so many kinds of nodes each says all that its launch request says.
_DETAILED_GROUPS = 200
#: In a large plan a row names only the first alternatives.
_FEW_TYPES = 8
#: Up to so many pods all their names are in the page.
_NAMED_PODS = 20_000


def print_page(plan: PlanView) -> None:
    """The page, and nothing else, on standard output."""
    sys.stdout.write(page(plan))


def page(plan: PlanView) -> str:
    """The whole page. One plan gives one page, byte for byte."""
    packing = plan.packing
    frame = Frame(
        title=f"Joinery plan: {money(packing.hourly)}/h",
        kind="plan",
        now=plan.now,
        headline=_headline(plan),
        prices=plan.prices,
        notices=plan.notices,
        workloads=plan.workloads,
        figures=_figures(plan),
        explanations=tuple(map(lines, plan.explanations)),
        explained="pods",
        footer=_footer(plan),
    )
    groups = [group for section in plan.sections for group in section.groups]
    return rendered(
        "plan.html",
        frame,
        view=plan,
        proven=100 * min(1.0, packing.lower_bound / packing.paid) if packing.paid else 100.0,
        nearness=nearness(packing),
        scale=scale_of([group.nodes[0] for group in groups], plan.resources),
        existing_scale=scale_of([existing.node for existing in plan.existing], plan.resources),
        with_names=plan.placed <= _NAMED_PODS,
        pods_of=_pods,
        facts=partial(_facts, detailed=len(groups) <= _DETAILED_GROUPS),
    )


def _headline(plan: PlanView) -> str:
    launches, existing = len(plan.packing.launches), sum(len(one.pods) for one in plan.packing.existing)
    if not plan.placed and not plan.packing.unplaced:
        return "Nothing is pending."
    if not launches:
        return f"No new node: {count(existing, 'pod')} fit on existing capacity."
    bought = plan.placed - existing
    more = f", {count(existing, 'pod')} on existing capacity" if existing else ""
    return f"{count(launches, 'new node')} for {count(bought, 'pod')}{more}."


def _figures(plan: PlanView) -> tuple[Figure, ...]:
    packing = plan.packing
    pending = len(packing.unplaced)
    figures = [Figure("hourly", "Cost", f"{money(packing.hourly)}/h", monthly(packing.hourly))]
    if packing.launches:
        figures.append(Figure("lower-bound", "Proven bound", f"{money(packing.lower_bound)}/h", "no plan costs less"))
        if packing.gap < MOST_GAP:
            figures.append(Figure("gap", "Gap", f"{packing.gap:.1%}", "above the bound at most"))
        if packing.resilience_cost >= 0.01:
            figures.append(
                Figure(
                    "resilience", "Resilience", f"{money(packing.resilience_cost)}/h", "smaller nodes, more spot types"
                )
            )
    if kept := plan.costs.headroom:
        rooms = f"room for {sum(kept.chunks.values()):,}, of {count(len(kept.chunks), 'buffer')}"
        figures.append(Figure("headroom", "Headroom", f"{money(kept.total)}/h", rooms))
    if shares := plan.costs.shares:
        of_pools = "; ".join(
            f"{name}: {one.on_demand} of {one.nodes} nodes" for name, one in sorted(shares.pools.items())
        )
        figures.append(Figure("shares", "Shares on demand", f"{money(shares.hourly)}/h", of_pools))
    if plan.costs.commitments:
        covered = f"commitments cover {money(packing.covered)}/h"
        figures.append(Figure("paid", "Paid", f"{money(packing.paid)}/h", covered))
    if plan.costs.interruptions:
        found = plan.costs.interruptions
        expected = f"{money(found.monthly)} a month expected"
        figures.append(Figure("interruptions", "Interruptions", f"{found.risk.interrupted:.2g} a month", expected))
    figures.append(Figure("launches", "New nodes", f"{len(packing.launches):,}", _kinds(plan)))
    figures.append(Figure("placed", "Pods placed", f"{plan.placed - plan.chunks:,}", _where(plan)))
    kind = "bad" if pending else "good"
    why = f"for {count(len(plan.refused), 'reason')}" if pending else "every pod has a place"
    figures.append(Figure("pending", "Stay pending", f"{pending:,}", why, kind=kind))
    return tuple(figures)


def _kinds(plan: PlanView) -> str:
    types = {launch.offering.instance_type for launch in plan.packing.launches}
    return f"of {count(len(types), 'instance type')}" if types else "none needed"


def _where(plan: PlanView) -> str:
    existing = sum(len(one.pods) for one in plan.packing.existing)
    return f"{existing:,} on existing capacity" if existing else f"in {count(len(plan.workloads), 'workload')}"


def _pods(node: Filled) -> Iterable[str]:
    return (pod for part in node.parts for pod in part.pods)


def _facts(launch: Launch, *, detailed: bool) -> Iterable[tuple[str, str]]:
    """What the launch request says. ``detailed``: all of it."""
    yield "Requests", _amounts(launch)
    yield "Instance types", _types(launch.instance_types, detailed=detailed)
    if detailed:
        yield "Requirements", "; ".join(_requirement(r) for r in launch.requirements if r.key != INSTANCE_TYPE)
        yield "Labels", ", ".join(f"{key}={value}" for key, value in sorted(launch.labels.items()))
        yield "Taints", ", ".join(map(_taint, launch.taints))
        yield "Startup taints", ", ".join(map(_taint, launch.startup_taints))
    if launch.min_values_relaxed:
        yield "minValues", "relaxed: not enough instance types hold these pods"


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


def _footer(plan: PlanView) -> tuple[str, ...]:
    packing = plan.packing
    struck = "; the time limit struck, more time may find a cheaper plan" if packing.limit_struck else ""
    return (
        f"Found by {packing.method} in {plan.seconds:.2f} s, and verified by an independent check{struck}.",
        f"{plan.prices.origin}.",
        "Prices are those of the cheapest offering that each launch request allows. The same plan for scripts: "
        "joinery plan -o json.",
    )
