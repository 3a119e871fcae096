"""How urgently a pod needs a node: what is bought first where not everything may be bought."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from enum import IntEnum
from typing import NamedTuple

from joinery.objects.annotations.drain_start import LONGEST_WAIT_FOR_REPLACEMENT, drains_at, is_retired
from joinery.objects.annotations.plans import planned_pods
from joinery.objects.snapshot.claims import awaits_launch
from joinery.objects.snapshot.pods import priorities_of, priority_of
from joinery.objects.snapshot.snapshot import Snapshot

#: For how long a node counts as its namespaces' turn: longer than a node takes to boot, so that runs of one minute
#: after another are turns, too.
_TURN_LASTS = timedelta(minutes=10)


class Need(IntEnum):
    """Why a pod needs a node, the most urgent first.

    ``FORCED``: its node is drained soon, with or without a replacement. ``RETIRED``: its node goes once the pod has
    another place. ``WAITING``: it has no node.
    """

    FORCED = 0
    RETIRED = 1
    WAITING = 2


class Urgency(NamedTuple):
    """Smaller is more urgent. ``rank``: the pod's priority with its sign changed."""

    need: Need
    rank: int


#: Less urgent than any pod: a node for nobody.
LEAST_URGENT = Urgency(Need.WAITING, 1 << 40)


def urgencies(snapshot: Snapshot) -> Mapping[str, Urgency]:
    """By namespace/name, how urgently each pod of the snapshot would need a new node."""
    priorities = priorities_of(snapshot.priority_classes)
    needs = _needs(snapshot)
    return {
        pod.key: Urgency(needs.get(pod.spec.node_name, Need.WAITING), -priority_of(pod.spec, priorities))
        for pod in snapshot.pods
    }


def lately_served(snapshot: Snapshot) -> Mapping[str, int]:
    """By namespace, how many nodes were launched lately for its pods."""
    served: Counter[str] = Counter()
    for claim in snapshot.managed_claims:
        created = claim.metadata.creation_timestamp
        if created and snapshot.now - created < _TURN_LASTS and not awaits_launch(claim):
            served.update(set(map(namespace_of, planned_pods(claim))))
    return served


def namespace_of(pod: str) -> str:
    """Of a pod's name (namespace/name)."""
    return pod.partition("/")[0]


def _needs(snapshot: Snapshot) -> dict[str, Need]:
    """By the name of a node that is leaving, why its pods need another one."""
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    leaving = [view for view in snapshot.views if view.is_leaving and view.node]
    needs = {}
    for view in leaving:
        if view.is_candidate:
            needs[view.node] = Need.RETIRED
            continue
        claim = claims.get(view.claim)
        at = drains_at(claim, view.pods) if claim and is_retired(claim) else snapshot.now
        is_soon = at is not None and at - snapshot.now <= LONGEST_WAIT_FOR_REPLACEMENT
        needs[view.node] = Need.FORCED if is_soon else Need.RETIRED
    return needs
