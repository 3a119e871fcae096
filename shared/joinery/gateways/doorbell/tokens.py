"""The tokens by which the webhook knows its caller, read from Secrets Manager and remembered for minutes.

Only the first review of a new execution environment waits for Secrets Manager. A wrong token makes no request either:
the tokens are read again when they are old, and not because one is unknown.
"""

import json
import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from joinery.gateways.answers import needed
from joinery.gateways.doorbell.json_api import JsonApi
from joinery.gateways.partitions import endpoint
from joinery.objects.errors import ConfigurationError, JoineryError
from joinery.objects.kubernetes.webhook_secret import REMEMBERED, parse
from joinery.objects.settings import Settings

_TARGET = "secretsmanager.GetSecretValue"
#: After a read that failed, the next is tried no sooner.
_PAUSE = timedelta(seconds=10)


class FixedTokens:
    """Implements ``Tokens`` with one token, for a door without Secrets Manager. An empty token knows nobody."""

    def __init__(self, token: str) -> None:
        self._tokens = frozenset({token} - {""})

    def valid(self) -> frozenset[str]:
        return self._tokens


class SecretTokens:
    """Implements ``Tokens``. ``settings.webhook_secret``: the secret's ARN."""

    def __init__(
        self, settings: Settings, *, now: Callable[[], datetime], environment: Mapping[str, str] = os.environ
    ) -> None:
        self._arn, self._now, self._environment = settings.webhook_secret, now, environment
        given = environment.get("AWS_ENDPOINT_URL_SECRETS_MANAGER") or environment.get("AWS_ENDPOINT_URL")
        self._endpoint = urlsplit(given or endpoint("secretsmanager", settings.region))
        self._api = JsonApi("secretsmanager", "1.1", settings.region, now=now, environment=environment)
        self._tokens: frozenset[str] = frozenset()
        self._read_again: datetime | None = None

    def valid(self) -> frozenset[str]:
        now = self._now()
        if self._read_again is None or now >= self._read_again:
            self._read_again = now + _PAUSE
            try:
                self._tokens = self._read()
                self._read_again = now + REMEMBERED
            except JoineryError:
                # What was valid minutes ago still is, as a rule: a rotation leaves the former token valid.
                if not self._tokens:
                    self._read_again = None
                    raise
        return self._tokens

    def _read(self) -> frozenset[str]:
        answer = self._api.call("reading the webhook's secret", self._endpoint, _TARGET, {"SecretId": self._arn})
        try:
            text = needed(json.loads(answer), "SecretString", call="SecretsManager GetSecretValue")
            return parse(str(text)).valid
        except ValueError as wrong:
            raise ConfigurationError(f"reading the webhook's secret: {wrong}") from None
