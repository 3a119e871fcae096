"""How good decisions are: figures of one file, and what is promised of all of them together."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tools.consolidation.documents import Document
from tools.consolidation.judging import Verdict
from tools.consolidation.running import Run

#: Dollars an eviction counts in the objective, whatever the decision was asked with.
EVICTION = 0.01
#: Prices are sums of floats.
_NEAR = 1e-4


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One file: its decision, what others make of it, and what was found to be wrong.

    reference   what another controller comes to (``after``, ``evictions``, ``repack``), where the folder says so
    violations  of the command line's contract
    rounds      the decision about the state that this one leads to; where budgets held nodes back, those after it
    free        the decision when moves cost nothing and budgets do not bind
    """

    name: str
    run: Run
    reference: Mapping[str, float] = field(default_factory=dict)
    verdict: Verdict | None = None
    violations: tuple[str, ...] = ()
    rounds: tuple[Run, ...] = ()
    free: Run | None = None

    @property
    def decisions(self) -> Sequence[Document]:
        """The documents of all rounds that budgets spread this decision over; without those, of this one."""
        first = self.run.plan
        later = self.rounds if first is not None and waits_for_budgets(first) else ()
        return [run.plan for run in (self.run, *later) if run.plan is not None]

    @property
    def after(self) -> float:
        return float(self.decisions[-1]["cost"]["after"]) if self.decisions else 0.0

    @property
    def evictions(self) -> int:
        return sum(plan["moves"]["pods"] for plan in self.decisions)

    @property
    def objective(self) -> float:
        """$/h, with every eviction at one cent."""
        return self.after + EVICTION * self.evictions

    @property
    def reference_objective(self) -> float | None:
        if "after" not in self.reference:
            return None
        return self.reference["after"] + EVICTION * self.reference["evictions"]

    @property
    def ratio(self) -> float | None:
        """The objective over the reference's."""
        reference = self.reference_objective
        return self.objective / reference if reference and self.run.plan else None

    @property
    def share_of_evictions(self) -> float | None:
        """The evictions at which the curve reaches the reference's price, as a share of the reference's.

        None where the reference evicts nothing; infinite where the curve does not get there.
        """
        if not self.reference.get("evictions") or not self.run.plan:
            return None
        wanted = self.reference["after"] + _NEAR
        evicted, reached = 0, []
        for plan in self.decisions:
            reached += [evicted + point["pods"] for point in plan["curve"] if point["hourly"] <= wanted]
            evicted += plan["moves"]["pods"]
        return min(reached) / self.reference["evictions"] if reached else float("inf")

    @property
    def against_repacking(self) -> float | None:
        """What the cluster costs when moves are free, over a repacking from scratch."""
        if self.free is None or self.free.plan is None or not self.reference.get("repack"):
            return None
        return float(self.free.plan["cost"]["after"]) / self.reference["repack"]

    @property
    def gap(self) -> float | None:
        return float(self.run.plan["cost"]["gap"]) if self.run.plan else None

    @property
    def found_again(self) -> Sequence[Document]:
        """The commands of the last round, which comes after one that waited for no budget."""
        last = self.rounds[-1].plan if self.rounds else None
        return last["commands"] if last else ()

    @property
    def is_quiet(self) -> bool | None:
        """Whether the last round finds nothing; None where a second was not asked for."""
        return self.rounds[-1].plan is not None and not self.found_again if self.rounds else None

    @property
    def ok(self) -> bool:
        is_judged_right = self.verdict is None or self.verdict.ok
        is_right = is_judged_right and not self.violations and not self.contradictions
        return self.run.plan is not None and is_right and self.is_quiet is not False

    @property
    def contradictions(self) -> Sequence[str]:
        """What the decision claims and others disprove."""
        plan, reference = self.run.plan, self.reference_objective
        remarks = []
        if plan and reference and not waits_for_budgets(plan) and plan["cost"]["lowerBound"] > reference + _NEAR:
            remarks.append(
                f"cost.lowerBound is {plan['cost']['lowerBound']}, and the reference reaches {reference:.4f}"
            )
        second = self.rounds[0].plan if self.rounds else None
        if plan and second and abs(plan["cost"]["after"] - second["cost"]["before"]) > _NEAR:
            remarks.append(f"cost.after is {plan['cost']['after']}, and its state costs {second['cost']['before']}")
        return remarks


def waits_for_budgets(plan: Document) -> set[str]:
    """The claims that a budget alone holds back."""
    return {held["nodeClaim"] for held in plan["held"] if held.get("code") == "Budget"}


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the promise. ``holds`` is None where nothing was measured."""

    figure: str
    target: str
    measured: str
    holds: bool | None


def targets(results: Sequence[Measured]) -> list[Target]:
    """What is promised of all files together, in the order in which it is promised."""
    return [
        _figure("objective against the reference, median", results, lambda one: one.ratio, statistics.median, 0.90),
        _figure("the same, worst file", results, lambda one: one.ratio, max, 1.005),
        _figure(
            "evictions until the reference's price",
            results,
            lambda one: one.share_of_evictions,
            statistics.median,
            0.60,
        ),
        _figure("free moves against a repacking, worst file", results, lambda one: one.against_repacking, max, 1.01),
        _figure("gap to the bound, median", results, lambda one: one.gap, statistics.median, 0.01),
        _silence(results),
    ]


def _figure(
    name: str,
    results: Sequence[Measured],
    value: Callable[[Measured], float | None],
    over_all: Callable[[list[float]], float],
    most: float,
) -> Target:
    values = [number for number in map(value, results) if number is not None]
    if not values:
        return Target(name, f"at most {most:.1%}", "not measured", None)
    measured = over_all(values)
    return Target(name, f"at most {most:.1%}", f"{measured:.2%}", measured <= most)


def _silence(results: Sequence[Measured]) -> Target:
    asked = [one for one in results if one.is_quiet is not None]
    loud = [one.name for one in asked if not one.is_quiet]
    measured = f"not: {', '.join(loud)}" if loud else f"all of {len(asked)}"
    return Target("files whose second decision finds nothing", "all", measured, not loud if asked else None)
