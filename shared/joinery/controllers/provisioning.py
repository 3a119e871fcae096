"""Pods that fit nowhere get nodes: read the cluster, plan, write the NodeClaims, launch them.

The Lease ``joinery-decisions`` is held between reading the snapshot and writing the claims, so that no two deciders buy
for the same pods. A run that does not get it raises, and its door rings again. Claims are complete when they are
written, so the Lease is given back before EC2 is asked: whatever stops after that, lifecycle or the next run finishes.

A plan is acted upon as a whole or not at all: one that breaks a rule or exceeds a cap is refused, loudly. Two things
are put right within the run instead. A plan that fails verification is made anew, simpler and at last without the pods
at fault (``joinery.planning``). A claim that the API server refuses is isolated, and the rest is planned again
(``joinery.controllers.claim_writer``).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from joinery import planning
from joinery.controllers.actor import Actor
from joinery.controllers.claim_writer import ClaimWriter
from joinery.controllers.launcher import Launched, Launcher
from joinery.controllers.record import decision as document
from joinery.controllers.supply import Supply, read_supply
from joinery.controllers.telling import tell
from joinery.doorbell.gateway import Bell
from joinery.errors import JoineryError, RefusedError
from joinery.gateways import Gateways
from joinery.lifecycle.replacement import replaced
from joinery.lifecycle.steering import promises
from joinery.observability import COST, REASON, RECORD, logger, said
from joinery.planning import Plan
from joinery.scheduling.packing import Launch, Packing
from joinery.scheduling.problem import Options, Problem
from joinery.settings import Settings
from joinery.state.claims import awaits_launch
from joinery.state.snapshot import Snapshot

LEASE = "joinery-decisions"
#: Longer than the function's timeout (60 s), so that a killed holder is fenced: it is dead before another may decide.
LEASE_SECONDS = 90
#: How many plans one run makes at most, because the API server refuses claims of the one before.
_MOST_PLANS = 5
#: How many violations a refusal quotes.
_MOST_SHOWN = 5


@dataclass(frozen=True)
class Decision:
    """A plan, and what it was made from."""

    problem: Problem
    supply: Supply
    plan: Plan

    @property
    def packing(self) -> Packing:
        return self.plan.packing

    @property
    def snapshot(self) -> Snapshot:
        return self.problem.snapshot


class ProvisioningController:
    """Woken by its bell; a run serves every pod that waits, however often the bell rang."""

    def __init__(self, gateways: Gateways, settings: Settings) -> None:
        self._gateways = gateways
        self._settings = settings

    def reconcile(self) -> Mapping[str, Any]:
        """Finish what a killed run left; then read, decide, act.

        Raises ``ConflictError`` if another decides, ``RefusedError`` for a plan that must not be acted upon.
        """
        with self._lease():
            snapshot = self._finish_launches(self._gateways.cluster.snapshot())
            problem, supply = self._read(snapshot)
            decision = self._accept(Decision(problem, supply, planning.plan(problem)))
            actor = Actor(self._gateways, snapshot.now)
            writer = ClaimWriter(self._gateways.cluster, actor)
            decision = self._write_claims(decision, writer, actor)
        launched = self._launch(decision, writer, actor)
        self._tell(decision, writer)
        actor.conclude()
        return _outcome(decision.packing, writer, launched)

    @contextmanager
    def _lease(self) -> Iterator[None]:
        holder = f"provisioning/{self._settings.cluster}"
        lease = self._gateways.cluster.acquire_lease(LEASE, holder=holder, seconds=LEASE_SECONDS)
        try:
            yield
        finally:
            self._gateways.cluster.release_lease(lease)

    # --- before anything is decided ---

    def _finish_launches(self, snapshot: Snapshot) -> Snapshot:
        """Launch the claims that a killed run wrote and left behind. Returns the cluster as it is after that.

        Only then is it known how much room their nodes have. Nobody else is launching them: whoever wrote a claim held
        the Lease, and its bells are answered one after the other.
        """
        left_behind = [claim for claim in snapshot.managed_claims if awaits_launch(claim)]
        if not left_behind:
            return snapshot
        supply = read_supply(self._gateways, snapshot.node_classes, snapshot.now)
        launcher = Launcher(self._gateways, Actor(self._gateways, snapshot.now), snapshot, supply)
        launcher.launch(left_behind, snapshot.node_claims, self._gateways.cloud.instances())
        return self._gateways.cluster.snapshot()

    def _read(self, snapshot: Snapshot) -> tuple[Problem, Supply]:
        supply = read_supply(self._gateways, snapshot.node_classes, snapshot.now)
        options = Options(node_size=self._settings.node_size)
        return Problem(snapshot=snapshot, instance_types=supply.types, options=options), supply

    # --- the plan ---

    def _accept(self, decision: Decision) -> Decision:
        """The decision, if it may be acted upon.

        Raises ``RefusedError`` if not, and records it for whoever looks into that.
        """
        for warning in decision.plan.warnings:
            logger.error("a plan was refused", extra=said(**{REASON: warning}))
        if objection := self._objection(decision.plan):
            self._record(decision, "refused")
            raise RefusedError(objection)
        return decision

    def _objection(self, plan: Plan, written: Sequence[Launch] = ()) -> str:
        """Why a plan must not be acted upon: it breaks a rule, or exceeds a cap of the settings. Empty if it may be.

        ``written``: launches of the same run, which count against the caps too.
        """
        count = len(plan.packing.launches) + len(written)
        hourly = plan.packing.hourly + sum(launch.offering.price for launch in written)
        if plan.violations:
            shown = "; ".join(str(violation) for violation in plan.violations[:_MOST_SHOWN])
            return f"the plan breaks {len(plan.violations)} rules: {shown}"
        if count > self._settings.max_launches:
            return f"the plan launches {count} nodes: max_launches is {self._settings.max_launches}"
        if hourly > self._settings.max_hourly:
            return f"the plan costs {hourly:.2f} $/h: max_hourly is {self._settings.max_hourly:.2f}"
        return ""

    # --- acting on it ---

    def _write_claims(self, decision: Decision, writer: ClaimWriter, actor: Actor) -> Decision:
        """Create the claims of the plan. Where some are refused, plan the rest again without what is at fault.

        Returns the last decision: what was written before is part of its snapshot.
        """
        for _ in range(_MOST_PLANS):
            if not writer.write(decision.problem, decision.packing):
                break
            self._record_refused(decision, actor)
            problem = writer.rest(decision.problem)
            plan = planning.plan(problem, refused=writer.refused)
            decision = replace(decision, problem=problem, plan=plan)
            if objection := self._objection(plan, writer.launches):
                actor.note("the rest was not planned again", RefusedError(objection))
                return replace(decision, plan=replace(plan, packing=replace(plan.packing, launches=())))
        return decision

    def _launch(self, decision: Decision, writer: ClaimWriter, actor: Actor) -> Launched:
        """Ask EC2 for the instances, and tell the claims that go which of them are replaced."""
        snapshot, packing = decision.snapshot, decision.packing
        claims = [written.claim for written in writer.written]
        launched = Launcher(self._gateways, actor, snapshot, decision.supply).launch(claims, claims)
        planned = {pod for launch in (*writer.launches, *packing.launches) for pod in launch.pods}
        housed = {pod for written in writer.written if written.name in launched.served for pod in written.launch.pods}
        marks = replaced(snapshot, packing, planned - housed)
        actor.carry_out(*((update,) for update in (*marks, *promises(snapshot, packing))))
        if writer.written or marks:
            self._gateways.doorbell.ring(Bell.LIFECYCLE)
        if launched.is_short:
            self._gateways.doorbell.ring(Bell.PROVISIONING)
        return launched

    def _tell(self, decision: Decision, writer: ClaimWriter) -> None:
        """Record the decision if it changes something, and send its Events."""
        if decision.packing.launches:
            self._record(decision, "decided")
        tell(self._gateways.recorder, decision.snapshot, decision.packing, writer)

    def _record(self, decision: Decision, what: str) -> None:
        """Keep the decision. One that was refused is what somebody will want to look at."""
        record = document(decision.problem, decision.packing, decision.supply.unavailable)
        key = self._gateways.store.record("provisioning", decision.snapshot.now, record)
        logger.info(what, extra=said(**{RECORD: key, COST: decision.packing.hourly}))

    def _record_refused(self, decision: Decision, actor: Actor) -> None:
        try:
            self._record(decision, "refused")
        except JoineryError as error:
            actor.note("the refused plan was not recorded", error)


def _outcome(packing: Packing, writer: ClaimWriter, launched: Launched) -> Mapping[str, Any]:
    """The run in figures: nodes, pods, and $/h."""
    return {
        "launches": len(writer.written) + len(writer.observed),
        "launched": len(launched.served),
        "placed": sum(len(node.pods) for node in packing.existing)
        + sum(len(launch.pods) for launch in packing.launches),
        "unplaced": len(packing.unplaced),
        COST: round(packing.hourly, 4),
    }
