"""What commitments pay of a plan, and what is left of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from joinery.decisions.scheduling.ledger import stocks_left
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery_cli.view.figures import money

_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class CommitmentFigures:
    """``paid``: $/h that the plan adds to the bill. ``covered``: $/h of its price that commitments pay. ``left``: by
    name of a commitment, how much of its stock nobody uses, and the stock.
    """

    paid: float
    covered: float
    left: Mapping[str, tuple[float, float]]

    def lines(self) -> Iterator[str]:
        """``Paid: $0.2/h, because commitments cover $0.44/h of it; still idle: ri 1 of 3``."""
        idle = [f"{name} {left:.4g} of {stock:.4g}" for name, (left, stock) in self.left.items() if left > 0]
        rest = f"; still idle: {', '.join(idle)}" if idle else "; nothing of them is idle"
        yield f"Paid: {money(self.paid)}/h, because commitments cover {money(self.covered)}/h of it{rest}"

    def document(self) -> Mapping[str, Any]:
        """As the Plan document has it."""
        return {
            "paid": round(self.paid, _DIGITS),
            "covered": round(self.covered, _DIGITS),
            "idle": {name: round(left, _DIGITS) for name, (left, _) in self.left.items()},
        }


def commitment_figures(problem: Problem, packing: Packing) -> CommitmentFigures:
    """Of a plan with the nodes that there are."""
    left, stocks = stocks_left(problem, packing), {one.name: one.stock for one in problem.commitments}
    pairs = {name: (left[name], stock) for name, stock in stocks.items()}
    return CommitmentFigures(paid=packing.paid, covered=packing.covered, left=pairs)
