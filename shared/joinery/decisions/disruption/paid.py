"""Decisions about nodes by what is paid: what commitments cover costs nothing more, and what they have left is free.

A node that a commitment covers saves nothing by going, and its stock is not offered to others meanwhile: what a command
saves by these prices the bill saves at least. What is idle is offered in a second decision, which counts if all of its
nodes are covered in the end, wholly, and it saves more (``scheduling.paid`` has the same for plans).
"""

from dataclasses import replace

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.ledger import Ledger
from joinery.decisions.scheduling.solve import Stopwatch


def decide_paid(problem: DisruptionProblem, *, stopwatch: Stopwatch = lambda: 0.0) -> DisruptionDecision:
    """What saves most of the bill. Costs twice as much as ``decide`` where a commitment has something left, and as much
    where none is known.
    """
    if not problem.packing.commitments:
        return decide(problem, stopwatch=stopwatch)
    ledger = Ledger(problem.packing)
    at_paid_prices = replace(problem, covered=ledger.shares)
    chosen = decide(at_paid_prices, stopwatch=stopwatch)
    proven, limit = chosen.lower_bound, problem.options.time_limit
    if ledger.idle and (limit is None or stopwatch() < limit):
        with_idle = decide(replace(at_paid_prices, packing=ledger.with_idle_free()), stopwatch=stopwatch)
        with_idle = replace(with_idle, commands=tuple(_at_prices(command, ledger) for command in with_idle.commands))
        proven = with_idle.lower_bound
        if _is_covered(with_idle, problem, ledger) and _cost(with_idle) < _cost(chosen):
            chosen = with_idle
    # Nodes that go free their stock for those that come, which no bound at paid prices knows.
    bound = min(max(0.0, proven - ledger.most_freed), _cost(chosen))
    return replace(chosen, lower_bound=bound, gap=_cost(chosen) / bound - 1 if bound else 0.0)


def _cost(decision: DisruptionDecision) -> float:
    """$/h: what decisions are compared by."""
    return decision.after + decision.moves


def _at_prices(command: DecidedCommand, ledger: Ledger) -> DecidedCommand:
    """The command with nodes at the problem's own prices: who launches and checks them knows no others."""
    return replace(command, launches=ledger.at_prices(command.launches))


def _is_covered(decision: DisruptionDecision, problem: DisruptionProblem, ledger: Ledger) -> bool:
    """Whether every new node that counts on a commitment is paid for by one."""
    retired = {claim for command in decision.commands for claim in command.retire}
    gone = {view.name for view in problem.packing.snapshot.views if view.claim in retired}
    launches = [launch for command in decision.commands for launch in command.launches]
    return ledger.covers(launches, gone)
