"""Which Node and instance are a claim's, where that is not plain: the Node has vanished, has a double, or has another
provider ID, or the claim has none.

A claim and its Node know each other by the provider ID. Four things go wrong with that:

- The **Node vanishes**: somebody removed it with its finalizer, or etcd was restored from a backup. The instance runs
  on, but no pod can be bound to it. The claim goes back to where it was before its Node joined (``registration``), its
  room does not count (``objects.snapshot.nodes``), and it is given up after fifteen minutes (``liveness``). If its
  kubelet registers before that, the new Node is registered as any other; so is one
  that came before anybody looked.
- **Two Nodes have one provider ID**: an instance has one kubelet, so this one was started under another name. The Node
  that it left behind is never Ready again, and Kubernetes keeps it as long as the instance exists. It is deleted.
- **A claim's provider ID was changed**, by a person or a tool. A Node's cannot be changed (Kubernetes
  `ValidateNodeUpdate`), so the Node that names the claim as its owner is right.
- **A claim has lost its provider ID**, or its whole status, as a backup restores it. The Node that names it as its
  owner, or the instance that has its name as a tag, says what it was (``objects.snapshot.instance_owners``). Without
  that another instance would be launched for it. Karpenter also leaves claims with a provider ID whose condition
  Launched is not True (kubernetes-sigs/karpenter#2808): what EC2 or a Node knows was launched.

A claim also notes since when EC2 knows nothing of its instance. EC2 lists late what it has launched, and may leave out
what runs (EC2 API "Eventual consistency"), so no single answer proves anything. An instance is gone when EC2 says that
it is terminated, or when EC2 has known nothing of it for five minutes, long after its launch, and its kubelet is silent
(``ClusterState.is_gone``). While its Node is Ready nothing is noted: it lives.

A node whose capacity reservation has ended becomes an on-demand node (Karpenter for AWS,
capacityreservation/capacitytype). EC2 does not stop an instance because its
reservation was cancelled or has run out; from then on it bills it as on-demand. Its labels have to say so, because
plans go by them. The opposite does not happen: an on-demand instance never becomes part of a reservation that plans
count.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.actions import Announce, Command, DeleteClaim, DeleteNode, UpdateClaim, UpdateNode
from joinery.objects.karpenter.conditions import awaiting, drop, true
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    ON_DEMAND,
    RESERVATION_LABELS,
    RESERVED,
    TERMINATION_FINALIZER,
)
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import (
    INSTANCE_MISSING,
    LAUNCHED,
    REGISTERED,
    may_be_unlisted,
    observed,
    with_condition,
    with_status,
    without_finalizer,
)
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.nodes import is_ready, is_registered, is_silent, unfinalized


def restored(state: ClusterState, claim: NodeClaim) -> tuple[Command, ...]:
    """The commands that give the claim its own provider ID back, and what else its instance and its Node say of it;
    none for a claim that has it.
    """
    owned = state.owned_node(claim)
    provider_id = (owned and owned.spec.provider_id) or state.lost_provider_ids.get(claim.metadata.name, "")
    if provider_id in ("", claim.status.provider_id):
        return ()
    text = f"its provider ID was changed to {claim.status.provider_id or 'nothing'}, but its instance is {provider_id}"
    after = _refilled(state, with_status(claim, provider_id=provider_id))
    return Announce("ProviderIDRestored", text, claim), UpdateClaim(claim, after, text)


def given_up_copy(claim: NodeClaim) -> tuple[Command, ...]:
    """The commands that delete a claim whose instance is another's.

    It goes at once: whoever does not ask EC2 for tags may take it for the right one, and its deletion for the node's.
    """
    text = f"its instance {instance_id(claim.status.provider_id)} is another NodeClaim's"
    freed = without_finalizer(claim)
    update = () if freed.metadata.finalizers == claim.metadata.finalizers else (UpdateClaim(claim, freed, text),)
    return Announce("InstanceClaimedTwice", text, claim), *update, DeleteClaim(claim, text)


def _refilled(state: ClusterState, claim: NodeClaim) -> NodeClaim:
    """The claim, its status filled from its instance and its Node. The time limit to register begins anew."""
    instance, node = state.instance_of(claim), next(iter(state.nodes.get(claim.status.provider_id, ())), None)
    if instance is not None and not claim.status.image_id:
        claim = with_status(claim, image_id=instance.image_id)
    if node is not None and not claim.status.capacity:
        room = node.status
        claim = with_status(claim, capacity=dict(room.capacity), allocatable=dict(room.allocatable))
    if node is not None and is_registered(node):
        claim = with_status(claim, node_name=node.metadata.name)
    if claim.condition(REGISTERED) is None:
        claim = with_condition(claim, awaiting(REGISTERED, observed(claim, state.snapshot.now)))
    return claim


def launched(state: ClusterState, claim: NodeClaim) -> NodeClaim:
    """The claim with the condition Launched, if EC2 or a Node knows the instance that it names."""
    is_known = state.instance_of(claim) is not None or bool(state.nodes_of(claim))
    if claim.is_true(LAUNCHED) or not is_known:
        return claim
    return with_condition(claim, true(LAUNCHED, observed(claim, state.snapshot.now)))


def left_behind(state: ClusterState, claim: NodeClaim) -> Iterable[Command]:
    """The commands that delete what the instance's kubelet left behind under other names."""
    nodes = state.nodes_of(claim)
    if len(nodes) < 2 or not is_ready(nodes[0]):
        return
    for node in nodes[1:]:
        if is_silent(node, state.snapshot.now):
            text = f"its instance is the node {nodes[0].metadata.name} now"
            yield Announce("NodeLeftBehind", f"the Node {node.metadata.name} is deleted: {text}", claim)
            if TERMINATION_FINALIZER in node.metadata.finalizers:
                # Nothing is to be drained: no kubelet runs the pods that are bound to it.
                yield UpdateNode(node, unfinalized(node), text)
            yield DeleteNode(node, text)


def with_missing(state: ClusterState, claim: NodeClaim) -> NodeClaim:
    """The claim with the condition ``InstanceMissing`` as it is now; as it was where EC2 could not be asked."""
    now = state.snapshot.now
    if not state.are_instances_known or not claim.status.provider_id:
        return claim
    is_alive = any(map(is_ready, state.nodes_of(claim)))
    if state.is_missing(claim) and not is_alive and not may_be_unlisted(claim, now):
        return with_condition(claim, true(INSTANCE_MISSING, observed(claim, now)))
    if claim.condition(INSTANCE_MISSING) is None:
        return claim
    return with_status(claim, conditions=drop(claim.status.conditions, INSTANCE_MISSING))


def demoted(state: ClusterState, claim: NodeClaim, node: Node | None) -> tuple[NodeClaim, Node | None]:
    """The claim and its node, relabelled if the instance was reserved and is on-demand now."""
    instance = state.instance_of(claim)
    if claim.metadata.labels.get(CAPACITY_TYPE) != RESERVED or instance is None or instance.capacity_type != ON_DEMAND:
        return claim, node
    after = with_metadata(claim, labels=_on_demand(claim.metadata.labels))
    if node is None:
        return after, None
    return after, replace(node, metadata=replace(node.metadata, labels=_on_demand(node.metadata.labels)))


def _on_demand(labels: dict[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in labels.items() if key not in RESERVATION_LABELS}
    return {**kept, CAPACITY_TYPE: ON_DEMAND}
