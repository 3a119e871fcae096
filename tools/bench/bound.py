"""How near their bounds are small plans, and what does proving that cost?

    make bench-small
    python -m tools.bench.bound [--seeds 1] [KIND...]

Plans the seeded clusters of ``small_plans`` and prints a table by kind and by number of pods: the gap to the bound, and
to the one that keeps preferences; how many plans are proven to be the cheapest; and seconds of processor. Exit status 1
if the check refuses a plan.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from tools.bench.small_plans import COUNTS, KINDS, family, problem

_PROVEN = 0.0005


@dataclass(frozen=True)
class Measured:
    """One plan, and the seconds that it took."""

    kind: str
    count: int
    plan: Packing
    seconds: float
    is_right: bool


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kinds", nargs="*", help=f"some of: {', '.join(KINDS)}")
    parser.add_argument("--seeds", type=int, default=1, help="how many clusters of each kind and size")
    options = parser.parse_args(arguments)
    chosen = [one for one in family(options.seeds) if not options.kinds or one[0] in options.kinds]
    results = [_measured(*one) for one in chosen]
    Console(width=None if sys.stdout.isatty() else 120).print(_table(results))
    return 0 if results and all(one.is_right for one in results) else 1


def _measured(kind: str, count: int, seed: int) -> Measured:
    asked = problem(kind, count, seed)
    started = time.process_time()
    plan = solve(asked)
    return Measured(kind, count, plan, time.process_time() - started, not verify(asked, plan))


def _table(results: Sequence[Measured]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    headings = (
        "",
        "plans",
        "gap, median",
        "ninth in ten",
        "keeping preferences",
        "ninth in ten",
        "proven cheapest",
        "s",
    )
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    for kind in dict.fromkeys(one.kind for one in results):
        table.add_row(kind, *_row([one for one in results if one.kind == kind]))
    for count in COUNTS:
        table.add_row(f"{count} pods", *_row([one for one in results if one.count == count]))
    table.add_row("all", *_row(results))
    return table


def _row(results: Sequence[Measured]) -> list[str]:
    bought = [one for one in results if one.plan.launches]
    if not bought:
        return ["0"]
    proven = sum(one.plan.kept_gap < _PROVEN for one in bought) / len(bought)
    figures = [text for of in (_gap, _kept_gap) for text in _spread(bought, of)]
    return [f"{len(bought)}", *figures, f"{proven:.0%}", f"{statistics.median(one.seconds for one in bought):.2f}"]


def _spread(results: Sequence[Measured], of: Callable[[Measured], float]) -> tuple[str, str]:
    gaps = sorted(of(one) for one in results)
    return f"{statistics.median(gaps):.2%}", f"{gaps[int(0.9 * len(gaps))]:.1%}"


def _gap(one: Measured) -> float:
    return one.plan.gap


def _kept_gap(one: Measured) -> float:
    return one.plan.kept_gap


if __name__ == "__main__":
    raise SystemExit(main())
