"""Which moves of a trial are right only together: those that change the counts of one rule over zones or the like."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from joinery.decisions.disruption.consolidation.model import Model
from joinery.decisions.disruption.consolidation.trial import Trial
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ZONE


def bonds_of(trial: Trial, model: Model) -> Sequence[frozenset[str]]:
    """Sets of pods (namespace/name): those that leave their domains under rules that have to do with each other.

    Where such a rule does not hold as the cluster stands, a pod may be refused even by the domain that it has, until
    others have left: then all that move under the rule belong together.
    """
    labels = {view.node: view.labels for view in model.nodes}
    destination: dict[str, Mapping[str, str]] = {}
    for placement in trial.existing:
        destination |= dict.fromkeys(placement.pods, labels.get(placement.node, {}))
    for launch in trial.launches:
        decided = {ZONE: launch.offering.zone, CAPACITY_TYPE: launch.offering.capacity_type}
        destination |= dict.fromkeys(launch.pods, {**launch.labels, **decided})
    leaving: dict[int, set[str]] = defaultdict(set)
    staying: dict[int, set[str]] = defaultdict(set)
    for pod, item in _items(model):
        there = destination.get(pod)
        if there is None:
            continue
        leaves = any(there.get(key, "") != value for key, value in model.domains[item].items())
        for rule in model.coupled[item] if leaves else model.coupled[item] & model.broken:
            (leaving if leaves else staying)[rule].add(pod)
    return [frozenset(pods | staying[rule]) for rule, pods in leaving.items()]


def _items(model: Model) -> Iterator[tuple[str, int]]:
    """Every pod that may move, with its item."""
    for (item, _), pods in model.pods.items():
        for pod in pods:
            yield pod, item
