"""Which PodDisruptionBudgets are about a pod."""

from collections.abc import Iterable

from joinery.apis.core import Pod, PodDisruptionBudget
from joinery.scheduling.constraints.selectors import read


def covering(budgets: Iterable[PodDisruptionBudget], pod: Pod) -> list[PodDisruptionBudget]:
    """Those of the pod's namespace whose selector matches its labels."""
    return [
        budget
        for budget in budgets
        if budget.metadata.namespace == pod.metadata.namespace
        and read(budget.spec.selector).matches(pod.metadata.labels)
    ]
