"""A plan that verification agrees with, whatever goes wrong on the way to it.

A mistake of the packing core must not keep every pod waiting. Where verification refuses the optimised packing,
first-fit's own is tried. Where it refuses that too, the pods at fault are left out, with the violation as their reason,
and the rest is packed anew. Once the time limit has passed nothing is packed anew: the nodes at fault are given up, and
the rest of the plan stays.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

import msgspec

from joinery.decisions.scheduling.interruptions import solve_at_risk
from joinery.decisions.scheduling.packing import Packing, Unplaced, Unproven, placed_pods
from joinery.decisions.scheduling.paid import recounted, solve_paid
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode, Subject, SubjectKind
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.decisions.verification.verify import check_bounds, verify
from joinery.decisions.verification.violation import Violation
from joinery.objects.kubernetes.core import Pod

_ROUNDS = 8
#: How often a plan is cut once time is up. The last cut leaves nothing of it.
_CUTS = 3
_SHOWN = 3

#: Packs a problem without the pods that are refused already, by name; those are unplaced in the packing.
Solver = Callable[[Problem, Mapping[str, Unplaced]], Unproven]


class WarningCode(StrEnum):
    """What had to be given up on the way to a plan."""

    BOUND_REFUSED = "BoundRefused"
    PLAN_REFUSED = "PlanRefused"
    PODS_LEFT_OUT = "PodsLeftOut"


@dataclass(frozen=True, kw_only=True)
class PlanWarning:
    """A mistake of Joinery's own that the plan had to go round; people should see it and report it.

    ``violations``: what verification found in a packing, by its ``method``. ``pods``: those that are left out, because
    every plan with them was refused.
    """

    code: WarningCode
    violations: tuple[Violation, ...] = ()
    method: str = ""
    pods: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.code:
            case WarningCode.BOUND_REFUSED:
                return f"the bound was refused by the check, and the plan has none: {_shown(self.violations)}"
            case WarningCode.PLAN_REFUSED:
                return f"a plan ({self.method}) was refused by the check: {_shown(self.violations)}"
            case WarningCode.PODS_LEFT_OUT:
                first = min(self.pods)
                return f"{len(self.pods)} pods are left out, because of that; the first is {first}; please report this"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A packing, and the violations that it still has; with any it must not be acted upon.

    ``proof``: of a packing without bounds, works them out; None where nothing can be proven, or is proven already.
    """

    packing: Packing
    violations: tuple[Violation, ...] = ()
    warnings: tuple[PlanWarning, ...] = ()
    proof: Callable[[], Packing] | None = field(default=None, compare=False, repr=False)

    def proven(self) -> "Plan":
        """The same plan with its bounds; without them, and with a warning, where they cannot be right.

        May take seconds, but never much longer than the problem's time limit.
        """
        if self.proof is None:
            return self
        packing = self.proof()
        if violations := tuple(check_bounds(packing)):
            warning = PlanWarning(code=WarningCode.BOUND_REFUSED, violations=violations)
            return replace(self, warnings=(*self.warnings, warning), proof=None)
        return replace(self, packing=packing, proof=None)


def plan(
    problem: Problem, *, stopwatch: Stopwatch = lambda: 0.0, refused: Mapping[str, Unplaced] = MappingProxyType({})
) -> Plan:
    """Solve and verify, without the pods that are ``refused`` already. The plan is not proven yet: pods may wait for
    it, and nothing that is proven of it changes it.

    Costs what those cost, unless a packing is refused; then a second packing, and seldom a few more.
    """
    return checked(
        problem,
        lambda variant, left_out: _solved(variant, stopwatch, {**refused, **left_out}),
        is_late=lateness(problem, stopwatch),
    )


def _solved(problem: Problem, stopwatch: Stopwatch, refused: Mapping[str, Unplaced]) -> Unproven:
    """By what is paid, where something is paid for already."""

    def solver(variant: Problem, bounded_at: Problem | None) -> Unproven:
        return solve_at_risk(variant, stopwatch=stopwatch, refused=refused, bounded_at=bounded_at)

    if not problem.commitments:
        return solver(problem, None)
    return solve_paid(problem, solver, is_late=lateness(problem, stopwatch))


def lateness(problem: Problem, stopwatch: Stopwatch) -> Callable[[], bool]:
    """Asks whether the problem's time limit has passed."""
    limit = problem.options.time_limit
    return lambda: limit is not None and stopwatch() > limit


def checked(problem: Problem, solver: Solver, *, is_late: Callable[[], bool] = lambda: False) -> Plan:
    """The first packing of the solver that verification agrees with; after some rounds the last one, with its
    violations. Once it ``is_late``, the last one, cut down to what verification agrees with.
    """
    attempts = _Attempts(problem, solver)
    simpler = replace(problem, options=replace(problem.options, first_fit_only=True))
    for _ in range(_ROUNDS):
        for variant in (problem, simpler):
            attempts.run(variant)
            if not attempts.violations:
                return attempts.plan
            if is_late():
                attempts.give_up_nodes()
                return attempts.plan
        if not attempts.leave_out():
            break
    return attempts.plan


