"""Pods that another provider's NodePools may serve: EKS Auto Mode's, beside ours in one cluster.

Such a provider hears of the same pods and buys for them by itself. Which types it has is not ours to know, so a
NodePool of its own counts as one that may serve a pod unless its template says otherwise: by a taint, a label or a
requirement. To say of such a pod that there is no node for it would be wrong, and noise on every pod of a cluster that
is mostly the other's.

A pod that our NodePools serve is bought for whether or not the other may serve it too, because it might not. Then both
may buy, which costs money and is said (docs/decisions/0031).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from joinery.decisions.scheduling.constraints.nodeterms import alternatives, selector
from joinery.decisions.scheduling.constraints.requirements import (
    Requirements,
    UnknownOperatorError,
    ValueSet,
    of_labels,
    read,
)
from joinery.decisions.scheduling.constraints.taints import first_untolerated
from joinery.decisions.scheduling.packing import Packing
from joinery.objects.karpenter.labels import AWS_GROUP, COMPUTE_TYPE, NODE_POOL, WELL_KNOWN, canonical
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.snapshot import Snapshot

#: Labels of the group that its own nodes do not choose (EKS User Guide, "Labels" of Auto Mode and of managed node
#: groups).
_FIXED = {"eks.amazonaws.com": {COMPUTE_TYPE: "auto"}}
_NEVER = frozenset({"eks.amazonaws.com/nodegroup", "eks.amazonaws.com/fargate-profile"})


def foreign(snapshot: Snapshot) -> tuple[NodePool, ...]:
    """The NodePools of other providers that take pods."""
    return tuple(pool for pool in snapshot.node_pools if not snapshot.serves(pool) and _takes_pods(pool))


def also_served(names: Iterable[str], pods: Mapping[str, Pod], others: Sequence[NodePool]) -> Mapping[str, str]:
    """Of these pods (namespace/name) those that some other provider's NodePool may serve, with its name."""
    offers = list(map(_Offer, others))
    served = ((name, _first_that_may_serve(pods[name], offers)) for name in names if offers and name in pods)
    return {name: pool for name, pool in served if pool}


def bought_twice(packing: Packing, pods: Mapping[str, Pod], others: Sequence[NodePool]) -> str:
    """A line about the pods that a plan buys for and another provider may buy for as well;
    empty where there are none.
    """
    theirs = also_served((name for launch in packing.launches for name in launch.pods), pods, others)
    if not theirs:
        return ""
    first, rest = min(theirs), len(theirs) - 1
    shown = f"{first} and {rest} more pods" if rest > 1 else f"{first} and 1 more pod" if rest else f"pod {first}"
    return (
        f"{shown} may get two nodes: NodePool {', '.join(sorted(set(theirs.values())))} of another provider may serve "
        "them too. Keep them apart by a taint on one provider's NodePools, or in the pods by a nodeSelector on "
        f"{NODE_POOL}"
    )


def _first_that_may_serve(pod: Pod, offers: "Sequence[_Offer]") -> str:
    """The name of the first NodePool that may serve the pod, or the empty string."""
    try:
        wanted = _wanted(pod)
    except UnknownOperatorError:
        return ""
    return next((offer.name for offer in offers if offer.may_serve(pod, wanted)), "")


def _takes_pods(pool: NodePool) -> bool:
    refused = any(condition.type == "Ready" and condition.status == "False" for condition in pool.status.conditions)
    return not (pool.is_static or pool.metadata.deletion_timestamp is not None or refused)


def _wanted(pod: Pod) -> tuple[Requirements, ...]:
    """What a node must be like, in each of the ways that the pod allows."""
    chosen = selector(pod.spec.node_selector.items())
    node = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    ways = alternatives(required.node_selector_terms) if required else (Requirements({}),)
    return tuple(chosen.intersect(way).canonical() for way in ways)


class _Offer:
    """What the nodes of another provider's NodePool may be like; nothing where it cannot be read."""

    def __init__(self, pool: NodePool) -> None:
        template = pool.spec.template
        self.name, self._taints = pool.metadata.name, template.spec.taints
        self._group = template.spec.node_class_ref.group
        own = {**_FIXED.get(self._group, {}), **template.metadata.labels, NODE_POOL: self.name}
        self._labels: Requirements | None = None
        with suppress(UnknownOperatorError):
            self._labels = read(template.spec.requirements).intersect(of_labels(own)).canonical()

    def may_serve(self, pod: Pod, wanted: Sequence[Requirements]) -> bool:
        """Whether one of them may take the pod, which wants any of these."""
        labels = self._labels
        if labels is None or first_untolerated(pod.spec.tolerations, self._taints) is not None:
            return False
        return any(all(_meets(labels, self._group, key, way.sets[key]) for key in way) for way in wanted)


def _meets(offered: Requirements, group: str, key: str, allowed: ValueSet) -> bool:
    if key in offered.sets:
        return not offered.sets[key].intersect(allowed).is_impossible
    return allowed.absent or _is_of(group, key)


def _is_of(group: str, key: str) -> bool:
    """Whether nodes of that provider may have the label although no template mentions it."""
    domain = key.partition("/")[0]
    if domain == AWS_GROUP or key in _NEVER:
        return False
    return domain == group or canonical(key) in WELL_KNOWN
