"""Candidates: which nodes may be disrupted now, for what, and which nodes may take their pods.

The rules are Karpenter's (disruption controller, `NewCandidate`, `Emptiness`, `Drift`, `consolidation`). What Karpenter
keeps in conditions and in memory is worked out from the snapshot, so a file of ``kubectl get`` is judged like a live
cluster.

- A node that is not initialised, is leaving, is in a disruption command, or is awaited by pods stays. So does one with
  the annotation ``karpenter.sh/do-not-disrupt: "true"``, and one whose NodePool is unknown or can buy nothing.
- Empty nodes and underutilised ones go only after their NodePool's ``consolidateAfter``, and underutilised ones only if
  its ``consolidationPolicy`` allows that, what they cost is known, and they have paid for themselves if Joinery
  launched them lately (``disruption.repayment``). Drifted nodes go whatever the policy.
- Pods that must not be disrupted now, and budgets of pods that are used up, keep a node
  (``lifecycle.state.disruption_check``). They do not keep a drifted one whose claim has a ``terminationGracePeriod``.
- A pod whose resize in place the kubelet has deferred keeps a node from consolidation, unless what comes in its place
  asks for as much: who resized it wants it larger, and consolidation would make it smaller.
- Nodes of static NodePools are no candidates: ``disruption.static_drift`` and ``disruption.scale_down`` deal with them.

A stop (``objects.karpenter.disruption.stop_of``) keeps all nodes. Budgets and rates of NodePools are about commands,
not about nodes: ``disruption.validation.budget_check`` applies them afterwards.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from joinery.decisions.disruption.decision import StayingNode
from joinery.decisions.disruption.moves import MovePrices
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.repayment import repayment
from joinery.decisions.disruption.validation.eviction_rates import rate_objection
from joinery.decisions.lifecycle.state.disruption_check import DisruptionCheck
from joinery.decisions.lifecycle.state.drift import by_drift
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.objects.annotations.disruption import record_of
from joinery.objects.annotations.plans import is_kept
from joinery.objects.karpenter import duration
from joinery.objects.karpenter.disruption import DisruptionReason, stop_in_force
from joinery.objects.karpenter.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, ZONE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import DRIFTED, types_of
from joinery.objects.snapshot.nodes import NodeView, is_leaving
from joinery.objects.snapshot.offerings import price_among
from joinery.objects.snapshot.pod_events import empty_since, is_empty, quiet_since
from joinery.objects.snapshot.pods import is_reschedulable, is_terminal, is_virtual
from joinery.objects.wording import rfc3339

EMPTY, UNDERUTILIZED = DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A node that may be disrupted now.

    view           the node; ``claim``, ``pool``: its NodeClaim and NodePool
    price          $/h of its own offering, whether that can be bought now or not; 0 where nobody knows it, and then the
                   node is no candidate for consolidation
    instance_type, zone, capacity_type   that offering
    pods           those that would move
    move_price     dollars for moving all of them
    payback        what a command saves must repay its moves within this time
    reasons        what it may be disrupted for, budgets apart: ``EMPTY`` or ``UNDERUTILIZED``, ``DRIFTED``, or both
    is_empty       nothing of weight would move (Karpenter: no pod whose eviction cost is above 0), and no buffer keeps
                   its room. ``pods`` may hold pods without weight all the same
    """

    view: NodeView
    claim: NodeClaim
    pool: NodePool
    price: float
    instance_type: str
    zone: str
    capacity_type: str
    pods: tuple[Pod, ...]
    move_price: float
    payback: timedelta
    reasons: frozenset[DisruptionReason]
    is_empty: bool

    @property
    def is_drifted(self) -> bool:
        """Whether it may go because it has drifted."""
        return DisruptionReason.DRIFTED in self.reasons

    @property
    def drift_order(self) -> tuple[bool, str, str]:
        """To sort drifted candidates by: those without pods first, then the longest drifted (Karpenter `Drift`)."""
        return bool(self.pods), *by_drift(self.claim)


