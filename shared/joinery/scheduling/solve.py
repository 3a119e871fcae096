"""The packing core's one door: ``solve(problem, *, reporter)``."""

from joinery.scheduling.packing import Packing
from joinery.scheduling.problem import Problem
from joinery.scheduling.reporter import SILENT, Reporter


def solve(problem: Problem, *, reporter: Reporter = SILENT) -> Packing:
    """Where every pending pod goes and what to buy for it."""
    raise NotImplementedError
