"""A plan that the independent check agrees with, whatever goes wrong on the way to it.

A mistake of the packing core must not keep every pod waiting: where ``verify`` refuses the optimised packing, first-fit's own is
tried; where it refuses that too, the pods at fault are left out, with the check's words as their reason, and the rest is packed anew.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from joinery.apis.core import Pod
from joinery.scheduling.packing import Packing, Reason, Unplaced
from joinery.scheduling.problem import Problem
from joinery.scheduling.solve import Stopwatch, solve
from joinery.verification.verify import verify

_ROUNDS = 8
_SHOWN = 3

Solver = Callable[[Problem, Mapping[str, Unplaced]], Packing]
"""Packs a problem without the pods that are refused already, by name; those are unplaced in the packing."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A packing with what the check still holds against it: nothing, or it must not be acted upon.

    ``warnings``: what had to be refused before, in a line each. They are about mistakes of ours, and people should see them.
    """

    packing: Packing
    violations: tuple[Reason, ...] = ()
    warnings: tuple[str, ...] = ()


def plan(
    problem: Problem, *, stopwatch: Stopwatch = lambda: 0.0, refused: Mapping[str, Unplaced] = MappingProxyType({})
) -> Plan:
    """Solve and verify, without the pods that are ``refused`` already.

    Costs what those cost, unless a packing is refused; then a second packing, and seldom a few more.
    """
    return checked(problem, lambda asked, left: solve(asked, stopwatch=stopwatch, refused={**refused, **left}))


def checked(problem: Problem, solver: Solver) -> Plan:
    """The first packing of the solver that the check agrees with; after some rounds the last one, with its violations."""
    attempts = _Attempts(problem, solver)
    plain = replace(problem, options=replace(problem.options, first_fit_only=True))
    for _ in range(_ROUNDS):
        for asked in (problem, plain):
            attempts.run(asked)
            if not attempts.violations:
                return attempts.plan
        if not attempts.leave_out():
            break
    return attempts.plan


@dataclass
class _Attempts:
    problem: Problem
    solver: Solver
    refused: dict[str, Unplaced] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    packing: Packing = field(default_factory=Packing)
    violations: tuple[Reason, ...] = ()

    @property
    def plan(self) -> Plan:
        return Plan(packing=self.packing, violations=self.violations, warnings=tuple(self.warnings))

    def run(self, asked: Problem) -> None:
        self.packing = self.solver(asked, self.refused)
        self.violations = verify(self.problem, self.packing)
        if self.violations and all(reason.code == "Cost" for reason in self.violations):
            self.warnings.append(
                f"the bound was refused by the check, and the plan has none: {_shown(self.violations)}"
            )
            self.packing = replace(self.packing, lower_bound=0.0, kept_bound=0.0)
            self.violations = verify(self.problem, self.packing)
        elif self.violations:
            self.warnings.append(
                f"a plan ({self.packing.method}) was refused by the check and made anew: {_shown(self.violations)}"
            )

    def leave_out(self) -> bool:
        """Refuse the pods at fault from now on; whether any could be told."""
        found = _at_fault(self.problem.snapshot.pods, self.packing, self.violations)
        new = {name: reason for name, reason in found.items() if name not in self.refused}
        for name, reason in new.items():
            words = f"planned twice and refused by the check: {reason.message}; please report this"
            self.refused[name] = Unplaced(name, (Reason("Refused", words, ""),))
        if new:
            self.warnings.append(f"{len(new)} pods are left out for that, the first is {min(new)}; please report this")
        return bool(new)


def _shown(violations: tuple[Reason, ...]) -> str:
    more = f"; and {len(violations) - _SHOWN} more" if len(violations) > _SHOWN else ""
    return "; ".join(map(str, violations[:_SHOWN])) + more


def _at_fault(pods: Iterable[Pod], packing: Packing, violations: Iterable[Reason]) -> dict[str, Reason]:
    """The planned pods that a violation is about, and all that are like them, each with its violation."""
    known = {pod.key: pod for pod in pods}
    found: dict[str, Reason] = {}
    for violation in violations:
        for name in _named(packing, violation.subject):
            found.setdefault(name, violation)
    planned = [name for _, names in _places(packing) for name in names if name in known]
    culprits = [(known[name], reason) for name, reason in found.items() if name in known]
    for name in planned:
        like = next((reason for pod, reason in culprits if _alike(pod, known[name])), None)
        if like is not None:
            found.setdefault(name, like)
    return {name: reason for name, reason in found.items() if name in planned}


def _named(packing: Packing, subject: str) -> Iterator[str]:
    """The pods that a subject stands for: ``pod shop/web-1 (and 3 like it) on default-1``, ``launch default-1``, ``NodePool default``."""
    kind, _, rest = subject.partition(" ")
    if kind == "pod":
        yield re.split(r"\s", rest, maxsplit=1)[0]
    for launch in packing.launches:
        if (kind == "launch" and launch.name == rest) or (kind == "NodePool" and launch.node_pool == rest):
            yield from launch.pods


def _places(packing: Packing) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield from ((one.node or one.node_claim, one.pods) for one in packing.existing)
    yield from ((one.name, one.pods) for one in packing.launches)


def _alike(one: Pod, other: Pod) -> bool:
    same_labels = one.metadata.labels == other.metadata.labels
    return same_labels and one.metadata.namespace == other.metadata.namespace and one.spec == other.spec
