"""One chain of commands while it is carried out, and what becomes of it when one of them fails.

A chain is worked on by one thread at a time. What has to be said about it (the log, Events) is kept here, and is said
by the actor in the order of the chains.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from joinery.gateways.ec2 import gateway as cloud
from joinery.gateways.kubernetes import gateway as cluster
from joinery.objects.actions import (
    Announce,
    Change,
    Command,
    DeleteClaim,
    DeleteNode,
    DeletePod,
    Evict,
    MarkUnavailable,
    RebootInstance,
    TagInstance,
    TerminateInstance,
    Tolerate,
    UpdatePod,
)
from joinery.objects.errors import DeniedError, TimeIsOverError, UnavailableError

#: Commands that one call carries out for many objects, of whatever chains.
Together = TerminateInstance | MarkUnavailable

#: How many objects such a call is about at most (EC2 takes 1,000 instances, and advises to end fewer at once).
_MOST_TOGETHER = 100


@dataclass
class Chain:
    """How far a chain has come.

    ``commands``: those still to be carried out. ``stored``: by a claim's name, the resource version that the last of
    its updates has made, on which the next is based. ``outcomes``: of commands that were carried out, and are not in
    the log yet, with the error of each that failed. ``failures``: what went wrong with it, which may be that time was
    over. ``news``: Events to be sent about it. ``is_left``: whether the rest is left to another run, because the time
    of this one was over.
    """

    commands: deque[Command]
    stored: dict[str, str] = field(default_factory=dict)
    outcomes: list[tuple[Change, Exception | None]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    news: list[Announce] = field(default_factory=list)
    is_left: bool = False

    @property
    def is_over(self) -> bool:
        return not self.commands

    @property
    def awaited(self) -> Together | None:
        """The command that it has come to, if that is to be carried out together with those of other chains."""
        command = self.commands[0] if self.commands else None
        return command if isinstance(command, Together) else None

    def tried(self, command: Change, error: Exception | None) -> None:
        """Take note of what came of the command that it had come to."""
        self.commands.popleft()
        if error is not None:
            self.failures.append(error)
        if isinstance(error, TimeIsOverError):
            self.is_left = True
            self.commands.clear()
            return
        self.outcomes.append((command, error))
        if error is not None and not _fails_alone(command, error):
            self.commands.clear()


def batches(chains: Iterable[Chain]) -> list[list[Chain]]:
    """Chains whose next commands one call can carry out."""
    alike: dict[tuple[type, str], list[Chain]] = defaultdict(list)
    for chain in chains:
        command = chain.awaited
        if command is not None:
            reason = command.reason if isinstance(command, MarkUnavailable) else ""
            alike[type(command), reason].append(chain)
    return [
        listed[start : start + _MOST_TOGETHER]
        for listed in alike.values()
        for start in range(0, len(listed), _MOST_TOGETHER)
    ]


def longest(command: Change) -> float:
    """Seconds that the call for a command may take."""
    is_of_the_cloud = isinstance(command, TerminateInstance | RebootInstance | TagInstance | MarkUnavailable)
    return cloud.LONGEST_CALL if is_of_the_cloud else cluster.LONGEST_CALL


def is_done_when_gone(command: Change) -> bool:
    """Whether nothing is left to do where the command's object does not exist any more."""
    return isinstance(
        command,
        DeleteClaim | DeleteNode | DeletePod | UpdatePod | Tolerate | TerminateInstance | RebootInstance | TagInstance,
    )


def is_silence(error: Exception) -> bool:
    """Whether nobody answered, so that the next request would wait as long and probably for nothing."""
    return isinstance(error, UnavailableError) and not error.is_answer


def is_a_judgement(error: Exception) -> bool:
    """Whether the call was refused for what it asks. One for many objects may be right for most of them.

    To repeat a call for each of its objects because it was throttled would make that worse.
    """
    return isinstance(error, DeniedError) or not isinstance(error, UnavailableError)


def _fails_alone(command: Change, error: Exception) -> bool:
    """Whether what follows in the chain is carried out all the same.

    Not where nobody answers: each of the node's pods would wait for that as long as this one did.
    """
    return isinstance(command, Evict | DeletePod) and not is_silence(error)
