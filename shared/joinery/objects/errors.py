"""Errors, each named after what its catcher does about it.

::

    JoineryError
    ├── ConfigurationError      the user's object or setting is wrong   -> status condition or exit 2, no retry
    ├── NotFoundError           already gone                            -> success, for a deletion
    ├── ConflictError           someone wrote first                     -> new snapshot, decide again
    ├── CapacityError           EC2 is out of these pools               -> remember them, plan again
    ├── RefusedError            a plan failed verification or a cap     -> act on nothing, tell a person
    └── UnavailableError        throttled, timed out, 5xx               -> raise; the event source retries
        ├── DeniedError         a right is missing                      -> no ring; but others may be allowed
        ├── TimeIsOverError     the run has no time for a call          -> the next run makes it
        └── UnreachableError    there was no answer at all              -> to a person: is there a way there?

A pod that fits nowhere is a result (``packing.unplaced``), not an error.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from joinery.objects.snapshot.offerings import OfferingKey


class JoineryError(Exception):
    """The root: whatever Joinery raises on purpose.

    ``did_nothing``: whether it ended a run before that had done anything (``controllers.triggers.backoff``).
    ``code``: AWS's error code, where AWS refused something; else empty.
    """

    did_nothing = False
    code = ""


class ConfigurationError(JoineryError):
    """A user's object or setting is wrong. The message names the object and the field.

    ``cause``: the same in few words, for those who need not know what was tried.
    """

    def __init__(self, message: str, *, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or message


class NotFoundError(JoineryError):
    """The object or instance does not exist (any more)."""


class ConflictError(JoineryError):
    """Someone else wrote first: the caller's picture is out of date."""


class CapacityError(JoineryError):
    """A launch was refused, because the cloud is out of these capacity pools now.

    ``pools`` is empty where it is not known which.
    """

    def __init__(self, message: str, pools: "frozenset[OfferingKey]" = frozenset()) -> None:
        super().__init__(message)
        self.pools = pools


class RefusedError(JoineryError):
    """A decision that must not be acted upon, or not as a whole: it failed verification, or it exceeds a cap."""


class UnavailableError(JoineryError):
    """A dependency is throttling or down. Whoever sent the event should send it again.

    ``is_answer``: it said so itself, so that asking it for something else does not cost another wait.
    """

    def __init__(self, message: str, *, is_answer: bool = False) -> None:
        super().__init__(message)
        self.is_answer = is_answer


class DeniedError(UnavailableError):
    """We lack a right for this request. Others may be allowed, so only what it was for has to wait."""

    def __init__(self, message: str) -> None:
        super().__init__(message, is_answer=True)


class TimeIsOverError(UnavailableError):
    """The run has too little time left to begin a call. Nothing is wrong: the next run goes on from here."""


class UnreachableError(UnavailableError):
    """The API server, or a service of AWS, could not be connected to; or the API server did not answer in time."""


#: What only a person can mend, or time: trying again in a second would fail again. The schedule's ring is enough.
#: A cap, a user's mistake, a right that is missing.
A_PERSON_MUST_ACT = (RefusedError, ConfigurationError, NotFoundError, DeniedError)


def together(failures: Sequence[Exception]) -> JoineryError:
    """One error for several, of the kind that tells the door what to do about all of them.

    What only a person can mend does not decide it, unless there is nothing else: a tag that is refused for good would
    have the bell rung for good.
    """
    pressing = [failure for failure in failures if not isinstance(failure, A_PERSON_MUST_ACT)]
    text = f"{len(failures)} failed, first: {(pressing or failures)[0]}"
    for kind in (ConflictError, DeniedError, RefusedError, NotFoundError):
        if all(isinstance(failure, kind) for failure in failures):
            return kind(text)
    return UnavailableError(text) if pressing else ConfigurationError(text)
