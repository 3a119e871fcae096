"""Decisions about nodes by what is paid: what commitments cover costs nothing more, and what they have left is free.

A node that a commitment covers saves nothing by going, and its stock is not offered to others meanwhile: what a command
saves by these prices the bill saves at least. What is idle is offered in a second decision, of which those commands
count whose nodes are covered in the end, wholly, if they save more (``scheduling.paid`` has the same for plans).

What is proven of either is of nodes at these prices. Nodes that come may use what is left of a stock, and what those
free that go, so what that can save at most is taken off; the better of the two counts.
"""

from collections.abc import Sequence
from dataclasses import replace

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.validate import allowed_now
from joinery.decisions.disruption.validation.verified import violations_of
from joinery.decisions.scheduling.ledger import FREE, Ledger
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
    proven, limit = chosen.lower_bound - ledger.most_paid(1.0), problem.options.time_limit
    in_budgets = chosen.within_budgets - ledger.most_paid(1.0) if chosen.within_budgets else 0.0
    if ledger.idle and (limit is None or stopwatch() < limit):
        with_idle = decide(replace(at_paid_prices, packing=ledger.with_idle_free()), stopwatch=stopwatch)
        with_idle = replace(with_idle, commands=tuple(_at_prices(command, ledger) for command in with_idle.commands))
        proven = max(proven, with_idle.lower_bound - ledger.most_paid(FREE))
        chosen = min(chosen, _as_far_as_it_pays(with_idle, chosen, problem, ledger), key=_cost)
    bound = min(max(0.0, proven), _cost(chosen))
    gap = _cost(chosen) / bound - 1 if bound else 0.0
    within = min(max(bound, in_budgets), _cost(chosen)) if in_budgets else 0.0
    return replace(chosen, lower_bound=bound, within_budgets=within, gap=gap)


def _cost(decision: DisruptionDecision) -> float:
    """$/h: what decisions are compared by."""
    return decision.after + decision.moves


def _at_prices(command: DecidedCommand, ledger: Ledger) -> DecidedCommand:
    """The command with nodes at the problem's own prices: who launches and checks them knows no others."""
    return replace(command, launches=ledger.at_prices(command.launches))


def _as_far_as_it_pays(
    with_idle: DisruptionDecision, usual: DisruptionDecision, problem: DisruptionProblem, ledger: Ledger
) -> DisruptionDecision:
    """Those commands all of whose nodes that count on a commitment are paid for by one, the first ones first; and for
    the nodes that they leave, the usual ones.
    """
    kept: list[DecidedCommand] = []
    for command in with_idle.commands:
        if _covers([*kept, command], problem, ledger):
            kept.append(command)
    gone = {name for command in kept for name in command.retire}
    rest = [command for command in usual.commands if gone.isdisjoint(command.retire)]
    commands = allowed_now([*kept, *rest], problem).commands if rest else tuple(kept)
    if any(one not in commands for one in kept) or violations_of(problem.packing, commands):
        rest, commands = [], tuple(kept)
    retired = {name for command in commands for name in command.retire}
    return replace(
        with_idle,
        commands=commands,
        staying=tuple(one for one in (*usual.staying, *with_idle.staying) if one.node_claim not in retired),
        after=with_idle.before - sum(command.savings for command in commands),
        moves=_moves(with_idle, kept) + _moves(usual, [command for command in commands if command not in kept]),
        curve=with_idle.curve if len(kept) == len(with_idle.commands) and len(kept) == len(commands) else (),
    )


def _moves(decision: DisruptionDecision, commands: Sequence[DecidedCommand]) -> float:
    """$/h that the moves of some of a decision's commands count as."""
    whole = sum(command.move_price for command in decision.commands)
    return decision.moves * sum(command.move_price for command in commands) / whole if whole else 0.0


def _covers(commands: Sequence[DecidedCommand], problem: DisruptionProblem, ledger: Ledger) -> bool:
    """Whether every new node that counts on a commitment is paid for by one."""
    retired = {claim for command in commands for claim in command.retire}
    gone = {view.name for view in problem.packing.snapshot.views if view.claim in retired}
    return ledger.covers([launch for command in commands for launch in command.launches], gone)
