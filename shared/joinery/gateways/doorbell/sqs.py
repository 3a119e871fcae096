"""Bells over SQS FIFO queues, for a webhook that the API server waits for (``joinery.gateways.doorbell.json_api``)."""

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from urllib.parse import SplitResult, urlsplit

from joinery.gateways.doorbell.gateway import Bell, deduplication_id, message
from joinery.gateways.doorbell.json_api import JsonApi
from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery.objects.settings import Settings

#: How long nothing is sent after SQS was silent: a run has several bells to ring, and no time to wait for each.
SILENCE_REMEMBERED = timedelta(seconds=5)


class SqsDoorbell:
    """Implements ``Doorbell``. The queues are FIFO with the delays of ``joinery.gateways.doorbell.gateway.DELAYS``."""

    def __init__(
        self, settings: Settings, *, now: Callable[[], datetime], environment: Mapping[str, str] = os.environ
    ) -> None:
        self._cluster, self._now = settings.cluster, now
        self._queues = {
            Bell.PROVISIONING: settings.provisioning_queue,
            Bell.LIFECYCLE: settings.lifecycle_queue,
            Bell.DISRUPTION: settings.disruption_queue,
        }
        self._environment = environment
        self._silent_at: datetime | None = None
        self._sqs = JsonApi("sqs", "1.0", settings.region, now=now, environment=environment)

    def ring(self, bell: Bell, not_before: datetime | None = None) -> None:
        """Raises also ``ConfigurationError``: no such queue, or no permission.

        What was sent twice is one message, by its deduplication id.
        """
        queue = self._queues[bell]
        if not queue:
            raise ConfigurationError(f"no queue is set for the {bell.value} bell")
        self._raise_if_silent(bell)
        one = deduplication_id(self._cluster, bell, self._now(), rests=not_before is not None)
        body = {
            "QueueUrl": queue,
            "MessageBody": message(not_before),
            "MessageGroupId": self._cluster,
            "MessageDeduplicationId": one,
        }
        try:
            self._sqs.call(f"ringing the {bell.value} bell", self._endpoint(queue), "AmazonSQS.SendMessage", body)
        except UnavailableError as error:
            self._silent_at = None if error.code else self._now()
            raise

    def _raise_if_silent(self, bell: Bell) -> None:
        silent = self._silent_at
        if silent is not None and timedelta() <= self._now() - silent < SILENCE_REMEMBERED:
            raise UnavailableError(f"ringing the {bell.value} bell: SQS was silent a moment ago")

    def close(self) -> None:
        """Let the connection go; the next ring makes another."""
        self._sqs.close()

    def _endpoint(self, queue: str) -> SplitResult:
        given = self._environment.get("AWS_ENDPOINT_URL_SQS") or self._environment.get("AWS_ENDPOINT_URL")
        return urlsplit(given or queue)
