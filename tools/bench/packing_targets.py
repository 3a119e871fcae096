"""What the packing promises, as figures over a benchmark's results: which scenarios count for which target, and whether
it holds.

Costs compare only where both planners place the same number of pods. A target that no scenario of the folder speaks to
is not missed: it is not measured.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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
    def is_trace(self) -> bool:
        return self.name.startswith("trace-")

    @property
    def preferences_kept(self) -> int | None:
        """Preferences kept beyond the reference's; negative where fewer. None without a judge."""
        if self.verdict is None or not self.reference or "judge" not in self.reference:
            return None
        return int(self.verdict["preferences"]["satisfied"]) - int(self.reference["judge"]["preferences"])


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the promise. ``holds`` is None where nothing was measured."""

    figure: str
    target: str
    measured: str
    holds: bool | None


_Value = Callable[[Measured], float | None]


def verdicts(results: Sequence[Measured]) -> list[Verdict]:
    """Every target, in the order in which it is promised."""
    resources = [one for one in results if one.resource_only and not one.is_trace]
    large = [one for one in results if one.pods >= _LARGE]
    crowds = [one for one in results if one.pods >= _TEN_THOUSAND and one.classes <= _CLASSES]
    races = [one for one in results if one.name.startswith("benchmark-mix") or one.name == "trace-gpu"]
    return [
        _cost("cost against the reference, median", results, statistics.median, 0.80),
        _cost("the same, resource-only files", resources, statistics.median, 0.75),
        _cost("the same, worst scenario", results, max, 1.01),
        _cost("the same, trace-cpu", [one for one in results if one.name == "trace-cpu"], max, 0.78),
        _cost("the same, trace-gpu", [one for one in results if one.name == "trace-gpu"], max, 0.75),
        _gap(f"gap to the bound, {_LARGE:,} pods or more, median", large, 0.01),
        _gap("the same, smaller files", [one for one in results if one.pods < _LARGE], 0.03),
        _least_time(crowds),
        _least_speed(races),
        _preferences(results),
        _determinism(results),
    ]


def _values(results: Iterable[Measured], value: _Value) -> list[float]:
    return [found for found in map(value, results) if found is not None]


def _verdict(figure: str, target: str, found: float | None, show: str, holds: Callable[[float], bool]) -> Verdict:
    return (
        Verdict(figure, target, "not measured", None) if found is None else Verdict(figure, target, show, holds(found))
    )


def _cost(figure: str, results: Sequence[Measured], of: Callable[[list[float]], float], most: float) -> Verdict:
    ratios = _values(results, lambda one: one.ratio)
    found = of(ratios) if ratios else None
    target = f"at most {most - 1:+.0%}"
    return _verdict(figure, target, found, f"{(found or 0) - 1:+.1%}", lambda ratio: ratio <= most)


def _gap(figure: str, results: Sequence[Measured], most: float) -> Verdict:
    gaps = _values(results, lambda one: one.gap if one.plan["launch"] else None)
    found = statistics.median(gaps) if gaps else None
    return _verdict(figure, f"under {most:.0%}", found, f"{found or 0:.2%}", lambda gap: gap < most)


def _least_time(results: Sequence[Measured]) -> Verdict:
    found = max(_values(results, lambda one: one.median), default=None)
    figure = f"seconds, {_TEN_THOUSAND:,} pods in up to {_CLASSES} classes, slowest file"
    return _verdict(figure, "under 2 s", found, f"{found or 0:.2f} s", lambda seconds: seconds < 2)


def _least_speed(results: Sequence[Measured]) -> Verdict:
    found = min(_values(results, lambda one: one.faster), default=None)
    figure = "pods per second against the reference, benchmark mixes and trace-gpu, slowest file"
    return _verdict(figure, "at least 10x", found, f"{found or 0:.1f}x", lambda times: times >= 10)


def _preferences(results: Sequence[Measured]) -> Verdict:
    found = min(_values(results, lambda one: one.preferences_kept), default=None)
    figure = "preferences kept beyond the reference's, worst scenario"
    return _verdict(figure, "at least 0", found, f"{found or 0:+.0f}", lambda more: more >= 0)


def _determinism(results: Sequence[Measured]) -> Verdict:
    differ = [one.name for one in results if not one.alike]
    measured = f"differ: {', '.join(differ)}" if differ else f"all of {len(results)}"
    return Verdict("scenarios whose runs all give one plan", "all", measured, not differ)