@dataclass(frozen=True)
class Candidates:
    """All nodes, judged.

    candidates     in the order of ``objects.snapshot.nodes.views``
    staying        those that stay for a reason, in that order
    destinations   names of Nodes that may receive pods of empty and underutilised nodes. A node that is still inside
                   its own ``consolidateAfter`` is none of them: it would begin to be quiet anew, and never be
                   consolidated itself. Pods that wait, and those of nodes that leave anyway, may go there all the same
    nodes          every node and claim of the snapshot
    prices         $/h by name of the NodeClaim: what each costs by the labels of its node, those that the catalogue
                   sells. One that cannot be a candidate has a price too
    """

    candidates: tuple[Candidate, ...] = ()
    staying: tuple[StayingNode, ...] = ()
    destinations: frozenset[str] = frozenset()
    nodes: tuple[NodeView, ...] = ()
    prices: Mapping[str, float] = field(default_factory=dict)


#: What a node that is paid for costs, as a part of its price: the order of prices is kept, as of reserved offerings.
_LEAST = 1e-7


def candidates(problem: DisruptionProblem, awaited: Mapping[str, str] | None = None) -> Candidates:
    """Judge every node of the problem's snapshot. ``awaited``: by Node, for which pod it is kept, as a sentence."""
    return _CandidateFinder(problem, awaited or {}).find()


