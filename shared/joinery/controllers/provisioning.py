"""Pods that fit nowhere get nodes: read the cluster, pack, write the claims, launch them.

Between reading the snapshot and writing the claims the Lease is held, so that no two deciders buy for the same pods; who
does not get it raises, and its door rings again. The claims are complete when they are written, so the Lease is given back
before EC2 is asked: whatever stops after that is finished by lifecycle.

A claim that the API server refuses is isolated (``controllers.claim_writer``): what is at fault gets its reason, the rest is planned again in
the same run.

A plan is acted upon as a whole or not at all. One that fails verification is made anew, simpler and at last without the pods at fault
(``planning``); one that still fails, or exceeds a cap, is refused loudly.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from joinery import planning
from joinery.apis.core import Pod
from joinery.apis.nodepool import NodePool
from joinery.commands import Announce
from joinery.controllers.actor import Actor, events
from joinery.controllers.claim_writer import ClaimWriter, Written
from joinery.controllers.launcher import Launcher
from joinery.controllers.record import decision
from joinery.controllers.supply import Supply, read_supply
from joinery.doorbell.gateway import Bell
from joinery.errors import JoineryError, RefusedError
from joinery.gateways import Gateways
from joinery.lifecycle.replacement import replaced
from joinery.lifecycle.steering import promises
from joinery.observability import COST, NODE_POOL, POD, REASON, RECORD, logger, said
from joinery.planning import Plan
from joinery.scheduling.explain.elsewhere import also_served, bought_twice, foreign
from joinery.scheduling.packing import Launch, Packing, Unplaced
from joinery.scheduling.problem import Options, Problem
from joinery.settings import Settings
from joinery.state.claims import awaits_launch
from joinery.state.snapshot import Snapshot

LEASE = "joinery-decisions"
#: Longer than the function's timeout (60 s), so that a killed holder is fenced: it is dead before another may decide.
LEASE_SECONDS = 90
#: Events are for people: no more than this many a run about pods that are taken care of, or that are not.
MOST_EVENTS = 100
#: How often a run plans what is left again because the API server refused a claim.
_ROUNDS = 5


@dataclass(frozen=True)
class _Plan:
    """What was decided, from what."""

    problem: Problem
    packing: Packing
    supply: Supply


class ProvisioningController:
    """Woken by its bell; a run serves every pod that waits, however often the bell rang."""

    def __init__(self, gateways: Gateways, settings: Settings) -> None:
        self._gateways = gateways
        self._settings = settings

    def reconcile(self) -> Mapping[str, Any]:
        """Read, decide, act. Raises ``ConflictError`` if another decides, ``RefusedError`` for a plan not to be acted upon."""
        if self._settings.observing:
            return self._observe()
        lease = self._gateways.cluster.acquire_lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS)
        try:
            plan = self._decide()
            actor = Actor(self._gateways, self._settings, plan.problem.snapshot.now)
            plan, written = self._write(plan, actor)
        finally:
            self._gateways.cluster.release_lease(lease)
        served = self._launch(plan, written, actor)
        self._tell(plan, {pod: each.claim.metadata.name for each in written for pod in each.launch.pods})
        actor.conclude()
        return _outcome(plan.packing, served, len(written))

    @property
    def _holder(self) -> str:
        return f"provisioning/{self._settings.cluster}"

    def _observe(self) -> Mapping[str, Any]:
        plan = self._decide()
        self._tell(plan, {})
        events(self._gateways, _observed(plan.packing, {pod.key: pod for pod in plan.problem.snapshot.pods}))
        return _outcome(plan.packing, 0, len(plan.packing.launches))

    def _seen(self) -> Snapshot:
        """The cluster, once the claims that a killed run left behind have their instances: only then is their room known.

        Bells are answered one after the other, so whoever wrote such a claim is no longer launching it.
        """
        snapshot = self._gateways.cluster.snapshot()
        left = [claim for claim in snapshot.node_claims if awaits_launch(claim)]
        if not left or self._settings.observing:
            return snapshot
        supply = read_supply(self._gateways, snapshot.node_classes, snapshot.now)
        actor = Actor(self._gateways, self._settings, snapshot.now)
        launcher = Launcher(self._gateways, actor, snapshot.now, node_classes=snapshot.node_classes, types=supply.types)
        launcher.launch(left, snapshot.node_claims, self._gateways.cloud.instances())
        return self._gateways.cluster.snapshot()

    def _decide(self) -> _Plan:
        snapshot = self._seen()
        supply = read_supply(self._gateways, snapshot.node_classes, snapshot.now)
        problem = Problem(
            snapshot=snapshot, instance_types=supply.types, options=Options(node_size=self._settings.node_size)
        )
        made = planning.plan(problem)
        for warning in made.warnings:
            logger.error("a plan was refused", extra=said(**{REASON: warning}))
        decided = _Plan(problem, made.packing, supply)
        try:
            check(made, self._settings)
        except RefusedError:
            self._record(decided, "refused")
            raise
        return decided

    def _record(self, plan: _Plan, what: str) -> None:
        """Keep the decision: a plan that was refused is the one that somebody will want to look at."""
        document = decision(plan.problem, plan.packing, plan.supply.unavailable)
        key = self._gateways.store.record("provisioning", plan.problem.snapshot.now, document)
        logger.info(what, extra=said(**{RECORD: key, COST: plan.packing.hourly}))

    def _write(self, plan: _Plan, actor: Actor) -> tuple[_Plan, list[Written]]:
        """Create the claims; where some are refused, plan the rest again without what is at fault. Returns the last plan."""
        writer = ClaimWriter(self._gateways.cluster, actor)
        for _ in range(_ROUNDS):
            if not writer.write(plan.problem, plan.packing):
                break
            try:
                self._record(plan, "refused")
            except JoineryError as error:
                actor.note("the refused plan was not recorded", error)
            problem = writer.rest(plan.problem)
            made = planning.plan(problem, refused=writer.refused)
            plan = _Plan(problem, made.packing, plan.supply)
            try:
                check(made, self._settings, [each.launch for each in writer.written])
            except RefusedError as error:
                actor.note("the rest was not planned again", error)
                plan = replace(plan, packing=replace(made.packing, launches=()))
                break
        return plan, writer.written

    def _launch(self, plan: _Plan, written: list[Written], actor: Actor) -> int:
        """Ask EC2, and tell the claims that go which of them are replaced."""
        snapshot = plan.problem.snapshot
        claims = [each.claim for each in written]
        launcher = Launcher(
            self._gateways, actor, snapshot.now, node_classes=snapshot.node_classes, types=plan.supply.types
        )
        launcher.launch(claims, claims)
        served = {each.launch.name for each in written if each.claim.metadata.name in launcher.served}
        homeless = {pod for each in written if each.launch.name not in served for pod in each.launch.pods}
        homeless |= {pod for each in plan.packing.launches if each.name not in served for pod in each.pods}
        marks = replaced(snapshot, plan.packing, homeless)
        actor.carry_out(*((update,) for update in (*marks, *promises(snapshot, plan.packing))))
        self._ring(bool(written or marks), again=launcher.given_up)
        return len(served)

    def _ring(self, is_begun: bool, *, again: bool) -> None:
        if is_begun:
            self._gateways.doorbell.ring(Bell.LIFECYCLE)
        if again:
            self._gateways.doorbell.ring(Bell.PROVISIONING)

    def _tell(self, plan: _Plan, claims: Mapping[str, str]) -> None:
        """Record the decision if it changes something, and send its Events. ``claims``: by pod, the one written for it."""
        packing, snapshot = plan.packing, plan.problem.snapshot
        if packing.launches:
            self._record(plan, "decided")
        pods = {pod.key: pod for pod in snapshot.pods}
        others = foreign(snapshot.node_pools)
        _log_pools(packing, snapshot.node_pools)
        left = _leave_to_others(packing, pods, others)
        if twice := bought_twice(packing, pods, others):
            logger.warning("pods may get two nodes", extra=said(**{REASON: twice}))
        _log_unplaced(left)
        events(self._gateways, [*_nominated(packing, claims, pods), *_failed(left, pods)])


def check(made: Plan, settings: Settings, written: Sequence[Launch] = ()) -> None:
    """Raise ``RefusedError`` for a plan that must not be acted upon: it breaks a rule, or exceeds a cap of the settings.

    ``written``: launches of the same run that count against the caps too.
    """
    packing, violations = made.packing, made.violations
    count = len(packing.launches) + len(written)
    hourly = packing.hourly + sum(each.offering.price for each in written)
    if violations:
        shown = "; ".join(str(violation) for violation in violations[:5])
        raise RefusedError(f"the plan breaks {len(violations)} rules: {shown}")
    if count > settings.max_launches:
        raise RefusedError(f"the plan launches {count} nodes: max_launches is {settings.max_launches}")
    if hourly > settings.max_hourly:
        raise RefusedError(f"the plan costs {hourly:.2f} $/h: max_hourly is {settings.max_hourly:.2f}")


def _nominated(packing: Packing, claims: Mapping[str, str], pods: Mapping[str, Pod]) -> list[Announce]:
    """Where each pod is expected: on a node or claim that is there. Only pods that wait are told."""
    places = {
        key: f"node/{found.node}" if found.node else f"nodeclaim/{found.node_claim}"
        for found in packing.existing
        for key in found.pods
    }
    places |= {key: f"nodeclaim/{name}" for key, name in claims.items()}
    told = ((pods[key], place) for key, place in places.items() if key in pods and not pods[key].spec.node_name)
    return [Announce("Nominated", f"pod should schedule on {place}", pod) for pod, place in _first(told)]


def _observed(packing: Packing, pods: Mapping[str, Pod]) -> list[Announce]:
    """What would be bought for pods that wait, if it were not for ``observe`` mode."""
    told = (
        (
            pods[key],
            f"observe mode: would launch {launch.offering.instance_type} or better of NodePool {launch.node_pool}",
        )
        for launch in packing.launches
        for key in launch.pods
        if key in pods and not pods[key].spec.node_name
    )
    return [Announce("Observed", text, pod) for pod, text in _first(told)]


def _log_pools(packing: Packing, pools: Iterable[NodePool]) -> None:
    """Which of our NodePools take no part; that another provider's take none is how it should be."""
    theirs = {f"NodePool {pool.metadata.name}" for pool in pools if not pool.spec.template.spec.node_class_ref.is_ours}
    for reason in packing.pool_reasons:
        if reason.subject not in theirs:
            logger.warning("a NodePool takes no part", extra=said(**{NODE_POOL: reason.subject, REASON: str(reason)}))


