"""A decision about nodes as one page: before and after side by side, cost against evictions, command by command what
goes and what comes, what stays, and how near all of it is to the best.
"""

import sys

from joinery.objects.karpenter.duration import spoken
from joinery_cli.explained_nodes import lines
from joinery_cli.page import curve, fleet
from joinery_cli.page.bars import scale_of
from joinery_cli.page.rendering import Figure, Frame, rendered
from joinery_cli.view.disruption_view import DisruptionView
from joinery_cli.view.disruption_words import headline, totals
from joinery_cli.view.figures import MOST_GAP, ONE_PRICE, count, money, monthly
from joinery_cli.view.workloads import DrawnWorkload

#: Up to so many nodes of all commands are drawn with their workloads.
_DRAWN_NODES = 600


def print_page(view: DisruptionView) -> None:
    """The page, and nothing else, on standard output."""
    sys.stdout.write(page(view))


def page(view: DisruptionView) -> str:
    """The whole page. One decision gives one page, byte for byte."""
    frame = Frame(
        title=f"Joinery disruption: {money(view.disruptions.before)}/h to {money(view.disruptions.after)}/h",
        kind="disruption",
        now=view.now,
        headline=f"{headline(view)}.",
        prices=view.prices,
        notices=view.notices,
        workloads=_workloads(view),
        figures=_figures(view),
        explanations=tuple(map(lines, view.explanations)),
        explained="nodes",
        footer=_footer(view),
    )
    drawn = [node.filled for node in (*view.retired, *view.bought)]
    return rendered(
        "disruption.html",
        frame,
        "disruptions.css",
        view=view,
        sentences=totals(view),
        fleet=fleet.section(view),
        curve=curve.section(view),
        pixels=fleet.command_scale(view),
        scale=scale_of(drawn, ("cpu", "memory")) if len(drawn) <= _DRAWN_NODES else None,
        staying=_staying(view),
    )


def _staying(view: DisruptionView) -> int:
    """How many nodes stay for a reason."""
    return len({name for group in view.staying for name in group.nodes})


def _workloads(view: DisruptionView) -> tuple[DrawnWorkload, ...]:
    """Those that have a colour: what is on nodes that go or come."""
    drawn = {part.workload for node in (*view.retired, *view.bought) for part in node.filled.parts}
    return tuple(workload for workload in view.workloads if workload in drawn)


def _figures(view: DisruptionView) -> tuple[Figure, ...]:
    decision = view.disruptions
    kind = "good" if view.savings > 0 else "bad" if view.savings < 0 else ""
    figures = [
        Figure("before", "Before", f"{money(decision.before)}/h", count(len(view.before), "node")),
        Figure("after", "After", f"{money(decision.after)}/h", count(len(view.after), "node")),
        Figure("savings", "Saves", f"{money(view.savings)}/h", monthly(view.savings), kind=kind),
        Figure("evictions", "Evictions", f"{view.evicted:,}", _counts(view)),
    ]
    if decision.lower_bound > 0:
        note = f"of {money(decision.after + decision.moves)}/h with its moves" if decision.moves else "nothing cheaper"
        figures.append(Figure("lower-bound", "Proven bound", f"{money(decision.lower_bound)}/h", note))
        if decision.gap < MOST_GAP:
            figures.append(Figure("gap", "Gap", f"{decision.gap:.1%}", "above the bound at most"))
        if decision.cost_of_budgets > ONE_PRICE:
            within = f"{decision.gap_within_budgets:.1%} above what they allow now"
            figures.append(Figure("budgets", "Left by budgets", f"{money(decision.cost_of_budgets)}/h", within))
    nodes = _staying(view)
    figures.append(
        Figure("staying", "Staying", f"{nodes:,}", f"by {count(len(view.staying), 'rule')}" if nodes else "by no rule")
    )
    return tuple(figures)


def _counts(view: DisruptionView) -> str:
    if not view.evicted:
        return "no pod moves"
    repaid = view.repaid_in
    return f"count as {money(view.move_price)}" + (f", which pays for itself in {spoken(repaid)}" if repaid else "")


def _footer(view: DisruptionView) -> tuple[str, ...]:
    decision = view.disruptions
    struck = "; the time limit struck, more time may find more savings" if decision.limit_struck else ""
    return (
        f"Decided in {view.seconds:.2f} s ({decision.method}){struck}. Nothing was changed.",
        f"{view.prices.origin}.",
        "Prices are the catalogue's for each node's own type, zone and capacity type.",
        "The same decision for scripts: joinery disrupt -o json.",
    )
