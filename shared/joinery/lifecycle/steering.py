"""Steering: telling kube-scheduler which pods a new node was bought for, and no longer than that helps.

The scheduler spreads pods by its own scores, so a tight plan does not bind as it was planned by itself. When a node
registers, its pods are nominated for it, and while they are, their room is theirs. Some will not bind all the same, because
others were quicker. A nomination counts as a place, so one that came to nothing is taken back: then the pod is pending
again and is planned anew, free room first.
"""

import json
from collections.abc import Iterable
from datetime import timedelta

from joinery.apis.core import Node, Pod
from joinery.apis.labels import PLANNED_PODS
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import Nominate, UpdateClaim
from joinery.lifecycle.view import View
from joinery.scheduling.packing import Packing
from joinery.state.claims import INITIALIZED, REGISTERED, annotated
from joinery.state.nodes import planned_pods
from joinery.state.snapshot import Snapshot

#: How long the scheduler has, once the node is fit. Its own back-off for a pod that did not fit ends at ten seconds.
PATIENCE = timedelta(seconds=15)


def nominations(view: View, claim: NodeClaim, node: Node) -> Iterable[Nominate]:
    """Nominate the pods that the claim was launched for and that still wait."""
    planned = set(planned_pods(claim))
    name = node.metadata.name
    for pod in view.snapshot.pods:
        if pod.key in planned and _waits(pod) and pod.status.nominated_node_name != name:
            yield Nominate(pod, name, f"{claim.metadata.name} was bought for it")


def promises(snapshot: Snapshot, packing: Packing) -> tuple[UpdateClaim, ...]:
    """Let claims whose nodes are on their way know of the pods that were planned for them since they were launched."""
    pods = {pod.key for pod in snapshot.pods if _waits(pod)}
    claims = {claim.metadata.name: claim for claim in snapshot.node_claims if not claim.is_true(REGISTERED)}
    found = []
    for placement in packing.existing:
        claim = claims.get(placement.node_claim)
        wanted = set(placement.pods) & pods
        if claim is not None and not wanted <= set(planned_pods(claim)):
            listed = sorted((set(planned_pods(claim)) & pods) | wanted)
            promised = annotated(claim, {PLANNED_PODS: json.dumps(listed)})
            found.append(UpdateClaim(claim, promised, f"{len(wanted)} more pods were planned for it"))
    return tuple(found)


def withdrawals(view: View) -> tuple[Nominate, ...]:
    """Take back nominations that came to nothing; those that the scheduler made to pre-empt are its own."""
    nodes = {node.metadata.name for node in view.snapshot.nodes}
    due = {name for name, is_over in _steered(view).items() if is_over}
    return tuple(
        Nominate(pod, "", f"it did not bind to {pod.status.nominated_node_name}")
        for pod in view.snapshot.pods
        if _is_nominated(pod) and (pod.status.nominated_node_name not in nodes or _named(pod) in due)
    )


def is_steering(view: View) -> bool:
    """Whether some nominations for nodes that are fit have yet to bind or to be taken back."""
    steered = _steered(view)
    return any(_is_nominated(pod) and steered.get(_named(pod)) is False for pod in view.snapshot.pods)


def _steered(view: View) -> dict[tuple[str, str], bool]:
    """Node and pod of every plan whose node is fit or goes, and whether the scheduler has had its time."""
    over: dict[tuple[str, str], bool] = {}
    for claim in view.snapshot.node_claims:
        found = claim.condition(INITIALIZED)
        since = found.last_transition_time if found is not None and found.status == "True" else None
        if claim.is_deleting or since is not None:
            is_over = claim.is_deleting or since is None or view.snapshot.now - since >= PATIENCE
            over.update(dict.fromkeys(((claim.status.node_name, key) for key in planned_pods(claim)), is_over))
    return over


def _named(pod: Pod) -> tuple[str, str]:
    return pod.status.nominated_node_name, pod.key


def _is_nominated(pod: Pod) -> bool:
    return bool(pod.status.nominated_node_name) and _waits(pod)


def _waits(pod: Pod) -> bool:
    return not pod.spec.node_name and pod.metadata.deletion_timestamp is None
