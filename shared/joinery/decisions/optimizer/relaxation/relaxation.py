"""Which form of the assignment relaxation an instance gets."""

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.linear.patience import Patience
from joinery.decisions.optimizer.relaxation.aggregated import AggregatedRelaxation
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.decisions.optimizer.relaxation.residual import ResidualRelaxation

Relaxation = AssignmentRelaxation | ResidualRelaxation | AggregatedRelaxation


def relax(instance: PackingInstance, *, is_swift: bool, patience: Patience | None = None) -> Relaxation:
    """A relaxation to round. ``is_swift``: for instances so large that solving it soon matters more than rounding it
    well. ``patience``: how long each solve may take.
    """
    if len(instance.demands) > tuning.MAX_ITEMS:
        return AggregatedRelaxation(instance, patience)
    return ResidualRelaxation(instance, patience) if is_swift else AssignmentRelaxation(instance, patience=patience)