class _CandidateFinder:
    def __init__(self, problem: DisruptionProblem, awaited: Mapping[str, str]) -> None:
        self._awaited = awaited
        self._problem, self._snapshot = problem.packing, problem.packing.snapshot
        self._now, self._options = self._snapshot.now, problem.options
        self._views = self._snapshot.views
        self._claims = {claim.metadata.name: claim for claim in self._snapshot.managed_claims}
        self._nodes_of = Counter(view.claim for view in self._views if view.claim)
        self._finished: dict[str, list[Pod]] = defaultdict(list)
        for pod in filter(is_terminal, self._snapshot.pods):
            self._finished[pod.spec.node_name].append(pod)
        self._kept = {node.metadata.name for node in self._snapshot.nodes if any(map(is_kept, node.spec.taints))}
        self._types = {
            name: {instance_type.name: instance_type for instance_type in types}
            for name, types in problem.packing.instance_types.items()
        }
        self._sold, self._covered = problem.sold, problem.covered
        self._prices = {view.claim: price for view in self._views if view.claim and (price := self._price(view))}
        pools, now = self._snapshot.node_pools, self._snapshot.now
        self._stop = None if problem.options.ignore_budgets else stop_in_force(pools, now)
        self._check = DisruptionCheck(self._snapshot, heeds_stop=False)  # the stop is heeded here already
        self._moves = MovePrices(problem)

    def find(self) -> Candidates:
        chosen: list[Candidate] = []
        staying: dict[StayingNode, None] = {}
        destinations: set[str] = set()
        for view in self._views:
            if self._may_receive(view) and not self._is_inside_consolidate_after(view):
                destinations.add(view.node)
            if view.claim and not self._is_static(view):
                candidate, kept = self._of(view)
                staying.update(dict.fromkeys(kept))
                chosen += [candidate] if candidate else []
        return Candidates(
            candidates=tuple(chosen),
            staying=tuple(staying),
            destinations=frozenset(destinations),
            nodes=self._views,
            prices=self._prices,
        )

    # --- one node ---

    def _of(self, view: NodeView) -> tuple[Candidate | None, Iterable[StayingNode]]:
        claim, pool = self._claims[view.claim], self._pool(view)
        objection = self._state_objection(view, claim) or self._pool_objection(view)
        if objection or pool is None:
            return None, [StayingNode(view.claim, objection)] if objection else []
        candidate, unread = self._described(view, claim, pool)
        objections = self._objections(candidate, unread)
        reasons = frozenset(reason for reason, objection in objections.items() if objection is None)
        return replace(candidate, reasons=reasons) if reasons else None, _staying(view.claim, objections)

    def _described(self, view: NodeView, claim: NodeClaim, pool: NodePool) -> tuple[Candidate, Objection | None]:
        """The node without its reasons; and what is wrong with an annotation that is to price its moves."""
        pods = tuple(pod for pod in view.pods if is_reschedulable(pod))
        instance_type, zone, capacity_type = _offering(view)
        price = self._prices.get(view.claim, 0.0)
        terms = self._moves.terms(view.pool)
        moves = [self._moves.price_of_moving(pod, view, price) for pod in pods]
        candidate = Candidate(
            view=view,
            claim=claim,
            pool=pool,
            price=price,
            instance_type=instance_type,
            zone=zone,
            capacity_type=capacity_type,
            pods=pods,
            move_price=sum(move.dollars for move in moves),
            payback=terms.payback,
            reasons=frozenset(),
            is_empty=not any(is_virtual(pod) or self._moves.weight(pod) for pod in pods),
        )
        rates = () if self._options.ignore_budgets else map(rate_objection, pods)
        unread = (terms.unread, *(move.unread for move in moves), *rates)
        return candidate, next(filter(None, unread), None)

    def _objections(self, candidate: Candidate, unread: Objection | None) -> dict[DisruptionReason, Objection | None]:
        """By what it might be disrupted for: what keeps it from that, None if nothing does."""
        consolidation = EMPTY if candidate.is_empty else UNDERUTILIZED
        objection = self._policy_objection(candidate)
        if objection is None and not candidate.is_empty:
            objection = unread or _price_objection(candidate) or self._repayment_objection(candidate)
            objection = objection or self._resize_objection(candidate)
        objections = {consolidation: objection or self._check.objection([candidate.claim], consolidation)}
        if candidate.claim.is_true(DRIFTED):
            drift = DisruptionReason.DRIFTED
            objections[drift] = self._check.objection([candidate.claim], drift)
        return objections

    def _state_objection(self, view: NodeView, claim: NodeClaim) -> Objection | None:
        if record_of(claim) is not None or view.replaces:
            return Objection(ObjectionCode.IN_COMMAND, "it is in a disruption command already")
        if is_leaving(None, claim):
            return Objection(ObjectionCode.LEAVING, "it is leaving already")
        if not view.node and view.is_leaving:
            return Objection(ObjectionCode.NOT_INITIALIZED, "the Node that it had is not there")
        if not view.node or not view.is_initialized:
            return Objection(ObjectionCode.NOT_INITIALIZED, "its node is not initialised yet")
        if self._nodes_of[view.claim] > 1:
            return Objection(
                ObjectionCode.NOT_INITIALIZED, "its instance has more than one Node, and only one is its kubelet's"
            )
        if view.node in self._kept:
            return Objection(ObjectionCode.NOMINATED, "it is kept for the pods that it was bought for")
        if nominated := next((pod.key for pod in view.pods if not pod.spec.node_name), None):
            return Objection(ObjectionCode.NOMINATED, f"pod {nominated} is nominated for it")
        if view.node in self._awaited:
            return Objection(ObjectionCode.NOMINATED, self._awaited[view.node])
        if view.annotations.get(DO_NOT_DISRUPT) == "true":
            return Objection(ObjectionCode.DO_NOT_DISRUPT, f"its Node has the annotation {DO_NOT_DISRUPT}")
        return None

    def _pool_objection(self, view: NodeView) -> Objection | None:
        pool = self._pool(view)
        if pool is None or not self._snapshot.serves(pool):
            named = f"its NodePool {view.pool} is unknown" if view.pool else "it belongs to no NodePool"
            return Objection(ObjectionCode.NO_NODE_POOL, named)
        if pause := self._snapshot.pauses.get(view.pool):
            return Objection(ObjectionCode.PAUSED, f"{pause}, and its nodes go without a command", pause.until)
        if not self._problem.types_of(pool):
            return Objection(
                ObjectionCode.NO_NODE_POOL, f"its NodePool {view.pool} has no instance types to choose from"
            )
        return self._stop

    def _policy_objection(self, candidate: Candidate) -> Objection | None:
        """What the NodePool says of consolidation."""
        disruption = candidate.pool.spec.disruption
        if disruption.consolidation_policy == "WhenEmpty" and not candidate.is_empty:
            pods = f"{len(candidate.pods)} pod{'s' if len(candidate.pods) > 1 else ''}"
            return Objection(
                ObjectionCode.POLICY, f"its NodePool consolidates empty nodes only (WhenEmpty), and {pods} would move"
            )
        after = duration.parse(disruption.consolidate_after)
        if after is None:
            return Objection(ObjectionCode.POLICY, "its NodePool consolidates nothing (consolidateAfter: Never)")
        quiet = self._quiet_since(candidate.view, candidate.claim)
        if quiet is None or self._now - quiet >= after:
            return None
        since, until = map(rfc3339, (quiet, quiet + after))
        text = f"quiet since {since}, and its NodePool's consolidateAfter is {disruption.consolidate_after}"
        return Objection(ObjectionCode.CONSOLIDATE_AFTER, f"{text}: it is looked at from {until} on", quiet + after)

    def _repayment_objection(self, candidate: Candidate) -> Objection | None:
        """Whether it has still to pay for itself. Where moves cost nothing, nothing has to be repaid."""
        if not self._moves.terms(candidate.view.pool).new_nodes_repay or not self._options.move_price:
            return None
        due = repayment(
            candidate.claim,
            price=candidate.price,
            move_price=candidate.move_price,
            payback=candidate.payback,
            now=self._now,
        )
        return Objection(ObjectionCode.NOT_REPAID, due.message, due.until) if due and due.until > self._now else None

    def _resize_objection(self, candidate: Candidate) -> Objection | None:
        """Whether a pod waits there for room to be resized into, and would be made anew with less than it waits for."""
        waiting = (pod for pod in candidate.pods if pod.status.pending_resize == "Deferred")
        for pod in waiting:
            comes = requests_of(self._snapshot.successor(pod))
            if any(comes.get(resource, 0) < amount for resource, amount in requests_of(pod).items()):
                text = f"pod {pod.key} waits for room to be resized, and would be made anew with less"
                return Objection(ObjectionCode.POD, text)
        return None

    # --- what the node is ---

    def _pool(self, view: NodeView) -> NodePool | None:
        return self._snapshot.pools_by_name.get(view.pool)

    def _is_static(self, view: NodeView) -> bool:
        pool = self._pool(view)
        return pool is not None and pool.is_static

    def _price(self, view: NodeView) -> float | None:
        """$/h that it adds to the bill; next to nothing for one that is paid for anyway."""
        price, share = self._full_price(view), self._covered.get(view.name)
        return price if price is None or share is None else price * max(_LEAST, 1.0 - share)

    def _full_price(self, view: NodeView) -> float | None:
        instance_type, zone, capacity_type = _offering(view)
        types = types_of(self._claims[view.claim], self._types)
        if types is None:
            return price_among(self._sold.get(instance_type, ()), zone, capacity_type)
        sold = types.get(instance_type)
        return sold.price(zone, capacity_type) if sold else None

    def _quiet_since(self, view: NodeView, claim: NodeClaim) -> datetime | None:
        bound = (pod for pod in view.pods if pod.spec.node_name and not is_virtual(pod))
        pods = [*bound, *self._finished.get(view.node, ())]
        pool = self._pool(view)
        if pool is not None and pool.notes_emptiness and is_empty(pods) and (noted := empty_since(view.annotations)):
            return min(noted, self._now)
        return quiet_since(claim, pods, self._now)

    # --- where pods may go ---

    def _may_receive(self, view: NodeView) -> bool:
        """Whether it is a running node that moved pods may count on."""
        is_promised = view.node in self._kept or bool(view.replaces)
        goes = view.is_leaving or view.pool in self._snapshot.pauses
        return bool(view.node and view.is_initialized) and not goes and not is_promised

    def _is_inside_consolidate_after(self, view: NodeView) -> bool:
        pool, claim = self._pool(view), self._claims.get(view.claim)
        after = duration.parse(pool.spec.disruption.consolidate_after) if pool and not pool.is_static else None
        if claim is None or not after:
            return False
        quiet = self._quiet_since(view, claim)
        return quiet is not None and self._now - quiet < after


def _offering(view: NodeView) -> tuple[str, str, str]:
    """Instance type, zone and capacity type by the node's labels; empty for a label that it lacks."""
    labels = view.labels
    return labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")


def _price_objection(candidate: Candidate) -> Objection | None:
    """Savings cannot be computed without the price of the node."""
    offering = (candidate.instance_type, candidate.zone, candidate.capacity_type)
    for name, value in zip(("instance type", "zone", "capacity type"), offering, strict=True):
        if not value:
            return Objection(ObjectionCode.UNPRICED, f"its Node has no label for its {name}")
    if not candidate.price:
        return Objection(ObjectionCode.UNPRICED, f"nobody knows what {' '.join(offering)} costs")
    return None


def _staying(claim: str, objections: Mapping[DisruptionReason, Objection | None]) -> Sequence[StayingNode]:
    """One entry for each reason that the node does not go for; one for all where one rule keeps it from all."""
    first, *others = objections.values()
    if others and all(objection == first for objection in others):
        return [StayingNode(claim, first)] if first else []
    return [StayingNode(claim, objection, reason) for reason, objection in objections.items() if objection]
