"""Which moves of a trial are right only together: those that change the counts of one rule over zones or the like."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from joinery.apis.labels import CAPACITY_TYPE, ZONE
from joinery.disruption.consolidation.model import Model
from joinery.disruption.consolidation.trial import Trial


def bonds_of(trial: Trial, model: Model) -> Sequence[frozenset[str]]:
    """Sets of pods (namespace/name): those that leave their domains under rules that have to do with each other."""
    labels = {view.node: view.labels for view in model.nodes}
    destination: dict[str, Mapping[str, str]] = {}
    for placement in trial.existing:
        destination |= dict.fromkeys(placement.pods, labels.get(placement.node, {}))
    for launch in trial.launches:
        decided = {ZONE: launch.offering.zone, CAPACITY_TYPE: launch.offering.capacity_type}
        destination |= dict.fromkeys(launch.pods, {**launch.labels, **decided})
    leaving: dict[int, set[str]] = defaultdict(set)
    for pod, item in _items(model):
        there = destination.get(pod)
        domains = model.domains[item]
        if there is not None and any(there.get(key, "") != value for key, value in domains.items()):
            for rule in model.coupled[item]:
                leaving[rule].add(pod)
    return [frozenset(pods) for pods in leaving.values()]


def _items(model: Model) -> Iterator[tuple[str, int]]:
    """Every pod that may move, with its item."""
    for (item, _), pods in model.pods.items():
        for pod in pods:
            yield pod, item
