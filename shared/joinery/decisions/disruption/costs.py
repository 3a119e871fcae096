"""What it costs to disrupt a node, in evictions, by Karpenter's formulas (Karpenter `disruption.ReschedulingCost`).

The figures have no unit: an ordinary pod counts 1.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

from joinery.objects.karpenter import duration
from joinery.objects.karpenter.disruption import OUR_DELETION_COST
from joinery.objects.karpenter.labels import DISRUPTION_COST, POD_DELETION_COST
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.priorities import priority_of

_LEAST, _MOST = -10.0, 10.0
#: How much of either makes a pod count one more (Karpenter `GetPodEvictionCost`).
_COST_UNIT, _PRIORITY_UNIT = 2.0**27, 2.0**25


def eviction_cost(pod: Pod, priorities: Mapping[str, int]) -> float:
    """Of one pod, between -10 and 10. ``priorities``: see ``objects.snapshot.priorities.priorities_of``.

    It grows with the pod's priority and with ``karpenter.sh/disruption-cost``, or without it with
    ``controller.kubernetes.io/pod-deletion-cost``. A cost that is no number counts as none, and so does ours
    (``disruption.deletion_costs``): it tells a ReplicaSet in which order to shrink, and nothing of the pod's worth.
    """
    annotations = pod.metadata.annotations
    told = annotations.get(DISRUPTION_COST, annotations.get(POD_DELETION_COST, "0"))
    said = 0.0 if told == OUR_DELETION_COST else _number(told)
    cost = 1.0 + said / _COST_UNIT + priority_of(pod.spec, priorities) / _PRIORITY_UNIT
    return min(max(cost, _LEAST), _MOST)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def rescheduling_cost(pods: Iterable[Pod], priorities: Mapping[str, int]) -> float:
    """Of all pods on a node together."""
    return sum(eviction_cost(pod, priorities) for pod in pods)


def lifetime_remaining(claim: NodeClaim, now: datetime) -> float:
    """The share of its ``expireAfter`` that the claim has left: 1 for a new one, or one that never expires."""
    lifetime, created = duration.parse(claim.spec.expire_after), claim.metadata.creation_timestamp
    if lifetime is None or created is None:
        return 1.0
    if not lifetime:
        return 0.0
    return min(max(1.0 - (now - created) / lifetime, 0.0), 1.0)
