"""Drifted nodes of static NodePools: which of them are replaced now, one for one.

The rules are Karpenter's (disruption, StaticDrift), and those by which it chooses candidates:

- Budgets bind, for the reason ``Drifted``; and the pool's rate does (``lifecycle.state.budgets``).
- A pool first gets its size: while it lacks nodes or has too many, none is replaced.
- ``limits.nodes`` binds all nodes that there are, those that are going too, because a replacement comes before its
  candidate goes. So a pool whose limit is its ``replicas`` is not replaced, and says so; unless it is to end its nodes
  first (``objects.policies.TerminateFirst``).
- The longest drifted go first, and before them those without pods.
- A node with ``do-not-disrupt``, or with pods that must not be disrupted, stays (``lifecycle.state.disruption_check``);
  unless its claim has a ``terminationGracePeriod``, which promises that it can be replaced.
- A node whose replacement would boot an image that is on trial waits (``disruption.validation.canaries``).
- A pool whose new nodes do not register (``lifecycle.pools.registration_health``) keeps the ones that it has, until its
  launches succeed again or it or its node class is changed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from joinery.decisions.disruption.terminate_first import terminate_first_for
from joinery.decisions.disruption.validation.canaries import image_for, objection_of
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand, out_of_date
from joinery.decisions.lifecycle.pools.canary import ImageTrials, trials
from joinery.decisions.lifecycle.pools.registration_health import REGISTRATION_HEALTHY
from joinery.decisions.lifecycle.state.budgets import PoolNodes, allowance, pool_nodes
from joinery.decisions.lifecycle.state.disruption_check import DisruptionCheck
from joinery.decisions.lifecycle.state.drift import by_drift
from joinery.objects.actions import Announce
from joinery.objects.annotations.disruption import ends_first
from joinery.objects.karpenter.conditions import find
from joinery.objects.karpenter.disruption import CanaryRule, DisruptionReason
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.quantity import amount
from joinery.objects.objections import Objection
from joinery.objects.policies import TerminateFirst
from joinery.objects.snapshot.claims import DRIFTED, INITIALIZED, INSTANCE_TERMINATING
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.replicas import StaticPool, static_pools
from joinery.objects.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class StaticDrift:
    """``candidates``: the claims to replace now, by pool. ``ending``: those that end first, and are made up for when
    they are gone. ``announcements``: why others are not.
    """

    candidates: tuple[NodeClaim, ...] = ()
    ending: tuple[NodeClaim, ...] = ()
    announcements: tuple[Announce, ...] = ()


def to_replace(
    snapshot: Snapshot, canary: CanaryRule | None = None, terminate_first: frozenset[TerminateFirst] = frozenset()
) -> StaticDrift:
    """What of the drifted nodes of static NodePools is to be replaced now. Costs nothing where none has drifted.

    ``canary``: how new images are tried, for node classes that do not say. ``terminate_first``: where nodes end first,
    for NodePools that do not say.
    """
    pools = static_pools(snapshot)
    drifted = {
        name: claims
        for name, pool in pools.items()
        if (claims := [one for one in pool.staying if one.is_true(DRIFTED) and not ends_first(one)])
        and pool.lacking == 0
    }
    if not drifted:
        return StaticDrift()
    choice = _Choice(snapshot, trials(snapshot, canary), terminate_first)
    chosen = [choice.of(pools[name], claims) for name, claims in drifted.items()]
    return StaticDrift(
        candidates=tuple(claim for part in chosen for claim in part.candidates),
        ending=tuple(claim for part in chosen for claim in part.ending),
        announcements=tuple(news for part in chosen for news in part.announcements),
    )


class _Choice:
    def __init__(self, snapshot: Snapshot, judged: ImageTrials, terminate_first: frozenset[TerminateFirst]) -> None:
        self._terminate_first = terminate_first
        self._snapshot = snapshot
        self._trials = judged
        self._taken: Counter[tuple[str, str]] = Counter()
        self._check = DisruptionCheck(snapshot)
        nodes = snapshot.views
        self._nodes = pool_nodes(nodes)
        self._claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
        self._used = {view.claim for view in nodes if any(is_reschedulable(pod) for pod in view.pods)}

    def of(self, pool: StaticPool, drifted: Sequence[NodeClaim]) -> StaticDrift:
        name = pool.pool.metadata.name
        claims, now = self._snapshot.managed_claims, self._snapshot.now
        most = allowance(pool.pool, DisruptionReason.DRIFTED, self._nodes.get(name, PoolNodes()), claims, now)
        headroom = self._headroom(pool.pool), "limits.nodes has no room for replacements"
        is_ending = headroom[0] <= 0 and TerminateFirst.STATIC in terminate_first_for(pool.pool, self._terminate_first)
        if is_ending:
            # Budgets do not count a node whose instance ends, nor one that is to come: here it is missing.
            missing = sum(map(_is_missing, pool.staying))
            room, why = most.allowed - missing, most.why if most.allowed <= 0 else "the last one is not replaced yet"
        else:
            room, why = min((most.allowed, most.why), headroom)
        health = find(pool.pool.status.conditions, REGISTRATION_HEALTHY)
        if health is not None and health.status == "False":
            room, why = 0, "its new nodes do not register"
        if room <= 0:
            return StaticDrift(announcements=(Announce("DisruptionBlocked", f"drift: {why}", pool.pool),))
        candidates: list[NodeClaim] = []
        blocked: list[Announce] = []
        for claim in sorted(drifted, key=self._order):
            if len(candidates) == room:
                break
            objection = self._objection(claim)
            if objection:
                blocked.append(Announce("DisruptionBlocked", f"drift: {objection}", claim))
            else:
                self._taken[image_for(claim, self._snapshot)] += 1
                candidates.append(claim)
        if is_ending:
            return StaticDrift(ending=tuple(candidates), announcements=tuple(blocked))
        return StaticDrift(tuple(candidates), announcements=tuple(blocked))

    def _headroom(self, pool: NodePool) -> int:
        """How many nodes more the limit allows beside all that there are, going or not."""
        text = pool.spec.limits.get("nodes")
        there = (c.metadata.labels.get(NODE_POOL) == pool.metadata.name for c in self._snapshot.managed_claims)
        return len(self._claims) + 1 if text is None else amount("nodes", text) - sum(there)

    def _order(self, claim: NodeClaim) -> tuple[bool, str, str]:
        return claim.metadata.name in self._used, *by_drift(claim)

    def _objection(self, claim: NodeClaim) -> Objection | None:
        """Why the node must not be replaced now."""
        drift = DisruptionReason.DRIFTED
        return (
            out_of_date(NewCommand(reason=drift, candidates=(claim,)), self._claims)
            or self._check.objection([claim], drift)
            or self._trial_objection(claim)
        )

    def _trial_objection(self, claim: NodeClaim) -> Objection | None:
        """Why the image that its replacement would boot gets no more nodes now."""
        image = image_for(claim, self._snapshot)
        trial = self._trials.open(*image)
        if trial is None or claim.status.image_id == image[1] or self._taken[image] < trial.room:
            return None
        return objection_of(trial)


def _is_missing(claim: NodeClaim) -> bool:
    return not claim.is_true(INITIALIZED) or claim.is_true(INSTANCE_TERMINATING)
