"""Events on nodes and NodePools about a decision on disruption, and lines in the log.

The reasons of the Events are Karpenter's (disruption events): ``DisruptionBlocked`` where a rule keeps a node,
``Unconsolidatable`` where nothing better than it was found, ``ConsolidationCandidate`` where it is to be replaced,
``ConsolidationApproved`` where Balanced NodePools agree to that, ``ConsolidationRejected`` where the cluster had
changed before it began.

In most clusters most nodes stay, and every run finds that anew. So a node gets ``Unconsolidatable`` once in a quarter
of an hour, as from Karpenter, and each node in another minute of it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from zlib import crc32

from joinery.controllers.acting.announcements import announce, news
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.reporting.change_monitor import ChangeMonitor
from joinery.controllers.starting_commands import Started
from joinery.controllers.telemetry import CODE, REASON, logger
from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision, Rejection, StayingNode
from joinery.gateways.bundles import Gateways
from joinery.objects.actions import Announce, Subject
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.kubernetes.core import Node
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.nodes import nodes_by_provider_id
from joinery.objects.snapshot.snapshot import Snapshot

#: A node that is not there yet, is going anyway, or is only to wait: that explains itself, and passes.
_UNTOLD = frozenset(
    {
        ObjectionCode.NOT_INITIALIZED, ObjectionCode.LEAVING, ObjectionCode.IN_COMMAND, ObjectionCode.NOMINATED,
        ObjectionCode.CONSOLIDATE_AFTER, ObjectionCode.NOT_REPAID,
    }
)  # fmt: skip
#: These reasons hold for all nodes of a NodePool, so the NodePool gets one Event.
_OF_POOLS = frozenset({ObjectionCode.BUDGET, ObjectionCode.STOPPED, ObjectionCode.CANARY, ObjectionCode.LAUNCHES_FAIL})
#: Nothing forbids it: the pool's policy does not ask for it, or it would not pay.
_UNCONSOLIDATABLE = frozenset(
    {ObjectionCode.POLICY, ObjectionCode.UNPRICED, ObjectionCode.NOT_WORTH_IT, ObjectionCode.TIME_LIMIT}
)

#: Minutes between two Events that a node stays though nothing forbids that it goes (Karpenter: 15 minutes).
_EVENT_EVERY = 15


@dataclass(frozen=True)
class Begun:
    """What became of a decision. ``outcomes``: of the commands that might still start. ``rejected``: the others."""

    outcomes: tuple[tuple[DecidedCommand, Started], ...] = ()
    rejected: tuple[Rejection, ...] = ()

    @property
    def commands(self) -> Sequence[DecidedCommand]:
        """Those that have begun."""
        return [disruption for disruption, outcome in self.outcomes if outcome.record is not None]


def report(
    gateways: Gateways,
    invocation: Invocation,
    snapshot: Snapshot,
    decision: DisruptionDecision,
    begun: Begun,
    monitor: ChangeMonitor,
) -> None:
    """Send the Events of a decision, and log what holds nodes back. ``snapshot``: what it was made from."""
    objections = [node.objection for node in decision.staying]
    examples = {objection.code: objection.message for objection in reversed(objections)}
    lines = [(code, number, examples[code]) for code, number in Counter(one.code for one in objections).items()]
    for code, number, example in monitor.news(lines, lambda line: line, lambda line: line[0], snapshot.now).lines:
        logger.info(f"{number} nodes stay", extra={CODE: code.value, REASON: example})
    subjects = _Subjects(snapshot)
    is_only_observed = not gateways.may_launch
    sorts: tuple[Iterable[Announce], ...] = (
        subjects.observed(begun.commands) if is_only_observed else subjects.candidates(begun.commands),
        () if is_only_observed else subjects.approved(begun.commands),
        subjects.rejected(begun.rejected),
        subjects.blocked_pools(decision.staying),
        subjects.blocked(decision.staying),
        subjects.unconsolidatable(node for node in decision.staying if _is_due(node, snapshot.now)),
    )
    announce(gateways, invocation, news(gateways, chain.from_iterable(sorts)))


def _is_due(node: StayingNode, now: datetime) -> bool:
    """Whether it is the node's minute of the quarter of an hour. So nothing remembers its last Event."""
    return crc32(node.node_claim.encode()) % _EVENT_EVERY == now.minute % _EVENT_EVERY


