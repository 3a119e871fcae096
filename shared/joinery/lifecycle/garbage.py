"""Garbage: claims whose instance is gone, and instances without a claim (Karpenter nodeclaim/garbagecollection).

An instance without a claim is a leak that costs money, unless its claim is about to learn of it: EC2 has accepted the
launch, and whoever asked was stopped before it could write that down. So instances without a claim are left alone while
a claim of the same NodePool waits for its instance, which is five minutes at most (``lifecycle.liveness``).
"""

from collections.abc import Iterable
from datetime import timedelta

from joinery.apis.labels import NODE_POOL
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import Announce, Command, DeleteClaim, DeleteNode, TerminateInstance
from joinery.lifecycle.liveness import LAUNCH_TIMEOUT
from joinery.lifecycle.view import View, is_ready
from joinery.state.claims import REGISTERED, awaits_launch
from joinery.state.instances import INSTANCE_CLAIM_TAG, Instance, instance_id
from joinery.state.snapshot import Invalid, Snapshot

#: How long an instance may be without a claim: EC2 lists it before the launch is written to its claim.
GRACE = timedelta(seconds=30)


def lost_instance(view: View, claim: NodeClaim) -> tuple[Command, ...]:
    """Give up a registered claim whose instance EC2 no longer lists.

    A Node that is ready proves that the list is wrong.
    """
    if not claim.is_true(REGISTERED) or not view.is_gone(claim):
        return ()
    if any(is_ready(node) for node in view.nodes_of(claim)):
        return ()
    text = f"its instance {instance_id(claim.status.provider_id)} is gone"
    return Announce("InstanceGone", text, claim, warning=True), DeleteClaim(claim, text)


def unknown_instances(view: View) -> Iterable[tuple[Command, ...]]:
    """Terminate every instance that has no claim, and delete the Node it may have made.

    A claim that cannot be read still protects its instance, as far as anything can be told of it: by its provider ID,
    by the instance's tag with the claim's name, or by its NodePool.
    """
    unreadable = [invalid for invalid in view.snapshot.invalid if invalid.kind == NodeClaim.kind]
    provider_ids = {claim.status.provider_id for claim in view.snapshot.node_claims}
    provider_ids |= {invalid.provider_id for invalid in unreadable}
    claimed = {instance_id(provider_id) for provider_id in provider_ids}
    unreadable_names = {invalid.name for invalid in unreadable}
    waiting_pools = _waiting_pools(view.snapshot, unreadable)
    for instance in view.instances.values():
        tags = instance.tags or {}
        is_claimed = instance.instance_id in claimed or tags.get(INSTANCE_CLAIM_TAG) in unreadable_names
        if not is_claimed and not instance.is_going and tags.get(NODE_POOL, "") not in waiting_pools:
            yield from _collect(view, instance)


def _waiting_pools(snapshot: Snapshot, unreadable: Iterable[Invalid]) -> set[str]:
    """The NodePools with claims that may be about to learn of their instance.

    A claim that cannot be read is never given up, so it counts as waiting for as long as another claim would wait.
    """
    waiting = {claim.metadata.labels.get(NODE_POOL, "") for claim in snapshot.managed_claims if awaits_launch(claim)}
    young = (
        invalid for invalid in unreadable if invalid.created is None or snapshot.now - invalid.created < LAUNCH_TIMEOUT
    )
    return waiting | {invalid.node_pool for invalid in young if not invalid.provider_id}


def _collect(view: View, instance: Instance) -> Iterable[tuple[Command, ...]]:
    if view.snapshot.now - instance.launched_at <= GRACE:
        return
    text = f"no claim knows the instance {instance.instance_id}"
    nodes = view.nodes.get(instance.provider_id, ())
    yield TerminateInstance(instance.instance_id, text), *(DeleteNode(node, text) for node in nodes)
