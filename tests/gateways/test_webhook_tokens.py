"""The webhook's tokens over Secrets Manager: read once in minutes, whoever calls, and believed while it is down."""

import json
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest

from joinery.gateways.account.aws import AwsAccount
from joinery.gateways.doorbell.tokens import FixedTokens, SecretTokens
from joinery.objects.errors import ConfigurationError, ConflictError, JoineryError
from joinery.objects.kubernetes.webhook_secret import REMEMBERED, WebhookSecret, parse
from joinery.objects.settings import Settings
from simulator.awsserver.account import REGION
from simulator.clock import START, Clock

OLD, NEW = "o" * 43, "n" * 43
KEYS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}


class _Manager:
    """Secrets Manager with one secret. ``status``: what it answers with; ``asked``: how often it was asked."""

    def __init__(self) -> None:
        self.text, self.status, self.asked = WebhookSecret(OLD).text, 200, 0
        manager = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Answer."""
                manager.asked += 1
                self.rfile.read(int(self.headers["Content-Length"]))
                body = json.dumps({"SecretString": manager.text} if manager.status == 200 else {}).encode()
                self.send_response(manager.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def manager() -> Iterator[_Manager]:
    """One that answers."""
    manager = _Manager()
    yield manager
    manager.server.shutdown()
    manager.server.server_close()


@pytest.fixture
def clock() -> Clock:
    """The door's."""
    return Clock(START)


@pytest.fixture
def tokens(manager: _Manager, clock: Clock) -> SecretTokens:
    """As a new execution environment has them."""
    given = Settings(cluster="blue", webhook_secret="arn:aws:secretsmanager:us-east-1:1:secret:s")
    return SecretTokens(given, now=clock.now, environment={**KEYS, "AWS_ENDPOINT_URL_SECRETS_MANAGER": manager.url})


def test_the_secret_is_read_once_in_five_minutes(tokens: SecretTokens, manager: _Manager, clock: Clock) -> None:
    """A flood of calls makes no request; a rotation is known when its first step has settled."""
    assert [tokens.valid() for _ in range(50)] == [{OLD}] * 50
    manager.text = WebhookSecret(OLD, next=NEW, since=START.isoformat()).text
    clock.advance(REMEMBERED - timedelta(seconds=1))
    assert (set(tokens.valid()), manager.asked) == ({OLD}, 1)
    clock.advance(timedelta(seconds=1))
    assert (set(tokens.valid()), manager.asked) == ({OLD, NEW}, 2)


def test_what_was_read_is_believed_while_the_service_is_down(
    tokens: SecretTokens, manager: _Manager, clock: Clock
) -> None:
    """It is asked again every ten seconds, and not at every call."""
    tokens.valid()
    manager.status = 500
    clock.advance(REMEMBERED)
    assert [tokens.valid() for _ in range(50)] == [{OLD}] * 50
    assert manager.asked == 2
    manager.status = 200
    clock.advance(timedelta(seconds=10))
    assert (set(tokens.valid()), manager.asked) == ({OLD}, 3)


@pytest.mark.parametrize(
    "text", ["{}", "no JSON", '{"token": 5}', *(json.dumps({"token": sign + OLD}) for sign in "% /?#\né")]
)
def test_a_secret_that_cannot_be_read_is_no_key(text: str, tokens: SecretTokens, manager: _Manager) -> None:
    """Nobody is known by it, and the error does not quote it."""
    manager.text = text
    with pytest.raises(ConfigurationError, match="the webhook's secret"):
        tokens.valid()


def test_a_new_environment_without_the_service_knows_nobody(tokens: SecretTokens, manager: _Manager) -> None:
    """And tries again with the next call."""
    manager.status = 500
    with pytest.raises(JoineryError, match="reading the webhook's secret"):
        tokens.valid()
    manager.status = 200
    assert tokens.valid() == {OLD}


def test_an_empty_token_is_no_token() -> None:
    """A door that was given none knows nobody."""
    assert FixedTokens("").valid() == frozenset()


@pytest.mark.usefixtures("aws")
def test_the_door_reads_what_the_installer_has_written() -> None:
    """Over one Secrets Manager; and of two writers that read one version the second is told."""
    arn = boto3.client("secretsmanager").create_secret(Name="s", SecretString=f'{{"token":"{OLD}"}}')["ARN"]
    account, read = (
        AwsAccount(REGION, "role", arn),
        SecretTokens(Settings(cluster="blue", region=REGION, webhook_secret=arn), now=Clock(START).now),
    )
    stored = account.webhook_secret()
    assert parse(stored.text).valid == {OLD}
    staged = WebhookSecret(OLD, next=NEW, since=START.isoformat())
    account.put_webhook_secret(staged.text, after=stored.version)
    assert read.valid() == {OLD, NEW}
    with pytest.raises(ConflictError):
        account.put_webhook_secret(WebhookSecret(NEW).text, after=stored.version)
