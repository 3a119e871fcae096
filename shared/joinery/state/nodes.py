"""Nodes as the scheduler will meet them: Node and NodeClaim merged into one view (Karpenter `StateNode`).

Until a node is registered its claim speaks for it: the claim's labels, taints and estimated resources count. Until it is
initialised, startup taints and the taints of booting are left out, and figures the kubelet still reports as zero are
the claim's. From then on the node speaks for itself, but for the taint that keeps it for the pods that it was bought for.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from joinery.apis.core import Node, Pod, Taint
from joinery.apis.labels import (
    EBS_ZONE,
    EPHEMERAL_TAINT_PREFIX,
    EPHEMERAL_TAINTS,
    HOSTNAME,
    INITIALIZED,
    INTERRUPTED_AT,
    NODE_POOL,
    PROVISIONER_NAME,
    REGISTERED,
    ZONE,
    with_aliases,
)
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.quantity import Resources, amounts
from joinery.state.plans import expected, is_kept, planned_pods
from joinery.state.pods import is_terminal
from joinery.state.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """One node, or one claim whose node is on its way.

    ``labels``: until the node is initialised, those with several names under each of them; from then on what the node says, which is
    what kube-scheduler looks at, and while it is kept for its pods also what its EBS CSI driver is about to say. ``node`` is empty while there is only a claim, ``claim`` for a node that is not ours. ``pods`` are those bound to it or
    nominated for it; ``planned`` names the pods that its claim was launched for, or who stands in for them. ``is_leaving``: it takes no more
    pods, and those it has need another place. ``is_reserved``: not launched yet, its room is for ``planned`` only.
    """

    node: str
    claim: str
    pool: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Resources
    allocatable: Resources
    is_initialized: bool
    is_leaving: bool
    is_reserved: bool
    pods: tuple[Pod, ...]
    planned: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.node or self.claim


def views(snapshot: Snapshot) -> tuple[NodeView, ...]:
    """All nodes and claims of ours, initialised ones first, then by name.

    A node of another provider's claim is a node like any other; what that claim will become is not ours to count on.
    """
    on_node = _pods_by_node(snapshot.pods)
    ours = snapshot.managed_claims
    claims = {claim.status.provider_id: claim for claim in ours if claim.status.provider_id}
    joined: set[str] = set()
    found = []
    for node in snapshot.nodes:
        claim = claims.get(node.spec.provider_id) if node.spec.provider_id else None
        if claim is not None:
            joined.add(claim.metadata.name)
        found.append(node_view(node, claim, on_node.get(node.metadata.name, ())))
    found += [_of_claim(claim) for claim in ours if claim.metadata.name not in joined]
    twins = expected(ours, snapshot.nodes, snapshot.pods)
    found = [replace(view, planned=twins[view.claim]) if twins.get(view.claim) else view for view in found]
    return tuple(sorted(found, key=lambda view: (not view.is_initialized, view.name)))


def _pods_by_node(pods: Iterable[Pod]) -> Mapping[str, tuple[Pod, ...]]:
    by_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        where = pod.spec.node_name or pod.status.nominated_node_name
        if where and not is_terminal(pod):
            by_node[where].append(pod)
    return {name: tuple(listed) for name, listed in by_node.items()}


def is_leaving(node: Node | None, claim: NodeClaim | None) -> bool:
    """Whether the node is being deleted, or EC2 has told us that it will take it away."""
    if claim is None:
        return node is not None and node.metadata.deletion_timestamp is not None
    return claim.is_deleting or claim.is_true("InstanceTerminating") or INTERRUPTED_AT in claim.metadata.annotations


def node_view(node: Node, claim: NodeClaim | None, pods: tuple[Pod, ...] = ()) -> NodeView:
    """One node, with the claim that it belongs to and the pods that are bound to it or nominated for it."""
    registered = claim is None or node.metadata.labels.get(REGISTERED) == "true"
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
        labels=_settled(labels, node, claim) if initialized else with_aliases(labels),
        taints=taints + _unschedulable(node),
        capacity=capacity,
        allocatable=allocatable,
        is_initialized=initialized,
        is_leaving=is_leaving(node, claim),
        is_reserved=False,
        pods=pods,
        planned=planned_pods(claim),
    )


def _of_claim(claim: NodeClaim) -> NodeView:
    single = {r.key: r.values[0] for r in claim.spec.requirements if r.operator == "In" and len(r.values) == 1}
    labels = {**single, **claim.metadata.labels, HOSTNAME: claim.metadata.name}
    launched = bool(claim.status.provider_id)
    reserved = amounts(claim.spec.resources.requests)
    return NodeView(
        node="",
        claim=claim.metadata.name,
        pool=_pool(claim.metadata.labels),
        labels=with_aliases(labels),
        taints=_without_boot_taints(_claim_taints(claim), claim),
        capacity=amounts(claim.status.capacity) if launched else reserved,
        allocatable=amounts(claim.status.allocatable) if launched else reserved,
        is_initialized=False,
        is_leaving=is_leaving(None, claim),
        is_reserved=not launched,
        pods=(),
        planned=planned_pods(claim),
    )


def _settled(labels: Mapping[str, str], node: Node, claim: NodeClaim | None) -> Mapping[str, str]:
    """The labels of a node that speaks for itself are what they are.

    Nodes are fit before the EBS CSI driver's registrar has labelled them. While one of ours is kept for its pods the label counts as
    there, or a second node would be bought for those with volumes; one that is open to all without the label has no such driver.
    """
    is_awaited = claim is not None and ZONE in labels and any(map(is_kept, node.spec.taints))
    return {EBS_ZONE: labels[ZONE], **labels} if is_awaited else labels


def _pool(labels: Mapping[str, str]) -> str:
    """Nodes that were launched before NodePools had their name carry the older label, and still use up its limits."""
    return labels.get(NODE_POOL) or labels.get(PROVISIONER_NAME, "")


def _estimated(claimed: Resources, reported: Resources) -> dict[str, int]:
    """What the kubelet reports; where it still reports nothing or zero, what the claim expects."""
    return {**claimed, **{name: value for name, value in reported.items() if value}}


def _claim_taints(claim: NodeClaim) -> tuple[Taint, ...]:
    return tuple(Taint(key=t.key, value=t.value, effect=t.effect) for t in claim.spec.taints)


def _without_boot_taints(taints: Iterable[Taint], claim: NodeClaim) -> tuple[Taint, ...]:
    startup = {(t.key, t.effect) for t in claim.spec.startup_taints}
    return tuple(t for t in taints if (t.key, t.effect) not in startup and not is_ephemeral(t))


def is_ephemeral(taint: Taint) -> bool:
    """A taint that a booting node loses by itself; matched by key and effect (Karpenter `KnownEphemeralTaints`)."""
    return (taint.key, taint.effect) in EPHEMERAL_TAINTS or taint.key.startswith(EPHEMERAL_TAINT_PREFIX)


def _unschedulable(node: Node) -> tuple[Taint, ...]:
    """A cordoned node refuses pods as this taint does (kube-scheduler NodeUnschedulable)."""
    cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    known = any(t.key == cordon.key and t.effect == cordon.effect for t in node.spec.taints)
    return (cordon,) if node.spec.unschedulable and not known else ()
