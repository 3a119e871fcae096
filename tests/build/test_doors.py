"""Every door from the build, under the Lambda Runtime Interface Emulator: one real invocation each."""

import json
import os
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tools.rie import EmulatedDoor, NotBuiltError
from tools.template import ROOT, doors, load

# The emulators share a machine of two cores, and one build.
pytestmark = pytest.mark.xdist_group("build")

DOORS = doors(load())
CLUSTER = "blue"
SIMULATED = {
    "JOINERY_CLUSTER": CLUSTER,
    "JOINERY_REGION": "us-east-1",
    "JOINERY_GATEWAYS": "simulator.world:gateways",
}


def event(name: str) -> dict[str, Any]:
    """A sample event."""
    loaded: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return loaded


def emulated(door: str, environment: dict[str, str], **more: Any) -> EmulatedDoor:
    """The door under the emulator; the test is skipped where there is no build, and fails so in CI."""
    try:
        return EmulatedDoor(DOORS[door], environment, **more).__enter__()
    except NotBuiltError as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture
def queues() -> Iterator[Any]:
    """SQS, as far as moto is it."""
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    session = boto3.Session("test", "test", region_name="us-east-1")
    yield session.client("sqs", endpoint_url=f"http://{host}:{port}")
    server.stop()


def test_the_webhook_rings_over_a_signed_request(queues: Any) -> None:
    """From the API server's call to a message in the queue, with the build's own dependencies."""
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = {n: queues.create_queue(QueueName=f"{n}.fifo", Attributes=attributes)["QueueUrl"] for n in ("p", "l")}
    call = event("webhook_failed_scheduling")
    door = emulated(
        "webhook",
        {
            "JOINERY_CLUSTER": CLUSTER,
            "JOINERY_REGION": "us-east-1",
            "JOINERY_WEBHOOK_TOKEN": call["rawPath"][1:],
            "JOINERY_PROVISIONING_QUEUE": url["p"],
            "JOINERY_LIFECYCLE_QUEUE": url["l"],
            "AWS_ENDPOINT_URL": queues.meta.endpoint_url,
        },
    )
    with door:
        answer = door.invoke(call)

    assert answer["statusCode"] == 200, door.log.read_text()
    assert json.loads(answer["body"])["response"]["allowed"] is True
    assert [m["Body"] for m in queues.receive_message(QueueUrl=url["p"])["Messages"]] == ["{}"]
    assert "Messages" not in queues.receive_message(QueueUrl=url["l"])


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("provisioning_bell", "done"),
        ("lifecycle_bell", "done"),
        ("expiration_schedule", "done"),
        ("catalog_schedule", "done"),
    ],
)
def test_a_door_from_the_build_does_its_work(name: str, outcome: str) -> None:
    """A bell or a schedule is answered, over the simulator's gateways."""
    door = emulated(name.partition("_")[0], SIMULATED, extra_path=(ROOT,))
    with door:
        answer = door.invoke(event(name))

    assert answer.get("outcome") == outcome, door.log.read_text()
    assert any(line.get("ColdStart") == [1.0] for line in door.lines())


def test_the_interruption_door_answers_message_by_message() -> None:
    """A warning about an instance of somebody else's is handled, and nothing is delivered again."""
    door = emulated("interruption", SIMULATED, extra_path=(ROOT,))
    with door:
        answer = door.invoke(event("interruption_spot_warning"))

    assert answer == {"batchItemFailures": []}, door.log.read_text()
