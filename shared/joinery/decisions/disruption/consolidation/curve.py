"""The curve: what the cluster would cost after how many evictions, if a move counted as more or less.

The chosen commands and their prefixes are points of it. Others come from the optimiser at other prices of a move. They
are estimates: no simulation has checked them under every rule.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from joinery.decisions.disruption.consolidation.model import ConsolidationModel
from joinery.decisions.disruption.decision import CurvePoint, DecidedCommand
from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.consolidation.choice import consolidate
from joinery.decisions.optimizer.effort import Effort

#: Of the price of a move, at which the optimiser is asked again.
_MULTIPLES = (2.5, 0.3)


def prefixes(before: float, commands: Iterable[DecidedCommand], hourly: Mapping[str, float]) -> tuple[CurvePoint, ...]:
    """What the cluster costs after each prefix of the commands, by evictions; the last one is chosen. ``hourly``: $/h
    that the moves of each node count as, by name of its claim.
    """
    last = CurvePoint(0, before)
    points = {0: last}
    for command in commands:
        moves = last.moves + sum(hourly[name] for name in command.retire)
        last = CurvePoint(last.pods + len(command.pods), last.hourly - command.savings, moves)
        points[last.pods] = last
    return tuple(replace(point, is_chosen=point is last) for point in points.values())


def points_at_other_prices(model: ConsolidationModel, before: float, effort: Effort) -> tuple[CurvePoint, ...]:
    """What other prices of a move would lead to."""
    points: list[CurvePoint] = []
    if (
        int(model.instance.bins.compatible.sum()) > tuning.FEW_BIN_PAIRS
    ):  # it would take longer than the decision itself
        return ()
    for multiple in _MULTIPLES:
        if effort.is_over():
            break
        instance = replace(model.instance, moves=model.instance.moves * multiple)
        choice = consolidate(instance, effort, is_swift=True)
        moves = float(instance.moves[instance.may_retire & ~choice.keep].sum())
        hourly = before - (instance.cost_as_it_is - model.forced - (choice.cost - moves))
        points.append(CurvePoint(int(instance.displaced(choice.keep).sum()), hourly, moves / multiple))
    return tuple(points)


def merged(points: Iterable[CurvePoint], more: Iterable[CurvePoint]) -> tuple[CurvePoint, ...]:
    """The cheapest for growing numbers of evictions; the chosen point is always among them."""
    chosen = next((point for point in points if point.is_chosen), None)
    curve: list[CurvePoint] = []
    for point in sorted((*points, *more), key=lambda point: (point.pods, point.hourly, not point.is_chosen)):
        is_beaten = bool(curve) and point.hourly >= curve[-1].hourly
        if point is chosen:
            curve = [earlier for earlier in curve if earlier.hourly > point.hourly and earlier.pods < point.pods]
            curve.append(point)
        elif not is_beaten:
            curve.append(point)
    return tuple(curve)
