"""What commitments pay of the nodes that a decision is about."""

from joinery.decisions.disruption.paid import PaidDecision
from joinery_cli.notices import UserNotice, note
from joinery_cli.view.figures import money


def paid_prices(paid: PaidDecision) -> UserNotice:
    """That a decision about nodes goes by paid prices, and what AWS's list says of the nodes there are."""
    idle = [f"{name} {left:.4g}" for name, left in paid.idle.items()]
    rest = f"; idle: {', '.join(idle)}" if idle else "; nothing of them is idle"
    listed = f"commitments cover {money(paid.covered)}/h of {money(paid.listed)}/h that the on-demand nodes cost"
    return note(f"paid prices count: {listed}{rest}")
