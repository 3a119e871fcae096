"""Steering: a new node is kept for the pods that it was bought for until they are bound to it.

kube-scheduler spreads pods by its own scores, so by itself it does not bind the pods of a tight plan where they were
planned. Therefore, while the instance boots, the pods of its claim get a toleration of their own, and its node
registers with a taint that only they tolerate. In whatever order the scheduler takes them, no pod can take the place of
another.

The taint is removed as soon as none of these pods waits any more, or when their time is over. Pods that still wait then
are planned anew; plans use free room first. A replacement of a disruption command is kept for as long as its pods still
run on the node that goes (``lifecycle.disrupting.started_commands``).

With the setting ``Steering=off`` nothing of this is done, and a node that is still kept when it is switched off is
opened with the next step.
"""

from dataclasses import dataclass
from datetime import timedelta

from msgspec.structs import replace

from joinery.decisions.lifecycle.disrupting.started_commands import is_kept_for_moves
from joinery.decisions.lifecycle.joining.initialization import not_yet
from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.decisions.lifecycle.state.waiting import TIME_TO_BIND, true_since
from joinery.decisions.scheduling.constraints.taints import first_untolerated
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.pools.daemonsets import read_daemons
from joinery.objects.actions import Tolerate, UpdateClaim
from joinery.objects.annotations.plans import expectation, is_kept, kept_by, needs, planned_pods, remembered
from joinery.objects.karpenter.labels import NO_EXECUTE, NO_SCHEDULE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod, Toleration
from joinery.objects.snapshot.claims import INITIALIZED, REGISTERED, annotated, has_joined
from joinery.objects.snapshot.nodes import node_view
from joinery.objects.snapshot.pod_groups import unbound
from joinery.objects.snapshot.pods import is_virtual
from joinery.objects.snapshot.snapshot import Snapshot

