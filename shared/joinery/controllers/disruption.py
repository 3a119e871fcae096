"""Consolidation and drift: read the cluster, decide, begin the disruption commands.

A decision may take minutes, so it is made without the Lease, and its commands are validated in a new snapshot before
they begin (``decisions.disruption.validation``). ``controllers.starting_commands`` begins them, and lifecycle
carries them out. From then on their nodes count as leaving, so the next run neither touches them nor exceeds a budget
by them.

A run decides nothing while a NodeClaim waits for its launch (Karpenter disruption, "cluster synced"): what its node
will hold is not known yet, and somebody is about to change the cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.acting.lease import ACTING_SECONDS, deciding
from joinery.controllers.launching.headroom import requested, with_headroom
from joinery.controllers.launching.stored_commitments import with_stored_commitments
from joinery.controllers.launching.supply import Supply, read_supply
from joinery.controllers.reporting.change_monitor import ChangeMonitor
from joinery.controllers.reporting.disruption import Begun, report
from joinery.controllers.reporting.record import disruption_document
from joinery.controllers.starting_commands import CommandStarter
from joinery.controllers.telemetry import COMMAND, COST, COVERED, LISTED, REASON, RECORD, Count, count, logger, metrics
from joinery.controllers.triggers.backoff import reading
from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision, Rejection
from joinery.decisions.disruption.deletion_costs import deletion_costs
from joinery.decisions.disruption.headroom import carried_over, with_chunks_bound
from joinery.decisions.disruption.moves import replicas_of
from joinery.decisions.disruption.paid import decide_paid
from joinery.decisions.disruption.pausing import PausedNode, decision_of, paused_nodes
from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.decisions.disruption.starting import new_commands
from joinery.decisions.disruption.validation.validate import still_startable
from joinery.decisions.headroom.requests import to_keep
from joinery.decisions.lifecycle.state.drift import drift_noted, instance_type_drift
from joinery.decisions.metrics.cluster import by_node_pool, standing
from joinery.decisions.scheduling.ledger import Ledger
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.actions import UpdateClaim
from joinery.objects.errors import RefusedError
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.policies import MetricsDetail
from joinery.objects.settings import Settings
from joinery.objects.snapshot.claim_changes import newly_leaving
from joinery.objects.snapshot.claims import awaits_launch
from joinery.objects.snapshot.snapshot import Snapshot

#: Seconds that are kept for reading the cluster once more after a decision, and for its validation.
READING_SECONDS = 30.0
#: The reason of metrics about nodes that go because their NodePool is paused.
_PAUSED = "paused"


class Decide(Protocol):
    """Which nodes go: ``disruption.paid.decide_paid``."""

    def __call__(self, problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision: ...


class DisruptionController:
    """Woken by its bell: once a minute, and by lifecycle when a node that it had retired is gone.

    ``decide``: the decision, as a function of the problem and the time that it takes.
    """

    def __init__(self, gateways: Gateways, settings: Settings, decide: Decide = decide_paid) -> None:
        self._gateways = gateways
        self._settings = settings
        self._decide = decide
        self._monitor = ChangeMonitor()

    def reconcile(self, invocation: Invocation) -> Mapping[str, Any]:
        """Read, decide, act.

        Raises ``ConflictError`` if another acts, and, when everything else is done, ``RefusedError`` for commands that
        break a rule.
        """
        with reading():
            snapshot = self._gateways.cluster.snapshot()
        waiting = [claim.metadata.name for claim in snapshot.managed_claims if awaits_launch(claim)]
        if waiting:
            text = f"{len(waiting)} claims wait for their launch, first {min(waiting)}"
            logger.info("nothing was decided", extra={REASON: text})
            return {"awaited": len(waiting)}
        supply = read_supply(self._gateways, snapshot, is_voluntary=True)
        snapshot = self._judged(snapshot, supply, invocation)
        paused = [one for one in paused_nodes(snapshot, supply.sold) if not one.why]
        if paused:
            return self._pause(paused, snapshot, supply, invocation)
        kept = to_keep(requested(self._gateways.cluster, snapshot))
        asked = with_headroom(self._gateways.cluster, snapshot)[0].with_virtual(kept)
        problem = self._problem(asked, supply, invocation)
        decision = self._decide(problem, stopwatch=invocation.stopwatch())
        if decision.limit_struck:
            count(Count.SEARCHES_CUT_SHORT)
        begun, actor = self._act(problem, decision, supply, invocation)
        self._measure(problem, decision, begun)
        report(self._gateways, invocation, snapshot, decision, begun, self._monitor)
        marks = deletion_costs(problem, decision, is_wanted=self._settings.pod_deletion_cost)
        actor.carry_out(*((mark,) for mark in marks))
        actor.conclude()
        _report(decision.mistakes)
        return _outcome(decision, begun.commands)

    # --- deciding ---

    def _judged(self, snapshot: Snapshot, supply: Supply, invocation: Invocation) -> Snapshot:
        """The snapshot with what the catalogue says of drift, which is also written. A failure is logged: the next run
        writes it.
        """
        changes = instance_type_drift(snapshot, supply.types)
        if not changes:
            return snapshot
        actor = Actor(self._gateways, snapshot.now, invocation)
        actor.carry_out(*((UpdateClaim(before, after, _drift_of(after)),) for before, after in changes))
        judged = {after.metadata.name: after for _, after in changes}
        claims = tuple(judged.get(claim.metadata.name, claim) for claim in snapshot.node_claims)
        return replace(snapshot, node_claims=claims)

    def _pause(
        self, paused: Sequence[PausedNode], before: Snapshot, supply: Supply, invocation: Invocation
    ) -> Mapping[str, Any]:
        """Retire the nodes of paused NodePools that may go now. All else is decided when they are on their way."""
        actor = Actor(self._gateways, before.now, invocation)
        with deciding(self._gateways.cluster, "pause", invocation):
            closed = newly_leaving(before, self._gateways.cluster.claims_snapshot())
            going = [one for one in paused if one.claim.metadata.labels.get(NODE_POOL) not in closed]
            actor.carry_out(*(one.commands for one in going))
        hourly = sum(one.hourly for one in going)
        if going:
            actor.ring(Bell.LIFECYCLE)
            decision = decision_of(going, before, supply.sold)
            failure = self._record(self._problem(before, supply, invocation), decision, supply)
            if failure is not None:
                actor.note("the nodes of a pause were not recorded", failure)
            count(Count.DISRUPTION_DECISIONS, len(going), decision="delete", reason=_PAUSED)
            count(Count.SAVINGS, hourly, reason=_PAUSED)
        actor.conclude()
        return {"paused": len(going), "saves": round(hourly, 4)}

    def _problem(self, snapshot: Snapshot, supply: Supply, invocation: Invocation) -> DisruptionProblem:
        settings = self._settings
        left = invocation.remaining() - READING_SECONDS - ACTING_SECONDS
        limit = max(0.0, round(min(settings.disruption_seconds, left), 1))
        packing = Options.of(settings, caps=settings.caps, time_limit=limit)
        options = DisruptionOptions(
            curve=False,
            move_price=settings.disruption_move_price,
            payback=settings.disruption_payback,
            spot_to_spot=settings.spot_to_spot,
            canary=settings.canary,
            terminate_first=settings.terminate_first,
            new_nodes_repay=settings.new_nodes_repay,
            time_limit=limit,
        )
        problem = Problem(snapshot=snapshot, instance_types=supply.types, options=packing)
        if settings.counts_commitments:
            problem = with_stored_commitments(problem, self._gateways.store, supply.sold, is_voluntary=True)
        asked = DisruptionProblem(packing=problem, options=options, replicas=replicas_of(snapshot.pods))
        return with_chunks_bound(asked, invocation.stopwatch())

    # --- acting on the decision ---

    def _act(
        self, problem: DisruptionProblem, decision: DisruptionDecision, supply: Supply, invocation: Invocation
    ) -> tuple[Begun, Actor]:
        """Begin the commands that are still right. The actor has noted what went wrong with them."""
        decided = problem.packing.snapshot
        failure = self._record(problem, decision, supply)
        if not decision.commands:
            return Begun(), self._actor(decided, invocation, failure)
        current = self._gateways.cluster.snapshot()
        validation = still_startable(
            decision.commands,
            replace(problem, packing=replace(problem.packing, snapshot=carried_over(current, decided))),
            decided,
            # Beginning commands takes its time too.
            is_late=lambda: not invocation.has_time_for(ACTING_SECONDS),
        )
        _log_rejected(validation.rejected)
        acting = invocation.within(ACTING_SECONDS)
        actor = self._actor(current, acting, failure)
        starter = CommandStarter(self._gateways, actor, current, supply, acting)
        commands = new_commands(validation.commands, current)
        started = starter.start(commands, door="disruption", caps=self._settings.caps)
        if actor.is_cut_short:
            actor.ring(Bell.DISRUPTION)
        return Begun(tuple(zip(validation.commands, started, strict=True)), validation.rejected), actor

    def _measure(self, problem: DisruptionProblem, decision: DisruptionDecision, begun: Begun) -> None:
        metrics.add(*standing(problem, decision))
        if self._settings.metrics == MetricsDetail.NODE_POOLS:
            metrics.add(*by_node_pool(problem, decision))
        for disruption in begun.commands:
            done, reason = "replace" if disruption.launches else "delete", disruption.reason.value.lower()
            count(Count.DISRUPTION_DECISIONS, decision=done, reason=reason)
            # A drifted node's successor may be dearer: that saves nothing.
            count(Count.SAVINGS, max(0.0, disruption.savings), reason=reason)

    def _record(self, problem: DisruptionProblem, decision: DisruptionDecision, supply: Supply) -> Exception | None:
        """Keep the decision, if it is one to act on or to look into.

        Returns what went wrong with that: consolidation goes on all the same.
        """
        if not decision.commands and not decision.mistakes:
            return None
        try:
            record = disruption_document(problem, decision, supply.unavailable)
            key = self._gateways.store.record("disruption", problem.packing.snapshot.now, record)
        except Exception as error:
            return error
        logger.info("decided", extra={RECORD: key, COST: decision.after, **_paid_prices(problem.packing)})
        return None

    def _actor(self, snapshot: Snapshot, invocation: Invocation, failure: Exception | None) -> Actor:
        """Who acts, and raises in the end that the decision could not be recorded."""
        actor = Actor(self._gateways, snapshot.now, invocation)
        if failure is not None:
            actor.note("the decision about disruption was not recorded", failure)
        return actor


def _paid_prices(problem: Problem) -> Mapping[str, float]:
    """What the on-demand nodes that there are cost by AWS's list, and what commitments pay of it."""
    if not problem.commitments:
        return {}
    ledger = Ledger(problem)
    return {LISTED: round(ledger.listed, 4), COVERED: round(ledger.saved_before, 4)}


