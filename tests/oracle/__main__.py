"""``make oracle``: seeded clusters before the real scheduler. One line a seed, then the verdict.

``plans``: pods are planned by Joinery and bound by the real scheduler. Exit status 1 if a pod that was planned is not
bound after two more plans, if one that was given up runs after all, or if the price in the end misses the targets: 3 %
above the first plan in the median, 8 % in the worst case.

``consolidation``: clusters that have become too large are consolidated by the product's doors until they find nothing
more. Exit status 1 if a pod has no node in the end, if a cluster ends more than 3 % dearer than its first decision
planned, or if more than 10 % more or fewer pods are evicted than the first decisions planned together.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import track

from joinery.objects.policies import Steering
from tests.controlplane.fixtures import BACKOFF_SECONDS
from tests.controlplane.objects import MANIFEST_FILES, install
from tests.oracle import consolidating
from tests.oracle.arena import Arena
from tests.oracle.consolidating import Consolidated
from tests.oracle.reports import report_consolidation, report_plans
from tests.oracle.trial import Trial, run
from tools.controlplane.plane import LEAST_ALLOCATED, MOST_ALLOCATED, ControlPlane, running

T = TypeVar("T")
PLANS, CONSOLIDATION = "plans", "consolidation"
#: How many seeds are tried of each part.
COUNTS = {PLANS: 200, CONSOLIDATION: 100}


def main() -> int:
    """Run the seeds and print what became of them. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("part", nargs="?", choices=sorted(COUNTS), help="which part alone; both without it")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, help="how many: 200 plans, 100 consolidations")
    parser.add_argument("--together", type=int, default=4, help="how many plans share the control plane at a time")
    parser.add_argument(
        "--scoring",
        choices=(LEAST_ALLOCATED, MOST_ALLOCATED),
        default=LEAST_ALLOCATED,
        help="how the scheduler prefers nodes: those with the most room (its default), or those with the least",
    )
    parser.add_argument("--steering", choices=list(Steering), default=Steering.TAINT, help="the stack's setting")
    given = parser.parse_args()
    parts = [given.part] if given.part else [PLANS, CONSOLIDATION]
    return max([_run(part, given) for part in parts])


def _run(part: str, given: argparse.Namespace) -> int:
    seeds = range(given.first, given.first + (COUNTS[part] if given.count is None else given.count))
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder) / "plane", backoff_seconds=BACKOFF_SECONDS, scoring=given.scoring) as plane,
    ):
        install(plane, *MANIFEST_FILES)
        if part == CONSOLIDATION:
            return report_consolidation(_consolidated(plane, seeds))
        return report_plans(_trials(plane, seeds, given.together, steers=given.steering == Steering.TAINT))


def _trials(plane: ControlPlane, seeds: range, together: int, *, steers: bool) -> list[Trial]:
    arena = Arena(plane, steers=steers)
    batches = [seeds[start : start + together] for start in range(0, len(seeds), together)]
    return [trial for batch in _tracked(batches) for trial in run(arena, batch)]


def _consolidated(plane: ControlPlane, seeds: range) -> list[Consolidated]:
    return [consolidating.run(plane, seed) for seed in _tracked(seeds)]


def _tracked(listed: Sequence[T]) -> Iterable[T]:
    return track(listed, description="seeds", console=Console(stderr=True))


if __name__ == "__main__":
    sys.exit(main())
