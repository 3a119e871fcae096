"""Nodes of NodePools that are paused (``objects.karpenter.pause``): which go now, and what that saves.

They go as if they were empty or underutilised: within the budgets of their NodePool, and none that is protected, whose
pods must not be disrupted or have used up their budgets, or while somebody has stopped disruption. Nothing replaces
them. Their pods find room on nodes of others, or wait until the pause is over.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision
from joinery.decisions.lifecycle.state.budgets import PoolNodes, allowance, pool_nodes
from joinery.decisions.lifecycle.state.disruption_check import DisruptionCheck
from joinery.decisions.scheduling.paid_for import Sold
from joinery.objects.actions import Announce, Command, DeleteClaim
from joinery.objects.annotations.disruption import record_of
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.pause import Pause
from joinery.objects.snapshot.nodes import NodeView, is_leaving
from joinery.objects.snapshot.offerings import price_among
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class PausedNode:
    """A node of a paused NodePool. ``hourly``: $/h, 0 where nobody knows. ``why``: what keeps it; empty if it goes.
    ``reason``: by whose budgets it goes. ``pods``: those that are evicted (namespace/name).
    """

    claim: NodeClaim
    pause: Pause
    hourly: float
    why: str = ""
    reason: DisruptionReason = DisruptionReason.EMPTY
    pods: tuple[str, ...] = ()

    @property
    def saved(self) -> float:
        """Dollars that it would cost until the pause ends; 0 for one without an end."""
        pause = self.pause
        return self.hourly * (pause.until - pause.since).total_seconds() / 3600 if pause.until and pause.since else 0.0

    @property
    def message(self) -> str:
        """Why it goes, and what that saves."""
        return f"{self.pause}, which saves ${self.hourly:.4f}/h"

    @property
    def commands(self) -> tuple[Command, ...]:
        """What retires it. Nothing waits for a replacement, because there is none."""
        return Announce("Paused", self.message, self.claim), DeleteClaim(self.claim, self.message)


def paused_nodes(snapshot: Snapshot, sold: Sold) -> tuple[PausedNode, ...]:
    """All nodes of paused NodePools that are not leaving yet; by name, those without pods first."""
    return tuple(_paused_nodes(snapshot, sold)) if snapshot.pauses else ()


def _paused_nodes(snapshot: Snapshot, sold: Sold) -> Iterator[PausedNode]:
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    check, counts = DisruptionCheck(snapshot), pool_nodes(snapshot.views)
    taken: Counter[str] = Counter()
    paused = [view for view in snapshot.views if view.pool in snapshot.pauses and view.claim in claims]
    for view in sorted(paused, key=lambda view: (_reason(view), view.claim)):
        claim, reason = claims[view.claim], _reason(view)
        if is_leaving(None, claim) or record_of(claim) is not None:
            continue
        objection = check.objection([claim], reason)
        why = objection.message if objection else "" if view.is_initialized else "it is not initialised yet"
        if not why:
            pool, nodes = snapshot.pools_by_name[view.pool], counts.get(view.pool, PoolNodes())
            most = allowance(pool, reason, nodes, snapshot.managed_claims, snapshot.now)
            why = "" if taken[view.pool] < most.allowed else most.why
        taken[view.pool] += not why
        yield PausedNode(
            claim=claim,
            pause=snapshot.pauses[view.pool],
            hourly=_price(view, sold),
            why=why,
            reason=reason,
            pods=tuple(pod.key for pod in view.pods if is_reschedulable(pod)),
        )


def decision_of(going: Sequence[PausedNode], snapshot: Snapshot, sold: Sold) -> DisruptionDecision:
    """That these nodes go, for the record. Nothing is sought, so nothing is proven either."""
    prices = {view.claim: price for view in snapshot.views if view.claim and (price := _price(view, sold))}
    before, saved = sum(prices.values()), sum(one.hourly for one in going)
    return DisruptionDecision(
        commands=tuple(
            DecidedCommand(
                reason=one.reason,
                message=one.message,
                retire=(one.claim.metadata.name,),
                pods=one.pods,
                savings=one.hourly,
            )
            for one in going
        ),
        before=before,
        after=before - saved,
        method="pause",
        prices=prices,
    )


def _reason(view: NodeView) -> DisruptionReason:
    is_empty = not any(is_reschedulable(pod) for pod in view.pods)
    return DisruptionReason.EMPTY if is_empty else DisruptionReason.UNDERUTILIZED


def _price(view: NodeView, sold: Sold) -> float:
    labels = view.labels
    offerings = sold.get(labels.get(INSTANCE_TYPE, ""), ())
    return price_among(offerings, labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")) or 0.0
