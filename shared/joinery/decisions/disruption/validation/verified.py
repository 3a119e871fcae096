"""Validation: which commands of a decision may be started, by an independent check and in the cluster as it is now.

A decision takes seconds or minutes, for which the cluster goes on. So its commands are checked twice by the code that
checks every plan (``joinery.decisions.verification``): with the snapshot that they were decided from, as the last step
of ``decide``, and with a new one before they begin, because the world may have changed (Karpenter disruption,
validation). Karpenter waits fifteen seconds and simulates once more; here no run waits.

Pods that have ended meanwhile are left out of a command. A pod that has come to one of its nodes, or a place that is
taken now, ends the command.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.terminate_first import violation
from joinery.decisions.lifecycle.disrupting.new_commands import as_if_retired
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, Packing, placed_pods, placements_of
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.verification.final_state import FinalState, final_state
from joinery.decisions.verification.verify import verify
from joinery.decisions.verification.violation import Violation, ViolationCode
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import total
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot


class Failure(StrEnum):
    """What is not as it was decided, in Karpenter's words."""

    CHURN = "churn"
    """Its nodes or their pods."""
    BUDGET = "budget"
    """How many nodes may go, or a node is held for a pod."""
    SCHEDULING = "scheduling"
    """Where its pods were to go."""
    TIME = "time"
    """Nothing, as far as there was time to see."""


OUT_OF_TIME = "time was up before its command was checked; the next decision tries again"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A command that may not be started, and why, in words."""

    command: DecidedCommand
    why: str
    failure: Failure


@dataclass(frozen=True)
class Validation:
    """The commands that may be started, in their order, and those that may not."""

    valid: tuple[DecidedCommand, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def validate(
    problem: Problem,
    commands: Sequence[DecidedCommand],
    decided: Snapshot,
    *,
    states: int = 1,
    is_late: Callable[[], bool] = lambda: False,
) -> Validation:
    """Check the commands together in the problem's snapshot, each with those before it in force.

    ``decided``: the snapshot that they were decided from; it may be the problem's own. ``states``: how many states on
    the way are looked at, evenly spread; one is the last one only. ``is_late``: once it says yes, what is not checked
    yet is dropped, but for what comes first: that is checked once.
    Cost: that many verifications where all are valid; about twice the logarithm of the commands for each that is not.
    """
    present = _Present(problem.snapshot, before=decided)
    dropped: dict[int, Dropped] = {}
    current: list[tuple[int, DecidedCommand]] = []
    for index, command in enumerate(commands):
        if why := present.objection(command):
            dropped[index] = Dropped(command, why, Failure.CHURN)
        else:
            current.append((index, present.pruned(command)))
    valid: list[DecidedCommand] = []
    violated: dict[int, str] = {}
    replaced_first = [(index, command) for index, command in current if not command.terminates_first]
    step = max(1, -(-len(replaced_first) // states))
    for start in range(0, len(replaced_first), step):
        some = replaced_first[start : start + step]
        if start and is_late():
            violated |= dict.fromkeys((index for index, _ in some), OUT_OF_TIME)
        else:
            sift(partial(_first_violation, problem), some, valid, violated, is_late)
    if is_late() and not valid:
        # To retire nodes without pods is right whatever is wrong with the others.
        bare = [(index, command) for index, command in replaced_first if index in violated and not command.pods]
        sift(partial(_first_violation, problem), bare, valid, violated, is_late)
        violated = {index: why for index, why in violated.items() if commands[index] not in valid}
    # What ends first takes nothing from the others: its pods go back to the place that it held.
    for index, command in current:
        if not command.terminates_first:
            continue
        if why := violation(command, problem):
            violated[index] = why
        else:
            valid.append(command)
    dropped |= {index: Dropped(commands[index], why, _failure(why)) for index, why in violated.items()}
    return Validation(tuple(valid), tuple(dropped[index] for index in sorted(dropped)))


def _failure(why: str) -> Failure:
    return Failure.TIME if why == OUT_OF_TIME else Failure.SCHEDULING


def sift(
    objection: Callable[[Sequence[DecidedCommand]], str],
    numbered: Sequence[tuple[int, DecidedCommand]],
    valid: list[DecidedCommand],
    reasons: dict[int, str],
    is_late: Callable[[], bool] = lambda: False,
) -> None:
    """Add to ``valid`` what holds beside what is in it already, and to ``reasons`` why the others do not.

    ``objection``: what speaks against commands that are carried out together, in words; empty if nothing does.
    ``numbered``: the commands, each with the number by which ``reasons`` names it. ``is_late``: once it says yes, what
    does not hold together is not looked at apart.
    """
    why = objection([*valid, *(command for _, command in numbered)]) if numbered else ""
    if not why:
        valid += [command for _, command in numbered]
    elif len(numbered) == 1:
        reasons[numbered[0][0]] = why
    elif is_late():
        reasons |= dict.fromkeys((number for number, _ in numbered), OUT_OF_TIME)
    else:
        middle = len(numbered) // 2
        for half in (numbered[:middle], numbered[middle:]):
            sift(objection, half, valid, reasons, is_late)


def _first_violation(problem: Problem, commands: Sequence[DecidedCommand]) -> str:
    return str(next(iter(violations_of(problem, commands)), ""))


def violations_of(problem: Problem, commands: Sequence[DecidedCommand]) -> tuple[Violation, ...]:
    """What verification holds against the state in which these commands leave the problem's cluster."""
    after, packing = _carried_out(problem, commands)
    # Pods that wait, or whose node goes for another reason, are provisioning's: a command says nothing of them. And a
    # node may count as empty though pods run on it that ask to be evicted first.
    crowded = (name for command in commands if command.reason is not DisruptionReason.EMPTY for name in command.retire)
    own = _Nodes(problem.snapshot).pods_on(crowded)
    return tuple(
        violation
        for violation in verify(after, packing)
        if violation.code is not ViolationCode.POD_MISSING or (violation.subject and violation.subject.name in own)
    )


