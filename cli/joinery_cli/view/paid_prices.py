"""What commitments pay of the nodes that a decision is about."""

from joinery.decisions.scheduling.ledger import Ledger
from joinery.decisions.scheduling.problem import Problem
from joinery_cli.notices import UserNotice, note
from joinery_cli.view.figures import money


def paid_prices(problem: Problem) -> UserNotice:
    """That a decision about nodes goes by paid prices, and what AWS's list says of the nodes there are."""
    ledger = Ledger(problem)
    idle = [f"{name} {left:.4g}" for name, left in ledger.idle_stock.items()]
    rest = f"; idle: {', '.join(idle)}" if idle else "; nothing of them is idle"
    listed = (
        f"commitments cover {money(ledger.saved_before)}/h of {money(ledger.listed)}/h that the on-demand nodes cost"
    )
    return note(f"paid prices count: {listed}{rest}")
