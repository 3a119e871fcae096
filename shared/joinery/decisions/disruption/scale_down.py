"""Scale-down: static NodePools that have more nodes than their ``replicas`` give some up.

A person has asked for fewer nodes, so this is like deleting so many NodeClaims by hand. Disruption budgets do not bind
it, as in Karpenter: they limit what Joinery chooses to do. Each node is drained as any other that is deleted, with
PodDisruptionBudgets and ``do-not-disrupt`` honoured, and its pods count as pending from the deletion on, so that a
place for them is there before the drain begins. Choosing the right nodes is what is left to do here
(docs/decisions/0042).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from itertools import groupby, islice

from joinery.decisions.disruption.moves import eviction_cost
from joinery.objects.actions import Announce, Command, DeleteClaim
from joinery.objects.karpenter import duration
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, ZONE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import DRIFTED
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import comes_with_node, is_active, is_protected, priorities_of
from joinery.objects.snapshot.pool_shares import PoolShare, is_on_demand_node
from joinery.objects.snapshot.replicas import StaticPool, static_pools
from joinery.objects.snapshot.snapshot import Snapshot


class NodeUse(IntEnum):
    """What a node is to its pool's users; the lower goes first.

    ``UNLAUNCHED``: it has no instance. ``UNFIT``: it is not initialised, or not ready. ``EMPTY``: it has no pods but
    those of DaemonSets. ``USED``: it has others. ``PROTECTED``: it or one of its pods must not be disrupted.
    """

    UNLAUNCHED = 0
    UNFIT = 1
    EMPTY = 2
    USED = 3
    PROTECTED = 4


@dataclass(frozen=True)
class _Candidate:
    """A claim that may be given up. ``cost``: of disrupting it; 0 where nobody uses it."""

    claim: NodeClaim
    stage: NodeUse
    zone: str
    cost: float
    lifetime: float

    @property
    def rank(self) -> tuple[NodeUse, bool, float]:
        """What goes first: among nodes of one stage those that drift would replace anyway, then the cheapest."""
        return self.stage, not self.claim.is_true(DRIFTED), self.cost

    @property
    def age(self) -> tuple[float, str]:
        return self.lifetime, self.claim.metadata.name


def scale_down(snapshot: Snapshot) -> tuple[tuple[Command, ...], ...]:
    """A chain of commands for each claim to give up. Costs nothing where no pool has too many nodes."""
    pools = [pool for pool in static_pools(snapshot).values() if pool.lacking < 0]
    if not pools:
        return ()
    views_of = {view.claim: view for view in snapshot.views if view.claim}
    priorities = priorities_of(snapshot.priority_classes)
    nodes = _SurplusNodes(snapshot, views_of, priorities)
    return tuple(_give_up(claim, pool) for pool in pools for claim in nodes.to_give_up(pool))


def _give_up(claim: NodeClaim, pool: StaticPool) -> tuple[Command, ...]:
    wanted = pool.pool.spec.replicas
    text = f"NodePool {pool.pool.metadata.name} has {(wanted or 0) - pool.lacking} nodes, and replicas is {wanted}"
    return Announce("ScaledDown", text, claim), DeleteClaim(claim, text)


@dataclass(frozen=True)
class _SurplusNodes:
    snapshot: Snapshot
    views_of: Mapping[str, NodeView]
    priorities: Mapping[str, int]

    def to_give_up(self, pool: StaticPool) -> Sequence[NodeClaim]:
        """As many claims as the pool has too many, in the order in which they go."""
        candidates = [self._candidate(claim) for claim in pool.staying]
        ordered = _ordered(candidates, Counter(candidate.zone for candidate in candidates))
        share = self.snapshot.pool_shares.get(pool.pool.metadata.name)
        ordered = self._sparing(share, ordered) if share else ordered
        return [candidate.claim for candidate in islice(ordered, -pool.lacking)]

    def _sparing(self, share: PoolShare, ordered: Iterable[_Candidate]) -> Iterator[_Candidate]:
        """Each time the first of them that the share can spare; where it can spare none, the first."""
        left = list(ordered)
        while left:
            after = [share.after(-1, -int(self._is_on_demand(candidate))) for candidate in left]
            spared = next((index for index, one in enumerate(after) if one.lacking <= share.lacking), 0)
            share = after[spared]
            yield left.pop(spared)

    def _is_on_demand(self, candidate: _Candidate) -> bool:
        return is_on_demand_node(self.views_of[candidate.claim.metadata.name].labels, candidate.claim)

    def _candidate(self, claim: NodeClaim) -> _Candidate:
        view, now = self.views_of[claim.metadata.name], self.snapshot.now
        stage, lifetime = self._stage(view), lifetime_remaining(claim, now)
        is_used = stage in (NodeUse.USED, NodeUse.PROTECTED)
        cost = sum(eviction_cost(pod, self.priorities) for pod in view.pods) * lifetime if is_used else 0.0
        return _Candidate(claim, stage, view.labels.get(ZONE, ""), cost, lifetime)

    def _stage(self, view: NodeView) -> NodeUse:
        pods = [pod for pod in view.pods if is_active(pod)]
        is_kept = view.annotations.get(DO_NOT_DISRUPT) == "true"
        if is_kept or any(is_protected(pod, self.snapshot.now) for pod in pods):
            return NodeUse.PROTECTED
        if view.is_unlaunched:
            return NodeUse.UNLAUNCHED
        if not view.is_initialized or not view.is_ready:
            return NodeUse.UNFIT
        return NodeUse.EMPTY if all(map(comes_with_node, pods)) else NodeUse.USED


def _ordered(candidates: Iterable[_Candidate], by_zone: Counter[str]) -> Iterator[_Candidate]:
    """The candidates in the order in which they go.

    Of equal ones the next is in the zone that has the most nodes left, so that what stays is spread evenly; within a
    zone it is the one that expires first.
    """
    ranked = sorted(candidates, key=lambda candidate: candidate.rank)
    for _, equals in groupby(ranked, key=lambda candidate: candidate.rank):
        queues: dict[str, deque[_Candidate]] = defaultdict(deque)
        for candidate in sorted(equals, key=lambda candidate: candidate.age):
            queues[candidate.zone].append(candidate)
        while queues:
            zone = max(queues, key=lambda zone: (by_zone[zone], zone))
            yield queues[zone].popleft()
            by_zone[zone] -= 1
            if not queues[zone]:
                del queues[zone]


def lifetime_remaining(claim: NodeClaim, now: datetime) -> float:
    """The share of its ``expireAfter`` that the claim has left: 1 for a new one, or one that never expires (Karpenter
    `disruption.LifetimeRemaining`)."""
    lifetime, created = duration.parse(claim.spec.expire_after), claim.metadata.creation_timestamp
    if lifetime is None or created is None:
        return 1.0
    if not lifetime:
        return 0.0
    return min(max(1.0 - (now - created) / lifetime, 0.0), 1.0)
