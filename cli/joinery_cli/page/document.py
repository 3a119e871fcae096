"""A plan as one page: what is bought drawn to scale, what it costs, how near to the best that is, and what stays
pending.

A plan of 10,000 pods must stay a page that opens: nodes that are alike are one row,
bars have a piece a workload, long sections fold, and names are left out where there are too many.
"""

import sys

from joinery_cli.explained import lines
from joinery_cli.page import costs, explanations, rows
from joinery_cli.page.frame import Frame, figure, framed
from joinery_cli.page.text import NOTHING, Html, element, join, text
from joinery_cli.view.figures import TELLING, count, money, monthly
from joinery_cli.view.nearness import nearness
from joinery_cli.view.plan_view import PlanView

_BOUND = (
    "The lower bound is proven: no set of new nodes, together with the existing nodes and what this plan places on "
    "them, holds the same pods for less under all hard rules, NodePool weights and limits. The gap is how far this "
    "plan may be above the best one; the best one may itself be dearer than the bound.",
    "Size preferences, soft terms (preferred affinity, ScheduleAnyway) and the flexibility that spot capacity needs "
    "are outside the bound: they are part of what the gap pays for.",
)


def print_page(plan: PlanView) -> None:
    """The page, and nothing else, on standard output."""
    sys.stdout.write(page(plan))


def page(plan: PlanView) -> str:
    """The whole page. One plan gives one page, byte for byte."""
    return framed(
        Frame(
            title=f"Joinery plan: {money(plan.packing.hourly)}/h",
            kind="plan",
            now=plan.now,
            headline=_headline(plan),
            prices=plan.prices,
            notices=plan.notices,
            workloads=plan.workloads,
            figures=_figures(plan),
            under_figures=join((_meter(plan), _bound(plan))),
            sections=join(filter(None, (rows.sections(plan), costs.section(plan), _explained(plan)))),
            footer=_footer(plan),
        )
    )


def _explained(plan: PlanView) -> Html:
    return explanations.section(tuple(map(lines, plan.explanations)), "pods asked for by --explain")


def _headline(plan: PlanView) -> str:
    launches, existing = len(plan.packing.launches), sum(len(one.pods) for one in plan.packing.existing)
    if not plan.placed and not plan.packing.unplaced:
        return "Nothing is pending."
    if not launches:
        return f"No new node: {count(existing, 'pod')} fit on existing capacity."
    bought = plan.placed - existing
    more = f", {count(existing, 'pod')} on existing capacity" if existing else ""
    return f"{count(launches, 'new node')} for {count(bought, 'pod')}{more}."


def _figures(plan: PlanView) -> Html:
    packing = plan.packing
    pending = len(packing.unplaced)
    figures = [figure("hourly", "Cost", f"{money(packing.hourly)}/h", monthly(packing.hourly))]
    if packing.launches:
        figures.append(figure("lower-bound", "Proven bound", f"{money(packing.lower_bound)}/h", "no plan costs less"))
        if packing.gap < TELLING:
            figures.append(figure("gap", "Gap", f"{packing.gap:.1%}", "above the bound at most"))
        if packing.resilience_cost >= 0.01:
            figures.append(
                figure(
                    "resilience", "Resilience", f"{money(packing.resilience_cost)}/h", "smaller nodes, more spot types"
                )
            )
    figures.append(figure("launches", "New nodes", f"{len(packing.launches):,}", _kinds(plan)))
    figures.append(figure("placed", "Pods placed", f"{plan.placed:,}", _where(plan)))
    kind = "bad" if pending else "good"
    why = f"for {count(len(plan.refused), 'reason')}" if pending else "every pod has a place"
    figures.append(figure("pending", "Stay pending", f"{pending:,}", why, kind=kind))
    return join(figures)


def _kinds(plan: PlanView) -> str:
    types = {launch.offering.instance_type for launch in plan.packing.launches}
    return f"of {count(len(types), 'instance type')}" if types else "none needed"


def _where(plan: PlanView) -> str:
    existing = sum(len(one.pods) for one in plan.packing.existing)
    return f"{existing:,} on existing capacity" if existing else f"in {count(len(plan.workloads), 'workload')}"


def _meter(plan: PlanView) -> Html:
    """The bound as a part of the cost."""
    packing = plan.packing
    if not packing.launches or not packing.hourly:
        return NOTHING
    share = 100 * min(1.0, packing.lower_bound / packing.hourly)
    said = f"{money(packing.lower_bound)} of {money(packing.hourly)} an hour are proven to be needed"
    parts = (element("i", style=f"width:{part:.2f}%") for part in (share, 100 - share))
    return element("div", *parts, class_="meter", role="img", aria_label=said, title=said)


def _bound(plan: PlanView) -> Html:
    if not plan.packing.launches:
        return NOTHING
    said = (element("p", text(f"{sentence}.")) for sentence in nearness(plan.packing))
    meant = (element("p", text(sentence)) for sentence in _BOUND)
    is_weak = {"open_": "open"} if plan.packing.weaknesses else {}
    return element(
        "details", element("summary", text("What the bound means")), *said, *meant, class_="bound", **is_weak
    )


def _footer(plan: PlanView) -> Html:
    packing = plan.packing
    struck = "; the time limit struck, more time may find a cheaper plan" if packing.limit_struck else ""
    return join(
        element("p", text(sentence))
        for sentence in (
            f"Found by {packing.method} in {plan.seconds:.2f} s, and verified by an independent check{struck}.",
            f"{plan.prices.origin}.",
            (
                "Prices are those of the cheapest offering that each launch request allows. The same plan for scripts: "
                "joinery plan -o json."
            ),
        )
    )
