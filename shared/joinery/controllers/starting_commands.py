"""Starting disruption commands: mark the candidates, write the replacements, launch them.

::

    commands = [NewCommand(reason=DisruptionReason.DRIFTED, candidates=(old,), replacements=(new,))]
    starter = CommandStarter(gateways, actor, snapshot, supply, invocation)
    started = starter.start(commands, door="disruption", caps=caps)

- ``snapshot`` is what the commands were decided from. Under the Lease the claims are read once more, and a command
  whose candidates are not what they were is not started. Nor is one for a reason that budgets count, if another node
  of its NodePool has begun to leave: two runs together must not exceed a budget. A command without replacements
  starts with those candidates that could be marked.
- The Lease is taken and given back in ``start``; whoever calls must not hold it. ``ConflictError`` while another does.
- Candidates are marked before replacements are written, so that nobody buys for their pods twice, and launches follow
  when the Lease is given back. A crash in between costs time alone: lifecycle rolls back what was not completed, and
  launches what was written (``lifecycle.disrupting.started_commands``, which says how a command goes on).
- Replacements come from ``lifecycle.launching.new_claims``. For the pods of some candidates: plan from
  ``as_if_retired``, keep ``for_moves``, and make claims of it (``claims_of``).
- A call fails by itself: what went wrong is noted with the actor, and the other commands start.
- The Lease is held for some dozens of commands at most. The rest is left to the next run, which the caller rings for
  (``Actor.is_cut_short``): pods that wait must not wait for the end of them all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import msgspec

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.announcements import announce, news
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.acting.lease import deciding
from joinery.controllers.launching.launcher import Launcher
from joinery.controllers.launching.supply import Supply
from joinery.controllers.telemetry import COMMAND, COST, REASON, logger
from joinery.decisions.lifecycle.disrupting.new_commands import (
    NewCommand,
    added_cost,
    as_candidate,
    as_replacement,
    dearer_events,
    out_of_date,
    overtaken,
    record_for,
)
from joinery.decisions.lifecycle.launching.asks import launching
from joinery.decisions.lifecycle.launching.capped_launches import cheapest
from joinery.decisions.lifecycle.launching.fleet_groups import fleet_groups
from joinery.decisions.lifecycle.pools.soaking import owners_that_run_well
from joinery.decisions.scheduling.launch_caps import Purchase, admit, over
from joinery.decisions.termination.taint import tainted
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.kubernetes.gateway import LONGEST_CALL
from joinery.objects.actions import Announce, Ask
from joinery.objects.annotations.disruption import CommandRecord, Readiness
from joinery.objects.errors import JoineryError, TimeIsOverError, UnavailableError
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.policies import Caps
from joinery.objects.refusals import is_refusal
from joinery.objects.snapshot.claim_changes import newly_leaving
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot

#: Seconds that must be left to begin a command: for a call that is not answered, and one more to take the command
#: back. A run that is killed in between costs time alone.
_SECONDS = 2 * LONGEST_CALL
#: How many commands are begun while the Lease is held. Each takes four calls one after another: a taint, a mark in two
#: writes, a replacement.
MOST_AT_ONCE = 50


@dataclass(frozen=True)
class Started:
    """What became of a new command.

    ``caps``: what the run may still buy after it. ``why_not``: why it was not started. ``to_launch``: its replacements
    that are launched now. ``added_cost``: $/h that it adds to the bill, which only drift may.
    """

    command: NewCommand
    caps: Caps
    record: CommandRecord | None = None
    why_not: str | None = None
    to_launch: tuple[NodeClaim, ...] = ()
    added_cost: float = 0.0


class CommandStarter:
    """Starts commands that were decided from one snapshot. ``supply``: what can be bought, for the launches."""

    def __init__(
        self, gateways: Gateways, actor: Actor, snapshot: Snapshot, supply: Supply, invocation: Invocation
    ) -> None:
        self._gateways = gateways
        self._actor = actor
        self._snapshot = snapshot
        self._supply = supply
        self._invocation = invocation
        self._nodes = {node.spec.provider_id: node for node in snapshot.nodes if node.spec.provider_id}

    def start(self, commands: Sequence[NewCommand], *, door: str, caps: Caps) -> tuple[Started, ...]:
        """Start the commands, in this order; of each what became of it.

        ``caps``: what the run may still buy. A command whose replacements do not fit is not started.
        """
        if not commands:
            return ()
        started: list[Started] = []
        with deciding(self._gateways.cluster, door, self._invocation):
            current = self._gateways.cluster.claims_snapshot()
            claims = {claim.metadata.name: claim for claim in current.managed_claims}
            left_since = newly_leaving(self._snapshot, current)
            for command in commands[:MOST_AT_ONCE]:
                objection = out_of_date(command, claims) or overtaken(command, left_since)
                if objection is None:
                    started.append(self._start(command, claims, caps))
                else:
                    started.append(Started(command, caps, why_not=objection.message))
                caps = started[-1].caps
        postponed = commands[MOST_AT_ONCE:]
        self._actor.leave(len(postponed))
        started += [Started(command, caps, why_not="it is left to the next run") for command in postponed]
        self._launch([claim for outcome in started for claim in outcome.to_launch])
        for outcome in started:
            _log(outcome)
        events = [
            event
            for outcome in started
            if outcome.added_cost
            for event in dearer_events(outcome.command, outcome.added_cost)
        ]
        announce(self._gateways, self._invocation, news(self._gateways, events))
        if any(outcome.record for outcome in started):
            self._actor.ring(Bell.LIFECYCLE)
        return tuple(started)

    def _start(self, command: NewCommand, claims: dict[str, NodeClaim], caps: Caps) -> Started:
        """Mark and write, under the Lease.

        ``claims``: by name, all that there are; those that are marked are replaced in it.
        """
        hourly = self._hourly(command)
        if hourly is None:
            return Started(command, caps, why_not="nothing that its replacements may be is on sale")
        purchase = Purchase(len(command.replacements), hourly)
        exceeded = admit([purchase], caps)[0]
        why = str(over(exceeded, caps)) if exceeded is not None else None
        asks = [ask for candidate in command.candidates for ask in (_marking(candidate), _replacing(candidate))]
        asks += [ask for claim in command.replacements for ask in launching(claim, self._snapshot)]
        if waiting := [ask for ask in asks if self._actor.waits(ask)]:
            why = f"{waiting[0].what} was refused for {waiting[0].owner.metadata.name} a moment ago"
        if not why and not self._invocation.has_time_for(_SECONDS):
            self._actor.leave(1)
            why = "the run has no time left for it"
        if why:
            return Started(command, caps, why_not=why)
        record = record_for(command, claims.values(), self._snapshot.now)
        marked, unmarked = self._mark([claims[candidate.metadata.name] for candidate in command.candidates], record)
        claims.update({claim.metadata.name: claim for claim in marked})
        if unmarked and (command.replacements or not marked):
            why = f"{unmarked[0]} could not be marked"
            self._take_back(marked, record, why)
            return Started(command, caps, why_not=why)
        replacements, unwritten = self._write(command, record)
        if unwritten:
            self._take_back(marked, record, f"its replacement {unwritten[0]} could not be written")
            return Started(command, caps, why_not=f"{unwritten[0]} could not be written")
        cost = added_cost(command, hourly, self._supply.types)
        # What ends first is replaced by lifecycle, when it is gone.
        to_launch = () if command.waits_for is Readiness.WRITTEN else tuple(replacements)
        rest = caps.after(len(command.replacements), hourly)
        return Started(command, rest, record, to_launch=to_launch, added_cost=cost)

    def _hourly(self, command: NewCommand) -> float | None:
        """$/h of its replacements; None if nothing that one of them may be is on sale.

        What is launched later is bought out of what is on sale then.
        """
        types = self._restocked if command.waits_for is Readiness.WRITTEN else self._supply.types
        groups = fleet_groups(command.replacements, command.replacements)
        hourly = 0.0
        for group in groups:
            price = cheapest(group, types)
            if price is None:
                return None
            hourly += price * len(group.waiting)
        return hourly

    @cached_property
    def _restocked(self) -> Mapping[str, Sequence[InstanceType]]:
        """What can be bought, as if EC2 were out of nothing."""
        return {name: [kind.restocked for kind in kinds] for name, kinds in self._supply.types.items()}

    def _mark(self, candidates: Sequence[NodeClaim], record: CommandRecord) -> tuple[list[NodeClaim], list[str]]:
        """The candidates that are marked now, and the names of those that could not be."""
        answers = self._gateways.workers.run([partial(self._mark_one, candidate, record) for candidate in candidates])
        marked, failed = [], []
        for candidate, answer in zip(candidates, answers, strict=True):
            self._actor.answered(_marking(candidate), answer if isinstance(answer, JoineryError) else None)
            if isinstance(answer, JoineryError):
                self._fail(f"claim {candidate.metadata.name} was not marked for disruption", answer)
                failed.append(candidate.metadata.name)
            else:
                marked.append(answer)
        return marked, failed

    def _fail(self, what: str, error: JoineryError) -> None:
        if isinstance(error, TimeIsOverError):
            self._actor.leave(1)
        else:
            self._actor.note(what, error)

    def _mark_one(self, candidate: NodeClaim, record: CommandRecord) -> NodeClaim:
        self._check_time(candidate)
        node = self._nodes.get(candidate.status.provider_id)
        # The taint first: one without a command is removed by lifecycle (``joining.adoption``), while a
        # command without its taint would let pods onto a node that goes.
        if node is not None and (after := tainted(node)) != node:
            self._gateways.cluster.update_node(node, after)
            self._check_time(candidate)
        return self._gateways.cluster.update_node_claim(candidate, as_candidate(candidate, record))

    def _write(self, command: NewCommand, record: CommandRecord) -> tuple[list[NodeClaim], list[str]]:
        """The replacements that are written now, and the names of those that could not be."""
        is_drift = command.reason is DisruptionReason.DRIFTED
        ran_well = owners_that_run_well(self._snapshot, command.candidates) if is_drift else ()
        replacements = [as_replacement(claim, record, ran_well) for claim in command.replacements]
        answers = self._gateways.workers.run([partial(self._write_one, claim) for claim in replacements])
        stored = self._stored_after_all(replacements, answers)
        refusal = next((answer for answer in answers if isinstance(answer, JoineryError) and is_refusal(answer)), None)
        for candidate in command.candidates if replacements else ():
            self._actor.answered(_replacing(candidate), refusal)
        written, failed = [], []
        for claim, answer in zip(replacements, answers, strict=True):
            if claim.metadata.name in stored:
                written.append(stored[claim.metadata.name])
            elif isinstance(answer, JoineryError):
                self._fail(f"claim {claim.metadata.name} was not written", answer)
                failed.append(claim.metadata.name)
            elif answer.metadata.uid:  # in observe mode nothing is stored
                written.append(answer)
        return written, failed

    def _stored_after_all(
        self, replacements: Sequence[NodeClaim], answers: Sequence[NodeClaim | JoineryError]
    ) -> Mapping[str, NodeClaim]:
        """By name, the claims that the API server has stored without saying so.

        If the command were taken back, the next run would launch them all the same, and they would end unused.
        """
        doubtful = {
            claim.metadata.name
            for claim, answer in zip(replacements, answers, strict=True)
            if isinstance(answer, UnavailableError) and not answer.is_answer
        }
        if not doubtful:
            return {}
        with self._actor.noting("nobody knows whether replacements were written"):
            current = self._gateways.cluster.claims_snapshot()
            return {claim.metadata.name: claim for claim in current.managed_claims if claim.metadata.name in doubtful}
        return {}

    def _write_one(self, claim: NodeClaim) -> NodeClaim:
        self._check_time(claim)
        return self._gateways.cluster.create_node_claim(claim)

    def _check_time(self, claim: NodeClaim) -> None:
        """Raise ``TimeIsOverError`` where the run, or what it may do under the Lease, has no time for another call.

        A command may have many candidates, and more calls than fit into the time that was left when it began.
        """
        if not self._invocation.has_time_for(LONGEST_CALL):
            raise TimeIsOverError(f"no time is left for {claim.metadata.name}")

    def _take_back(self, marked: Sequence[NodeClaim], record: CommandRecord, why: str) -> None:
        """Have lifecycle roll back a command that could not be started as a whole.

        Where this fails as well, lifecycle notices the missing replacements by itself, only later.
        """
        abandoned = msgspec.structs.replace(record, rollback=why)
        for claim in marked:
            with self._actor.noting(f"the command of {claim.metadata.name} could not be taken back"):
                self._gateways.cluster.update_node_claim(claim, as_candidate(claim, abandoned))

    def _launch(self, written: Sequence[NodeClaim]) -> None:
        if not written:
            return
        events = [Announce("DisruptionLaunching", "it replaces a node that is to go", claim) for claim in written]
        announce(self._gateways, self._invocation, events)
        launcher = Launcher(self._gateways, self._actor, self._snapshot, self._supply, self._invocation)
        launcher.launch(written, written)


def _marking(candidate: NodeClaim) -> Ask:
    return Ask(candidate, "its mark for disruption")


def _replacing(candidate: NodeClaim) -> Ask:
    return Ask(candidate, "a NodeClaim in its place")


def _log(started: Started) -> None:
    names = ", ".join(candidate.metadata.name for candidate in started.command.candidates)
    about = {COMMAND: f"disrupt {names}", REASON: started.why_not or started.command.reason.value}
    logger.info("not started" if started.why_not else "decided", extra=about)
    if started.added_cost:
        logger.warning("drift makes the bill rise", extra={COMMAND: f"disrupt {names}", COST: started.added_cost})
