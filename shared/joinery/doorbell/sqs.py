"""Bells over SQS FIFO queues, for a webhook that the API server waits for.

Making a boto3 client takes longer than the webhook has in all, and importing urllib3 and botocore's signer most of it,
so the one request there is uses the standard library: SQS's JSON protocol over a kept connection, signed with the
credentials that Lambda puts in the environment.
"""

import http.client
import json
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from urllib.parse import SplitResult, urlsplit

from joinery.aws import error
from joinery.doorbell.gateway import Bell, deduplication_id
from joinery.doorbell.signature import Credentials, Scope, signed
from joinery.errors import ConfigurationError, UnavailableError
from joinery.settings import Settings

_SECONDS = 2.0
_TYPE, _TARGET = "application/x-amz-json-1.0", "AmazonSQS.SendMessage"
_ATTEMPTS = 2


class SqsDoorbell:
    """Implements ``Doorbell``. The queues are FIFO with the delays of ``joinery.doorbell.gateway.DELAYS``."""

    def __init__(
        self, settings: Settings, *, now: Callable[[], datetime], environment: Mapping[str, str] = os.environ
    ) -> None:
        self._cluster, self._region, self._now = settings.cluster, settings.region, now
        self._queues = {
            Bell.PROVISIONING: settings.provisioning_queue,
            Bell.LIFECYCLE: settings.lifecycle_queue,
            Bell.DISRUPTION: settings.disruption_queue,
        }
        self._environment = environment
        self._connection: http.client.HTTPConnection | None = None

    def ring(self, bell: Bell) -> None:
        """Raises also ``ConfigurationError``: no such queue, or no permission."""
        queue = self._queues[bell]
        if not queue:
            raise ConfigurationError(f"no queue is set for the {bell.value} bell")
        now = self._now()
        body = {
            "QueueUrl": queue,
            "MessageBody": "{}",
            "MessageGroupId": self._cluster,
            "MessageDeduplicationId": deduplication_id(self._cluster, bell, now),
        }
        self._send(f"ringing the {bell.value} bell", self._endpoint(queue), json.dumps(body).encode())

    def close(self) -> None:
        """Let the connection go; the next ring makes another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _endpoint(self, queue: str) -> SplitResult:
        given = self._environment.get("AWS_ENDPOINT_URL_SQS") or self._environment.get("AWS_ENDPOINT_URL")
        return urlsplit(given or queue)

    def _credentials(self) -> Credentials:
        environment = self._environment
        try:
            key, secret = environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
        except KeyError as missing:
            raise ConfigurationError(f"{missing.args[0]} is not set: there is nothing to sign with") from None
        return Credentials(key, secret, environment.get("AWS_SESSION_TOKEN", ""))

    def _send(self, doing: str, endpoint: SplitResult, body: bytes) -> None:
        plain = {"Host": endpoint.netloc, "Content-Type": _TYPE, "X-Amz-Target": _TARGET}
        scope = Scope(self._region, "sqs", self._now())
        headers = signed(plain, body, credentials=self._credentials(), scope=scope)
        status, answer = self._answer(doing, lambda: self._exchange(endpoint, body, headers))
        if status != http.client.OK:
            code, message = _refusal(answer)
            raise error(code, message, doing=doing, status=status)

    def _answer(self, doing: str, exchange: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
        # The first may meet a connection that SQS closed while Lambda slept. Sending twice is harmless: the
        # deduplication id makes it one message.
        for _ in range(_ATTEMPTS):
            try:
                return exchange()
            except (OSError, http.client.HTTPException) as failed:
                self.close()
                cause = failed
        raise UnavailableError(f"{doing}: {cause!r}") from cause

    def _exchange(self, endpoint: SplitResult, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        if self._connection is None:
            kind = http.client.HTTPConnection if endpoint.scheme == "http" else http.client.HTTPSConnection
            self._connection = kind(endpoint.netloc, timeout=_SECONDS)
        self._connection.request("POST", "/", body=body, headers=headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def _refusal(body: bytes) -> tuple[str, str]:
    """The error code and the message in an answer of SQS."""
    try:
        answer = json.loads(body)
    except ValueError:
        return "NoAnswer", ""
    fields = answer if isinstance(answer, dict) else {}
    return str(fields.get("__type", "")).rpartition("#")[2], str(fields.get("message", fields.get("Message", "")))
