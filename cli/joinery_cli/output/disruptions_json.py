"""The DisruptionPlan document: a decision about nodes as JSON, keys always in the same order."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from joinery.decisions.disruption.decision import CurvePoint, DecidedCommand, DisruptionDecision, Rejection, StayingNode
from joinery_cli.notices import UserNotice
from joinery_cli.output.json import DIGITS, existing_document, launch_document, moment_text, rounded_down
from joinery_cli.prices import Prices
from joinery_cli.view.costs import CURRENCY
from joinery_cli.view.headroom import Headroom


def disruptions_document(
    disruptions: DisruptionDecision,
    prices: Prices,
    notices: Iterable[UserNotice] = (),
    *,
    now: datetime,
    seconds: float,
    headroom: Headroom | None = None,
) -> Mapping[str, Any]:
    """The whole decision, as ``joinery disrupt -o json`` prints it."""
    return {
        "apiVersion": "joinery.dev/v1",
        "kind": "DisruptionPlan",
        "now": moment_text(now),
        "commands": [_command(command) for command in disruptions.commands],
        "held": [_staying(node) for node in disruptions.staying],
        "refused": [_refused(mistake) for mistake in disruptions.mistakes],
        "cost": {
            "currency": CURRENCY,
            "before": round(disruptions.before, DIGITS),
            "after": round(disruptions.after, DIGITS),
            "lowerBound": max(0.0, rounded_down(disruptions.lower_bound)),
            "gap": max(0.0, round(disruptions.gap, 4)),
            **({"headroom": headroom.document()} if headroom else {}),
            **_within_budgets(disruptions),
        },
        "moves": {
            "pods": sum(len(command.pods) for command in disruptions.commands),
            "price": round(sum(command.move_price for command in disruptions.commands), DIGITS),
            "hourly": round(disruptions.moves, DIGITS),
        },
        "curve": [_point(point) for point in disruptions.curve],
        "catalogue": prices.document(),
        "notices": [notice.document() for notice in notices],
        "solver": {"method": disruptions.method, "seconds": round(seconds, 3), "limit": disruptions.limit_struck},
    }


def _within_budgets(disruptions: DisruptionDecision) -> Mapping[str, Any]:
    if disruptions.within_budgets <= 0:
        return {}
    bound, gap = rounded_down(disruptions.within_budgets), max(0.0, round(disruptions.gap_within_budgets, 4))
    return {"withinBudgets": {"lowerBound": bound, "gap": gap}}


def _command(command: DecidedCommand) -> Mapping[str, Any]:
    return {
        "reason": command.reason.value,
        "message": command.message,
        "retire": command.retire,
        "launch": [launch_document(launch) for launch in command.launches],
        "existing": [existing_document(placement) for placement in command.existing],
        "pods": command.pods,
        "savings": round(command.savings, DIGITS),
        "movePrice": round(command.move_price, DIGITS),
    }


def _staying(node: StayingNode) -> Mapping[str, Any]:
    """``disruption``: what the node is kept from; null where it is kept from all. ``until``: when the rule ends by
    itself; null where nobody knows.
    """
    return {
        "nodeClaim": node.node_claim,
        "reason": node.objection.message,
        "code": node.objection.code.value,
        "disruption": node.disruption.value if node.disruption else None,
        "until": moment_text(node.objection.until) if node.objection.until else None,
    }


def _refused(refused: Rejection) -> Mapping[str, Any]:
    """A command that breaks a rule by Joinery's own check."""
    return {"retire": refused.command.retire, "reason": refused.objection.message}


def _point(point: CurvePoint) -> Mapping[str, Any]:
    return {
        "pods": point.pods,
        "hourly": round(point.hourly, DIGITS),
        "moves": round(point.moves, DIGITS),
        "chosen": point.is_chosen,
    }
