"""Nodes as the scheduler will meet them: Node and NodeClaim merged into one view (Karpenter `StateNode`).

Until a node is registered, the labels, taints and estimated resources of its claim count. Until it is initialised,
startup taints and the taints of booting are left out, and where the kubelet still reports no resources the claim's
estimate counts. From then on everything is as the node says, except for the taint that keeps it for the pods that it
was bought for: plans never see that one.

A claim that had a Node and has lost it is no node on its way: its instance may never join again
(``lifecycle.joining.membership``). Until then its room does not count, and neither does it against the limits of its
pool.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as with_fields

from joinery.objects.annotations.disruption import is_candidate, replaces_of
from joinery.objects.annotations.plans import Expectation, expectation, is_kept, planned_pods
from joinery.objects.karpenter.labels import (
    EBS_ZONE,
    EPHEMERAL_TAINT_PREFIX,
    EPHEMERAL_TAINTS,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    INTERRUPTED_AT,
    NODE_POOL,
    PROVISIONER_NAME,
    REGISTERED,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
    ZONE,
    canonical,
    with_aliases,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod, Taint
from joinery.objects.kubernetes.quantity import Resources, amounts
from joinery.objects.snapshot.claims import INSTANCE_TERMINATING, has_lost_node
from joinery.objects.snapshot.derived import Derives
from joinery.objects.snapshot.gangs import waiting_beside
from joinery.objects.snapshot.instance_owners import copies, lost_provider_ids
from joinery.objects.snapshot.known import KnownView
from joinery.objects.snapshot.pod_groups import PodGroup, living
from joinery.objects.snapshot.pods import is_pending, is_terminating

if TYPE_CHECKING:
    from joinery.objects.snapshot.snapshot import Snapshot

#: How long a Node must have been without sign of life for its kubelet to be gone. One that has just been started under
#: another name is not Ready at first, while the Node under its old name still is, for forty seconds
#: (kube-controller-manager `--node-monitor-grace-period`).
SILENT = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class NodeView(Derives):
    """One node, or one claim whose node is on its way.

    ``node``: the Node's name, empty while there is only a claim. ``claim``: the NodeClaim's, empty for a node that is
    not ours. ``pool``: the NodePool's, empty if there is none.

    ``annotations``: the Node's, or the claim's while there is no Node. ``labels``: until the node is initialised, a
    label that has several names stands under each of them. From then on they are the node's, as kube-scheduler sees
    them; while it is kept for its pods, with the zone that its EBS CSI driver is about to add. ``taints``: those that a
    pod has to tolerate. ``capacity``, ``allocatable``: before the launch, what the claim requests.

    ``is_initialized``: it is fit for pods. ``is_ready``: its kubelet says so now. ``is_leaving``: it takes no more
    pods, and those it has need another place. ``is_terminating``: its instance is being ended.
    ``is_unlaunched``: its claim is not launched yet, so its room is for ``planned`` only. ``pods``: those bound to it
    or nominated for it. ``planned``: the pods (namespace/name) that its claim is there for now. ``may_be``: the
    instance types that a claim names which is not launched yet.

    ``in_transit``: pods of other nodes that were asked to go a moment ago. Their successors, still to come, have
    their room here.

    ``is_candidate``: it is leaving, but only because a disruption command will retire it; its pods need another place
    only as far as the command has bought one. ``replaces``: the names of the claims that its claim will replace.
    """

    node: str
    claim: str
    pool: str
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Resources
    allocatable: Resources
    is_initialized: bool
    is_ready: bool
    is_leaving: bool
    is_terminating: bool
    is_unlaunched: bool
    pods: tuple[Pod, ...]
    planned: tuple[str, ...]
    may_be: tuple[str, ...] = ()
    is_candidate: bool = False
    replaces: tuple[str, ...] = ()
    in_transit: tuple[Pod, ...] = ()

    @property
    def name(self) -> str:
        return self.node or self.claim

    @property
    def staying(self) -> tuple[Pod, ...]:
        """Its pods, without those that end where kube-scheduler has nominated another pod: it ends them for that one's
        room.
        """
        if all(pod.spec.node_name for pod in self.pods):
            return self.pods
        return tuple(pod for pod in self.pods if not is_terminating(pod))


def views(snapshot: "Snapshot") -> tuple[NodeView, ...]:
    """All nodes and claims of ours, initialised ones first, then by name (``Snapshot.views`` keeps them).

    A node of another provider's claim is a node like any other; what that claim will become is not ours to count on.
    """
    doubles = copies(snapshot.managed_claims, snapshot.nodes)
    ours = tuple(claim for claim in snapshot.managed_claims if claim.metadata.name not in doubles)
    known = _views_of_nodes(snapshot, _by_provider_id(ours, snapshot.nodes))
    if snapshot.pods is snapshot.known.pods:
        snapshot.known.views = known
    joined = {entry.claim.metadata.name for entry in known.values() if entry.claim is not None}
    merged = [entry.view for entry in known.values()]
    merged += [_of_claim(claim, snapshot.now) for claim in ours if claim.metadata.name not in joined]
    planned = {view.claim: view.planned for view in merged}
    coming = expectation(ours, snapshot.nodes, snapshot.pods, snapshot.now, planned)
    merged = [_expecting(snapshot, view, coming) for view in merged]
    return tuple(sorted(merged, key=lambda view: (not view.is_initialized, view.name)))


def _views_of_nodes(snapshot: "Snapshot", claims: Mapping[str, NodeClaim]) -> dict[str, KnownView]:
    """The view of each Node by its name, in their order; the one of before where it is made of the same objects.

    ``claims``: by provider ID.
    """
    on_node, nodes = snapshot.pod_groups.by_node, nodes_by_provider_id(snapshot.nodes)
    before, made = snapshot.known.views, {}
    for node in snapshot.nodes:
        if _is_unidentified(node):
            continue
        name, provider_id = node.metadata.name, node.spec.provider_id
        claim = claims.get(provider_id) if provider_id else None
        group = on_node.get(name)
        pods = group.derived(living) if group else ()
        is_double = claim is not None and node is not nodes[provider_id][0]
        entry = before.get(name)
        if entry is None or not entry.is_of(node, claim, pods, is_double=is_double):
            view = node_view(node, claim, pods)
            entry = KnownView(
                node, claim, pods, is_double, replace(view, capacity={}, allocatable={}) if is_double else view
            )
        made[name] = entry
    return made


def _expecting(snapshot: "Snapshot", view: NodeView, coming: Expectation) -> NodeView:
    """The view with the pods that its claim is there for now."""
    planned, in_transit = coming.pods.get(view.claim), coming.in_transit.get(view.claim, ())
    if not planned or (planned == view.planned and not in_transit):
        return view
    return replace(view, planned=planned, in_transit=tuple(map(snapshot.successor, in_transit)))


def _by_provider_id(claims: Collection[NodeClaim], nodes: Iterable[Node]) -> dict[str, NodeClaim]:
    """The claims of which it is known which instance they have, by its provider ID."""
    found = lost_provider_ids(claims, nodes)
    named = {claim.status.provider_id or found.get(claim.metadata.name, ""): claim for claim in claims}
    return {provider_id: claim for provider_id, claim in named.items() if provider_id}


def _is_unidentified(node: Node) -> bool:
    """Whether it is one of ours that does not say yet which instance it is: until then its claim stands for it."""
    return not node.spec.provider_id and any(taint.key == UNREGISTERED_TAINT for taint in node.spec.taints)


def cordoned(node: Node) -> Node:
    """The node as if it took no more pods."""
    return with_fields(node, spec=with_fields(node.spec, unschedulable=True))


def nodes_by_provider_id(nodes: Iterable[Node]) -> Mapping[str, tuple[Node, ...]]:
    """The Nodes of each instance, the live one first.

    An instance has one kubelet. Where it has several Nodes, its kubelet was started under another name, and the others
    are what it left behind: they have no room.
    """
    by_id: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        by_id[node.spec.provider_id].append(node)
    return {
        provider_id: tuple(sorted(doubles, key=_liveness, reverse=True))
        for provider_id, doubles in by_id.items()
        if provider_id
    }


def _liveness(node: Node) -> tuple[bool, datetime, str]:
    """Larger is likelier to be the Node of the kubelet that runs."""
    return is_ready(node), node.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC), node.metadata.name


def is_ready(node: Node) -> bool:
    """Whether its kubelet lives and says so."""
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)


def is_registered(node: Node) -> bool:
    """Whether it was made a claim's node, so that pods may be on it (``lifecycle.joining.registration``)."""
    return node.metadata.labels.get(REGISTERED) == "true"


