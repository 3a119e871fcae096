"""Garbage: claims whose instance is gone, and instances without a claim (Karpenter nodeclaim/garbagecollection).

An instance without a claim is a leak that costs money, unless its claim is about to learn of it: EC2 has accepted the
launch, and whoever asked was stopped before it could write that down. Such an instance carries the token of a call
whose claims still wait, so it is left alone until they have it or are given up (``lifecycle.joining.liveness``).
"""

from collections.abc import Iterable
from datetime import timedelta

from joinery.decisions.lifecycle.joining.liveness import LAUNCH_TIMEOUT
from joinery.decisions.lifecycle.launching.fleet_groups import fleet_groups
from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.actions import Announce, Command, DeleteClaim, DeleteNode, MarkUnavailable, TerminateInstance
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import awaits_launch
from joinery.objects.snapshot.instances import INSTANCE_CLAIM_TAG, Instance, instance_id
from joinery.objects.snapshot.snapshot import Invalid, Snapshot

#: How long an instance may be without a claim: EC2 lists it before the launch is written to its claim.
GRACE = timedelta(seconds=30)


def lost_instance(state: ClusterState, claim: NodeClaim) -> tuple[Command, ...]:
    """Give up a claim whose instance EC2 has stopped or is ending, or has known nothing of for long.

    What nobody knows of in a zone that is impaired may be there all the same.
    """
    end, name = state.instance_of(claim), instance_id(claim.status.provider_id)
    if end is not None and not end.serves:
        text = f"its instance {name} is {end.state}" + (f": {end.why}" if end.is_going and end.reason_code else "")
    elif state.is_gone(claim) and not any(map(state.is_shifted, state.nodes_of(claim))):
        text = f"EC2 knows nothing of its instance {name}"
    else:
        return ()
    given_up = (Announce("InstanceGone", text, claim), DeleteClaim(claim, text))
    return (*given_up, MarkUnavailable(end.offering, end.why)) if end and end.is_out_of_stock else given_up


def unknown_instances(state: ClusterState) -> Iterable[tuple[Command, ...]]:
    """Terminate every instance that has no claim, and delete the Node it may have made.

    A claim that cannot be read still protects its instance, as far as the two can be matched: by its provider ID, by
    the instance's tag with the claim's name, or, while it may be waiting for its instance, by its NodePool. So does
    a claim that has lost its provider ID, and one that the instance's Node names as its owner. What Karpenter up to
    v0.37 has launched is left to it.
    """
    unreadable = [invalid for invalid in state.snapshot.invalid if invalid.kind == NodeClaim.kind]
    provider_ids = {claim.status.provider_id for claim in state.snapshot.node_claims}
    provider_ids |= {invalid.provider_id for invalid in unreadable}
    claimed = {instance_id(name) for name in (*provider_ids, *state.lost_provider_ids.values())} | _owned(state)
    unreadable_names = {invalid.name for invalid in unreadable}
    waiting_pools, tokens = _waiting_pools(state.snapshot, unreadable), _awaited_tokens(state.snapshot)
    for instance in state.instances.values():
        tags = instance.tags or {}
        is_claimed = instance.instance_id in claimed or tags.get(INSTANCE_CLAIM_TAG) in unreadable_names
        is_awaited = instance.launch_token in tokens or tags.get(NODE_POOL, "") in waiting_pools
        # The claim of an older Karpenter's instance may be one that we do not read.
        is_foreign = instance.is_of_older_karpenter
        if not is_claimed and not is_awaited and not is_foreign and not instance.is_going:
            yield from _collect(state, instance)


def _owned(state: ClusterState) -> set[str]:
    """The instances whose Nodes name a claim that is there as their owner, whatever that claim says of itself.

    Its provider ID may have been changed (``lifecycle.joining.membership``).
    """
    uids = {claim.metadata.uid for claim in state.snapshot.node_claims}
    nodes = (node for nodes in state.nodes.values() for node in nodes)
    return {
        instance_id(node.spec.provider_id)
        for node in nodes
        if any(owner.uid in uids for owner in node.metadata.owner_references)
    }


def _awaited_tokens(snapshot: Snapshot) -> set[str]:
    """The tokens of the calls that may have launched the instances that claims still wait for."""
    waiting = [claim for claim in snapshot.managed_claims if awaits_launch(claim)]
    return {group.token for group in fleet_groups(waiting, snapshot.node_claims)}


def _waiting_pools(snapshot: Snapshot, unreadable: Iterable[Invalid]) -> set[str]:
    """The NodePools with unreadable claims that may be about to learn of their instance: their tokens are not known.

    A claim that cannot be read is never given up, so it counts as waiting for as long as another claim would wait.
    """
    young = (
        invalid for invalid in unreadable if invalid.created is None or snapshot.now - invalid.created < LAUNCH_TIMEOUT
    )
    return {invalid.node_pool for invalid in young if not invalid.provider_id}


def _collect(state: ClusterState, instance: Instance) -> Iterable[tuple[Command, ...]]:
    if state.snapshot.now - instance.launched_at <= GRACE:
        return
    text = f"no claim knows the instance {instance.instance_id}"
    nodes = state.nodes.get(instance.provider_id, ())
    pool = state.snapshot.pools_by_name.get((instance.tags or {}).get(NODE_POOL, ""))
    subject = nodes[0] if nodes else pool
    yield TerminateInstance(instance.instance_id, text, subject), *(DeleteNode(node, text) for node in nodes)
