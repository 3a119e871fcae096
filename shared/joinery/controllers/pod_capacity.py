"""Nodes for the pods of one run that wait: plan, and write the NodeClaims of the plan.

The Lease ``joinery-decisions`` is held for writing the claims, so that no two deciders buy for the same pods. A plan is
made before, and acted upon if the claims that it relied on have not changed (``objects.snapshot.claim_changes``). A run
that does not get the Lease raises, and its door rings again. Claims are complete when they are written, so the Lease is
given back before EC2 is asked: whatever stops after that, lifecycle or the next run finishes.

A plan that breaks a rule is refused as a whole, loudly. Three things are put right within the run instead. A plan that
fails verification is made anew, simpler and at last without the pods at fault (``joinery.decisions.planning``). Of a
plan that exceeds the caps the most urgent part is carried out, and the other pods get Events
(``joinery.decisions.capping``). A claim that the API server refuses is isolated, and the rest is planned again
(``joinery.controllers.launching.claim_writer``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.acting.lease import deciding
from joinery.controllers.launching.claim_writer import ClaimWriter
from joinery.controllers.launching.headroom import requested, with_headroom
from joinery.controllers.launching.refused_claims import known_refusals, without
from joinery.controllers.launching.stored_commitments import with_stored_commitments
from joinery.controllers.launching.supply import Supply, read_supply
from joinery.controllers.reporting.record import PlanRecorder
from joinery.controllers.telemetry import REASON, logger
from joinery.decisions.capping import plan_within_caps
from joinery.decisions.headroom.requests import ResolvedRequest, checked, to_buy
from joinery.decisions.headroom.resolve import ResolvedBuffer
from joinery.decisions.planning import Plan, PlanWarning
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.gateways.bundles import Gateways
from joinery.objects.errors import RefusedError
from joinery.objects.policies import Caps
from joinery.objects.settings import Settings
from joinery.objects.snapshot.claim_changes import changed_claims
from joinery.objects.snapshot.extended_resources import read_as_claims
from joinery.objects.snapshot.snapshot import Snapshot

#: Seconds that are kept for what follows a plan: its check, writing its claims, and launching them.
_ACTING_SECONDS = 30.0
#: How many plans one run makes at most, because the API server refuses claims of the one before.
_MOST_PLANS = 5
#: How many plans of a run may be out of date before one is made under the Lease.
_PLANS_WITHOUT_LEASE = 2
#: How many violations a refusal quotes.
_MOST_SHOWN = 5


@dataclass(frozen=True)
class Decision:
    """A plan within the caps, and what it was made from. ``buffers``, ``requests``: those whose room is part of it.
    ``lacking``: why there is no room for a request to check, by namespace/name; empty where there is.
    """

    problem: Problem
    supply: Supply
    plan: Plan
    buffers: tuple[ResolvedBuffer, ...] = ()
    requests: tuple[ResolvedRequest, ...] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def packing(self) -> Packing:
        return self.plan.packing

    @property
    def snapshot(self) -> Snapshot:
        return self.problem.snapshot

    def proven(self) -> "Decision":
        """The same decision with the bounds of its plan."""
        plan = self.plan.proven()
        _log_warnings(plan.warnings[len(self.plan.warnings) :])
        return replace(self, plan=plan)


class PodCapacity:
    """The pods of one run that wait. ``recorder``: keeps the plans that were refused."""

    def __init__(self, gateways: Gateways, settings: Settings, invocation: Invocation, recorder: PlanRecorder) -> None:
        self._gateways = gateways
        self._settings = settings
        self._invocation = invocation
        self._recorder = recorder

    def plan_and_write(self, snapshot: Snapshot, caps: Caps) -> tuple[Decision, ClaimWriter]:
        """Plan without the Lease, and write the claims by it if those that there are have not changed meanwhile.

        A plan may take seconds, for which nobody else could write. Where claims change under plan after plan, the last
        one is made under the Lease, so that every run gets somewhere.

        ``caps``: what may be bought. Returns the last plan, whose snapshot has the claims that were written before it,
        and the writer of all claims. Raises ``ConflictError`` if another decides, and ``RefusedError`` for a plan that
        must not be acted upon.
        """
        for _ in range(_PLANS_WITHOUT_LEASE):
            decision, writer = self._plan(snapshot, caps)
            if not decision.packing.launches:
                return decision, writer
            with deciding(self._gateways.cluster, "provisioning", self._invocation):
                changed = changed_claims(snapshot, self._gateways.cluster.claims_snapshot())
                decisions = [] if changed else self._write(decision, writer)
            if decisions:
                return self._with_refused_recorded(decisions, writer)
            text = f"{len(changed)} claims have changed since the plan was made, first {changed[0]}"
            logger.info("planned again", extra={REASON: text})
            snapshot = self._gateways.cluster.snapshot()
        with deciding(self._gateways.cluster, "provisioning", self._invocation):
            decision, writer = self._plan(self._gateways.cluster.snapshot(), caps)
            decisions = self._write(decision, writer)
        return self._with_refused_recorded(decisions, writer)

    def _plan(self, snapshot: Snapshot, caps: Caps) -> tuple[Decision, ClaimWriter]:
        snapshot, buffers = with_headroom(self._gateways.cluster, snapshot)
        requests = requested(self._gateways.cluster, snapshot)
        snapshot = read_as_claims(snapshot.with_virtual(to_buy(requests)))
        known = known_refusals(snapshot, self._gateways.refusals.at(snapshot.now))
        snapshot = without(snapshot, known.pools)
        supply = read_supply(self._gateways, snapshot)
        limit = max(0.0, round(self._invocation.remaining() - _ACTING_SECONDS, 1))
        options = Options.of(self._settings, caps=caps, time_limit=limit)
        problem = Problem(snapshot=snapshot, instance_types=supply.types, options=options)
        if self._settings.counts_commitments:
            problem = with_stored_commitments(problem, self._gateways.store, supply.sold)
        stopwatch = self._invocation.stopwatch()
        plan = plan_within_caps(problem, stopwatch=stopwatch, refused=known.pods)
        lacking = checked(problem, requests, stopwatch)
        decision = Decision(problem, supply, plan, buffers, requests, lacking)
        _log_warnings(decision.plan.warnings)
        actor = Actor(self._gateways, snapshot.now, self._invocation)
        if refusal := _refusal(decision.plan):
            self._recorder.record("refused", problem, decision.packing, supply.unavailable, actor)
            raise refusal
        return decision, ClaimWriter(self._gateways.cluster, self._gateways.workers, actor, stopwatch, known.pods)

    def _write(self, decision: Decision, writer: ClaimWriter) -> Sequence[Decision]:
        """Create the claims of the plan, under the Lease.

        Where some are refused, the rest is planned again without what is at fault. Returns all of these plans.
        """
        decisions = [decision]
        for _ in range(_MOST_PLANS):
            if not writer.write(decision.problem, decision.packing):
                break
            rest = writer.rest(decision.problem)
            plan = plan_within_caps(rest, stopwatch=writer.stopwatch, refused=writer.refused)
            if refusal := _refusal(plan):
                writer.actor.note("the rest was not planned again", refusal)
                plan = replace(plan, packing=replace(plan.packing, launches=()))
            decision = replace(decision, problem=rest, plan=plan)
            decisions.append(decision)
        return decisions

    def _with_refused_recorded(
        self, decisions: Sequence[Decision], writer: ClaimWriter
    ) -> tuple[Decision, ClaimWriter]:
        """Record what was refused, when the Lease is given back: others must not wait for a bucket that is silent."""
        *refused, last = decisions
        for one in refused:
            self._recorder.record("refused", one.problem, one.packing, one.supply.unavailable, writer.actor)
        return last, writer


def _log_warnings(warnings: Iterable[PlanWarning]) -> None:
    for warning in warnings:
        logger.error("a plan was refused", extra={REASON: str(warning)})


def _refusal(plan: Plan) -> RefusedError | None:
    """Why a plan must not be carried out."""
    if not plan.violations:
        return None
    shown = "; ".join(str(violation) for violation in plan.violations[:_MOST_SHOWN])
    return RefusedError(f"the plan breaks {len(plan.violations)} rules: {shown}")
