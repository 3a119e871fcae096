"""Refusals: what was refused is asked for again ever less often, and has one Event.

EC2 does not end an instance with termination protection, and an admission policy may deny a write: for good, until a
person has changed something. To ask in every run would cost calls, runs and Events. So each request that was refused is
remembered. It waits as long again as it has been refused so far, from seconds to minutes. Whatever else is to be done,
about the same object or another, does not wait.

Not refused is what met a conflict, was throttled or got no answer: that passes by itself
(``controllers.triggers.backoff``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.objects.actions import (
    Announce,
    Ask,
    Change,
    Command,
    DeleteClaim,
    DeleteNode,
    DeletePod,
    Evict,
    MarkUnavailable,
    RebootInstance,
    Reject,
    RestartDeployment,
    TagInstance,
    TerminateInstance,
    Tolerate,
    UpdateBuffer,
    UpdateClaim,
    UpdateClass,
    UpdateNode,
    UpdateOverlay,
    UpdatePod,
    UpdatePool,
    UpdateRequest,
    object_of,
    subject,
)
from joinery.objects.errors import ConfigurationError, DeniedError, JoineryError
from joinery.objects.wording import MOST_QUOTED, shortened

#: The shortest and the longest time between two tries. A webhook that was down may answer again.
SHORTEST, LONGEST = timedelta(seconds=10), timedelta(minutes=5)
#: How long a refusal is so young that ticks are worth their reads. After that the schedule's ring is enough.
WORTH_TICKS = timedelta(minutes=1)
#: How long a refusal is remembered after the last try: its object may be gone.
REMEMBERED = timedelta(minutes=30)
#: How much earlier than its time a try may be made: the schedule's rings do not come to the second.
_TOLERANCE = timedelta(seconds=1)
#: Behind this, AWS says the same in a form that nobody can read, and that differs each time (IAM, "Decode
#: authorization messages").
_ENCODED = " Encoded authorization failure message"
#: What is asked by a command, in words.
_REQUESTS: Mapping[type[Change], str] = {
    **dict.fromkeys(
        (
            UpdateClaim,
            UpdateNode,
            UpdatePool,
            UpdateClass,
            UpdateOverlay,
            UpdateBuffer,
            UpdateRequest,
            UpdatePod,
            Reject,
        ),
        "an update of {}",
    ),
    **dict.fromkeys((DeleteClaim, DeleteNode, DeletePod), "the deletion of {}"),
    Tolerate: "a toleration for {}",
    TerminateInstance: "the end of instance {}",
    RebootInstance: "the reboot of instance {}",
    TagInstance: "the tagging of instance {}",
    MarkUnavailable: "the mark of {}",
}
#: Commands that ask for the same whatever their reason is.
_PLAIN = (DeleteClaim, DeleteNode, DeletePod, Evict, TerminateInstance, RebootInstance, TagInstance)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was refused.

    ``request``: what was asked (``request``). ``since``: when it was refused first, ``tried``: when last. ``message``:
    the words of who refused it last, and what a person may do about it.
    """

    request: str
    since: datetime
    tried: datetime
    message: str = ""

    @property
    def command(self) -> str:
        """The name of the command's class."""
        return self.request.partition(" ")[0]

    @property
    def about(self) -> str:
        """The command and what it is about, without why."""
        return self.request.partition(": ")[0]

    def is_due(self, now: datetime) -> bool:
        """Whether it may be asked again: at once after the first time, and if somebody's clock was wrong."""
        interval = min(max(self.tried - self.since, SHORTEST), LONGEST) if self.tried > self.since else timedelta()
        return not timedelta() <= now - self.tried < interval - _TOLERANCE

    def is_worth_ticks(self, now: datetime) -> bool:
        """Whether the next try comes sooner than the schedule's ring."""
        return now - self.since < WORTH_TICKS

    def is_remembered(self, now: datetime) -> bool:
        """Whether it still counts."""
        return abs(now - self.tried) < REMEMBERED


