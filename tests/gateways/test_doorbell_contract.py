"""What a doorbell promises, in memory and over SQS."""

from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from time import monotonic
from typing import Any, Protocol

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given
from hypothesis import strategies as st

from joinery.gateways.doorbell.gateway import DELAYS, LONGEST_RING, Bell, Doorbell, message, not_before
from joinery.gateways.doorbell.signature import Credentials, Scope, signed
from joinery.gateways.doorbell.sqs import SILENCE_REMEMBERED, SqsDoorbell
from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery.objects.settings import Settings
from simulator.aws import InMemoryDoorbell
from simulator.clock import Clock


class Rung(Protocol):
    """A doorbell, and how many messages it has sent."""

    clock: Clock

    @property
    def doorbell(self) -> Doorbell:
        """The form under test."""
        ...

    def messages(self, bell: Bell) -> int:
        """How many messages the bell's queue has taken."""
        ...


class _InMemory:
    def __init__(self) -> None:
        self.clock = Clock()
        self.doorbell = InMemoryDoorbell(self.clock)

    def messages(self, bell: Bell) -> int:
        self.clock.advance(DELAYS[bell])
        return [ring.bell for ring in self.doorbell.due()].count(bell)


class _Sqs:
    def __init__(self) -> None:
        self.clock = Clock()
        self._sqs: Any = boto3.client("sqs")
        queues = {f"{bell.value}_queue": self._queue(bell) for bell in Bell}
        self._urls = {bell: queues[f"{bell.value}_queue"] for bell in Bell}
        self.doorbell = SqsDoorbell(Settings(cluster="demo", **queues), now=self.clock.now)  # type: ignore[arg-type]

    def _queue(self, bell: Bell) -> str:
        attributes = {"FifoQueue": "true"}
        return str(self._sqs.create_queue(QueueName=f"{bell.value}.fifo", Attributes=attributes)["QueueUrl"])

    def messages(self, bell: Bell) -> int:
        names = ["ApproximateNumberOfMessages"]
        answer = self._sqs.get_queue_attributes(QueueUrl=self._urls[bell], AttributeNames=names)
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])


@pytest.fixture(params=["memory", "sqs"])
def rung(request: pytest.FixtureRequest) -> Rung:
    """Both forms."""
    if request.param == "memory":
        return _InMemory()
    request.getfixturevalue("aws")
    return _Sqs()


@pytest.mark.parametrize("bell", list(Bell))
def test_rings_of_one_slot_are_one_message(rung: Rung, bell: Bell) -> None:
    """A hundred pods that fit nowhere wake provisioning once."""
    for _ in range(3):
        rung.doorbell.ring(bell)
    assert rung.messages(bell) == 1


@pytest.mark.parametrize("bell", list(Bell))
def test_a_ring_in_the_next_slot_is_another_message(rung: Rung, bell: Bell) -> None:
    """Whatever happens after a message was handled gets a message of its own."""
    rung.doorbell.ring(bell)
    rung.clock.advance(DELAYS[bell])
    rung.doorbell.ring(bell)
    assert rung.messages(bell) == 2


def test_a_ring_for_later_takes_no_other_s_place(rung: Rung) -> None:
    """Else news of a slot in which a door rang itself would be kept until then."""
    later = rung.clock.now() + timedelta(seconds=20)
    for moment in (later, None, later, None):
        rung.doorbell.ring(Bell.LIFECYCLE, moment)
    assert rung.messages(Bell.LIFECYCLE) == 2


def test_a_ring_says_when_there_is_something_to_see() -> None:
    """Its moment is in the message; a message of anybody else says none."""
    now = Clock().now()
    moment = now + timedelta(seconds=20)
    assert not_before(message(moment), now) == moment
    bodies = [message(None), "", "[]", "null", None, "20", '{"notBefore": 1}', '{"notBefore": "2026-01-01T00:00:00"}']
    assert not any(not_before(body, now) for body in bodies)


def test_the_bells_do_not_ring_each_other(rung: Rung) -> None:
    """Each bell has a queue of its own."""
    rung.doorbell.ring(Bell.LIFECYCLE)
    assert (rung.messages(Bell.PROVISIONING), rung.messages(Bell.LIFECYCLE)) == (0, 1)


def test_a_bell_is_delivered_only_after_its_slot_has_ended() -> None:
    """So no ring is dropped as the duplicate of a message that was handled already."""
    clock = Clock()
    doorbell = InMemoryDoorbell(clock)
    clock.advance(timedelta(milliseconds=4_900))
    doorbell.ring(Bell.LIFECYCLE)
    assert doorbell.due() == ()
    assert doorbell.next_due == clock.now() + timedelta(seconds=5)
    clock.advance(timedelta(seconds=5))
    doorbell.ring(Bell.LIFECYCLE)
    assert [ring.bell for ring in doorbell.due()] == [Bell.LIFECYCLE]
    assert doorbell.next_due is not None


