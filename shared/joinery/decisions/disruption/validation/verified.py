"""Which commands the independent check of plans agrees with (``joinery.decisions.verification``), in one snapshot.

It may be the one that they were decided from, or a later one. Pods that have ended meanwhile are left out of a command.
A pod that has come to one of its nodes, or a place that is taken now, ends the command.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from joinery.decisions.disruption.decision import DecidedCommand, Rejection, RejectionCause, Validation
from joinery.decisions.disruption.terminate_first import violation
from joinery.decisions.lifecycle.disrupting.new_commands import as_if_retired
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, Packing, placed_pods, placements_of
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.verification.final_state import FinalState, final_state
from joinery.decisions.verification.shares import check_shares_by_choice
from joinery.decisions.verification.verify import verify
from joinery.decisions.verification.violation import Violation, ViolationCode
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import total
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot

IsLate = Callable[[], bool]


def verified(
    problem: Problem,
    commands: Sequence[DecidedCommand],
    decided: Snapshot,
    *,
    states: int = 1,
    is_late: IsLate = lambda: False,
) -> Validation:
    """Check the commands together in the problem's snapshot, each with those before it in force.

    ``decided``: the snapshot that they were decided from; it may be the problem's own. ``states``: how many states on
    the way are looked at, evenly spread; one is the last one only. ``is_late``: once it says yes, what is not checked
    yet is rejected, but for what comes first: that is checked once.
    Cost: that many verifications where all hold; about twice the logarithm of the commands for each that does not.
    """
    present = _Present(problem.snapshot, before=decided)
    changed = {
        command.retire: Rejection(command, RejectionCause.CHURN, objection)
        for command in commands
        if (objection := present.objection(command))
    }
    current = [present.pruned(command) for command in commands if command.retire not in changed]
    replaced_first = [command for command in current if not command.terminates_first]
    checked = _verified_in_order(problem, replaced_first, states, is_late)
    # What ends first takes nothing from the others: its pods go back to the place that it had.
    ending = [(command, violation(command, problem)) for command in current if command.terminates_first]
    wrong = {one.command.retire: one for one in checked.rejected}
    wrong |= {it.retire: Rejection(it, RejectionCause.SCHEDULING, why) for it, why in ending if why}
    rejected = (
        changed.get(command.retire) or replace(wrong[command.retire], command=command)
        for command in commands
        if command.retire in changed or command.retire in wrong
    )
    return Validation((*checked.commands, *(command for command, why in ending if why is None)), tuple(rejected))


def _verified_in_order(
    problem: Problem, commands: Sequence[DecidedCommand], states: int, is_late: IsLate
) -> Validation:
    first_violation = partial(_first_violation, problem)
    valid: tuple[DecidedCommand, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    step = max(1, -(-len(commands) // states))
    for start in range(0, len(commands), step):
        some = commands[start : start + step]
        if start and is_late():
            rejected += tuple(map(out_of_time, some))
        else:
            part = sifted(some, first_violation, RejectionCause.SCHEDULING, before=valid, is_late=is_late)
            valid, rejected = (*valid, *part.commands), (*rejected, *part.rejected)
    if valid or not is_late():
        return Validation(valid, rejected)
    # To retire nodes without pods is right whatever is wrong with the others.
    bare = [one.command for one in rejected if not one.command.pods]
    part = sifted(bare, first_violation, RejectionCause.SCHEDULING, is_late=is_late)
    return Validation(part.commands, (*(one for one in rejected if one.command.pods), *part.rejected))


def out_of_time(command: DecidedCommand) -> Rejection:
    """The rejection of a command that there was no time to check."""
    text = "time was up before its command was checked; the next decision tries again"
    return Rejection(command, RejectionCause.TIME, Objection(ObjectionCode.TIME_LIMIT, text))


def sifted(
    commands: Sequence[DecidedCommand],
    objection: Callable[[Sequence[DecidedCommand]], Objection | None],
    cause: RejectionCause,
    *,
    before: Sequence[DecidedCommand] = (),
    is_late: IsLate = lambda: False,
) -> Validation:
    """Those of the commands that hold beside those ``before`` them, found by halves.

    ``objection``: what speaks against commands that are carried out together. ``is_late``: once it says yes, what does
    not hold together is not looked at apart.
    """
    why = objection([*before, *commands]) if commands else None
    if why is None:
        return Validation(tuple(commands))
    if len(commands) == 1:
        return Validation(rejected=(Rejection(commands[0], cause, why),))
    if is_late():
        return Validation(rejected=tuple(map(out_of_time, commands)))
    middle = len(commands) // 2
    first = sifted(commands[:middle], objection, cause, before=before, is_late=is_late)
    rest = sifted(commands[middle:], objection, cause, before=[*before, *first.commands], is_late=is_late)
    return Validation((*first.commands, *rest.commands), (*first.rejected, *rest.rejected))


def _first_violation(problem: Problem, commands: Sequence[DecidedCommand]) -> Objection | None:
    violations = violations_of(problem, commands)
    if not violations:
        return None
    is_share = violations[0].code is ViolationCode.ON_DEMAND_SHARE
    code = ObjectionCode.ON_DEMAND_SHARE if is_share else ObjectionCode.NO_PLACE
    return Objection(code, str(violations[0]))


def violations_of(problem: Problem, commands: Sequence[DecidedCommand]) -> tuple[Violation, ...]:
    """What verification holds against the state in which these commands leave the problem's cluster."""
    after, packing = _carried_out(problem, commands)
    # Pods that wait, or whose node goes for another reason, are provisioning's: a command says nothing of them. And a
    # node may count as empty though pods run on it that ask to be evicted first.
    crowded = (name for command in commands if command.reason is not DisruptionReason.EMPTY for name in command.retire)
    own = _PodsOfClaims(problem.snapshot).pods_on(crowded)
    by_choice = check_shares_by_choice(problem.snapshot, after.snapshot, packing)
    return tuple(
        violation
        for violation in (*verify(after, packing), *by_choice)
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


class _PodsOfClaims:
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
        self._now, self._before = _PodsOfClaims(snapshot), _PodsOfClaims(before)
        self._pods_before = {pod.key: pod for pod in before.pods}
        self._successor = before.successor

    def objection(self, command: DecidedCommand) -> Objection | None:
        """Why the command is out of date, as far as its own nodes can tell."""
        gone = [name for name in command.retire if name not in self._now.nodes]
        if gone:
            return Objection(ObjectionCode.CHANGED, f"{gone[0]} is gone")
        newcomers = self._now.pods_on(command.retire) - self._before.pods_on(command.retire)
        if not newcomers:
            return None
        return Objection(ObjectionCode.CHANGED, f"pod {min(newcomers)} has come to one of its nodes")

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
