"""Claims that have lived long enough are retired; their pods get a new node before the old one is drained.

Where a NodePool asks for it, its expired nodes wait for its budgets (``disruption.expiration``). Only then is
the whole cluster read: otherwise the NodeClaims tell enough. And only then is the Lease taken, because whoever else
disrupts nodes of that NodePool counts them, too.
"""

from collections.abc import Collection, Mapping
from typing import Any

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.acting.lease import deciding
from joinery.controllers.telemetry import REASON, Count, count, logger
from joinery.decisions.disruption.expiration import Waiting, expire, expired, given_up, may_go, obeys_budgets, waiting
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell, ring_each
from joinery.objects.actions import Announce
from joinery.objects.errors import ConfigurationError, ConflictError, NotFoundError, UnavailableError, UnreachableError
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claim_changes import newly_leaving
from joinery.objects.snapshot.snapshot import ClaimsSnapshot
from joinery.objects.wording import rfc3339


class ExpirationController:
    """Woken by a schedule, once a minute.

    ``obeys_budgets``: whether expired nodes wait for the budgets of NodePools that do not say.
    """

    def __init__(self, gateways: Gateways, *, obeys_budgets: bool = False) -> None:
        self._gateways = gateways
        self._obeys_budgets = obeys_budgets

    def reconcile(self, invocation: Invocation) -> Mapping[str, Any]:
        """Read, decide, act."""
        snapshot = self._gateways.cluster.claims_snapshot()
        actor = Actor(self._gateways, snapshot.now, invocation)
        budgeted, unread = self._budgeted_pools(snapshot, actor)
        staying = budgeted | unread
        kept = {claim.metadata.name for _, claim in expired(snapshot) if _pool_of(claim) in staying}
        going = expire(snapshot, kept)
        actor.carry_out(*going)
        more, still_waiting = 0, 0
        if budgeted:
            # Those that have expired already wait for their replacements, whatever comes of the others.
            with actor.noting("expired nodes wait for the next run"):
                more, still_waiting = self._within_budgets(budgeted, actor, invocation)
        if actor.attempted:
            ring_each(self._gateways.doorbell, Bell.PROVISIONING, Bell.LIFECYCLE)
        actor.conclude()
        return {"expired": len(going) + more, **({"waiting": still_waiting} if still_waiting else {})}

    def _budgeted_pools(self, snapshot: ClaimsSnapshot, actor: Actor) -> tuple[frozenset[str], frozenset[str]]:
        """Of the NodePools that have expired nodes, the names of those whose nodes expire within budgets, and of those
        that could not be read. That is noted with the actor. Raises ``UnreachableError``: the others would not answer,
        either.
        """
        names = {_pool_of(claim) for _, claim in expired(snapshot)} - {""}
        budgeted, unread = set(), set()
        for name in sorted(names):
            try:
                if self._is_budgeted(name):
                    budgeted.add(name)
            except UnreachableError:
                raise
            except UnavailableError as error:
                actor.note(f"the expired nodes of NodePool {name} wait for the next run", error)
                unread.add(name)
        return frozenset(budgeted), frozenset(unread)

    def _is_budgeted(self, name: str) -> bool:
        try:
            pool = self._gateways.cluster.node_pool(name)
        except NotFoundError:
            return False  # Its budgets are gone with it.
        except ConfigurationError:
            return self._obeys_budgets
        return obeys_budgets(pool, self._obeys_budgets)

    def _within_budgets(self, budgeted: Collection[str], actor: Actor, invocation: Invocation) -> tuple[int, int]:
        """Retire what has expired of these NodePools as far as their budgets allow: how many go, and how many wait."""
        cluster = self._gateways.cluster
        before = cluster.snapshot()
        staying = waiting(before, budgeted)
        free = may_go(before, budgeted, staying)
        try:
            with deciding(cluster, "expiration", invocation):
                current = cluster.claims_snapshot()
                # What has begun to leave since the nodes were read is not in the figures of these budgets.
                closed = newly_leaving(before, current)
                due = [(at, claim) for at, claim in expired(current) if _pool_of(claim) in budgeted]
                # One that has expired since was not asked about its budgets: the next run asks.
                going = [
                    given_up(claim, at)
                    for at, claim in due
                    if claim.metadata.name in free and _pool_of(claim) not in closed
                ]
                actor.carry_out(*going)
        except ConflictError as error:
            logger.info("expired nodes wait for the next run", extra={REASON: str(error)})
            return 0, 0
        actor.carry_out(*((_blocked_event(pool),) for pool in staying))
        count(Count.EXPIRATIONS_WAITING, len(due) - len(going))
        return len(going), len(due) - len(going)


def _blocked_event(staying: Waiting) -> Announce:
    names = f"{', '.join(staying.claims[:3])}{' and others' if len(staying.claims) > 3 else ''}"
    latest = f"; the first goes at {rfc3339(staying.until)} at the latest" if staying.until else ""
    return Announce("DisruptionBlocked", f"expired, and waiting: {names}: {staying.why}{latest}", staying.pool)


def _pool_of(claim: NodeClaim) -> str:
    return claim.metadata.labels.get(NODE_POOL, "")
