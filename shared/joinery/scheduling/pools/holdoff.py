"""Holding off: pods for which nodes were bought that cannot take them are not bought for again at once.

A plan promises a node's labels, taints and room from what is known of its instance type. Where the node that came
differs from that (a label that something took off, memory that the image keeps for itself, a device that nobody
registers), the pods still wait, the node does not count for them, and the next plan would buy the same again, run after
run. So the nodes that were bought for pods of the same needs and are fit are looked at: one that could not take such a
pod even if it were empty is a promise that was not kept. After each of those the next purchase waits twice as long as
after the one before, up to some hours. A node whose room others took is none.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.apis.core import Pod
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.quantity import text
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.taints import shown
from joinery.scheduling.pools.pool import Amounts, Axis
from joinery.scheduling.reason import Reason, ReasonCode
from joinery.state.claims import INITIALIZED
from joinery.state.nodes import NodeView
from joinery.state.plans import needs, needs_of

#: From the moment the first node that cannot take its pods is fit.
FIRST_WAIT = timedelta(minutes=5)
#: Doublings. Somebody may have taken many nodes out of service that did serve: their pods must not wait for days.
_MOST_DOUBLINGS = 5
#: Of a node's health, not of what was promised: it may recover. A cordon does not by itself.
_HEALTH = "node.kubernetes.io/"
_CORDON = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True)
class Fit:
    """A node that was bought for pods of some needs and is fit since then.

    ``room``: what it has for pods that are no DaemonSet's.
    """

    view: NodeView
    since: datetime
    needs: frozenset[str]
    room: Amounts


def fit_since(claims: Iterable[NodeClaim]) -> Iterator[tuple[NodeClaim, datetime]]:
    """The claims that remember their pods' needs and whose node is fit, and since when."""
    for claim in claims:
        found = claim.condition(INITIALIZED)
        if found is not None and found.status == "True" and found.last_transition_time and needs_of(claim):
            yield claim, found.last_transition_time


def held(
    classes: Iterable[PodClass], pods: Mapping[str, Pod], nodes: Collection[Fit], axis: Axis, now: datetime
) -> dict[PodClass, Reason]:
    """The classes for which nothing is bought now, and why. ``pods``: those that wait, by name."""
    if not nodes:
        return {}
    known = frozenset[str]().union(*(node.needs for node in nodes))
    found = {}
    for each in classes:
        wanted = {needs(pods[name]) for name in each.pods if name in pods} & known
        broken = [(node, why) for node in nodes if node.needs & wanted and (why := _refusal(node, each, axis))]
        if broken and (reason := _reason(broken, now)):
            found[each] = reason
    return found


def _reason(broken: list[tuple[Fit, str]], now: datetime) -> Reason | None:
    last, why = max(broken, key=lambda each: (each[0].since, each[0].view.name))
    until = last.since + FIRST_WAIT * 2 ** min(len(broken) - 1, _MOST_DOUBLINGS)
    if now >= until:
        return None
    count = f"{len(broken)} nodes were" if len(broken) > 1 else "a node was"
    return Reason.of(
        ReasonCode.HELD_OFF,
        (
            "{count} bought for pods like it and cannot take them (node {node}: {why}); "
            "nothing more is bought for them before {until}"
        ),
        count=count,
        node=last.view.name,
        why=why,
        until=f"{until:%Y-%m-%dT%H:%M:%SZ}",
    )


def _refusal(node: Fit, pods: PodClass, axis: Axis) -> str:
    """Why the node could not take such a pod even if it were empty; empty if it could."""
    labels = node.view.labels
    unmet = [term.first_unmet(labels) for term in pods.terms]
    if unmet and all(unmet):
        key = unmet[0] or ""
        return f"its label {key} is {labels[key]}" if key in labels else f"it has no label {key}"
    lasting = tuple(taint for taint in node.view.taints if taint.key == _CORDON or not taint.key.startswith(_HEALTH))
    taint = pods.untolerated(lasting)
    if taint is not None:
        return f"it has the taint {shown(taint)}"
    row = axis.vector(pods.requests)
    lacking = next((i for i, amount in enumerate(row) if amount > 0 and amount > node.room[i]), None)
    if lacking is None:
        return ""
    name = axis.names[lacking]
    return (
        f"of {name} it has {text(name, max(int(node.room[lacking]), 0))} for pods, and they ask for "
        f"{text(name, int(row[lacking]))}"
    )
