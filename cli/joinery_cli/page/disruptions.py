"""A decision about nodes as one page: before and after side by side, cost against evictions, command by command what
goes and what comes, what is held, and how near all of it is to the best.
"""

import sys

from joinery.objects.karpenter.duration import spoken
from joinery_cli.explained_nodes import lines
from joinery_cli.page import commands, curve, explanations, fleet, held
from joinery_cli.page.frame import Frame, figure, framed, part
from joinery_cli.page.text import Html, element, join, text
from joinery_cli.view.disruption_view import DisruptionView
from joinery_cli.view.disruption_words import headline, totals
from joinery_cli.view.figures import TELLING, count, money, monthly
from joinery_cli.view.workloads import Workload

_BOUND = (
    "The lower bound is proven: no state that can be reached by retiring nodes, keeping them and launching new ones "
    "costs less, the price of its moves spread over the payback time included. The gap is how far this decision may be "
    "above the best one; the best one may itself be dearer than the bound.",
)


def print_page(view: DisruptionView) -> None:
    """The page, and nothing else, on standard output."""
    sys.stdout.write(page(view))


def page(view: DisruptionView) -> str:
    """The whole page. One decision gives one page, byte for byte."""
    explained = explanations.section(tuple(map(lines, view.explanations)), "nodes asked for by --explain")
    sections = (fleet.section(view), curve.section(view), commands.section(view), held.section(view), explained)
    return framed(
        Frame(
            title=f"Joinery disruption: {money(view.disruptions.before)}/h to {money(view.disruptions.after)}/h",
            kind="disruption",
            now=view.now,
            headline=f"{headline(view)}.",
            prices=view.prices,
            notices=view.notices,
            workloads=_workloads(view),
            figures=_figures(view),
            under_figures=_sentences(view),
            sections=join(filter(None, sections)),
            footer=_footer(view),
            style=part("disruptions.css"),
        )
    )


def _workloads(view: DisruptionView) -> tuple[Workload, ...]:
    """Those that have a colour: what is on nodes that go or come."""
    drawn = {part.workload for node in (*view.retired, *view.bought) for part in node.filled.parts}
    return tuple(workload for workload in view.workloads if workload in drawn)


def _figures(view: DisruptionView) -> Html:
    decision = view.disruptions
    kind = "good" if view.savings > 0 else "bad" if view.savings < 0 else ""
    figures = [
        figure("before", "Before", f"{money(decision.before)}/h", count(len(view.before), "node")),
        figure("after", "After", f"{money(decision.after)}/h", count(len(view.after), "node")),
        figure("savings", "Saves", f"{money(view.savings)}/h", monthly(view.savings), kind=kind),
        figure("evictions", "Evictions", f"{view.evicted:,}", _counts(view)),
    ]
    if decision.lower_bound > 0:
        note = f"of {money(decision.after + decision.moves)}/h with its moves" if decision.moves else "nothing cheaper"
        figures.append(figure("lower-bound", "Proven bound", f"{money(decision.lower_bound)}/h", note))
        if decision.gap < TELLING:
            figures.append(figure("gap", "Gap", f"{decision.gap:.1%}", "above the bound at most"))
    nodes = len({name for group in view.held for name in group.nodes})
    figures.append(
        figure("held", "Held", f"{nodes:,}", f"by {count(len(view.held), 'rule')}" if nodes else "by no rule")
    )
    return join(figures)


def _counts(view: DisruptionView) -> str:
    if not view.evicted:
        return "no pod moves"
    repaid = view.repaid_in
    return f"count as {money(view.move_price)}" + (f", which pays for itself in {spoken(repaid)}" if repaid else "")


def _sentences(view: DisruptionView) -> Html:
    lines = [element("p", text(f"{sentence}.")) for sentence in totals(view)]
    if view.disruptions.lower_bound <= 0:
        return element("div", *lines, class_="comes-to")
    meant = element(
        "details", element("summary", text("What the bound means")), *(element("p", text(one)) for one in _BOUND),
        class_="bound",
    )  # fmt: skip
    return join((element("div", *lines, class_="comes-to"), meant))


def _footer(view: DisruptionView) -> Html:
    decision = view.disruptions
    struck = "; the time limit struck, more time may find more savings" if decision.limit_struck else ""
    return join(
        element("p", text(sentence))
        for sentence in (
            f"Decided in {view.seconds:.2f} s ({decision.method}){struck}. Nothing was changed.",
            f"{view.prices.origin}.",
            "Prices are the catalogue's for each node's own type, zone and capacity type.",
            "The same decision for scripts: joinery disrupt -o json.",
        )
    )
