"""What becomes of a disruption command that has started: it waits, retires its candidates, or is rolled back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto

from joinery.decisions.lifecycle.state.disruption_check import DisruptionCheck
from joinery.objects.annotations.disruption import DisruptionCommand, Readiness, commands_of
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import DRIFTED, INITIALIZED, LAUNCHED
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.wording import rfc3339

#: How long a replacement may be absent because its claim is still to be written: longer than the function that writes
#: it can live (60 s).
WRITING = timedelta(seconds=65)
#: Decided by what runs on the nodes: a pod that has come since makes the decision out of date.
_BY_PODS = (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED)
_SHORTEST, _LONGEST = timedelta(minutes=10), timedelta(hours=1)
_PER_CANDIDATE = timedelta(milliseconds=80)


class NextStep(Enum):
    """What becomes of a command in this run."""

    WAIT = auto()
    FINISH = auto()
    ROLL_BACK = auto()


@dataclass(frozen=True, slots=True)
class CommandOutlook:
    """``objection``: why it is rolled back."""

    next_step: NextStep
    objection: Objection | None = None


@dataclass(frozen=True)
class StartedCommands:
    """All commands of a snapshot, and what becomes of each, by their ids."""

    commands: Mapping[str, DisruptionCommand] = field(default_factory=dict)
    outlooks: Mapping[str, CommandOutlook] = field(default_factory=dict)


def started_commands(snapshot: Snapshot) -> StartedCommands:
    """The commands that the claims of the snapshot carry, and what becomes of them."""
    commands = commands_of(snapshot.managed_claims)
    if not commands:
        return StartedCommands()
    check = DisruptionCheck(snapshot)
    return StartedCommands(
        commands, {name: outlook_of(command, check, snapshot.now) for name, command in commands.items()}
    )


def outlook_of(command: DisruptionCommand, check: DisruptionCheck, now: datetime) -> CommandOutlook:
    """What becomes of one command now. Nothing stops a forced one: its nodes go all the same."""
    record = command.record
    if record.rollback:
        return _rolled_back(record.rollback)
    if not command.candidates:
        # All of them go by themselves already. Their replacements are there for their pods.
        return CommandOutlook(NextStep.WAIT)
    if record.started - now >= _SHORTEST:
        # Somebody edited it: none of its times would ever be over. The clock of another function may be minutes ahead:
        # that delays a command, and rolled back it would be started anew at once, with another replacement.
        return _rolled_back(f"it says that it began at {rfc3339(record.started)}")
    missing = [*command.lost, *(command.absent if now - record.started >= WRITING else ())]
    if missing:
        return _rolled_back(f"its replacement {missing[0]} was lost")
    goal = _goal(command)
    unready = [*command.absent, *(c.metadata.name for c in command.replacements if goal and not c.is_true(goal))]
    if unready:
        limit = min(record.deadline - record.started, _LONGEST)
        if now - record.started < limit:
            return CommandOutlook(NextStep.WAIT)
        return _rolled_back(f"its replacement {unready[0]} was not ready within {limit}")
    is_forced = record.waits_for is Readiness.LAUNCHED
    objection = None if is_forced else check.objection(command.candidates, record.reason)
    objection = objection or check.newcomer(_by_pods(command), record.started)
    return CommandOutlook(NextStep.ROLL_BACK, objection) if objection else CommandOutlook(NextStep.FINISH)


def _rolled_back(why: str) -> CommandOutlook:
    return CommandOutlook(NextStep.ROLL_BACK, Objection(ObjectionCode.CHANGED, why))


def _by_pods(command: DisruptionCommand) -> Sequence[NodeClaim]:
    """The candidates that go because of what runs on them: with drifted nodes, those that have not drifted."""
    if command.record.reason in _BY_PODS:
        return command.candidates
    is_drift = command.record.reason is DisruptionReason.DRIFTED
    return [claim for claim in command.candidates if is_drift and not claim.is_true(DRIFTED)]


def deadline(started: datetime, candidates: int) -> datetime:
    """When a command that is not ready is given up (Karpenter disruption queue, `getMaxRetryDuration`).

    ``candidates``: how many nodes all commands together are about.
    """
    return started + min(max(_PER_CANDIDATE * candidates, _SHORTEST), _LONGEST)


def _goal(command: DisruptionCommand) -> str | None:
    """The condition that replacements must have; None if it is enough that they are there."""
    return {Readiness.INITIALIZED: INITIALIZED, Readiness.LAUNCHED: LAUNCHED}.get(command.record.waits_for)
