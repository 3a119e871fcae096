"""What a refusal of the API server is about: the object that was written, or us and the server.

An object at fault must stop nothing but itself; a right that we lack, or a server that is busy, concerns whatever we
write and blames no object. The status code does not tell them apart: an admission webhook denies with any code it likes
(apiserver's ``ToStatusErr`` for webhooks), a ValidatingAdmissionPolicy with that of its ``reason``, and a missing right
is a 403 as many a denial is. The words do: these are the API server's own, and stand before what a webhook or a policy
says.
"""

import re
from dataclasses import dataclass

import msgspec

from joinery.objects.errors import (
    ConfigurationError,
    ConflictError,
    DeniedError,
    JoineryError,
    NotFoundError,
    UnavailableError,
)
from joinery.objects.kubernetes.decoding import decode

MESSAGE_CHARS = 400
#: A cause is shown on a pod: it should be a sentence, and not the report of a policy engine.
_CAUSE_CHARS = 160
#: What refusals of evictions are about that a budget's own state is at fault for.
_BUDGET = "poddisruptionbudget"


class _Cause(msgspec.Struct):
    reason: str = ""
    field: str = ""
    message: str = ""


class _Details(msgspec.Struct, rename="camel"):
    kind: str = ""
    causes: list[_Cause] = []


class Status(msgspec.Struct):
    """What the API server says when it refuses (meta/v1 Status)."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None

    @property
    def is_budget(self) -> bool:
        """Whether a PodDisruptionBudget refuses an eviction (policy/v1 ``DisruptionBudgetCause``).

        The code does not tell: 429 is also what an overloaded server answers, and a budget may answer 403. Then no
        cause names it (kube-apiserver ``EvictionREST.checkAndDecrement``).
        """
        details = self.details or _Details()
        return details.kind == _BUDGET or any(cause.reason == "DisruptionBudget" for cause in details.causes)


@dataclass(frozen=True, slots=True)
class Response:
    """A response, whatever its status code."""

    code: int
    body: bytes
    wait: float = 0.0

    @property
    def is_object(self) -> bool:
        """Whether the body is a JSON object, by its ends. The API server answers with nothing else."""
        return self.body.startswith(b"{") and self.body.rstrip().endswith(b"}")

    @property
    def status(self) -> Status:
        """The refusal. A body that is not a Status (a proxy's page) is dropped: it says nothing about Kubernetes."""
        try:
            return decode(self.body, Status)
        except msgspec.DecodeError:
            return Status(message=f"HTTP {self.code}", code=self.code)


#: etcd's answer to more than its ``--max-request-bytes``, which the API server passes on as an internal error.
_TOO_LARGE = "request is too large"
#: A webhook that must be asked cannot be reached (apiserver admission, ``failurePolicy: Fail``). Others may not be
#: subject to it, so this counts as being about the object.
_WEBHOOK_DOWN = "failed calling webhook"
#: A webhook with side effects was to judge a dry run (apiserver admission): nothing is said about the object.
_NO_DRY_RUN = "does not support dry run"
#: The API server gave up waiting, for etcd or for itself. The request may have had its effect, and the next one would
#: wait as long: that is as good as no answer.
_TIMED_OUT = re.compile(r"timed out|timeout|deadline exceeded", re.IGNORECASE)
_DENIED = re.compile(
    r"""admission webhook "[^"]*" denied the request"""
    r"""|[^'"]*("[^"]*")? is forbidden: \w+AdmissionPolicy '[^']*' with binding '[^']*' denied request"""
)
#: The authorizer's words for a right that is missing (apiserver ``responsewriters.Forbidden``).
_NO_RIGHT = re.compile(r"""[^"]*("[^"]*")? is forbidden: User "[^"]*" cannot """)
#: What the API server puts before its words on an object. It is cut off: the claim's name says nothing to the pod's
#: owner.
_SUBJECT = re.compile(r"""[^\s"]+( "[^"]*")? is (invalid|forbidden): """)


def refusal(what: str, response: Response) -> JoineryError:
    """The error for a refusal (``joinery.objects.errors``). ``what``: method and path, or what was tried."""
    status = response.status
    reason = f"{what}: {status.message}"[:MESSAGE_CHARS]
    if _is_about_the_object(what, response.code, status.message):
        return ConfigurationError(reason, cause=_cause(status))
    match response.code:
        case 404:
            return NotFoundError(reason)
        case 409:
            return ConflictError(reason)
        case 403:
            return DeniedError(f"{reason} (403)")
        case _:
            return UnavailableError(f"{reason} ({response.code})", is_answer=not _TIMED_OUT.search(status.message))


def object_of(what: str, response: Response) -> bytes:
    """The body of a successful answer, a JSON object; a refusal is raised as one of our errors.

    What is no object is somebody else's word, such as a proxy's that asks for a login: nothing was read or written.
    """
    if response.code >= 400:
        raise refusal(what, response)
    if not response.is_object:
        raise UnavailableError(f"{what.partition('?')[0]}: the answer is no JSON object")
    return response.body


def _is_about_the_object(what: str, code: int, message: str) -> bool:
    if _DENIED.match(message):
        return True
    if what.startswith("GET ") or _NO_DRY_RUN in message:
        return False
    match code:
        case 400 | 413 | 422:
            return True
        case 403:
            return not _NO_RIGHT.match(message)
        case 500:
            return _TOO_LARGE in message or _WEBHOOK_DOWN in message
        case _:
            return False


def _cause(status: Status) -> str:
    """Why, in a sentence: what the server lists as the first cause, or what it says."""
    causes = status.details.causes if status.details else []
    if causes and causes[0].field:
        text = f"{causes[0].field}: {causes[0].message}"
    else:
        text = _SUBJECT.sub("", status.message, count=1)
    sentence = " ".join(text.split()).partition(". ")[0]
    return sentence if len(sentence) <= _CAUSE_CHARS else f"{sentence[: _CAUSE_CHARS - 1]}…"
