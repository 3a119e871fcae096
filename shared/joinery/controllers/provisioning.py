"""Pods that fit nowhere get nodes: read the cluster, plan, write the NodeClaims, launch them.

The Lease ``joinery-decisions`` is held for writing the claims, so that no two deciders buy for the same pods. A plan is
made before, and acted upon if the claims that it relied on have not changed (``objects.snapshot.claim_changes``). A run
that does not get the Lease raises, and its door rings again. Claims are complete when they are written, so the Lease is
given back before EC2 is asked: whatever stops after that, lifecycle or the next run finishes.

A plan that breaks a rule is refused as a whole, loudly. Three things are put right within the run instead. A plan that
fails verification is made anew, simpler and at last without the pods at fault (``joinery.decisions.planning``). Of a
plan that exceeds the caps the most urgent part is carried out, and the other pods get Events
(``joinery.decisions.capping``); the run still ends in ``RefusedError``, because a person should look at it. A claim
that the API server refuses is isolated, and the rest is planned again (``joinery.controllers.launching.claim_writer``).
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.acting.lease import deciding
from joinery.controllers.launching.claim_writer import ClaimWriter
from joinery.controllers.launching.launcher import Launched, Launcher, finish_launches
from joinery.controllers.launching.refused_claims import held, without
from joinery.controllers.launching.supply import Supply, read_supply
from joinery.controllers.packing_options import packing_options
from joinery.controllers.rebalancing import replace_risky_nodes
from joinery.controllers.static_capacity import StaticCapacity
from joinery.controllers.telemetry import COST, REASON, RECORD, logger, metrics
from joinery.controllers.telling.change_monitor import ChangeMonitor
from joinery.controllers.telling.plan import tell
from joinery.controllers.telling.record import decision_document
from joinery.controllers.waking.pacing import reading
from joinery.decisions.capping import plan_within_caps
from joinery.decisions.lifecycle.joining.steering import promises
from joinery.decisions.lifecycle.view.replacement import replaced
from joinery.decisions.measuring.pods import waiting
from joinery.decisions.planning import Plan
from joinery.decisions.scheduling.packing import Launch, Packing, Unplaced
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import ReasonCode
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.caps import Caps
from joinery.objects.errors import RefusedError
from joinery.objects.settings import Settings
from joinery.objects.snapshot.claim_changes import changed_claims
from joinery.objects.snapshot.claims import awaits_launch
from joinery.objects.snapshot.snapshot import Snapshot

#: Seconds that are kept for what follows a plan: its check, writing its claims, and launching them.
_ACTING_SECONDS = 30.0
#: How many plans one run makes at most, because the API server refuses claims of the one before.
_MOST_PLANS = 5
#: How many plans of a run may be out of date before one is made by the Lease.
_PLANS_WITHOUT_LEASE = 2
#: How often a decision that was refused is recorded: those of the next seconds are the same, and each is paid for.
REFUSALS_RECORDED_EVERY = timedelta(minutes=10)
#: How many violations a refusal quotes.
_MOST_SHOWN = 5


@dataclass(frozen=True)
class Decision:
    """A plan, and what it was made from.

    ``objection``: why it must not be acted upon; empty if it may be. ``stopwatch``: what the plan's time limit is
    measured by. What is planned in its place has what is left of that. ``refused``: by pod (namespace/name), those that
    were left out because no claim for them is taken.
    """

    problem: Problem
    supply: Supply
    plan: Plan
    objection: str = ""
    stopwatch: Stopwatch = lambda: 0.0
    refused: Mapping[str, Unplaced] = field(default_factory=dict)

    @property
    def packing(self) -> Packing:
        return self.plan.packing

    @property
    def snapshot(self) -> Snapshot:
        return self.problem.snapshot


class ProvisioningController:
    """Woken by its bell. One run plans all pods that wait, so rings that come meanwhile need no run of their own."""

    def __init__(self, gateways: Gateways, settings: Settings) -> None:
        self._gateways = gateways
        self._settings = settings
        self._monitor = ChangeMonitor()
        self._refusal_recorded: datetime | None = None

    def reconcile(self, invocation: Invocation) -> Mapping[str, Any]:
        """Finish what a killed run left; then read, decide, act.

        Raises ``ConflictError`` if another decides, ``RefusedError`` for a plan that must not be acted upon, and, when
        everything else is done, for launches that the caps left out.
        """
        with reading():
            snapshot = self._gateways.cluster.snapshot()
        static = StaticCapacity(self._gateways, snapshot, invocation)
        snapshot = static.adjust(snapshot, packing_options(self._settings, self._settings.caps))
        decision, writer = self._decide(snapshot, invocation)
        # Where claims were refused, those before them are counted twice; then static NodePools get less in this run.
        rest = _having_bought(writer.rest(decision.problem), decision.problem.options.caps, writer.launches)
        static.fill_up(rest, decision.supply, writer)
        launched = self._launch(decision, writer, invocation)
        self._tell(decision, writer, invocation)
        options = _having_bought(decision.problem, decision.problem.options.caps, writer.launches).options
        caps = replace_risky_nodes(self._gateways, options, decision.snapshot, invocation, writer.actor)
        static.replace_drifted(decision.snapshot, decision.supply, replace(options, caps=caps), self._settings)
        metrics.add(*waiting(snapshot, decision.packing))
        _note_the_rest(decision.packing, writer.actor)
        writer.actor.conclude(static.actor)
        return {**_outcome(decision.packing, writer, launched), **static.outcome}

    # --- deciding ---

    def _decide(self, snapshot: Snapshot, invocation: Invocation) -> tuple[Decision, ClaimWriter]:
        """Plan without the Lease, and write the claims by it if those that there are have not changed meanwhile.

        A plan may take seconds, for which nobody else could write. Where claims change under plan after plan, the last
        one is made by the Lease, so that every run gets somewhere.
        """
        snapshot, caps = self._finish_launches(snapshot, invocation)
        for _ in range(_PLANS_WITHOUT_LEASE):
            decision = self._plan(snapshot, caps, invocation)
            if not decision.packing.launches:
                return decision, self._writer(decision, invocation)
            with self._deciding(invocation):
                changed = changed_claims(snapshot, self._gateways.cluster.claims_snapshot())
                written = None if changed else self._write_claims(decision, invocation)
            if written is not None:
                return self._recorded(*written)
            text = f"{len(changed)} claims have changed since the plan was made, first {changed[0]}"
            logger.info("planned again", extra={REASON: text})
            snapshot = self._gateways.cluster.snapshot()
        with self._deciding(invocation):
            decision = self._plan(self._gateways.cluster.snapshot(), caps, invocation)
            written = self._write_claims(decision, invocation)
        return self._recorded(*written)

    def _deciding(self, invocation: Invocation) -> AbstractContextManager[None]:
        return deciding(self._gateways.cluster, "provisioning", invocation)

    def _finish_launches(self, snapshot: Snapshot, invocation: Invocation) -> tuple[Snapshot, Caps]:
        """Launch the claims that wait: those that a killed run left behind, and those that static NodePools lacked.

        Returns the cluster as it is after that, and what is left of the caps. Only then is it known how much room their
        nodes have. Another run may be launching the same claims at this moment: both calls have one token, and get the
        same instances.
        """
        caps = self._settings.caps
        if not self._gateways.may_launch or not any(map(awaits_launch, snapshot.managed_claims)):
            return snapshot, caps
        # Claims of one call must be seen together, as in lifecycle. So they are read once more, by the Lease.
        with self._deciding(invocation):
            snapshot = self._gateways.cluster.snapshot()
        left_behind = [claim for claim in snapshot.managed_claims if awaits_launch(claim)]
        actor = Actor(self._gateways, snapshot.now, invocation)
        # A failure is logged, and not raised: the claim is tried again, and the other pods should be served now.
        with actor.noting("claims that waited could not be launched"):
            instances = self._gateways.cloud.instances()
            finished = finish_launches(
                self._gateways, actor, snapshot, left_behind, instances=instances, caps=caps, invocation=invocation
            )
            caps = finished.caps
            if finished.launched.is_short:
                self._gateways.doorbell.ring(Bell.PROVISIONING)
        return self._gateways.cluster.snapshot(), caps

    def _plan(self, snapshot: Snapshot, caps: Caps, invocation: Invocation) -> Decision:
        """A plan that may be acted upon. Raises ``RefusedError`` for one that may not."""
        known = held(snapshot, self._gateways.refusals.at(snapshot.now))
        problem, supply = self._read(without(snapshot, known.pools), caps, invocation)
        decision = decide(problem, supply, stopwatch=invocation.stopwatch(), refused=known.pods)
        self._refuse_if_objectionable(decision, Actor(self._gateways, snapshot.now, invocation))
        return decision

    def _read(self, snapshot: Snapshot, caps: Caps, invocation: Invocation) -> tuple[Problem, Supply]:
        supply = read_supply(self._gateways, snapshot.node_classes, snapshot.now)
        limit = max(0.0, round(invocation.remaining() - _ACTING_SECONDS, 1))
        options = packing_options(self._settings, caps, limit)
        return Problem(snapshot=snapshot, instance_types=supply.types, options=options), supply

    # --- acting on the decision ---

    def _writer(self, decision: Decision, invocation: Invocation) -> ClaimWriter:
        actor = Actor(self._gateways, decision.snapshot.now, invocation)
        return ClaimWriter(self._gateways.cluster, self._gateways.workers, actor, decision.stopwatch, decision.refused)

    def _recorded(
        self, decision: Decision, writer: ClaimWriter, refused: Sequence[Decision]
    ) -> tuple[Decision, ClaimWriter]:
        """Record what was refused, when the Lease is given back: others must not wait for a bucket that is silent."""
        for one in refused:
            self._record(one, "refused", writer.actor)
        return decision, writer

    def _write_claims(
        self, decision: Decision, invocation: Invocation
    ) -> tuple[Decision, ClaimWriter, Sequence[Decision]]:
        """Create the claims of the plan, by the Lease.

        Where some are refused, the rest is planned again without what is at fault.

        Returns the last decision, whose snapshot has the claims that were written before, the writer with all of them,
        and the decisions of which something was refused.
        """
        caps, stopwatch = decision.problem.options.caps, decision.stopwatch
        writer, refused = self._writer(decision, invocation), list[Decision]()
        for _ in range(_MOST_PLANS):
            if not writer.write(decision.problem, decision.packing):
                break
            refused.append(decision)
            rest = _having_bought(writer.rest(decision.problem), caps, writer.launches)
            decision = decide(rest, decision.supply, stopwatch=stopwatch, refused=writer.refused)
            if decision.objection:
                writer.actor.note("the rest was not planned again", RefusedError(decision.objection))
                return _without_launches(decision), writer, refused
        return decision, writer, refused

    def _refuse_if_objectionable(self, decision: Decision, actor: Actor) -> None:
        """Raise ``RefusedError`` for a plan that must not be carried out, and record it."""
        for warning in decision.plan.warnings:
            logger.error("a plan was refused", extra={REASON: str(warning)})
        if decision.objection:
            self._record(decision, "refused", actor)
            raise RefusedError(decision.objection)

    def _launch(self, decision: Decision, writer: ClaimWriter, invocation: Invocation) -> Launched:
        """Ask EC2 for the instances, and tell the claims that go which of them are replaced."""
        snapshot, packing, actor = decision.snapshot, decision.packing, writer.actor
        # The others wait for the next run, which reads all claims there are.
        claims = writer.launchable
        launcher = Launcher(self._gateways, actor, snapshot, decision.supply, invocation)
        launched = launcher.launch(claims, claims)
        planned = {pod for launch in (*writer.launches, *packing.launches) for pod in launch.pods}
        housed = {pod for written in writer.written if written.name in launched.served for pod in written.launch.pods}
        marks = replaced(snapshot, packing, planned - housed, launched.served)
        actor.carry_out(*((update,) for update in (*marks, *promises(snapshot, packing))))
        if writer.written or marks:
            actor.ring(Bell.LIFECYCLE)
        if launched.is_short or actor.is_cut_short:
            actor.ring(Bell.PROVISIONING)
        return launched

    def _tell(self, decision: Decision, writer: ClaimWriter, invocation: Invocation) -> None:
        """Record the decision if it changes something, and send its Events."""
        if decision.packing.launches:
            self._record(decision, "decided", writer.actor)
        tell(self._gateways, invocation, decision.snapshot, decision.packing, writer, self._monitor)

    def _record(self, decision: Decision, what: str, actor: Actor) -> None:
        """Write the decision to the bucket, refused ones too: a person will want to look at them.

        If that fails, the actor notes it, and the run goes on.
        """
        now, last = decision.snapshot.now, self._refusal_recorded
        if what == "refused":
            if last is not None and timedelta() <= now - last < REFUSALS_RECORDED_EVERY:
                return
            self._refusal_recorded = now
        with actor.noting(f"the plan that was {what} was not recorded"):
            record = decision_document(decision.problem, decision.packing, decision.supply.unavailable)
            key = self._gateways.store.record("provisioning", now, record)
            logger.info(what, extra={RECORD: key, COST: decision.packing.hourly})


def decide(
    problem: Problem,
    supply: Supply,
    *,
    stopwatch: Stopwatch = lambda: 0.0,
    refused: Mapping[str, Unplaced] = MappingProxyType({}),
) -> Decision:
    """Make a plan within the caps of the problem's options, and say whether it may be acted upon.

    ``refused``: by pod (namespace/name), those to leave out.
    """
    plan = plan_within_caps(problem, stopwatch=stopwatch, refused=refused)
    return Decision(problem, supply, plan, _objection(plan), stopwatch, refused)


def _objection(plan: Plan) -> str:
    if not plan.violations:
        return ""
    shown = "; ".join(str(violation) for violation in plan.violations[:_MOST_SHOWN])
    return f"the plan breaks {len(plan.violations)} rules: {shown}"


def _having_bought(problem: Problem, caps: Caps, written: Sequence[Launch]) -> Problem:
    """The problem with what is left of the caps. ``written``: the launches of the run so far."""
    rest = caps.after(len(written), sum(launch.offering.price for launch in written))
    return replace(problem, options=replace(problem.options, caps=rest))


def _note_the_rest(packing: Packing, actor: Actor) -> None:
    """Note a ``RefusedError`` if the caps left pods out. Their owners read Events; this is for who runs Joinery."""
    reasons = [reason for unplaced in packing.unplaced for reason in unplaced.reasons if reason.code is ReasonCode.CAPS]
    if reasons:
        error = RefusedError(f"the caps leave {len(reasons)} pods without a node: {reasons[0]}")
        actor.note("the plan was carried out in part", error)


def _without_launches(decision: Decision) -> Decision:
    packing = replace(decision.packing, launches=())
    return replace(decision, plan=replace(decision.plan, packing=packing))


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
