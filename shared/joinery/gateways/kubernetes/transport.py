"""One request to the API server: bytes in, bytes out, and our errors for its refusals.

Lists come compressed: the API server does so for answers above 128 KB, and pods and nodes are so much alike that a
tenth is left of them. A watch comes line by line, and its end is for the reader to find
(``joinery.gateways.kubernetes.watches``).

Connections and TLS are urllib3's. The official client is not used, and neither are its models: see
``joinery.objects.kubernetes.core``.

Reads are tried again a few times when the server is busy, restarting or unreachable. A write is tried again only if the
server said that it did not look at it (429 with Retry-After, or a connection that was never made): a write that may
have happened must not happen twice, and whoever sent the event will send it again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

import msgspec

from joinery import __version__
from joinery.gateways.kubernetes.api_errors import MESSAGE_CHARS, Response, object_of
from joinery.gateways.kubernetes.connection import Connection
from joinery.gateways.kubernetes.gateway import LONGEST_CALL
from joinery.objects.errors import UnavailableError, UnreachableError

A = TypeVar("A", bound="Response | Stream")
JSON, MERGE_PATCH, JSON_PATCH = "application/json", "application/merge-patch+json", "application/json-patch+json"
ATTEMPTS = 4
CONNECT_SECONDS = 3.0
#: Seconds that a request may take, all attempts together. The shortest function that reads the cluster has 30 s: with a
#: server that does not answer it must still have the time to say so, and to ring again.
PATIENCE = LONGEST_CALL
LONGEST_WAIT = 5.0  # seconds: a function pays for every second that it sleeps, and has a timeout
#: How long a stream may take to begin. The API server sends its head at once, whether or not there is anything to tell.
FIRST_SECONDS = 3.0
_FIRST_WAIT = 0.2
_CHUNK = 1 << 16
_BUSY = frozenset({429, 500, 502, 503, 504})


class Transport:
    """Requests over one pool of connections. Safe to use from several threads.

    ``connection``: of ``joinery.gateways.kubernetes.auth``. ``sleep`` is how it waits between attempts, ``clock`` tells
    the seconds since some beginning, and ``patience`` is how many of them a request may take. ``bytes_read``: what all
    answers took on the wire so far, headers and TLS not counted.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        self._connection = connection
        self._pool = connection.new_pool()
        self._sleep, self.clock, self._patience = sleep, clock, patience
        self.bytes_read = 0
        self._counting = Lock()

    def apart(self) -> "Transport":
        """Requests to the same server over connections of their own.

        Who uses it from one thread at a time has one connection, and so talks to one API server of several.
        """
        return Transport(self._connection, sleep=self._sleep, clock=self.clock, patience=self._patience)

    def get(self, path: str) -> bytes:
        """The body of a GET. Raises ``NotFoundError``, ``UnavailableError``."""
        return self.request("GET", path)

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = JSON, attempts: int = ATTEMPTS
    ) -> bytes:
        """The body of a successful answer, a JSON object; anything else is raised as one of our errors."""
        answer = self.ask(method, path, body, content_type=content_type, attempts=attempts)
        return object_of(f"{method} {path}", answer)

    def ask(
        self, method: str, path: str, body: object = None, *, content_type: str = JSON, attempts: int = ATTEMPTS
    ) -> Response:
        """The answer, refusal or not. Raises ``UnavailableError`` only where there is none."""
        payload = None if body is None else msgspec.json.encode(body)
        return self._patiently(
            method, lambda seconds: self._once(method, path, payload, content_type, seconds=seconds), attempts
        )

    @contextmanager
    def stream(self, path: str) -> Iterator["Stream | Response"]:
        """The answer to a GET while it is still coming, or its refusal.

        Raises ``BrokenStreamError`` if neither begins to come. The connection is closed afterwards, because the answer
        may never end.
        """
        answer = self._patiently("GET", lambda _: self._begun(path), ATTEMPTS)
        try:
            yield answer
        finally:
            if isinstance(answer, Stream):
                self._count(answer.close())

    def _patiently(self, method: str, once: Callable[[float], A], attempts: int) -> A:
        """The first answer that is not worth another attempt. ``once`` makes one, of so many seconds at most."""
        end = self.clock() + self._patience
        for attempt in range(1, attempts + 1):
            answer = None
            try:
                answer = once(end - self.clock())
            except _RepeatableError as error:
                failure = error
            if answer is not None and not _is_worth_retrying(method, answer):
                return answer
            wait = _wait(attempt, answer)
            if attempt == attempts or self.clock() + wait >= end:
                break
            self._sleep(wait)
        if answer is not None:
            return answer
        raise _unanswered(str(failure), failure.__cause__) from failure

    def _begun(self, path: str) -> "Stream | Response":
        from urllib3.exceptions import HTTPError

        try:
            answer = self._sent("GET", path, None, JSON, seconds=FIRST_SECONDS, is_stream=True)
            return Stream(path, answer) if answer.status < 400 else self._whole(answer)
        except HTTPError as error:
            raise BrokenStreamError(f"GET {path}: {error}"[:MESSAGE_CHARS]) from error

    def _whole(self, answer: Any) -> Response:
        body = answer.data
        self._count(answer.tell())
        return Response(answer.status, body, _seconds(answer.headers.get("Retry-After")))

    def _count(self, size: int) -> None:
        with self._counting:
            self.bytes_read += size

    def _once(self, method: str, path: str, payload: bytes | None, content_type: str, *, seconds: float) -> Response:
        from urllib3.exceptions import HTTPError, NewConnectionError

        try:
            answer = self._sent(method, path, payload, content_type, seconds=max(seconds, 0.1))
        except HTTPError as error:
            reason = f"{method} {path.partition('?')[0]}: {type(error).__name__}: {error}"[:MESSAGE_CHARS]
            if method == "GET" or isinstance(error, NewConnectionError):
                raise _RepeatableError(reason) from error
            raise _unanswered(reason, error) from error
        return self._whole(answer)

    def _sent(
        self,
        method: str,
        path: str,
        payload: bytes | None,
        content_type: str,
        *,
        seconds: float,
        is_stream: bool = False,
    ) -> Any:
        from urllib3 import Timeout

        return self._pool.request(
            method,
            self._connection.host + path,
            body=payload,
            headers=self._headers(content_type),
            timeout=Timeout(connect=CONNECT_SECONDS, read=seconds),
            retries=False,
            preload_content=not is_stream,
        )

    def _headers(self, content_type: str) -> dict[str, str]:
        credential = self._connection.authorization()
        authorization = {"Authorization": credential} if credential else {}
        return {
            "Accept": JSON,
            "Accept-Encoding": "gzip",
            "Content-Type": content_type,
            "User-Agent": f"joinery/{__version__}",
            **authorization,
        }