def _drift_of(claim: NodeClaim) -> str:
    noted = drift_noted(claim)
    return f"{noted.reason}: {noted.message}" if noted else "its instance type is sold again"


def _report(mistakes: Sequence[Rejection]) -> None:
    """Count and log commands that break a rule. Raises ``RefusedError``, because somebody should look at them."""
    count(Count.DISRUPTIONS_REFUSED, len(mistakes))
    for one in mistakes:
        logger.warning(
            "refused", extra={COMMAND: f"disrupt {', '.join(one.command.retire)}", REASON: one.objection.message}
        )
    if mistakes:
        first = mistakes[0]
        names = ", ".join(first.command.retire)
        raise RefusedError(f"to retire {names} breaks a rule: {first.objection}; please report this")


def _log_rejected(rejected: Sequence[Rejection]) -> None:
    """Say which commands were decided and are out of date."""
    count(Count.DISRUPTIONS_DROPPED, len(rejected))
    for one in rejected:
        logger.info(
            "dropped", extra={COMMAND: f"disrupt {', '.join(one.command.retire)}", REASON: one.objection.message}
        )


def _outcome(decision: DisruptionDecision, begun: Sequence[DecidedCommand]) -> Mapping[str, Any]:
    """The run in figures: commands, nodes, evictions, and $/h."""
    return {
        "decided": len(decision.commands),
        "commands": len(begun),
        "retired": sum(len(disruption.retire) for disruption in begun),
        "launches": sum(len(disruption.launches) for disruption in begun),
        "evictions": sum(len(disruption.pods) for disruption in begun),
        "held": len(decision.staying),
        "before": round(decision.before, 4),
        "after": round(decision.after, 4),
        "lower_bound": round(decision.lower_bound, 4),
    }
