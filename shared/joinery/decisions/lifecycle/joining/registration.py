"""Registration: the Node of a launched claim has appeared, and becomes ours.

The rules are those of Karpenter nodeclaim/lifecycle, Registration. A node boots with the ``unregistered`` taint, which
keeps every pod away. One write gives it what its claim says of it (labels, annotations, taints, owner) and replaces
that taint by the one that keeps the node for the pods that it was bought for (``lifecycle.joining.steering``). This is
done once: what somebody changes on the node later stays as it is. A Node that was removed and is registered anew by its
kubelet is bare, and is registered as a new one is.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from joinery.decisions.lifecycle.joining.steering import kept
from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.actions import Announce, Command
from joinery.objects.karpenter.conditions import false, true, unknown
from joinery.objects.karpenter.labels import (
    DO_NOT_SYNC_TAINTS,
    NO_EXECUTE,
    PARTITION,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
)
from joinery.objects.karpenter.labels import REGISTERED as REGISTERED_LABEL
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes import core
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import INITIALIZED, REGISTERED, observed, with_condition, with_status
from joinery.objects.snapshot.nodes import is_registered


def register(state: ClusterState, claim: NodeClaim) -> tuple[NodeClaim, Node | None, tuple[Command, ...]]:
    """The claim and its node as they should be now, and Events to send.

    The node is None while there is none, or more than one.
    """
    nodes, at = state.nodes_of(claim), observed(claim, state.snapshot.now)
    if not nodes:
        return unjoined(state, claim)
    if len(nodes) > 1:
        message = f"{len(nodes)} nodes have the provider ID {claim.status.provider_id}"
        return with_condition(claim, false(REGISTERED, "MultipleNodesFound", message, at)), None, ()
    node, placed = nodes[0], placed_in_group(state, claim)
    if placed is None:
        text = f"EC2 does not say yet where {claim.status.provider_id} is in its placement group"
        return with_condition(claim, unknown(REGISTERED, "PlacementUnknown", text, at)), None, ()
    claim = placed
    joined = with_condition(with_status(claim, node_name=node.metadata.name), true(REGISTERED, at))
    if is_registered(node):
        return joined, node, ()
    return joined, kept(state, claim, synced(node, claim)), tuple(_warnings(node, claim))


def placed_in_group(state: ClusterState, claim: NodeClaim) -> NodeClaim | None:
    """The claim with the label of the partition that EC2 has chosen; None while nobody knows whether there is one.

    Pods may be spread by that label, so the node does not take any before it has it (Karpenter for AWS,
    registrationhooks/placementgroup).
    """
    node_class = state.snapshot.classes_by_name.get(claim.spec.node_class_ref.name)
    if node_class is None or not node_class.placement_group or PARTITION in claim.metadata.labels:
        return claim
    instance = state.instance_of(claim)
    if instance is None:
        return None
    if not instance.partition:
        return claim
    return with_metadata(claim, labels={**claim.metadata.labels, PARTITION: instance.partition})


def unjoined(state: ClusterState, claim: NodeClaim) -> tuple[NodeClaim, None, tuple[Command, ...]]:
    """The claim without a Node. One that had a Node goes back to where it was before that joined."""
    at, name = observed(claim, state.snapshot.now), claim.status.node_name
    text = f"its Node {name} is gone" if name else "the instance has not joined the cluster yet"
    after = with_condition(claim, unknown(REGISTERED, "NodeNotFound", text, at))
    if not claim.is_true(REGISTERED):
        return after, None, ()
    event = Announce("NodeVanished", f"{text}: no pods are planned onto it", claim)
    return uninitialized(state, after, text), None, (event,)


def uninitialized(state: ClusterState, claim: NodeClaim, text: str) -> NodeClaim:
    """The claim, whose next Node has to become fit for pods once more."""
    return with_condition(claim, unknown(INITIALIZED, "NodeNotFound", text, observed(claim, state.snapshot.now)))


def synced(node: Node, claim: NodeClaim) -> Node:
    """The node with everything its claim says of it, and free of the ``unregistered`` taint."""
    meta = node.metadata
    return replace(
        node,
        metadata=replace(
            meta,
            labels={**meta.labels, **claim.metadata.labels, REGISTERED_LABEL: "true"},
            annotations={**meta.annotations, **claim.metadata.annotations},
            finalizers=list(dict.fromkeys([*meta.finalizers, TERMINATION_FINALIZER])),
            owner_references=_owners(meta.owner_references, claim),
        ),
        spec=replace(node.spec, taints=[taint for taint in _taints(node, claim) if not _is_unregistered(taint)]),
    )


def _is_unregistered(taint: core.Taint) -> bool:
    return (taint.key, taint.effect) == (UNREGISTERED_TAINT, NO_EXECUTE)


def owned(node: Node, claim: NodeClaim) -> Node:
    """The node with the claim among its owners. Without any that is there Kubernetes would delete it."""
    owners = _owners(node.metadata.owner_references, claim)
    if owners == node.metadata.owner_references:
        return node
    return replace(node, metadata=replace(node.metadata, owner_references=owners))


def _owners(owners: Sequence[core.OwnerReference], claim: NodeClaim) -> list[core.OwnerReference]:
    api_version, kind = claim.stored_as
    if any(owner.uid == claim.metadata.uid and owner.kind == kind for owner in owners):
        return list(owners)
    ours = core.OwnerReference(
        api_version=api_version,
        kind=kind,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        block_owner_deletion=True,
    )
    return [*owners, ours]


def _taints(node: Node, claim: NodeClaim) -> Iterable[core.Taint]:
    """The node's taints and those of the claim that it lacks, by key and effect."""
    merged = {(taint.key, taint.effect): taint for taint in node.spec.taints}
    # A kubelet that did not set the taint it boots with set none of the others: a flag of the user's own stood for all.
    if node.metadata.labels.get(DO_NOT_SYNC_TAINTS) != "true" or not any(map(_is_unregistered, node.spec.taints)):
        for taint in (*claim.spec.taints, *claim.spec.startup_taints):
            merged.setdefault(
                (taint.key, taint.effect), core.Taint(key=taint.key, value=taint.value, effect=taint.effect)
            )
    return merged.values()


def _warnings(node: Node, claim: NodeClaim) -> Iterable[Command]:
    if not any(_is_unregistered(taint) for taint in node.spec.taints):
        text = (
            f"node {node.metadata.name} came without the taint {UNREGISTERED_TAINT}: pods may have been placed too soon"
        )
        yield Announce("UnregisteredTaintMissing", text, claim)