class BrokenStreamError(Exception):
    """A stream that did not begin, or ended before its reader was done."""


class Stream:
    """An answer that comes line by line. ``code``, ``wait``: as those of a ``Response``."""

    wait = 0.0

    def __init__(self, path: str, answer: Any) -> None:
        self.code: int = answer.status
        self._path = path
        self._answer = answer

    def close(self) -> int:
        """Hear no more of it. Returns how many bytes came."""
        self._answer.close()
        size: int = self._answer.tell()
        return size

    def lines(self, quiet: float) -> Iterator[bytes]:
        """Each line as soon as it is complete, until nothing has come for ``quiet`` seconds.

        Raises ``BrokenStreamError`` if the server or the network ends the stream before that, and for silence within a
        line.
        """
        from urllib3.exceptions import ReadTimeoutError

        socket = getattr(self._answer.connection, "sock", None)
        if socket is not None:
            socket.settimeout(quiet)
        rest = b""
        while True:
            try:
                with self._unbroken():
                    received = self._answer.read1(_CHUNK)
            except BrokenStreamError as broken:
                if isinstance(broken.__cause__, ReadTimeoutError) and not rest:
                    return
                raise
            if not received:
                raise BrokenStreamError(f"GET {self._path}: the server ended it")
            *lines, rest = (rest + received).split(b"\n")
            yield from lines

    @contextmanager
    def _unbroken(self) -> Iterator[None]:
        from urllib3.exceptions import HTTPError

        try:
            yield
        except (HTTPError, OSError) as error:
            raise BrokenStreamError(f"GET {self._path}: {error}"[:MESSAGE_CHARS]) from error


class _RepeatableError(Exception):
    """There was no answer, and the request can be repeated: it did nothing, or doing it twice is harmless."""


def _unanswered(reason: str, error: BaseException | None) -> UnavailableError:
    from urllib3.exceptions import NewConnectionError, TimeoutError

    is_out_of_reach = isinstance(error, NewConnectionError | TimeoutError)
    return UnreachableError(reason) if is_out_of_reach else UnavailableError(reason)


def _is_worth_retrying(method: str, answer: "Response | Stream") -> bool:
    return answer.code in _BUSY if method == "GET" else answer.code == 429 and answer.wait > 0


def _wait(attempt: int, answer: "Response | Stream | None") -> float:
    asked = answer.wait if answer else 0.0
    return min(max(asked, _FIRST_WAIT * 2.0 ** (attempt - 1)), LONGEST_WAIT)


def _seconds(header: str | None) -> float:
    return float(header) if header and header.isdecimal() else 0.0
