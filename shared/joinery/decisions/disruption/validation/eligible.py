"""Which candidates budgets let go at all, asked before a plan is made.

A plan forces drifted nodes out together. Where no more may go for drift, they may still be empty, or worth it; and few
of those that wait for the trial of an image may be one command too large. So may the nodes of a gang: as many are
planned for, the dearest first, as it can spare.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from joinery.decisions.disruption.candidates import Candidate, Candidates
from joinery.decisions.disruption.decision import DecidedCommand, StayingNode
from joinery.decisions.disruption.gangs import RunningGangs
from joinery.decisions.disruption.pool_shares import RunningShares, kept_for_shares
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.budget_check import BudgetCheck
from joinery.decisions.disruption.validation.canaries import image_for, waiting_for_trials
from joinery.decisions.lifecycle.pools.registration_health import drift_objection
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection

_DRIFTED, _UNDERUTILIZED = DisruptionReason.DRIFTED, DisruptionReason.UNDERUTILIZED


@dataclass(frozen=True)
class Eligible:
    """``candidates``: all, by name of their claims, with the reasons for which they may go now: none for those that
    budgets keep. ``staying``: what is kept from going, and why.
    """

    candidates: Mapping[str, Candidate]
    staying: tuple[StayingNode, ...]


def eligible(found: Candidates, problem: DisruptionProblem) -> Eligible:
    """What budgets, rates and trials of images let each candidate go for, as if it went alone; and gangs, as if all of
    their nodes went.
    """
    budgets = BudgetCheck(problem, found.nodes)
    candidates: dict[str, Candidate] = {}
    staying: list[StayingNode] = []
    for candidate in found.candidates:
        name, objections = candidate.claim.metadata.name, _objections(candidate, budgets)
        staying += [StayingNode(name, objection, reason) for reason, objection in objections.items()]
        candidates[name] = replace(candidate, reasons=candidate.reasons - objections.keys())
    staying += _spared(candidates, RunningGangs(problem.packing.snapshot))
    staying += kept_for_shares(candidates, RunningShares(problem.packing.snapshot, found.nodes))
    drifted = [candidate for candidate in candidates.values() if candidate.is_drifted]
    failed = () if problem.options.ignore_budgets else _after_failures(drifted, problem.packing.snapshot.now)
    # A trial says more of what is wrong.
    waiting = {**dict(failed), **waiting_for_trials(drifted, budgets.trials, problem.packing.snapshot)}
    for name, objection in waiting.items():
        staying.append(StayingNode(name, objection, _DRIFTED))
        candidates[name] = replace(candidates[name], reasons=candidates[name].reasons - {_DRIFTED})
    return Eligible(candidates, tuple(staying))


def _after_failures(drifted: Iterable[Candidate], now: datetime) -> Iterator[tuple[str, Objection]]:
    """Which drifted nodes stay because what replaces them would not join. One without pods needs no replacement."""
    of_pool: dict[str, Objection | None] = {}
    for candidate in drifted:
        pool = candidate.pool
        if pool.metadata.name not in of_pool:
            of_pool[pool.metadata.name] = drift_objection(pool, now)
        objection = of_pool[pool.metadata.name]
        if objection is not None and candidate.pods:
            yield candidate.claim.metadata.name, objection


def _spared(candidates: dict[str, Candidate], gangs: RunningGangs) -> Iterator[StayingNode]:
    """Take from the candidates what no gang can spare together with those before it."""
    for name, candidate in sorted(candidates.items(), key=lambda item: (-item[1].price, item[0])):
        pods = [pod.key for pod in candidate.pods]
        if _UNDERUTILIZED not in candidate.reasons:
            continue
        if objection := gangs.objection(pods):
            candidates[name] = replace(candidate, reasons=candidate.reasons - {_UNDERUTILIZED})
            yield StayingNode(name, objection, _UNDERUTILIZED)
        else:
            gangs.take(pods)


def _objections(candidate: Candidate, budgets: BudgetCheck) -> Mapping[DisruptionReason, Objection]:
    pods, retire = tuple(pod.key for pod in candidate.pods), (candidate.claim.metadata.name,)
    alone = {
        reason: DecidedCommand(reason=reason, message="", retire=retire, pods=pods)
        for reason in sorted(candidate.reasons)
    }
    return {reason: objection for reason, one in alone.items() if (objection := budgets.objection(one))}


def most_to_go(candidates: Sequence[Candidate | None], budgets: BudgetCheck) -> Sequence[tuple[Sequence[int], int]]:
    """For each NodePool: the indices of its candidates, and how many of them budgets let go now at most, for whatever.

    A candidate may go beside others that are replaced, so the budget for consolidation counts for each.
    """
    of_pool: dict[str, list[int]] = defaultdict(list)
    reasons: dict[str, set[DisruptionReason]] = defaultdict(lambda: {DisruptionReason.UNDERUTILIZED})
    for index, candidate in enumerate(candidates):
        if candidate is not None:
            of_pool[candidate.pool.metadata.name].append(index)
            reasons[candidate.pool.metadata.name] |= candidate.reasons
    return [(indices, max(budgets.left(pool, reason) for reason in reasons[pool])) for pool, indices in of_pool.items()]


def room_for(candidate: Candidate, budgets: BudgetCheck, problem: DisruptionProblem) -> int:
    """How many nodes of the candidate's NodePool may go now, for what it may go for."""
    pool = candidate.pool.metadata.name
    left = min(budgets.left(pool, reason) for reason in candidate.reasons)
    trial = budgets.trials.open(*image_for(candidate.claim, problem.packing.snapshot))
    return left if trial is None else min(left, trial.room)