def _is_consolidation(disruption: DecidedCommand) -> bool:
    return disruption.reason is DisruptionReason.UNDERUTILIZED


class _Subjects:
    """The objects of a snapshot that Events are about: claims with their Nodes, and NodePools."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
        self._nodes: Mapping[str, tuple[Node, ...]] = nodes_by_provider_id(snapshot.nodes)
        self._pools = snapshot.pools_by_name

    def observed(self, disruptions: Iterable[DecidedCommand]) -> Iterator[Announce]:
        """What would be done, if it were not for ``observe`` mode."""
        for disruption in disruptions:
            text = f"observe mode: would be retired ({disruption.reason.value}): {disruption.message}"
            yield from (Announce("Observed", text, subject) for subject in self._of(disruption.retire))

    def candidates(self, disruptions: Iterable[DecidedCommand]) -> Iterator[Announce]:
        """Which nodes are consolidated, and what that saves."""
        for disruption in filter(_is_consolidation, disruptions):
            for subject in self._of(disruption.retire):
                yield Announce("ConsolidationCandidate", disruption.message, subject)

    def approved(self, disruptions: Iterable[DecidedCommand]) -> Iterator[Announce]:
        """What Balanced NodePools say of commands that they agree to: on its node if it is one, else on the pools."""
        for disruption in filter(_is_consolidation, disruptions):
            for balance in disruption.balances:
                text = f"NodePool {balance.pool} is Balanced, and agrees: {balance}"
                is_single = len(disruption.retire) == 1
                for subject in self._of(disruption.retire) if is_single else [self._pools[balance.pool]]:
                    yield Announce("ConsolidationApproved", text, subject)

    def rejected(self, rejected: Iterable[Rejection]) -> Iterator[Announce]:
        """Which nodes were to be consolidated, and stay because the cluster changed while that was decided."""
        for one in rejected:
            for subject in self._of(one.command.retire) if _is_consolidation(one.command) else ():
                yield Announce("ConsolidationRejected", f"{one.cause}: {one.objection}", subject)

    def blocked_pools(self, nodes: Iterable[StayingNode]) -> Iterator[Announce]:
        """Which NodePools let no more nodes be disrupted now, each with the first reason."""
        announced: set[str] = set()
        for node in nodes:
            pool = self._pool_of(node.node_claim) if node.objection.code in _OF_POOLS else ""
            if pool in self._pools and pool not in announced:
                announced.add(pool)
                yield Announce("DisruptionBlocked", node.objection.message, self._pools[pool])

    def blocked(self, nodes: Iterable[StayingNode]) -> Iterator[Announce]:
        """Which nodes a rule of their own, or of their pods, keeps."""
        for node in nodes:
            is_blocked = node.objection.code not in _UNTOLD | _OF_POOLS | _UNCONSOLIDATABLE
            subjects = self._of([node.node_claim]) if is_blocked else ()
            yield from (Announce("DisruptionBlocked", node.objection.message, subject) for subject in subjects)

    def unconsolidatable(self, nodes: Iterable[StayingNode]) -> Iterator[Announce]:
        """Which nodes stay though no rule keeps them."""
        for node in nodes:
            subjects = self._of([node.node_claim]) if node.objection.code in _UNCONSOLIDATABLE else ()
            yield from (Announce("Unconsolidatable", node.objection.message, subject) for subject in subjects)

    def _of(self, names: Iterable[str]) -> Iterator[Subject]:
        """The claims of these names, each with its Node."""
        for claim in (self._claims[name] for name in names if name in self._claims):
            yield claim
            yield from self._nodes.get(claim.status.provider_id, ())[:1] if claim.status.provider_id else ()

    def _pool_of(self, name: str) -> str:
        claim = self._claims.get(name)
        return claim.metadata.labels.get(NODE_POOL, "") if claim else ""