#: How long a node is kept at most, from its registration: it may never become fit, nor the nodes of pods that its pods
#: wait for.
LONGEST_KEPT = timedelta(minutes=5)
#: The tolerations that the DaemonSet controller adds to its pods (Kubernetes DaemonSet, "Taints and tolerations").
_DAEMONS_TOLERATE = tuple(
    Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
    for name, effect in (
        ("not-ready", NO_EXECUTE), ("unreachable", NO_EXECUTE), ("disk-pressure", NO_SCHEDULE),
        ("memory-pressure", NO_SCHEDULE), ("pid-pressure", NO_SCHEDULE), ("unschedulable", NO_SCHEDULE),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Steered:
    """One step of steering.

    ``node``: as it should be; None while there is none. ``tolerate``: pods that get the toleration for it now.
    ``is_kept``: whether the node is still kept for its pods. ``ended``: why it is kept no longer, in the step in which
    that ends. ``is_short``: it ended although some of its pods still wait. ``unserved``: the needs of pods that had
    their time and were not bound, in the step in which it ends (``unserved_by``). The claim has to
    remember them before the node is open to all: after that nobody knows any more.
    """

    node: Node | None
    tolerate: Tolerate | None = None
    is_kept: bool = False
    ended: str | None = None
    is_short: bool = False
    unserved: frozenset[str] = frozenset()


def steer(state: ClusterState, claim: NodeClaim, node: Node | None) -> Steered:
    """One step: let pods onto the node that is on its way or kept for them, or keep it no longer."""
    if node is None:
        return Steered(None, tolerating(state, claim) if state.steers and not has_joined(claim) else None)
    if not is_steered(node):
        return Steered(node)
    if not state.steers:
        return Steered(released(node), ended="steering is switched off")
    why = ended(state, claim, node)
    if why:
        unserved = unserved_by(state, claim, node)
        return Steered(released(node), ended=why, is_short=bool(_waiting(state, claim)), unserved=unserved)
    return Steered(node, tolerating(state, claim), is_kept=True)


def tolerating(state: ClusterState, claim: NodeClaim) -> Tolerate | None:
    """Let the pods that the claim is for tolerate its taint: those that wait and do not tolerate it yet.

    None if there are none.
    """
    taint, why = kept_by(claim), f"{claim.metadata.name} was bought for them"
    toleration = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    barred = tuple(pod for pod in _waiting(state, claim) if first_untolerated(pod.spec.tolerations, [taint]))
    return Tolerate(barred, toleration, why) if barred else None


def kept(state: ClusterState, claim: NodeClaim, node: Node) -> Node:
    """The node with the taint that keeps it for its claim's pods, if any of these waits or still has to move, and
    steering is on.
    """
    if not state.steers or not (_waiting(state, claim) or _awaits_moves(state, claim)):
        return node
    return replace(node, spec=replace(node.spec, taints=[*node.spec.taints, kept_by(claim)]))


def released(node: Node) -> Node:
    """The node without that taint, open to all."""
    return replace(node, spec=replace(node.spec, taints=[taint for taint in node.spec.taints if not is_kept(taint)]))


def is_steered(node: Node) -> bool:
    """Whether it is kept for somebody."""
    return any(map(is_kept, node.spec.taints))


def ended(state: ClusterState, claim: NodeClaim, node: Node) -> str | None:
    """Why the node is not to be kept any longer; None while it is."""
    waiting, is_early = len(_waiting(state, claim)), _awaits_moves(state, claim)
    if not waiting and not is_early:
        return "none of the pods it was bought for waits any more"
    if _is_over(state, claim) and not is_early:
        return f"{waiting} pods it was bought for had their time to bind"
    blocked = _blocked(state, claim, node)
    return f"DaemonSet {blocked} must run before it is fit, and does not tolerate its taint" if blocked else None


def planned_onto(snapshot: Snapshot, packing: Packing) -> tuple[UpdateClaim, ...]:
    """Write pods onto the claims that were launched before and that a plan now places them on.

    Only claims whose node is on its way or kept for its pods: on a node that is open to all, anybody may take the
    place.
    """
    if not packing.existing:
        return ()
    pods = snapshot.pods_by_key
    waiting = {pod.key for group in snapshot.pod_groups for pod in group.derived(unbound) if not is_virtual(pod)}
    free = {node.spec.provider_id for node in snapshot.nodes if not is_steered(node)}
    claims = {
        claim.metadata.name: claim
        for claim in snapshot.managed_claims
        if not (claim.is_true(REGISTERED) and claim.status.provider_id in free)
    }
    in_transit = expectation(claims.values(), snapshot.nodes, snapshot.pods, snapshot.now).in_transit
    updates = []
    for placement in packing.existing:
        claim = claims.get(placement.node_claim)
        newcomers = set(placement.pods) & waiting
        if claim is not None and not newcomers <= set(planned_pods(claim)):
            coming = waiting.union(pod.key for pod in in_transit.get(placement.node_claim, ()))
            expected = sorted((set(planned_pods(claim)) & coming) | set(placement.pods))
            coming_as = {name: snapshot.successor(pods[name]) for name in expected if name in pods}
            updated = annotated(claim, remembered(expected, coming_as))
            updates.append(UpdateClaim(claim, updated, f"{len(newcomers)} more pods were planned for it"))
    return tuple(updates)


def unserved_by(state: ClusterState, claim: NodeClaim, node: Node) -> frozenset[str]:
    """Digests of the needs of planned pods that wait though the node was kept for them, but of needs that it serves.

    kube-scheduler had the node to itself for these pods, and time. So it has a reason that plans do not know, and the
    next node would be refused as well. A node that has got one of them serves; that others had no room is another
    matter. Pods whose gang has too few nodes that are fit wait for those.
    """
    fit = true_since(claim, INITIALIZED)
    if fit is None or state.snapshot.now - fit < TIME_TO_BIND:
        return frozenset()
    waiting = [pod for pod in _waiting(state, claim) if pod.key not in state.of_short_gangs]
    return frozenset(map(needs, waiting)) - frozenset(map(needs, state.pods_on(node)))


def _is_over(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether the time of the node's pods is over.

    It is not while pods of nodes that were on their way with this one still have time: this node's pods may be waiting
    for them.
    """
    now, registered, fit = state.snapshot.now, true_since(claim, REGISTERED), true_since(claim, INITIALIZED)
    if registered is not None and now - registered >= LONGEST_KEPT:
        return True
    if fit is None or now - fit < TIME_TO_BIND:
        return False
    # Only claims that existed when this node became fit count: the pods of others were planned later.
    return state.awaited_since is None or state.awaited_since > fit


def _blocked(state: ClusterState, claim: NodeClaim, node: Node) -> str | None:
    """The name of a DaemonSet that only our taint keeps from a node that is not fit yet.

    Its pod may be what makes the node fit (a GPU's device plugin), so the taint has to go.
    """
    if not_yet(claim, node, state.snapshot.resource_slices) is None:
        return None
    hard = [taint for taint in released(node).spec.taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
    merged = node_view(node, claim)
    for daemon in read_daemons(state.snapshot.daemons, ()):
        tolerated = (*daemon.pod.spec.tolerations, *_DAEMONS_TOLERATE)
        would_run = daemon.runs_on(merged) and first_untolerated(tolerated, hard) is None
        if would_run and first_untolerated(tolerated, [kept_by(claim)]) is not None:
            return daemon.name
    return None


def _waiting(state: ClusterState, claim: NodeClaim) -> list[Pod]:
    return [state.waiting[key] for key in state.expected.get(claim.metadata.name, ()) if key in state.waiting]


def _awaits_moves(state: ClusterState, claim: NodeClaim) -> bool:
    """Whether pods that the claim was bought for still run on a node that it replaces."""
    return bool(planned_pods(claim)) and is_kept_for_moves(state, claim)
