"""Which relaxation an instance gets."""

from joinery.optimizer.instance.aggregation import MOST_ITEMS
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.relaxation.aggregated import CoarseProgram
from joinery.optimizer.relaxation.assignment import AssignmentProgram
from joinery.optimizer.relaxation.residual import ShrinkingProgram

AnyProgram = AssignmentProgram | ShrinkingProgram | CoarseProgram


def guide(lot: Lot, *, is_swift: bool) -> AnyProgram:
    """The program that tells what nodes to buy, and what pods are worth. ``is_swift``: soon solved rather than rounded well."""
    if len(lot.counts) > MOST_ITEMS:
        return CoarseProgram(lot)
    return ShrinkingProgram(lot) if is_swift else AssignmentProgram(lot)