def is_silent(node: Node, now: datetime) -> bool:
    """Whether its kubelet has been without sign of life for long."""
    ready = next((condition for condition in node.status.conditions if condition.type == "Ready"), None)
    since = ready.last_transition_time if ready is not None and ready.status != "True" else None
    return since is not None and now - since >= SILENT


def unfinalized(node: Node) -> Node:
    """The Node without our finalizer, so that the API server can remove it."""
    kept = [finalizer for finalizer in node.metadata.finalizers if finalizer != TERMINATION_FINALIZER]
    return with_fields(node, metadata=with_fields(node.metadata, finalizers=kept))


def pending_pods(snapshot: "Snapshot", *, only_marked: bool) -> tuple[Pod, ...]:
    """The pods that Joinery should find a node for (``pods.is_pending``), and what waits with them for their gang.

    kube-scheduler pre-empts others for a pod that it nominates for a node, whose room is then the pod's. Of a node that
    goes, or is gone, nothing comes.
    """
    work_out = _marked if only_marked else _waiting
    found = [pod for group in snapshot.pod_groups for pod in group.derived(work_out)]
    if snapshot.gangs:
        found += waiting_beside(snapshot.gangs.values(), frozenset(pod.key for pod in found))
    waiting = tuple(sorted(found, key=lambda pod: pod.key))
    if not any(pod.status.nominated_node_name for pod in waiting):
        return waiting
    standing = {view.node for view in snapshot.views if view.node and not view.is_leaving}
    return tuple(pod for pod in waiting if pod.status.nominated_node_name not in standing)


