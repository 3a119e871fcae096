"""One request to the API server: bytes in, bytes out, and our errors for its refusals.

Connection, TLS and authentication are the official client's. Its models are not used: see ``joinery.apis.core``.

Reads are tried again a few times when the server is busy, restarting or unreachable. A write is tried again only if the
server said that it did not look at it (429 with Retry-After, or a connection that was never made): a write that may
have happened must not happen twice, and whoever sent the event will send it again.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from joinery.cluster.client import rest_type
from joinery.cluster.gateway import LONGEST_CALL
from joinery.cluster.refusals import MESSAGE_CHARS, Response, refusal
from joinery.errors import UnavailableError

JSON, MERGE_PATCH, JSON_PATCH = "application/json", "application/merge-patch+json", "application/json-patch+json"
ATTEMPTS = 4
CONNECT_SECONDS = 3.0
#: Seconds that a request may take, all attempts together. The shortest function that reads the cluster has 30 s: with a
#: server that does not answer it must still have the time to say so, and to ring again.
PATIENCE = LONGEST_CALL
LONGEST_WAIT = 5.0  # seconds: a function pays for every second that it sleeps, and has a timeout
_FIRST_WAIT = 0.2
_BUSY = frozenset({429, 500, 502, 503, 504})


class Transport:
    """Requests over one pool of connections. Safe to use from several threads.

    ``configuration``: of ``joinery.cluster.auth``. ``sleep`` is how it waits between attempts, ``clock`` tells the
    seconds since some beginning, and ``patience`` is how many of them a request may take.
    """

    def __init__(
        self,
        configuration: Any,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        self._configuration = configuration
        self._pool = rest_type()(configuration).pool_manager
        self._sleep, self._clock, self._patience = sleep, clock, patience

    def get(self, path: str) -> bytes:
        """The body of a GET. Raises ``NotFoundError``, ``UnavailableError``."""
        return self.request("GET", path)

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = JSON, attempts: int = ATTEMPTS
    ) -> bytes:
        """The body of a successful answer; a refusal is raised as one of our errors."""
        answer = self.ask(method, path, body, content_type=content_type, attempts=attempts)
        if answer.code >= 400:
            raise refusal(f"{method} {path}", answer)
        return answer.body

    def ask(
        self, method: str, path: str, body: object = None, *, content_type: str = JSON, attempts: int = ATTEMPTS
    ) -> Response:
        """The answer, refusal or not. Raises ``UnavailableError`` only where there is none."""
        payload = None if body is None else msgspec.json.encode(body)
        end = self._clock() + self._patience
        for attempt in range(1, attempts + 1):
            answer = None
            try:
                answer = self._once(method, path, payload, content_type, seconds=end - self._clock())
            except _RepeatableError as error:
                failure = error
            if answer is not None and not _is_worth_retrying(method, answer):
                return answer
            wait = _wait(attempt, answer)
            if attempt == attempts or self._clock() + wait >= end:
                break
            self._sleep(wait)
        if answer is not None:
            return answer
        raise UnavailableError(str(failure)) from failure

    def _once(self, method: str, path: str, payload: bytes | None, content_type: str, *, seconds: float) -> Response:
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError, NewConnectionError

        timeout = Timeout(connect=CONNECT_SECONDS, read=max(seconds, 0.1))
        try:
            answer = self._pool.request(
                method,
                self._configuration.host + path,
                body=payload,
                headers=self._headers(content_type),
                timeout=timeout,
                retries=False,
            )
        except HTTPError as error:
            reason = f"{method} {path.partition('?')[0]}: {type(error).__name__}: {error}"[:MESSAGE_CHARS]
            if method == "GET" or isinstance(error, NewConnectionError):
                raise _RepeatableError(reason) from error
            raise UnavailableError(reason) from error
        return Response(answer.status, answer.data, _seconds(answer.headers.get("Retry-After")))

    def _headers(self, content_type: str) -> dict[str, str]:
        bearer = self._configuration.auth_settings().get("BearerToken")
        authorization = {"Authorization": bearer["value"]} if bearer else {}
        return {"Accept": JSON, "Content-Type": content_type, "User-Agent": "joinery", **authorization}


class _RepeatableError(Exception):
    """There was no answer, and the request can be repeated: it did nothing, or doing it twice is harmless."""


def _is_worth_retrying(method: str, answer: Response) -> bool:
    return answer.code in _BUSY if method == "GET" else answer.code == 429 and answer.wait > 0


def _wait(attempt: int, answer: Response | None) -> float:
    asked = answer.wait if answer else 0.0
    return min(max(asked, _FIRST_WAIT * 2.0 ** (attempt - 1)), LONGEST_WAIT)


def _seconds(header: str | None) -> float:
    return float(header) if header and header.isdigit() else 0.0
