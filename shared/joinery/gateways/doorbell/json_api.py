"""One request of AWS's JSON protocol, for a webhook that the API server waits for.

Making a boto3 client takes longer than the webhook has in all, and importing urllib3 and botocore's signer most of it.
So the few requests there are use the standard library: a kept connection, and a signature by the credentials that
Lambda puts in the environment (docs/decisions/0005).
"""

import http.client
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult

from joinery.gateways.aws import error
from joinery.gateways.doorbell.signature import Credentials, Scope, signed
from joinery.objects.errors import ConfigurationError, UnavailableError

_SECONDS = 2.0
_ATTEMPTS = 2


class JsonApi:
    """A service of one region. ``version``: of its JSON protocol, ``1.0`` or ``1.1``."""

    def __init__(
        self, service: str, version: str, region: str, *, now: Callable[[], datetime], environment: Mapping[str, str]
    ) -> None:
        self._service, self._type, self._region = service, f"application/x-amz-json-{version}", region
        self._now, self._environment = now, environment
        self._connection: http.client.HTTPConnection | None = None

    def call(self, doing: str, endpoint: SplitResult, target: str, body: Mapping[str, Any]) -> bytes:
        """The answer's body. ``doing``: for the words of an error. Sent twice where a kept connection was of no use.

        Raises ``ConfigurationError`` (nothing of that name, no right) and ``UnavailableError``.
        """
        sent = json.dumps(body).encode()
        plain = {"Host": endpoint.netloc, "Content-Type": self._type, "X-Amz-Target": target}
        scope = Scope(self._region, self._service, self._now())
        headers = signed(plain, sent, credentials=self._credentials(), scope=scope)
        status, answer = self._answer(doing, lambda: self._exchange(endpoint, sent, headers))
        if status != http.client.OK:
            code, message = _refusal(answer)
            raise error(code, message, doing=doing, status=status)
        return answer

    def close(self) -> None:
        """Let the connection go; the next call makes another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _credentials(self) -> Credentials:
        environment = self._environment
        try:
            key, secret = environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
        except KeyError as missing:
            raise ConfigurationError(f"{missing.args[0]} is not set: there is nothing to sign with") from None
        return Credentials(key, secret, environment.get("AWS_SESSION_TOKEN", ""))

    def _answer(self, doing: str, exchange: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
        # The first may meet a connection that the service closed while Lambda slept.
        for _ in range(_ATTEMPTS):
            is_kept = self._connection is not None
            try:
                return exchange()
            except (OSError, http.client.HTTPException) as failed:
                self.close()
                cause = failed
            if isinstance(cause, TimeoutError) and not is_kept:
                break  # a service that is silent would be as silent once more
        raise UnavailableError(f"{doing}: {cause!r}") from cause

    def _exchange(self, endpoint: SplitResult, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        if self._connection is None:
            kind = http.client.HTTPConnection if endpoint.scheme == "http" else http.client.HTTPSConnection
            self._connection = kind(endpoint.netloc, timeout=_SECONDS)
        self._connection.request("POST", "/", body=body, headers=headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def _refusal(body: bytes) -> tuple[str, str]:
    """The error code and the message in an answer."""
    try:
        answer = json.loads(body)
    except ValueError:
        return "NoAnswer", ""
    fields = answer if isinstance(answer, dict) else {}
    return str(fields.get("__type", "")).rpartition("#")[2], str(fields.get("message", fields.get("Message", "")))
