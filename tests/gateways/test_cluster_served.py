"""``python -m simulator serve`` stands in for a whole account and cluster, for a door in a process of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from simulator.serve import pending

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.xdist_group("served")
DOOR = """
import json, sys
sys.path.insert(0, sys.argv[1])
import app
class Context:
    function_name, memory_limit_in_mb, invoked_function_arn, aws_request_id = "door", 1769, "arn", "id"
    def get_remaining_time_in_millis(self):
        return 60_000
print(json.dumps(app.handler(json.load(open(sys.argv[2])), Context())))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """What a served stand-in tells doors to put into their environment."""
    file = tmp_path_factory.mktemp("serve") / "env.json"
    command = [
        sys.executable,
        "-m",
        "simulator",
        "serve",
        "--kubernetes-port",
        "0",
        "--aws-port",
        "0",
        "--env-file",
        str(file),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("export ")
        yield json.loads(file.read_text())["Parameters"]
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(BrokenPipeError):
            process.communicate(timeout=10)
    assert process.returncode == 0


def invoke(door: str, event: str, environment: Mapping[str, str]) -> Any:
    """What a door answers to a sample event, in a fresh process that knows nothing but its environment."""
    command = [sys.executable, "-c", DOOR, str(ROOT / "functions" / door), str(ROOT / "events" / f"{event}.json")]
    given = {"PATH": os.environ["PATH"], "POWERTOOLS_METRICS_NAMESPACE": "Joinery", **environment}
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_provisioning_places_the_waiting_pods_over_real_adapters(environment: Mapping[str, str]) -> None:
    """Sign-in through EKS, snapshot, Lease, catalogue, claims and CreateFleet:
    all of it over HTTP, nothing plugged in.
    """
    outcome = invoke("provisioning", "provisioning_bell", environment)
    assert (outcome["placed"], outcome["unplaced"]) == (len(pending()), 0)
    assert outcome["launched"] == outcome["launches"] > 0


def test_the_catalogue_is_read_with_prices(environment: Mapping[str, str]) -> None:
    """The price list answers, so the catalogue door stores what it would in an account."""
    outcome = invoke("catalog", "catalog_schedule", environment)
    assert outcome["instance_types"] > 500


def test_the_webhook_rings_a_bell_that_is_there(environment: Mapping[str, str]) -> None:
    """The queues exist and the sample event's token is the right one."""
    answer = invoke("webhook", "webhook_failed_scheduling", environment)
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["response"]["allowed"] is True
