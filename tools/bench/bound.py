"""How near their bounds are small plans, and what does proving that cost?

    make bench-small
    python -m tools.bench.bound [--seeds 1] [KIND...]

Plans the seeded clusters of ``small_plans`` and prints a table by kind and by number of pods: the gap to the bound, and
to the one that keeps preferences; how many plans are proven to be the cheapest; and seconds of processor. Exit status 1
if the check refuses a plan.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from tools.bench.frame import show
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
    show(_HEADINGS, _rows(results))
    return 0 if results and all(one.is_right for one in results) else 1


def _measured(kind: str, count: int, seed: int) -> Measured:
    asked = problem(kind, count, seed)
    started = time.process_time()
    plan = solve(asked)
    return Measured(kind, count, plan, time.process_time() - started, not verify(asked, plan))


_HEADINGS = (
    "", "plans", "gap, median", "ninth in ten", "keeping preferences", "ninth in ten", "proven cheapest", "s",
)  # fmt: skip


def _rows(results: Sequence[Measured]) -> Iterator[list[str]]:
    for kind in dict.fromkeys(one.kind for one in results):
        yield [kind, *_row([one for one in results if one.kind == kind])]
    for count in COUNTS:
        yield [f"{count} pods", *_row([one for one in results if one.count == count])]
    yield ["all", *_row(results)]


def _row(results: Sequence[Measured]) -> list[str]:
    bought = [one for one in results if one.plan.launches]
    if not bought:
        return ["0"]
    proven = sum(one.plan.kept_gap < _PROVEN for one in bought) / len(bought)
    gaps = [sorted(one.plan.gap for one in bought), sorted(one.plan.kept_gap for one in bought)]
    figures = [text for of in gaps for text in (f"{statistics.median(of):.2%}", f"{of[int(0.9 * len(of))]:.1%}")]
    return [f"{len(bought)}", *figures, f"{proven:.0%}", f"{statistics.median(one.seconds for one in bought):.2f}"]


if __name__ == "__main__":
    raise SystemExit(main())
