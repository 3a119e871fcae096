"""Steering: a new node is kept for the pods that it was bought for until they are there.

The scheduler spreads pods by its own scores, so a tight plan does not bind as it was planned by itself. While the instance
boots, its claim's pods get a toleration of their own, and its node registers with the one taint that only they tolerate: in
whatever order the scheduler takes them, they cannot take each other's place, and nobody else can. The taint goes as soon as
none of them waits any more, or when they had their time; who still waits then is planned anew, free room first.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from joinery.apis.core import Node, Pod, Taint, Toleration
from joinery.apis.labels import NO_EXECUTE, NO_SCHEDULE
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import Tolerate, UpdateClaim
from joinery.lifecycle.initialization import not_yet
from joinery.lifecycle.view import View
from joinery.scheduling.constraints.taints import first_untolerated
from joinery.scheduling.packing import Packing
from joinery.scheduling.pools.builder import daemons
from joinery.state.claims import INITIALIZED, REGISTERED, annotated, is_managed
from joinery.state.nodes import node_view
from joinery.state.plans import is_kept, kept_by, planned_pods, remembered
from joinery.state.pods import is_active
from joinery.state.snapshot import Snapshot

#: How long the scheduler has, once the node is fit: three of its longest back-offs. A pod may have to wait for others, for
#: those that it wants to be near or that a spread wants first; so the time of nodes that come together ends together.
PATIENCE = timedelta(seconds=30)
#: How long a node is kept at most, from its registration: it or one that its pods wait for may never get fit.
LONGEST = timedelta(minutes=5)
#: What the DaemonSet controller lets every pod of its own tolerate.
_DAEMONS_TOLERATE = tuple(
    Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
    for name, effect in (
        ("not-ready", NO_EXECUTE), ("unreachable", NO_EXECUTE), ("disk-pressure", NO_SCHEDULE),
        ("memory-pressure", NO_SCHEDULE), ("pid-pressure", NO_SCHEDULE), ("unschedulable", NO_SCHEDULE),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Steered:
    """The node as steering leaves it. ``ended``: why it is not kept any longer; ``is_short``: although some pods still wait."""

    node: Node | None
    invited: Tolerate | None = None
    is_kept: bool = False
    ended: str = ""
    is_short: bool = False


def steer(view: View, claim: NodeClaim, node: Node | None) -> Steered:
    """One step: let pods onto the node that comes or is kept for them, or keep it no longer."""
    if node is None:
        return Steered(None, None if claim.is_true(REGISTERED) else invited(view, claim))
    if not is_steered(node):
        return Steered(node)
    why = ended(view, claim, node)
    if why:
        return Steered(released(node), ended=why, is_short=bool(_waiting(view, claim)))
    return Steered(node, invited(view, claim), is_kept=True)


def invited(view: View, claim: NodeClaim) -> Tolerate | None:
    """Let the pods that the claim was launched for onto its node, as far as they wait and nobody has done so yet."""
    taint, why = kept_by(claim), f"{claim.metadata.name} was bought for them"
    ours = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    barred = tuple(pod for pod in _waiting(view, claim) if first_untolerated(pod.spec.tolerations, [taint]))
    return Tolerate(barred, ours, why) if barred else None


def kept(view: View, claim: NodeClaim, node: Node) -> Node:
    """The node with the taint of its claim, if any pod waits for it."""
    if not _waiting(view, claim):
        return node
    return replace(node, spec=replace(node.spec, taints=[*node.spec.taints, kept_by(claim)]))


def released(node: Node) -> Node:
    """The node without it."""
    return replace(node, spec=replace(node.spec, taints=[taint for taint in node.spec.taints if not is_kept(taint)]))


def is_steered(node: Node) -> bool:
    """Whether it is kept for somebody."""
    return any(map(is_kept, node.spec.taints))


def ended(view: View, claim: NodeClaim, node: Node) -> str:
    """Why the node is not to be kept any longer; empty while it is."""
    waiting = len(_waiting(view, claim))
    if not waiting:
        return "none of the pods it was bought for waits any more"
    if _is_over(view, claim):
        return f"{waiting} pods it was bought for had their time to bind"
    blocked = _blocked(view, claim, node)
    return f"DaemonSet {blocked} must run before it is fit, and does not tolerate its taint" if blocked else ""


def promises(snapshot: Snapshot, packing: Packing) -> tuple[UpdateClaim, ...]:
    """Let claims that are kept for their pods know of those that were planned for them since they were launched."""
    known = {pod.key: pod for pod in snapshot.pods}
    pods = {key for key, pod in known.items() if _waits(pod)}
    free = {node.spec.provider_id for node in snapshot.nodes if not is_steered(node)}
    claims = {
        claim.metadata.name: claim
        for claim in snapshot.node_claims
        if is_managed(claim) and not (claim.is_true(REGISTERED) and claim.status.provider_id in free)
    }
    found = []
    for placement in packing.existing:
        claim = claims.get(placement.node_claim)
        wanted = set(placement.pods) & pods
        if claim is not None and not wanted <= set(planned_pods(claim)):
            listed = sorted((set(planned_pods(claim)) & pods) | set(placement.pods))
            promised = annotated(claim, remembered(listed, known))
            found.append(UpdateClaim(claim, promised, f"{len(wanted)} more pods were planned for it"))
    return tuple(found)


def _is_over(view: View, claim: NodeClaim) -> bool:
    """Whether the pods had their time, and so had those of nodes that were on their way with this one: they may wait for them."""
    now, registered, fit = view.snapshot.now, _since(claim, REGISTERED), _since(claim, INITIALIZED)
    if registered is not None and now - registered >= LONGEST:
        return True
    if fit is None or now - fit < PATIENCE:
        return False
    return not any(_may_be_awaited(other, fit, now) for other in view.snapshot.node_claims)


def _may_be_awaited(claim: NodeClaim, by: datetime, now: datetime) -> bool:
    """Whether pods of a claim that there was by then are still to come, or have just been given their node."""
    created, fit = claim.metadata.creation_timestamp, _since(claim, INITIALIZED)
    if not is_managed(claim) or claim.is_deleting or created is None or created > by or not planned_pods(claim):
        return False
    return fit is None or now - fit < PATIENCE


def _since(claim: NodeClaim, kind: str) -> datetime | None:
    found = claim.condition(kind)
    return found.last_transition_time if found is not None and found.status == "True" else None


def _blocked(view: View, claim: NodeClaim, node: Node) -> str:
    """A DaemonSet that would run on a node that is not fit yet, were it not for our taint: it may be what makes it fit."""
    if not_yet(claim, node) is None:
        return ""
    others = released(node).spec.taints
    seen = node_view(node, claim)
    for daemon in daemons(view.snapshot.daemon_sets, ()):
        tolerated = (*daemon.pod.spec.tolerations, *_DAEMONS_TOLERATE)
        is_here = daemon.runs_on(seen) and first_untolerated(tolerated, _hard(others)) is None
        if is_here and first_untolerated(tolerated, [kept_by(claim)]) is not None:
            return daemon.name
    return ""


def _hard(taints: Iterable[Taint]) -> list[Taint]:
    return [taint for taint in taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]


def _waiting(view: View, claim: NodeClaim) -> list[Pod]:
    return [view.waiting[key] for key in view.expected.get(claim.metadata.name, ()) if key in view.waiting]


def _waits(pod: Pod) -> bool:
    return not pod.spec.node_name and is_active(pod)
