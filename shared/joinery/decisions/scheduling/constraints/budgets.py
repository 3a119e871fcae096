"""Which PodDisruptionBudgets are about a pod, and what the eviction API makes of them.

Whoever asks whether a pod can be evicted asks here (``Coverage.answer``), so all doors say the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from joinery.decisions.scheduling.constraints.selectors import Selector, read
from joinery.objects.kubernetes.core import Pod, PodDisruptionBudget
from joinery.objects.snapshot.pods import ignores_budgets, is_pod_ready

#: More evictions than this, granted and not yet seen by the controller of budgets, and a budget grants no other.
_MOST_DISRUPTED = 2000


@dataclass(frozen=True, slots=True)
class Answer:
    """What the eviction API says to the eviction of one pod now.

    refusal      why it refuses; None if it grants it
    is_lasting   it will refuse for as long as the budgets are what they are
    spends       the budget that allows one disruption less afterwards; None where no budget is asked
    """

    refusal: str | None = None
    is_lasting: bool = False
    spends: PodDisruptionBudget | None = None


_GRANTED = Answer()


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

    def answer(self, pod: Pod) -> Answer:
        """What the eviction API says to the eviction of the pod now (kube-apiserver ``EvictionREST.Create``)."""
        matching = self.of(pod)
        if not matching or ignores_budgets(pod):
            return _GRANTED
        if len(matching) > 1:
            return Answer(f"pod {pod.key} has more than one PodDisruptionBudget", is_lasting=True)
        budget = matching[0]
        if not is_pod_ready(pod) and _lets_unready_go(budget):
            return _GRANTED
        if evictions_allowed(budget) > 0:
            return Answer(spends=budget)
        refusal = f"PodDisruptionBudget {budget.metadata.name} allows no eviction of pod {pod.key} now"
        return Answer(refusal, is_lasting=is_fully_blocking(budget))

    def grants_all(self, pods: Iterable[Pod]) -> bool:
        """Whether the eviction API lets all of these pods go together."""
        left: dict[tuple[str, str], int] = {}
        for pod in pods:
            answer = self.answer(pod)
            if answer.refusal:
                return False
            if answer.spends is not None:
                budget = answer.spends
                key = budget.metadata.namespace, budget.metadata.name
                left[key] = left.get(key, evictions_allowed(budget)) - 1
        return all(count >= 0 for count in left.values())


def is_fully_blocking(budget: PodDisruptionBudget) -> bool:
    """Whether the budget never lets a pod that is ready be evicted (Karpenter `pdb.Limits.isFullyBlocked`)."""
    spec = budget.spec
    return str(spec.max_unavailable) in ("0", "0%") or str(spec.min_available) == "100%"


def evictions_allowed(budget: PodDisruptionBudget) -> int:
    """How many evictions of ready pods the budget grants now.

    None while its status is older than its spec, as one that no controller has written is of a budget that never grants
    any; nor while too many are under way (kube-apiserver ``EvictionREST.checkAndDecrement``).
    """
    status = budget.status
    is_outdated = status.observed_generation < budget.metadata.generation
    is_stated = not status.observed_generation and is_fully_blocking(budget)
    if is_outdated or is_stated or len(status.disrupted_pods) > _MOST_DISRUPTED:
        return 0
    return max(0, status.disruptions_allowed or 0)


def _lets_unready_go(budget: PodDisruptionBudget) -> bool:
    """Whether a pod that is not ready may go though the budget allows no disruption: nobody is served by it."""
    status = budget.status
    is_healthy = status.current_healthy >= status.desired_healthy > 0
    return is_healthy or budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"


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
