"""How good decisions are: figures of one file, and what is promised of all of them together."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision
from joinery.objects.objections import ObjectionCode
from tools.bench.frame import Target
from tools.consolidation.judging import Verdict

#: Dollars an eviction counts in the objective, whatever the decision was asked with.
EVICTION = 0.01
#: Prices are sums of floats.
_NEAR = 1e-4


@dataclass(frozen=True)
class Decision:
    """What was decided, and the seconds that it took: by the clock, and of the processor."""

    disruptions: DisruptionDecision
    wall: float = 0.0
    processor: float = 0.0

    @property
    def commands(self) -> Sequence[DecidedCommand]:
        return self.disruptions.commands

    @property
    def evictions(self) -> int:
        return sum(len(command.pods) for command in self.commands)


def waiting_for_budgets(decision: DisruptionDecision) -> set[str]:
    """The claims that a budget alone keeps."""
    return {node.node_claim for node in decision.staying if node.objection.code is ObjectionCode.BUDGET}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One file: its decision, what others make of it, and what was found to be wrong.

    reference   what another controller comes to (``after``, ``evictions``, ``repack``), where the folder says so
    violations  that verification finds in the states which the commands lead through
    rounds      the decision about the state that this one leads to; where budgets kept nodes, those after it
    free        the decision when moves cost nothing and budgets do not bind
    """

    name: str
    decision: Decision
    reference: Mapping[str, float] = field(default_factory=dict)
    violations: tuple[str, ...] = ()
    verdict: Verdict | None = None
    rounds: tuple[Decision, ...] = ()
    free: Decision | None = None

    @property
    def decisions(self) -> Sequence[Decision]:
        """All rounds that budgets spread this decision over; without those, this one."""
        return [self.decision, *(self.rounds if waiting_for_budgets(self.decision.disruptions) else ())]

    @property
    def after(self) -> float:
        return self.decisions[-1].disruptions.after

    @property
    def evictions(self) -> int:
        return sum(decision.evictions for decision in self.decisions)

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
        return self.objective / self.reference_objective if self.reference_objective else None

    @property
    def share_of_evictions(self) -> float | None:
        """The evictions at which the curve reaches the reference's price, as a share of the reference's.

        None where the reference evicts nothing; infinite where the curve does not get there.
        """
        if not self.reference.get("evictions"):
            return None
        wanted = self.reference["after"] + _NEAR
        evicted, reached = 0, []
        for decision in self.decisions:
            reached += [evicted + point.pods for point in decision.disruptions.curve if point.hourly <= wanted]
            evicted += decision.evictions
        return min(reached) / self.reference["evictions"] if reached else float("inf")

    @property
    def against_repacking(self) -> float | None:
        """What the cluster costs when moves are free, over a repacking from scratch."""
        if self.free is None or not self.reference.get("repack"):
            return None
        return self.free.disruptions.after / self.reference["repack"]

    @property
    def found_again(self) -> Sequence[DecidedCommand]:
        """The commands of the last round, which comes after one that waited for no budget."""
        return self.rounds[-1].commands if self.rounds else ()

    @property
    def ok(self) -> bool:
        is_right = self.verdict is None or not self.verdict.errors
        return is_right and not (self.violations or self.contradictions or self.found_again)

    @property
    def contradictions(self) -> Sequence[str]:
        """What the decision claims and others disprove."""
        disruptions, reference = self.decision.disruptions, self.reference_objective
        remarks = []
        if reference and not waiting_for_budgets(disruptions) and disruptions.lower_bound > reference + _NEAR:
            remarks.append(f"the lower bound is {disruptions.lower_bound}, and the reference reaches {reference:.4f}")
        if self.rounds and abs(disruptions.after - self.rounds[0].disruptions.before) > _NEAR:
            remarks.append(f"{disruptions.after} $/h are to be left, and it is {self.rounds[0].disruptions.before}")
        return remarks


def targets(results: Sequence[Measured]) -> list[Target]:
    """What is promised of all files together, in the order in which it is promised."""
    median = statistics.median
    ratios = [one.ratio for one in results]
    promises = (
        ("objective against the reference, median", ratios, median, 0.90),
        ("the same, worst file", ratios, max, 1.005),
        ("evictions until the reference's price", [one.share_of_evictions for one in results], median, 0.60),
        ("free moves against a repacking, worst file", [one.against_repacking for one in results], max, 1.01),
        ("gap to the bound, median", [one.decision.disruptions.gap for one in results], median, 0.01),
    )
    asked = [one for one in results if one.rounds]
    loud = [one.name for one in asked if one.found_again]
    quiet = f"not: {', '.join(loud)}" if loud else f"all of {len(asked)}"
    return [
        *(
            Target.of(figure, f"at most {most:.1%}", values, over_all, most.__ge__)
            for figure, values, over_all, most in promises
        ),
        Target("files whose second decision finds nothing", "all", quiet, not loud if asked else None),
    ]