def state_after(problem: Problem, commands: Sequence[DecidedCommand]) -> FinalState:
    """The state in which these commands leave the problem's cluster."""
    return final_state(*_carried_out(problem, commands))


def _carried_out(problem: Problem, commands: Sequence[DecidedCommand]) -> tuple[Problem, Packing]:
    """The commands as a plan: for the pods of the nodes that go, where these no longer count."""
    retired = frozenset(name for command in commands for name in command.retire)
    packing = Packing(
        existing=tuple(_merged(placement for command in commands for placement in command.existing)),
        launches=tuple(launch for command in commands for launch in command.launches),
    )
    return replace(problem, snapshot=as_if_retired(problem.snapshot, retired)), packing


def _merged(placements: Iterable[ExistingPlacement]) -> Iterable[ExistingPlacement]:
    """The placements, one for each node."""
    by_node: dict[tuple[str, str], tuple[str, ...]] = {}
    for placement in placements:
        key = placement.node, placement.node_claim
        by_node[key] = (*by_node.get(key, ()), *placement.pods)
    return (ExistingPlacement(*key, pods) for key, pods in by_node.items())


class _Nodes:
    """A snapshot, asked about the nodes of claims."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.nodes = {claim.metadata.name: claim.status.node_name for claim in snapshot.managed_claims}
        self._pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in snapshot.pods:
            if pod.spec.node_name and is_reschedulable(pod):
                self._pods[pod.spec.node_name].append(pod)

    def pods_on(self, claims: Iterable[str]) -> set[str]:
        """The pods (namespace/name) on the nodes of these claims that need another node if theirs goes."""
        return {pod.key for name in claims for pod in self._pods.get(self.nodes.get(name, ""), ())}


class _Present:
    """A snapshot, asked about the nodes and pods of commands. ``before``: the one that they were decided from."""

    def __init__(self, snapshot: Snapshot, *, before: Snapshot) -> None:
        self._now, self._before = _Nodes(snapshot), _Nodes(before)
        self._pods_before = {pod.key: pod for pod in before.pods}
        self._successor = before.successor

    def objection(self, command: DecidedCommand) -> str:
        """Why the command is out of date; empty if it is not, as far as its own nodes can tell."""
        gone = [name for name in command.retire if name not in self._now.nodes]
        if gone:
            return f"{gone[0]} is gone"
        newcomers = self._now.pods_on(command.retire) - self._before.pods_on(command.retire)
        return f"pod {min(newcomers)} has come to one of its nodes" if newcomers else ""

    def pruned(self, command: DecidedCommand) -> DecidedCommand:
        """The command without the pods that are no longer on its nodes."""
        there = self._now.pods_on(command.retire)
        if there.issuperset(placed_pods(command.existing, command.launches)):
            return command
        launches = (self._smaller(launch, there) for launch in command.launches)
        return replace(
            command,
            existing=tuple(placements_of(command.existing, there)),
            launches=tuple(launch for launch in launches if launch.pods),
            pods=tuple(pod for pod in command.pods if pod in there),
        )

    def _smaller(self, launch: Launch, there: set[str]) -> Launch:
        """The launch for those of its pods that are there."""
        gone = [self._pods_before[pod] for pod in launch.pods if pod not in there and pod in self._pods_before]
        if not gone:
            return launch
        freed = total(requests_of(self._successor(pod)) for pod in gone)
        requests = {name: value - freed.get(name, 0) for name, value in launch.requests.items()}
        return replace(launch, pods=tuple(pod for pod in launch.pods if pod in there), requests=requests)
