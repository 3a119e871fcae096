"""A batch of notices: what is done about each, in one snapshot.

Notices of one batch may be about the same claims, so each is answered as if what the ones before it want had happened.
Whatever is wrong with one notice, the others are answered.

If the NodeClaim of an instance cannot be read, its node is retired as far as that goes without a claim. Such a claim
cannot be marked, and nobody would finish its deletion, so it is left as it is: a person has to mend it.
Its Node can be tainted and deleted. Then its pods count as pending, provisioning buys what they need, and lifecycle
drains the Node as one whose claim is gone (``lifecycle.draining.finalization.finalize_node``). The instance is EC2's to
end; if it does not, the claim protects it until the claim can be read again (``lifecycle.garbage``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.decisions.interruption.rebalance import is_acted_upon
from joinery.decisions.interruption.response import EVENTS, concerned, is_about_capacity, respond
from joinery.decisions.termination.taint import disrupted
from joinery.objects.actions import Announce, Command, DeleteNode, UpdateNode
from joinery.objects.errors import JoineryError, NotFoundError
from joinery.objects.karpenter.labels import TERMINATION_FINALIZER
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.policies import Rebalance
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.snapshot import ClaimsSnapshot, Invalid

#: By a claim's name, the Node that it names, or why that could not be read.
Nodes = Mapping[str, Node | JoineryError]


@dataclass(frozen=True)
class NoticeBatch:
    """Notices, and the claims that they are about. The properties say what else has to be read to answer them."""

    notices: Sequence[Notice]
    snapshot: ClaimsSnapshot

    @cached_property
    def claims(self) -> Sequence[tuple[NodeClaim, ...]]:
        """Of each notice the claims that it is about; none for instances of others."""
        return [concerned(notice, self.snapshot.managed_claims) for notice in self.notices]

    @cached_property
    def unreadable(self) -> Sequence[tuple[Invalid, ...]]:
        """Of each notice the claims that it is about and that cannot be read."""
        return [unreadable(notice, self.snapshot.invalid) for notice in self.notices]

    @property
    def node_names(self) -> Mapping[str, str]:
        """By a claim's name, the Node that may have to be retired with it."""
        staying = (claim for claims in self.claims for claim in claims if not claim.is_deleting)
        names = {claim.metadata.name: claim.status.node_name for claim in staying}
        names |= {claim.name: claim.node_name for claims in self.unreadable for claim in claims}
        return {claim: node for claim, node in names.items() if node}

    @property
    def recommended(self) -> Mapping[str, NodeClaim]:
        """By name, the claims that a recommendation of now is about."""
        asked = zip(self.notices, self.claims, strict=True)
        recent = (claims for notice, claims in asked if is_acted_upon(notice, self.snapshot.now))
        return {claim.metadata.name: claim for claims in recent for claim in claims}


@dataclass(frozen=True, kw_only=True)
class NoticeResponse:
    """What is done about one notice.

    ``claims``: how many it is about. ``chains``: for each of them chains of commands, in the order in which they are
    begun. ``shortages``: what is remembered of pools that are short. ``failures``: what is wrong with the notice.
    """

    notice: Notice
    claims: int
    chains: Sequence[Sequence[tuple[Command, ...]]] = ()
    shortages: Sequence[tuple[Command, ...]] = ()
    failures: Sequence[Exception] = ()

    @property
    def is_loss(self) -> bool:
        """Whether claims of ours lose their instances. A recommendation is none, whatever is done about it."""
        return self.claims > 0 and self.notice.kind is not NoticeKind.REBALANCE_RECOMMENDATION


def respond_to_all(batch: NoticeBatch, nodes: Nodes, rebalance: Mapping[str, Rebalance]) -> Sequence[NoticeResponse]:
    """What to do about each notice. ``rebalance``: by a claim's name, what is done about a recommendation."""
    now = batch.snapshot.now
    current = {claim.metadata.name: claim for claims in batch.claims for claim in claims}
    joined = {
        name: node
        for name, node in nodes.items()
        if isinstance(node, Node) and name in current and node.spec.provider_id == current[name].status.provider_id
    }
    responses = []
    for notice, claims, without_claim in zip(batch.notices, batch.claims, batch.unreadable, strict=True):
        names = [claim.metadata.name for claim in claims]
        chains: list[Sequence[tuple[Command, ...]]] = []
        failures: list[Exception] = []
        try:
            chains = [respond(notice, [current[name]], joined, now, rebalance) for name in names]
        except Exception as error:
            failures.append(error)
        shortages = [chain for answer in chains for chain in answer if is_about_capacity(chain)]
        chains = [[chain for chain in answer if not is_about_capacity(chain)] for answer in chains]
        for invalid in without_claim:
            match nodes.get(invalid.name):
                case Node() as node if node.spec.provider_id == invalid.provider_id:
                    chains.append(respond_without_claim(notice, invalid, node))
                case JoineryError() as unread if not isinstance(unread, NotFoundError):
                    failures.append(unread)
        response = NoticeResponse(
            notice=notice,
            claims=len(claims) + len(without_claim),
            chains=chains,
            shortages=shortages,
            failures=failures,
        )
        responses.append(response)
        goes = [name for name in names if response.is_loss or rebalance.get(name) is Rebalance.DRAIN]
        current |= {name: _as_deleted(current[name], now) for name in goes}
    return responses


def _as_deleted(claim: NodeClaim, now: datetime) -> NodeClaim:
    return claim if claim.is_deleting else with_metadata(claim, deletion_timestamp=now)


def unreadable(notice: Notice, invalid: Iterable[Invalid]) -> tuple[Invalid, ...]:
    """The NodeClaims that cannot be read and whose instances the notice is about."""
    claims = (claim for claim in invalid if claim.kind == NodeClaim.kind)
    return tuple(claim for claim in claims if instance_id(claim.provider_id) in notice.instances)


def respond_without_claim(notice: Notice, claim: Invalid, node: Node) -> tuple[tuple[Command, ...], ...]:
    """What to do about the Node, in chains of commands that do not rely on each other."""
    event, text = EVENTS[notice.kind]
    text = f"{text}; its NodeClaim {claim.name} cannot be read: {claim.reason}"
    announced = (Announce(event, text, node),)
    if notice.kind is NoticeKind.REBALANCE_RECOMMENDATION or node.metadata.deletion_timestamp is not None:
        return (announced,)
    tainted = disrupted(node)
    taint = ((UpdateNode(node, tainted, text),),) if tainted != node else ()
    # Without our finalizer the Node would be gone before its pods are.
    is_finalized = TERMINATION_FINALIZER in node.metadata.finalizers
    return (announced, *taint, *([(DeleteNode(node, text),)] if is_finalized else ()))
