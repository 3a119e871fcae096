"""Notices about instances whose NodeClaims cannot be read: their nodes are retired as far as that goes without a claim.

Such a claim cannot be marked, and nobody would finish its deletion, so it is left as it is: a person has to mend it.
Its Node can be tainted and deleted. Then its pods count as pending, provisioning buys what they need, and lifecycle
drains the Node as one whose claim is gone (``lifecycle.draining.finalization.finalize_node``). The instance is EC2's to
end; if it does not, the claim protects it until the claim can be read again (``lifecycle.garbage``).
"""

from collections.abc import Iterable

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.decisions.interruption.response import EVENTS
from joinery.decisions.termination.taint import disrupted
from joinery.objects.actions import Announce, Command, DeleteNode, UpdateNode
from joinery.objects.karpenter.labels import TERMINATION_FINALIZER
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.snapshot import Invalid


def unreadable(notice: Notice, invalid: Iterable[Invalid]) -> tuple[Invalid, ...]:
    """The NodeClaims that cannot be read and whose instances the notice is about."""
    claims = (claim for claim in invalid if claim.kind == NodeClaim.kind)
    return tuple(claim for claim in claims if instance_id(claim.provider_id) in notice.instances)


def respond_without_claim(notice: Notice, claim: Invalid, node: Node) -> tuple[tuple[Command, ...], ...]:
    """What to do about the Node, in chains of commands that do not rely on each other."""
    event, text = EVENTS[notice.kind]
    text = f"{text}; its NodeClaim {claim.name} cannot be read: {claim.reason}"
    told = (Announce(event, text, node),)
    if notice.kind is NoticeKind.REBALANCE_RECOMMENDATION or node.metadata.deletion_timestamp is not None:
        return (told,)
    tainted = disrupted(node)
    taint = ((UpdateNode(node, tainted, text),),) if tainted != node else ()
    # Without our finalizer a deletion would not be held until the pods are gone.
    is_held = TERMINATION_FINALIZER in node.metadata.finalizers
    return (told, *taint, *([(DeleteNode(node, text),)] if is_held else ()))
