"""Garbage: claims whose instance is gone, and instances that no claim knows (Karpenter nodeclaim/garbagecollection).

An instance without a claim is a leak that costs money, unless its claim is about to learn of it: EC2 has accepted the
launch, and whoever asked was stopped before it could write that down. While a claim of the same NodePool still waits for
its instance, unknown instances of that pool are therefore left alone; a claim waits five minutes at most.
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

#: How long an instance may be unknown: EC2 lists it before its claim is written.
GRACE = timedelta(seconds=30)


def lost_instance(view: View, claim: NodeClaim) -> tuple[Command, ...]:
    """Give up a registered claim whose instance EC2 no longer has, unless its kubelet proves that it lives."""
    if not claim.is_true(REGISTERED) or view.instance_of(claim) is not None:
        return ()
    if any(is_ready(node) for node in view.nodes_of(claim)):
        return ()
    text = f"its instance {instance_id(claim.status.provider_id)} is gone"
    return Announce("InstanceGone", text, claim, warning=True), DeleteClaim(claim, text)


def unknown_instances(view: View) -> Iterable[tuple[Command, ...]]:
    """Terminate every instance that has no claim, and delete the Node it may have made.

    A claim that cannot be read counts with what can be told of it: its instance, its name on an instance's tag, its pool.
    """
    unread = [bad for bad in view.snapshot.invalid if bad.kind == NodeClaim.kind]
    known = {claim.status.provider_id for claim in view.snapshot.node_claims} | {bad.provider_id for bad in unread}
    ids = {instance_id(provider_id) for provider_id in known}
    named = {bad.name for bad in unread}
    awaited = _awaited(view.snapshot, unread)
    for instance in view.instances.values():
        tags = instance.tags or {}
        is_known = instance.instance_id in ids or tags.get(INSTANCE_CLAIM_TAG) in named
        if not is_known and not instance.is_going and tags.get(NODE_POOL, "") not in awaited:
            yield from _collect(view, instance)


def _awaited(snapshot: Snapshot, unread: Iterable[Invalid]) -> set[str]:
    """The pools of claims that may be about to learn of their instance. A claim that cannot be read is not given up either,
    so it waits as long as any other claim would.
    """
    waiting = {claim.metadata.labels.get(NODE_POOL, "") for claim in snapshot.node_claims if awaits_launch(claim)}
    young = (bad for bad in unread if bad.created is None or snapshot.now - bad.created < LAUNCH_TIMEOUT)
    return waiting | {bad.node_pool for bad in young if not bad.provider_id}


def _collect(view: View, instance: Instance) -> Iterable[tuple[Command, ...]]:
    if view.snapshot.now - instance.launched_at <= GRACE:
        return
    text = f"no claim knows the instance {instance.instance_id}"
    nodes = view.nodes.get(instance.provider_id, ())
    yield TerminateInstance(instance.instance_id, text), *(DeleteNode(node, text) for node in nodes)