def _marked(group: PodGroup) -> tuple[Pod, ...]:
    """The pods of the group that are pending in a live cluster."""
    return tuple(pod for pod in group.pods if is_pending(pod, only_marked=True))


def _waiting(group: PodGroup) -> tuple[Pod, ...]:
    """The pods of the group that are pending in a file."""
    return tuple(pod for pod in group.pods if is_pending(pod, only_marked=False))


def is_leaving(node: Node | None, claim: NodeClaim | None) -> bool:
    """Whether the node is being deleted, EC2 has announced that it will take it away, or a command will retire it."""
    if claim is None:
        return node is not None and node.metadata.deletion_timestamp is not None
    return _goes_for_good(claim) or is_candidate(claim)


def _goes_for_good(claim: NodeClaim) -> bool:
    return claim.is_deleting or claim.is_true(INSTANCE_TERMINATING) or INTERRUPTED_AT in claim.metadata.annotations


def _in_command(claim: NodeClaim | None) -> dict[str, Any]:
    """The fields of a view that say what disruption commands have to do with the claim."""
    if claim is None:
        return {}
    link = replaces_of(claim)
    is_only_candidate = is_candidate(claim) and not _goes_for_good(claim)
    return {"is_candidate": is_only_candidate, "replaces": link.candidates if link else ()}


def node_view(node: Node, claim: NodeClaim | None, pods: tuple[Pod, ...] = ()) -> NodeView:
    """One node, with the claim that it belongs to and the pods that are bound to it or nominated for it."""
    registered = claim is None or is_registered(node)
    initialized = claim is None or (registered and node.metadata.labels.get(INITIALIZED) == "true")
    capacity, allocatable = amounts(node.status.capacity), amounts(node.status.allocatable)
    labels = dict(node.metadata.labels)
    taints: tuple[Taint, ...] = tuple(taint for taint in node.spec.taints if claim is None or not is_kept(taint))
    if claim is not None and not initialized:
        capacity = _estimated(amounts(claim.status.capacity), capacity)
        allocatable = _estimated(amounts(claim.status.allocatable), allocatable)
        if not registered:
            labels = {**labels, **claim.metadata.labels}
            taints = _claim_taints(claim)
        taints = _without_boot_taints(taints, claim)
    labels.setdefault(HOSTNAME, node.metadata.name)
    return NodeView(
        node=node.metadata.name,
        claim=claim.metadata.name if claim else "",
        pool=_pool(claim.metadata.labels if claim else labels),
        annotations=node.metadata.annotations,
        labels=_with_ebs_zone(labels, node, claim) if initialized else with_aliases(labels),
        taints=taints + _unschedulable(node),
        capacity=capacity,
        allocatable=allocatable,
        is_initialized=initialized,
        is_ready=is_ready(node),
        is_leaving=is_leaving(node, claim),
        is_terminating=claim is not None and claim.is_true(INSTANCE_TERMINATING),
        is_unlaunched=False,
        pods=pods,
        planned=planned_pods(claim),
        **_in_command(claim),
    )


