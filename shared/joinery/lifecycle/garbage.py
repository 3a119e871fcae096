"""Garbage: claims whose instance is gone, and instances that no claim knows (disruption-lifecycle.md 1.9, rules 1 and 2).

An instance without a claim is a leak that costs money, unless its claim is about to learn of it: EC2 has accepted the
launch, and whoever asked was stopped before it could write that down. While a claim of the same NodePool still waits for
its instance, unknown instances of that pool are therefore left alone; a claim waits five minutes at most.
"""

from collections.abc import Iterable
from datetime import timedelta

from joinery.apis.labels import NODE_POOL
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import Announce, Command, DeleteClaim, DeleteNode, TerminateInstance
from joinery.lifecycle.view import View, is_ready
from joinery.state.claims import REGISTERED, awaits_launch
from joinery.state.instances import Instance, instance_id

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

    A claim that does not parse knows an instance, too, and nobody can tell which: then nothing is collected.
    """
    if any(bad.kind == NodeClaim.kind for bad in view.snapshot.invalid):
        return
    known = {instance_id(claim.status.provider_id) for claim in view.snapshot.node_claims}
    awaited = {claim.metadata.labels.get(NODE_POOL) for claim in view.snapshot.node_claims if awaits_launch(claim)}
    for instance in view.instances.values():
        is_awaited = (instance.tags or {}).get(NODE_POOL) in awaited
        if instance.instance_id not in known and not instance.is_going and not is_awaited:
            yield from _collect(view, instance)


def _collect(view: View, instance: Instance) -> Iterable[tuple[Command, ...]]:
    if view.snapshot.now - instance.launched_at <= GRACE:
        return
    text = f"no claim knows the instance {instance.instance_id}"
    nodes = view.nodes.get(instance.provider_id, ())
    yield TerminateInstance(instance.instance_id, text), *(DeleteNode(node, text) for node in nodes)
