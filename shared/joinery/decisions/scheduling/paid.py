"""Plans by what is paid at the margin: what commitments have left costs nothing more, and beyond it prices count.

How a stock gets into a plan. First the plan that counts prices alone, and one in which all that the idle commitments
cover is free. Where that uses no more than is left, it is the best that prices can make of it. Where it uses more, as
many of its covered nodes as the stock pays for become offerings of which there are so many and no more, like capacity
reservations, and nodes are chosen once more. What each plan pays is then worked out as AWS bills it, and the least
counts; no search is exact, so commitments must not make a plan worse.

What is proven. For any price v per unit of a stock S, nodes cost at least what they cost at the lower of their price
and v times what they use, less v S: the Lagrangian relaxation of "no stock is overdrawn". Three v are tried: next to
nothing, where all is covered; so high that no node counts as less than its price, where nothing is; and in between the
one at which covered nodes cost as much as those that prices alone choose. The best of the three counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from msgspec.structs import replace as with_fields

from joinery.decisions.scheduling.interruptions import owed, risk_of, unplaced
from joinery.decisions.scheduling.ledger import FREE, Ledger, with_offerings
from joinery.decisions.scheduling.packing import Packing, Unproven
from joinery.decisions.scheduling.paid_for import Sold, commitments_of
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.commitments import PaidFor

#: Packs a variant of the problem; the second one says at which prices its bound is.
Solver = Callable[[Problem, Problem | None], Unproven]


def solve_paid(problem: Problem, solver: Solver, *, is_late: Callable[[], bool] = lambda: False) -> Unproven:
    """The packing that pays least, with what commitments pay of it.

    Costs twice as much as the solver where commitments have something left, and three times where that is less than a
    plan would use. Once it ``is_late``, nodes are not chosen anew.
    """
    ledger, usual = Ledger(problem), solver(problem, None)

    def accounted(unproven: Unproven, part: float) -> Unproven:
        return unproven.then(lambda plan: ledger.accounted(plan, part))

    plans = [accounted(usual, 1.0)]
    if not ledger.idle or is_late():
        return plans[0]
    at_prices = partial(_at_prices, ledger)
    plans.append(accounted(solver(ledger.counting_as(FREE), None).then(at_prices), FREE))
    free = plans[1].packing
    if ledger.is_overdrawn(free) and not is_late():
        even = min(1.0, usual.packing.hourly / free.hourly)
        mixed = solver(ledger.with_stock(free, problem, FREE), ledger.with_stock(free, ledger.counting_as(even), 1.0))
        plans.append(accounted(mixed.then(at_prices), even))
    return _least(problem, plans)


def with_paid_for(problem: Problem, document: PaidFor, sold: Sold) -> Problem:
    """The problem where this is paid for already, and a share is off every price: a private pricing agreement's.

    ``sold``: the catalogue's offerings of each type.
    """
    off = document.discount
    if off:
        problem = with_offerings(
            problem, lambda kind: tuple(with_fields(one, price=one.price * (1 - off)) for one in kind.offerings)
        )
    commitments = commitments_of(document, sold, problem.snapshot.now)
    return replace(problem, commitments=commitments, paid_for=document)


def recounted(problem: Problem, part: Packing) -> Packing:
    """A part of a plan, with what commitments pay of that."""
    return Ledger(problem).accounted(part, 1.0) if problem.commitments else part


def _at_prices(ledger: Ledger, plan: Packing) -> Packing:
    return replace(plan, launches=ledger.at_prices(plan.launches))


def _least(problem: Problem, plans: Sequence[Unproven]) -> Unproven:
    """The plan that pays least, and is no worse than the first in what comes before price; with the best bound that is
    known for its pods.
    """
    first = plans[0].packing

    def is_as_good(plan: Packing) -> bool:
        return unplaced(plan) == unplaced(first) and owed(problem, plan) <= owed(problem, first)

    def cost(plan: Packing) -> float:
        rates = problem.interruptions
        risk = rates.weight * risk_of(plan.launches, rates).hourly if rates else 0.0
        return plan.paid + plan.resilience_cost + risk

    as_good = (plan for plan in plans if is_as_good(plan.packing))
    best = min(as_good, key=lambda plan: cost(plan.packing), default=plans[0])
    alike = [plan for plan in plans if plan is not best and _bought(plan.packing) == _bought(best.packing)]

    def proven() -> Packing:
        packing = best.prove()
        return replace(packing, lower_bound=max([packing.lower_bound, *(plan.prove().lower_bound for plan in alike)]))

    return Unproven(best.packing, proven)


def _bought(plan: Packing) -> frozenset[str]:
    return frozenset(pod for launch in plan.launches for pod in launch.pods)