def _of_claim(claim: NodeClaim, now: datetime) -> NodeView:
    # A requirement that leaves one value is as good as a label: the node will carry it.
    decided = {
        rule.key: rule.values[0] for rule in claim.spec.requirements if rule.operator == "In" and len(rule.values) == 1
    }
    labels = {**decided, **claim.metadata.labels, HOSTNAME: claim.metadata.name}
    launched = bool(claim.status.provider_id)
    reserved = amounts(claim.spec.resources.requests)
    return NodeView(
        node="",
        claim=claim.metadata.name,
        pool=_pool(claim.metadata.labels),
        annotations=claim.metadata.annotations,
        labels=with_aliases(labels),
        taints=_without_boot_taints(_claim_taints(claim), claim),
        capacity=amounts(claim.status.capacity) if launched else reserved,
        allocatable=amounts(claim.status.allocatable) if launched else reserved,
        is_initialized=False,
        is_ready=False,
        is_leaving=is_leaving(None, claim) or has_lost_node(claim, now),
        is_terminating=claim.is_true(INSTANCE_TERMINATING),
        is_unlaunched=not launched,
        pods=(),
        planned=planned_pods(claim),
        may_be=() if launched else _named_types(claim),
        **_in_command(claim),
    )


def _named_types(claim: NodeClaim) -> tuple[str, ...]:
    rules = (rule for rule in claim.spec.requirements if canonical(rule.key) == INSTANCE_TYPE and rule.operator == "In")
    return next((tuple(rule.values) for rule in rules), ())


def _with_ebs_zone(labels: Mapping[str, str], node: Node, claim: NodeClaim | None) -> Mapping[str, str]:
    """The labels of an initialised node, with the EBS CSI driver's zone while that is awaited.

    A node is fit before the registrar of its EBS CSI driver has labelled it. While one of ours is kept for its pods the
    label counts as there, or a second node would be bought for those with volumes; one that is open to all without the
    label has no such driver.
    """
    is_awaited = claim is not None and ZONE in labels and any(map(is_kept, node.spec.taints))
    return {EBS_ZONE: labels[ZONE], **labels} if is_awaited else labels


def _pool(labels: Mapping[str, str]) -> str:
    """The NodePool's name.

    Nodes launched by an older Karpenter carry the older label, and still count against its limits.
    """
    return labels.get(NODE_POOL) or labels.get(PROVISIONER_NAME, "")


def _estimated(claimed: Resources, reported: Resources) -> dict[str, int]:
    """What the kubelet reports; where it still reports nothing or zero, what the claim expects."""
    return {**claimed, **{name: value for name, value in reported.items() if value}}


def _claim_taints(claim: NodeClaim) -> tuple[Taint, ...]:
    return tuple(Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in claim.spec.taints)


def _without_boot_taints(taints: Iterable[Taint], claim: NodeClaim) -> tuple[Taint, ...]:
    startup = {(taint.key, taint.effect) for taint in claim.spec.startup_taints}
    return tuple(taint for taint in taints if (taint.key, taint.effect) not in startup and not is_ephemeral(taint))


def is_ephemeral(taint: Taint) -> bool:
    """A taint that a booting node loses by itself; matched by key and effect (Karpenter `KnownEphemeralTaints`)."""
    return (taint.key, taint.effect) in EPHEMERAL_TAINTS or taint.key.startswith(EPHEMERAL_TAINT_PREFIX)


def _unschedulable(node: Node) -> tuple[Taint, ...]:
    """A cordoned node refuses pods as this taint does (kube-scheduler NodeUnschedulable)."""
    cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    is_tainted = any((taint.key, taint.effect) == (cordon.key, cordon.effect) for taint in node.spec.taints)
    return (cordon,) if node.spec.unschedulable and not is_tainted else ()
