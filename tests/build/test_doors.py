"""Every door from the build, under the Lambda Runtime Interface Emulator, against ``simulator serve``.

The build's own dependencies do the work: requests are signed, TLS apart, as on AWS, and answered by moto and by the
simulated Kubernetes API in another process.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from tools.rie import EmulatedDoor, NotBuiltError
from tools.template import ROOT, doors, load

# The emulators share a machine of two cores, and one build.
pytestmark = pytest.mark.xdist_group("build")

DOORS = doors(load())
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Outside:
    """What the doors reach: ``environment`` is what a door must be told of it."""

    environment: dict[str, str]
    kubernetes: str
    session: boto3.Session

    def client(self, service: Any) -> Any:
        """A client of the local AWS."""
        return self.session.client(service, endpoint_url=self.environment["AWS_ENDPOINT_URL"])

    def claims(self) -> list[dict[str, Any]]:
        """The NodeClaims in the cluster."""
        with urllib.request.urlopen(f"{self.kubernetes}{CLAIMS}") as answer:
            items: list[dict[str, Any]] = json.loads(answer.read())["items"]
        return items


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """A cluster with pods that fit nowhere, and an account, for the tests that do not mind each other's claims."""
    with _served(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """The same, without a node or claim, and nobody rings but the one test that looks into its queues."""
    with _served(tmp_path_factory.mktemp("quiet")) as served:
        yield served


@contextmanager
def _served(folder: Path) -> Iterator[Outside]:
    told = folder / "environment.json"
    ports = ("--kubernetes-port", "0", "--aws-port", "0")
    command = [sys.executable, "-m", "simulator", "serve", *ports, "--env-file", str(told)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as served:
        try:
            environment = _environment(told, served)
            session = boto3.Session("test", "test", region_name=environment["JOINERY_REGION"])
            eks = session.client("eks", endpoint_url=environment["AWS_ENDPOINT_URL"])
            cluster = eks.describe_cluster(name=environment["JOINERY_CLUSTER"])["cluster"]
            yield Outside(environment, cluster["endpoint"], session)
        finally:
            served.terminate()


def _environment(told: Path, served: "subprocess.Popen[bytes]") -> dict[str, str]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while served.poll() is None and time.monotonic() < deadline:
        if told.exists() and told.read_text().endswith("}\n"):
            parameters: dict[str, str] = json.loads(told.read_text())["Parameters"]
            return parameters
        time.sleep(0.1)
    raise RuntimeError("simulator serve did not start")


def event(name: str) -> dict[str, Any]:
    """A sample event."""
    loaded: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return loaded


def invoked(name: str, outside: Outside) -> tuple[Any, EmulatedDoor]:
    """What the door answers to a sample event, and the door for its log. Skipped without a build; in CI that fails."""
    try:
        with EmulatedDoor(DOORS[name.partition("_")[0]], outside.environment) as door:
            return door.invoke(event(name)), door
    except NotBuiltError as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


def test_the_webhook_rings_over_a_signed_request(quiet: Outside) -> None:
    """From the API server's call to a message in the queue, and in no other."""
    answer, door = invoked("webhook_failed_scheduling", quiet)

    assert answer["statusCode"] == 200, door.log.read_text()
    assert json.loads(answer["body"])["response"]["allowed"] is True
    assert _waiting(quiet, "JOINERY_PROVISIONING_QUEUE") == 1
    assert _waiting(quiet, "JOINERY_LIFECYCLE_QUEUE") == 0


def _waiting(outside: Outside, queue: str) -> int:
    answer = outside.client("sqs").receive_message(QueueUrl=outside.environment[queue], MaxNumberOfMessages=10)
    return len(answer.get("Messages", []))


def test_provisioning_launches_for_the_pods_that_fit_nowhere(outside: Outside) -> None:
    """A bell, and the cluster has claims and the account has as many instances."""
    answer, door = invoked("provisioning_bell", outside)

    assert answer.get("outcome") == "done", door.log.read_text()
    reservations = outside.client("ec2").describe_instances()["Reservations"]
    assert len(outside.claims()) == sum(len(reservation["Instances"]) for reservation in reservations) > 0
    assert any("_aws" in line for line in door.lines()), "no metrics"


def test_lifecycle_takes_up_what_provisioning_began(outside: Outside) -> None:
    """Another door in another process finds the claims of the first, and finishes nothing that is not over."""
    if not outside.claims():
        invoked("provisioning_bell", outside)
    before = {claim["metadata"]["name"] for claim in outside.claims()}
    answer, door = invoked("lifecycle_bell", outside)

    assert answer.get("outcome") == "done", door.log.read_text()
    assert {claim["metadata"]["name"] for claim in outside.claims()} == before


def test_disruption_decides_with_what_the_build_brings(quiet: Outside) -> None:
    """The optimiser and the verification among it. There is no node that could go."""
    answer, door = invoked("disruption_bell", quiet)

    assert answer.get("outcome") == "done", door.log.read_text()
    assert answer.get("commands") == 0


@pytest.mark.parametrize("name", ["expiration_schedule", "catalog_schedule"])
def test_a_schedule_is_answered(name: str, outside: Outside) -> None:
    """What the clock calls finds its work, or that there is none."""
    answer, door = invoked(name, outside)

    assert answer.get("outcome") == "done", door.log.read_text()


def test_the_interruption_door_answers_message_by_message(outside: Outside) -> None:
    """A warning about an instance of somebody else's is handled, and nothing is delivered again."""
    answer, door = invoked("interruption_spot_warning", outside)

    assert answer == {"batchItemFailures": []}, door.log.read_text()