def test_messages_of_a_cluster_are_one_group(aws: str) -> None:
    """The queue delivers one at a time for a cluster, so provisioning never runs beside itself."""
    sqs = _Sqs()
    sqs.doorbell.ring(Bell.PROVISIONING)
    wanted = ["MessageGroupId", "MessageDeduplicationId"]
    answer = boto3.client("sqs").receive_message(
        QueueUrl=sqs._urls[Bell.PROVISIONING],
        AttributeNames=wanted,  # type: ignore[arg-type]
    )
    attributes = answer["Messages"][0]["Attributes"]
    second = int(sqs.clock.now().timestamp())
    assert attributes["MessageGroupId"] == "demo"
    assert attributes["MessageDeduplicationId"] == f"demo-provisioning-{second}"


def test_a_queue_that_does_not_exist_is_a_wrong_setting(aws: str) -> None:
    """The error names the bell and SQS's reason, and no retry is asked for."""
    settings = Settings(cluster="demo", provisioning_queue=f"{aws}/123456789012/absent.fifo")
    with pytest.raises(ConfigurationError, match="ringing the provisioning bell: .*NonExistent|QueueDoesNotExist"):
        SqsDoorbell(settings, now=Clock().now).ring(Bell.PROVISIONING)


def test_a_bell_without_a_queue_is_a_wrong_setting() -> None:
    """A door that was not told its queue says so."""
    with pytest.raises(ConfigurationError, match="no queue is set for the lifecycle bell"):
        SqsDoorbell(Settings(cluster="demo"), now=Clock().now).ring(Bell.LIFECYCLE)


def test_an_unreachable_queue_is_unavailable() -> None:
    """Whoever rang may ring again later."""
    environment = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    settings = Settings(cluster="demo", lifecycle_queue="https://sqs.us-east-1.amazonaws.com/1/q.fifo")
    doorbell = SqsDoorbell(settings, now=Clock().now, environment=environment)
    with pytest.raises(UnavailableError, match="ringing the lifecycle bell"):
        doorbell.ring(Bell.LIFECYCLE)


def test_without_credentials_nothing_is_sent() -> None:
    """Lambda always has them; a missing variable is named."""
    settings = Settings(cluster="demo", lifecycle_queue="http://127.0.0.1:9/1/q.fifo")
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID is not set"):
        SqsDoorbell(settings, now=Clock().now, environment={}).ring(Bell.LIFECYCLE)


_TOKEN = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=40)


@given(body=st.binary(max_size=200), access=_TOKEN, secret=_TOKEN, token=st.one_of(st.just(""), _TOKEN))
def test_the_signature_is_the_one_botocore_makes(body: bytes, access: str, secret: str, token: str) -> None:
    """Whatever the body and the credentials, AWS accepts the one exactly if it accepts the other."""
    plain = {"Host": "sqs.eu-west-1.amazonaws.com", "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "T"}
    theirs = AWSRequest("POST", "https://sqs.eu-west-1.amazonaws.com/", data=body, headers=plain)
    SigV4Auth(BotocoreCredentials(access, secret, token or None), "sqs", "eu-west-1").add_auth(theirs)
    moment = datetime.strptime(theirs.context["timestamp"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    ours = signed(plain, body, credentials=Credentials(access, secret, token), scope=Scope("eu-west-1", "sqs", moment))
    assert ours["Authorization"] == theirs.headers["Authorization"]


class _Silent(StreamRequestHandler):
    """Takes every connection, and answers nothing on it."""

    connections = 0

    def handle(self) -> None:
        type(self).connections += 1
        self.rfile.read()


def test_a_queue_that_is_silent_is_waited_for_once_a_run() -> None:
    """A run rings up to three bells at its end. Waiting for each would have it killed, and its Events lost."""
    with ThreadingTCPServer(("127.0.0.1", 0), _Silent) as server:
        Thread(target=server.serve_forever).start()
        environment = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
        queue, clock = f"http://127.0.0.1:{server.server_address[1]}/1/q.fifo", Clock()
        settings = Settings(cluster="demo", lifecycle_queue=queue, provisioning_queue=queue, disruption_queue=queue)
        doorbell = SqsDoorbell(settings, now=clock.now, environment=environment)
        begun = monotonic()
        for bell in Bell:
            with pytest.raises(UnavailableError):
                doorbell.ring(bell)
        assert monotonic() - begun < LONGEST_RING + 1
        assert _Silent.connections == 1
        clock.advance(SILENCE_REMEMBERED)
        with pytest.raises(UnavailableError):
            doorbell.ring(Bell.LIFECYCLE)
        assert _Silent.connections == 2
        server.shutdown()


class _Closing(BaseHTTPRequestHandler):
    """Answers, and then closes the connection without having said so, as a server does with an idle one."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: N802 - http.server's name
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_connection_that_was_closed_meanwhile_is_made_anew() -> None:
    """Lambda freezes between calls, and SQS closes idle connections."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Closing) as server:
        Thread(target=server.serve_forever).start()
        environment = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
        settings = Settings(cluster="demo", lifecycle_queue=f"http://127.0.0.1:{server.server_port}/1/q.fifo")
        doorbell = SqsDoorbell(settings, now=Clock().now, environment=environment)
        for _ in range(3):
            doorbell.ring(Bell.LIFECYCLE)
        doorbell.close()
        server.shutdown()
