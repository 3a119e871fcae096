"""Holding off: nodes were bought for pods and cannot take them, so no more are bought for such pods for a while.

A plan promises a node's labels, taints and room from what is known of its instance type. The node that comes may
differ: something removed a label, the image keeps memory for itself, a device is never registered. Then the pods still
wait, and the next plan would buy the same node again, run after run.

So this looks at the initialized nodes that were bought for pods of the same needs. A node that could not take such a
pod even if it were empty is a broken promise. (A node whose room other pods took is not.) After each broken promise the
next purchase waits twice as long as after the one before, up to a few hours.

kube-scheduler may also refuse a node for reasons that plans do not know: a plugin, an extender, an admission policy
that refuses the binding. Such a node looks right, so nothing proves that it was at fault: the pods may have waited for
others, or the scheduler was busy. What is known is that the node was kept for them, that they had their time, and that
none of them came (``objects.annotations.plans.unserved_needs``). The first such node costs no wait. A second one in a
row does, so that no third is bought at once, whatever the cause.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.taints import shown
from joinery.decisions.scheduling.pools.market import Amounts, Axis
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.annotations.plans import needs
from joinery.objects.karpenter.labels import PLANNED_NEEDS
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import in_words
from joinery.objects.snapshot.claims import INITIALIZED
from joinery.objects.snapshot.nodes import NodeView

#: How long purchases wait after the first node that cannot take its pods was initialized.
FIRST_WAIT = timedelta(minutes=5)
#: How often that doubles at most. Somebody may have cordoned many nodes that did serve, and their pods must not wait
#: for days.
_MAX_DOUBLINGS = 5
#: Taints that tell of a node's health. They are not counted as broken promises, because the node may recover by itself.
_HEALTH = "node.kubernetes.io/"
#: A cordon has the same prefix. It is counted, because it does not go away by itself.
_CORDON = "node.kubernetes.io/unschedulable"
_NOT_BOUND = "it was kept for them, and kube-scheduler bound none of them there"


@dataclass(frozen=True)
class InitializedNode:
    """A node that was bought for pods and could take them by now.

    since   when it was initialized
    needs   fingerprints of what the pods need that it was bought for (``objects.annotations.plans.needs``)
    room    int64[resources]: its allocatable less what DaemonSets take
    unserved  those of its needs for which no pod was bound to it in time (``objects.annotations.plans.unserved_needs``)
    """

    view: NodeView
    since: datetime
    needs: frozenset[str]
    room: Amounts
    unserved: frozenset[str] = frozenset()


def initialized_since(claims: Iterable[NodeClaim], asked: Collection[str]) -> Iterator[tuple[NodeClaim, datetime]]:
    """The claims that were bought for some of these needs and are initialized, and since when.

    ``asked``: digests, as ``needs`` makes them.
    """
    for claim in claims:
        # The annotation of each of thousands of claims would take longer to read than the rest of a small plan.
        remembered = claim.metadata.annotations.get(PLANNED_NEEDS, "")
        if not any(digest in remembered for digest in asked):
            continue
        condition = claim.condition(INITIALIZED)
        if condition is not None and condition.status == "True" and condition.last_transition_time:
            yield claim, condition.last_transition_time


def held_off(
    classes: Iterable[PodClass], pods: Mapping[str, Pod], nodes: Collection[InitializedNode], axis: Axis, now: datetime
) -> dict[PodClass, Reason]:
    """The classes for which nothing is bought now, and why. ``pods``: those that wait, by namespace/name."""
    if not nodes:
        return {}
    bought_for = frozenset[str]().union(*(node.needs for node in nodes))
    reasons = {}
    for pod_class in classes:
        wanted = {needs(pods[name]) for name in pod_class.names if name in pods} & bought_for
        bought = [node for node in nodes if node.needs & wanted]
        broken = [(node, why) for node in bought if (why := _refusal(node, pod_class, axis))]
        in_vain = [] if broken else [(node, _NOT_BOUND) for node in _unused(bought, wanted)]
        # The first of these costs no wait: see the module.
        if (reason := _reason(broken, len(broken), now) or _reason(in_vain, len(in_vain) - 1, now)) is not None:
            reasons[pod_class] = reason
    return reasons


def _unused(bought: Iterable[InitializedNode], wanted: Collection[str]) -> list[InitializedNode]:
    """The last nodes in a row to which no pods of these needs were bound in time."""
    newest_first = sorted(bought, key=lambda node: (node.since, node.view.name), reverse=True)
    return list(takewhile(lambda node: not node.unserved.isdisjoint(wanted), newest_first))


def _reason(broken: list[tuple[InitializedNode, str]], waits: int, now: datetime) -> Reason | None:
    """Why nothing is bought yet, by the nodes that did not serve; None if the wait is over.

    ``waits``: how many waits they cost, each twice as long as the one before.
    """
    if waits < 1:
        return None
    last, why = max(broken, key=lambda promise: (promise[0].since, promise[0].view.name))
    until = last.since + FIRST_WAIT * 2 ** min(waits - 1, _MAX_DOUBLINGS)
    if now >= until:
        return None
    count = f"{len(broken)} nodes were" if len(broken) > 1 else "a node was"
    return Reason.of(
        ReasonCode.HELD_OFF,
        "{count} bought for pods like it and {verdict} (node {node}: {why}); "
        "nothing more is bought for them before {until}",
        count=count,
        verdict="did not get them" if why == _NOT_BOUND else "cannot take them",
        node=last.view.name,
        why=why,
        until=f"{until:%Y-%m-%dT%H:%M:%SZ}",
    )


def _refusal(node: InitializedNode, pod_class: PodClass, axis: Axis) -> str | None:
    """Why the node could not take such a pod even if it were empty; None if it could."""
    labels = node.view.labels
    unmet = [term.first_unmet(labels) for term in pod_class.terms]
    if unmet and all(unmet):
        key = unmet[0] or ""
        return f"its label {key} is {labels[key]}" if key in labels else f"it has no label {key}"
    lasting = tuple(taint for taint in node.view.taints if taint.key == _CORDON or not taint.key.startswith(_HEALTH))
    taint = pod_class.untolerated(lasting)
    if taint is not None:
        return f"it has the taint {shown(taint)}"
    request = axis.asked(pod_class.requests)
    lacking = next((i for i, amount in enumerate(request) if amount > 0 and amount > node.room[i]), None)
    if lacking is None:
        return None
    resource = axis.names[lacking] or axis.unoffered(pod_class.requests)[0]
    free, asked = in_words(resource, max(int(node.room[lacking]), 0)), in_words(resource, int(request[lacking]))
    return f"of {resource} it has {free} for pods, and they ask for {asked}"
