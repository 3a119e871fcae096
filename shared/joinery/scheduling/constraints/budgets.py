"""Which PodDisruptionBudgets are about a pod."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from joinery.apis.core import Pod, PodDisruptionBudget
from joinery.scheduling.constraints.selectors import Selector, read


class Coverage:
    """The budgets of a pod's namespace whose selector matches its labels.

    Selectors are read once, and pods that none of them tells apart are matched once.
    """

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        by_namespace: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = defaultdict(list)
        for budget in budgets:
            by_namespace[budget.metadata.namespace].append((budget, read(budget.spec.selector)))
        self._namespaces = {name: _Namespace(listed) for name, listed in by_namespace.items()}

    def of(self, pod: Pod) -> Sequence[PodDisruptionBudget]:
        """The budgets that are about the pod."""
        namespace = self._namespaces.get(pod.metadata.namespace)
        return namespace.of(pod) if namespace else ()


class _Namespace:
    def __init__(self, budgets: Sequence[tuple[PodDisruptionBudget, Selector]]) -> None:
        self._budgets = budgets
        # Labels that no selector looks at tell pods apart for nothing, such as the name that a StatefulSet gives each.
        self._keys = sorted({key for _, selector in budgets for key in selector.keys})
        self._matched: dict[tuple[str | None, ...], tuple[PodDisruptionBudget, ...]] = {}

    def of(self, pod: Pod) -> Sequence[PodDisruptionBudget]:
        labels = pod.metadata.labels
        looked_at = tuple(labels.get(key) for key in self._keys)
        if looked_at not in self._matched:
            self._matched[looked_at] = tuple(budget for budget, selector in self._budgets if selector.matches(labels))
        return self._matched[looked_at]
