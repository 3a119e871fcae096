"""A decision without the commands that an independent check refuses, with figures that are true without them.

A mistake of Joinery's own must neither be carried out nor hide what is right: each command is right by itself.
"""

from dataclasses import dataclass, replace

from joinery.disruption.disruptions import CurvePoint, Disruption, Disruptions
from joinery.disruption.problem import DisruptionProblem
from joinery.disruption.validation import validate


@dataclass(frozen=True)
class Verified:
    """``decision``: what is left. ``refused``: the commands that are not, each with the rule that it breaks."""

    decision: Disruptions
    refused: tuple[tuple[Disruption, str], ...] = ()


def verified(problem: DisruptionProblem, decision: Disruptions) -> Verified:
    """Check the decision in the snapshot that it was made from."""
    validation = validate(problem.packing, decision.commands, problem.packing.snapshot)
    if not validation.dropped:
        return Verified(decision)
    commands = validation.valid
    after = decision.after + sum(command.savings for command, _ in validation.dropped)
    pods = sum(len(command.pods) for command in commands)
    points = (CurvePoint(0, decision.before), CurvePoint(pods, after, is_chosen=True))
    rest = replace(
        decision,
        commands=commands,
        after=after,
        gap=_gap(problem, commands, after, decision.lower_bound),
        # The points between belong to other commands.
        curve=points if pods else points[1:],
    )
    return Verified(rest, validation.dropped)


def _gap(problem: DisruptionProblem, commands: tuple[Disruption, ...], after: float, bound: float) -> float:
    """How far price and moves are above the bound, moves spread over the payback time."""
    hours = problem.options.payback.total_seconds() / 3600
    moves = sum(command.move_price for command in commands) / hours
    return max(0.0, (after + moves - bound) / bound) if bound > 0 else 0.0
