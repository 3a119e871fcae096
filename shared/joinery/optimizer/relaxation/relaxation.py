"""Which relaxation an instance gets."""

from joinery.optimizer.instance.aggregation import MOST_ITEMS
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.relaxation.aggregated import AggregatedRelaxation
from joinery.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.optimizer.relaxation.residual import ResidualRelaxation

Relaxation = AssignmentRelaxation | ResidualRelaxation | AggregatedRelaxation


def relax(instance: PackingInstance, *, is_swift: bool) -> Relaxation:
    """The program that tells what nodes to buy, and what pods are worth. ``is_swift``: soon solved rather than rounded well."""
    if len(instance.demands) > MOST_ITEMS:
        return AggregatedRelaxation(instance)
    return ResidualRelaxation(instance) if is_swift else AssignmentRelaxation(instance)
