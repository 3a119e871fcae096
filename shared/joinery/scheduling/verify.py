"""An independent check of a packing: the optimiser may be clever because this is simple."""

from joinery.scheduling.packing import Packing, Reason
from joinery.scheduling.problem import Problem


def verify(problem: Problem, packing: Packing) -> tuple[Reason, ...]:
    """Everything that is wrong with the packing; empty for a plan that may be acted upon."""
    raise NotImplementedError
