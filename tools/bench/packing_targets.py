"""What the packing promises, as figures over a benchmark's results: which scenarios count for which target, and whether
it holds.

Costs compare only where both planners place the same number of pods. A target that no scenario of the folder speaks to
is not missed: it is not measured.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tools.bench.frame import Target

_LARGE = 2000
_TEN_THOUSAND, _CLASSES = 10_000, 50


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One scenario: what its plan is, how long each run took, and what the reference planner answers.

    ``resource_only``: nothing but requests decides where its pods go. ``classes``: pods that ask for the same, counted
    once. ``verdict`` is the judge's report, where there was a judge. ``alike``: every run gave the same plan.
    """

    name: str
    pods: int
    classes: int
    resource_only: bool
    plan: dict[str, Any]
    seconds: tuple[float, ...]
    alike: bool = True
    reference: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None

    @property
    def hourly(self) -> float:
        return float(self.plan["cost"]["hourly"])

    @property
    def gap(self) -> float:
        return float(self.plan["cost"]["gap"])

    @property
    def median(self) -> float:
        """Seconds from parsed objects to verified plan."""
        return statistics.median(self.seconds)

    @property
    def rate(self) -> float:
        """Pods per second."""
        return self.pods / self.median

    @property
    def reference_rate(self) -> float | None:
        seconds = self.reference.get("seconds") if self.reference else None
        return self.pods / float(seconds) if seconds else None

    @property
    def ratio(self) -> float | None:
        """Cost over the reference's; None where they do not place the same number of pods."""
        if not self.reference or not self.reference.get("hourly"):
            return None
        same = len(self.plan["unschedulable"]) == self.reference["unschedulable"]
        return self.hourly / float(self.reference["hourly"]) if same else None

    @property
    def faster(self) -> float | None:
        """How many times the reference's pods per second."""
        return self.rate / self.reference_rate if self.reference_rate else None

    @property
    def preferences_kept(self) -> int | None:
        """Preferences kept beyond the reference's; negative where fewer. None without a judge."""
        if self.verdict is None or not self.reference or "judge" not in self.reference:
            return None
        return int(self.verdict["preferences"]["satisfied"]) - int(self.reference["judge"]["preferences"])


def targets(results: Sequence[Measured]) -> list[Target]:
    """Every target, in the order in which it is promised."""
    resources = [one for one in results if one.resource_only and not one.name.startswith("trace-")]
    large = [one for one in results if one.pods >= _LARGE]
    small = [one for one in results if one.pods < _LARGE]
    crowds = [one for one in results if one.pods >= _TEN_THOUSAND and one.classes <= _CLASSES]
    races = [one for one in results if one.name.startswith("benchmark-mix") or one.name == "trace-gpu"]
    differ = [one.name for one in results if not one.alike]
    return [
        _cost("cost against the reference, median", results, statistics.median, 0.80),
        _cost("the same, resource-only files", resources, statistics.median, 0.75),
        _cost("the same, worst scenario", results, max, 1.01),
        _cost("the same, trace-cpu", [one for one in results if one.name == "trace-cpu"], max, 0.78),
        _cost("the same, trace-gpu", [one for one in results if one.name == "trace-gpu"], max, 0.75),
        _gap(f"gap to the bound, {_LARGE:,} pods or more, median", large, 0.01),
        _gap("the same, smaller files", small, 0.03),
        Target.of(
            f"seconds, {_TEN_THOUSAND:,} pods in up to {_CLASSES} classes, slowest file",
            "under 2 s",
            [one.median for one in crowds],
            max,
            lambda seconds: seconds < 2,
            "{:.2f} s",
        ),
        Target.of(
            "pods per second against the reference, benchmark mixes and trace-gpu, slowest file",
            "at least 10x",
            [one.faster for one in races],
            min,
            lambda times: times >= 10,
            "{:.1f}x",
        ),
        Target.of(
            "preferences kept beyond the reference's, worst scenario",
            "at least 0",
            [one.preferences_kept for one in results],
            min,
            lambda more: more >= 0,
            "{:+.0f}",
        ),
        Target(
            "scenarios whose runs all give one plan",
            "all",
            f"differ: {', '.join(differ)}" if differ else f"all of {len(results)}",
            not differ,
        ),
    ]


def _cost(figure: str, results: Sequence[Measured], of: Callable[[list[float]], float], most: float) -> Target:
    more = [None if one.ratio is None else one.ratio - 1 for one in results]
    return Target.of(figure, f"at most {most - 1:+.0%}", more, of, (most - 1).__ge__, "{:+.1%}")


def _gap(figure: str, results: Sequence[Measured], most: float) -> Target:
    gaps = [one.gap for one in results if one.plan["launch"]]
    return Target.of(figure, f"under {most:.0%}", gaps, statistics.median, most.__gt__)
