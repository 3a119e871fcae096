"""What ``make oracle`` prints of its parts: a line a seed, then the figures of all and the verdict."""

import sys
from collections.abc import Sequence
from statistics import median

from rich.console import Console
from rich.table import Table

from tests.oracle.consolidating import DEARER, MORE_EVICTIONS, Consolidated
from tests.oracle.trial import MEDIAN, WORST, Trial


def report_plans(trials: Sequence[Trial]) -> int:
    """What became of plans. Returns the exit status."""
    table = Table("seed", "pods", "given up", "plan $/h", "in the end", "plans", "what is wrong", box=None)
    for trial in trials:
        plan = trial.plans[0]
        figures = (
            len(trial.world.pods),
            trial.given_up,
            f"{plan.hourly:.3f}",
            f"{trial.excess:+.1%}",
            len(trial.plans),
        )
        table.add_row(str(trial.world.seed), *map(str, figures), "; ".join(trial.failures))
    excess = sorted(trial.excess for trial in trials)
    wrong = [trial for trial in trials if trial.failures]
    console = _console()
    console.print(table)
    console.print(
        f"{len(trials)} seeds: {median(excess):+.1%} in the median (target {MEDIAN:+.0%}), "
        f"{_nine_of_ten(excess):+.1%} "
        f"in nine of ten, {excess[-1]:+.1%} at worst (target {WORST:+.0%}); {len(wrong)} with something wrong"
    )
    return 1 if wrong or median(excess) > MEDIAN else 0


def report_consolidation(results: Sequence[Consolidated]) -> int:
    """What became of clusters that were consolidated. Returns the exit status."""
    table = Table(
        "seed", "pods", "nodes", "before $/h", "planned", "in the end", "", "evictions planned", "real", "rounds",
        "unbound", "what is wrong", box=None,
    )  # fmt: skip
    for result in results:
        nodes = f"{result.nodes[0]} -> {result.nodes[1]}"
        money = (f"{result.before:.3f}", f"{result.planned:.3f}", f"{result.after:.3f}", f"{result.excess:+.1%}")
        counts = (result.planned_evictions, result.evictions, result.rounds, result.unbound)
        wrong = "; ".join(result.failures)
        table.add_row(str(result.cluster.seed), str(result.cluster.left), nodes, *money, *map(str, counts), wrong)
    excess = sorted(result.excess for result in results)
    planned, real = (sum(getattr(result, name) for result in results) for name in ("planned_evictions", "evictions"))
    more = real / planned - 1 if planned else float(real > 0)
    wrong_seeds = [result for result in results if result.failures]
    console = _console()
    console.print(table)
    repeated = sum(result.rounds > 1 for result in results)
    as_planned = sum(result.evictions == result.planned_evictions for result in results)
    console.print(
        f"{len(results)} seeds: {median(excess):+.1%} in the median against the plan, {_nine_of_ten(excess):+.1%} in "
        f"nine of ten, {excess[-1]:+.1%} at worst (target {DEARER:+.0%}); {_all_together(results)}"
    )
    console.print(
        f"evictions: {planned} planned, {real} real, {more:+.0%} (target {MORE_EVICTIONS:.0%} more or fewer), as "
        f"planned in {as_planned} seeds; {repeated} seeds took more than one round; "
        f"{len(wrong_seeds)} with something wrong"
    )
    return 1 if wrong_seeds or abs(more) > MORE_EVICTIONS else 0


def _all_together(results: Sequence[Consolidated]) -> str:
    before, planned, after = (sum(getattr(one, name) for one in results) for name in ("before", "planned", "after"))
    return f"all together ${before:.2f}/h before, {planned:.2f} planned, {after:.2f} in the end"


def _nine_of_ten(figures: Sequence[float]) -> float:
    """The figure that nine of ten of these do not exceed. ``figures``: sorted."""
    return figures[len(figures) * 9 // 10]


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 160)