#: What was refused, by the request.
Refusals = Mapping[str, Refusal]


def request(command: Change | Ask) -> str:
    """What a command asks for, in words that are the same when it asks for that again.

    Two updates of an object may be about different things, so that one says nothing of the other.
    """
    what = f"{type(command).__name__} {subject(command)}"
    if isinstance(command, Ask):
        return f"{what}: {command.what}"
    return what if isinstance(command, _PLAIN) else f"{what}: {command.reason}"


def is_refusal(error: Exception | None) -> bool:
    """Whether the request was looked at and denied, so that only a person can mend it."""
    return isinstance(error, ConfigurationError | DeniedError)


def refused(command: Change | Ask, error: Exception, now: datetime, before: Refusal | None) -> Refusal:
    """The refusal of a command. ``before``: that of the try before, if that was refused, too."""
    message = f"{_cause(error)}; {remedy(command, error)}"
    return Refusal(request(command), before.since if before else now, now, message)


@dataclass(frozen=True, slots=True)
class Due:
    """What of a chain is to be done now. ``refusal``: why the rest waits; None if nothing waits."""

    commands: tuple[Command, ...]
    refusal: Refusal | None = None


def due(chain: Sequence[Command], refusals: Refusals, now: datetime) -> Due:
    """As much of the chain as may be asked for now. What follows a command that waits relies on it, and waits too.

    Only the eviction or deletion of a pod keeps nothing waiting. Announcements right before a command that was refused
    are dropped: they were made when it was refused first.
    """
    if not refusals:
        return Due(tuple(chain))
    kept: list[Command] = []
    for command in chain:
        refusal = None if isinstance(command, Announce) else refusals.get(request(command))
        if refusal is None:
            kept.append(command)
            continue
        while kept and isinstance(kept[-1], Announce):
            kept.pop()
        if refusal.is_due(now):
            kept.append(command)
        elif not isinstance(command, Evict | DeletePod):
            return Due(tuple(kept), refusal)
    return Due(tuple(kept))


def is_reported(refusal: Refusal, refusals: Refusals) -> bool:
    """Whether the object's Events say the same already: a policy may deny each of its updates, with the same words."""
    return any((each.about, each.message) == (refusal.about, refusal.message) for each in refusals.values())


def failure_events(command: Change | Ask, why: str) -> tuple[Announce, ...]:
    """The Event for the command's object when the command was refused; none where it has no object."""
    owner = object_of(command)
    if owner is None:
        return ()
    match command:
        case Evict(_, node):
            reason, what = "FailedEviction", f"its node {node.metadata.name} is being drained, but it was not evicted"
        case RestartDeployment(deployment):
            reason, what = "FailedSurge", f"its Deployment {deployment.metadata.name} was not restarted"
        case Ask():
            reason, what = "Refused", f"{command.what} was refused"
        case _:
            what = _REQUESTS[type(command)].format(subject(command))
            reason, what = "Refused", f"{what} ({command.reason}) was refused"
    return (Announce(reason, f"{what}: {why}", owner),)


def remedy(command: Change | Ask, error: Exception) -> str:
    """What a person may do about the refusal."""
    code = error.code if isinstance(error, JoineryError) else ""
    if code == "OperationNotPermitted" and isinstance(command, TerminateInstance):
        instance = f"--instance-id {command.instance_id} --no-disable-api-termination"
        return f"disable its termination protection: aws ec2 modify-instance-attribute {instance}"
    if code:
        return "its role or a policy of the organisation is against it: CloudTrail shows the call"
    if isinstance(error, DeniedError):
        return "Joinery's rights are missing, or of an older version: joinery doctor"
    return "except Joinery from what denies it, or mend the object"


def _cause(error: Exception) -> str:
    text = error.cause if isinstance(error, ConfigurationError) else str(error)
    return shortened(text.partition(_ENCODED)[0], MOST_QUOTED)