def _leave_to_others(packing: Packing, pods: Mapping[str, Pod], others: Sequence[NodePool]) -> list[Unplaced]:
    """The pods without a place that no other provider may serve. Of the others one line says how many there are."""
    theirs = also_served((found.pod for found in packing.unplaced), pods, others)
    if theirs:
        text = f"NodePools of another provider may serve them: {', '.join(sorted(set(theirs.values())))}"
        logger.info(f"{len(theirs)} pods are left to others", extra=said(**{POD: next(iter(theirs)), REASON: text}))
    return [found for found in packing.unplaced if found.pod not in theirs]


def _failed(unplaced: Iterable[Unplaced], pods: Mapping[str, Pod]) -> list[Announce]:
    """Why each pod without a place has none."""
    told = [(pods[found.pod], "; ".join(map(str, found.reasons))) for found in unplaced if found.pod in pods]
    return [Announce("FailedScheduling", f"no node for it: {text}", pod, warning=True) for pod, text in _first(told)]


def _log_unplaced(unplaced: Iterable[Unplaced]) -> None:
    """One line a reason, with the first pod that it concerns: a Deployment's pods fail alike."""
    pods: dict[str, list[str]] = {}
    for found in unplaced:
        pods.setdefault("; ".join(map(str, found.reasons)), []).append(found.pod)
    for text, listed in pods.items():
        logger.warning(f"{len(listed)} pods fit nowhere", extra=said(**{POD: listed[0], REASON: text}))


def _first(told: Iterable[tuple[Pod, str]]) -> list[tuple[Pod, str]]:
    return list(told)[:MOST_EVENTS]


def _outcome(packing: Packing, served: int, launches: int) -> Mapping[str, Any]:
    return {
        "launches": launches,
        "launched": served,
        "placed": sum(len(e.pods) for e in packing.existing) + sum(len(bought.pods) for bought in packing.launches),
        "unplaced": len(packing.unplaced),
        COST: round(packing.hourly, 4),
    }