@dataclass
class _Attempts:
    """The packings tried so far. ``refused``: pods that are left out from now on, by name."""

    problem: Problem
    solver: Solver
    refused: dict[str, Unplaced] = field(default_factory=dict)
    warnings: list[PlanWarning] = field(default_factory=list)
    packing: Packing = field(default_factory=Packing)
    violations: tuple[Violation, ...] = ()
    proof: Callable[[], Packing] | None = None

    @property
    def plan(self) -> Plan:
        return Plan(packing=self.packing, violations=self.violations, warnings=tuple(self.warnings), proof=self.proof)

    def run(self, variant: Problem) -> None:
        """Pack and verify."""
        unproven = self.solver(variant, self.refused)
        self.packing, self.proof = unproven.packing, unproven.prove
        self.violations = verify(self.problem, self.packing)
        if self.violations:
            method = self.packing.method
            self.warnings.append(PlanWarning(code=WarningCode.PLAN_REFUSED, violations=self.violations, method=method))

    def give_up_nodes(self) -> None:
        """Take out of the packing what is at fault, until verification agrees with the rest; in the end all of it.

        Of the rest nothing is proven.
        """
        self.proof = None
        for rounds_left in reversed(range(_CUTS)):
            planned = placed_pods(self.packing.existing, self.packing.launches)
            at_fault = _at_fault(self.problem, self.packing, self.violations) if rounds_left else {}
            first = self.violations[0]
            reasons = {name: _left_out_for(at_fault.get(name, first)) for name in at_fault or planned}
            if not reasons:
                break
            self.packing = recounted(self.problem, _without(self.packing, reasons))
            self.warnings.append(PlanWarning(code=WarningCode.PODS_LEFT_OUT, pods=tuple(reasons)))
            self.violations = verify(self.problem, self.packing)
            if not self.violations:
                break

    def leave_out(self) -> bool:
        """Refuse the pods at fault from now on. Returns whether there are any that were not refused before."""
        at_fault = _at_fault(self.problem, self.packing, self.violations)
        newly_refused = {name: violation for name, violation in at_fault.items() if name not in self.refused}
        for name, violation in newly_refused.items():
            self.refused[name] = Unplaced(name, (_left_out_for(violation),))
        if newly_refused:
            self.warnings.append(PlanWarning(code=WarningCode.PODS_LEFT_OUT, pods=tuple(newly_refused)))
        return bool(newly_refused)


def _without(packing: Packing, reasons: dict[str, Reason]) -> Packing:
    """The packing without these pods, and without the new nodes that they were on: the others there have no place."""
    late = Reason.of(ReasonCode.TIME_LIMIT, "its node was refused by the check, and there was no time to plan another")
    given_up = {launch.name for launch in packing.launches if not reasons.keys().isdisjoint(launch.pods)}
    left = {name: late for launch in packing.launches if launch.name in given_up for name in launch.pods} | reasons
    existing = (replace(one, pods=tuple(name for name in one.pods if name not in reasons)) for one in packing.existing)
    unplaced = (*packing.unplaced, *(Unplaced(name, (reason,)) for name, reason in left.items()))
    return replace(
        packing.without_bounds(),
        existing=tuple(one for one in existing if one.pods),
        launches=tuple(launch for launch in packing.launches if launch.name not in given_up),
        unplaced=tuple(sorted(unplaced, key=lambda one: one.pod)),
        relaxed=tuple(one for one in packing.relaxed if one.pod not in left),
    )


def _left_out_for(violation: Violation) -> Reason:
    template = "refused by the check: {violation}; please report this"
    return Reason.of(ReasonCode.REFUSED, template, code=violation.code, violation=violation.message)


def _shown(violations: tuple[Violation, ...]) -> str:
    more = f"; and {len(violations) - _SHOWN} more" if len(violations) > _SHOWN else ""
    return "; ".join(map(str, violations[:_SHOWN])) + more


def _at_fault(problem: Problem, packing: Packing, violations: tuple[Violation, ...]) -> dict[str, Violation]:
    """The planned pods that a violation is about, and all that are like them, each with its violation."""
    pods = problem.snapshot.pods_by_key
    planned = [name for name in placed_pods(packing.existing, packing.launches) if name in pods]
    named: dict[str, Violation] = {}
    launched = _pods_by_subject(packing)
    for violation in violations:
        if (subject := violation.subject) is not None:
            for name in (subject.name,) if subject.kind is SubjectKind.POD else launched.get(subject, ()):
                named.setdefault(name, violation)
    of_sort: dict[bytes, Violation] = {}
    for name, violation in named.items():
        if name in pods:
            of_sort.setdefault(_sort(pods[name]), violation)
    at_fault = {name: named.get(name) or of_sort.get(_sort(pods[name])) for name in planned}
    return {name: violation for name, violation in at_fault.items() if violation is not None}


def _pods_by_subject(packing: Packing) -> Mapping[Subject, list[str]]:
    """The pods of each launch, and those of all launches of each NodePool."""
    pods: dict[Subject, list[str]] = defaultdict(list)
    for launch in packing.launches:
        pods[Subject(SubjectKind.LAUNCH, launch.name)] += launch.pods
        pods[Subject.node_pool(launch.node_pool)] += launch.pods
    return pods


def _sort(pod: Pod) -> bytes:
    """Equal for two pods that differ in their names and states only."""
    return msgspec.json.encode((pod.metadata.namespace, pod.metadata.labels, pod.spec), order="deterministic")
