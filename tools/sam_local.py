"""``sam local invoke`` with every sample event, against ``simulator serve``.

Needs a container runtime: docker, or podman's docker socket in ``DOCKER_HOST``. SAM runs each door in Lambda's own
image for this machine's Python, which it pulls unless it is there. The containers reach the simulator at their bridge's
address.

SAM sets only variables that a template declares, and the template of a deployment has none for a stand-in of AWS: so
the built template is copied, and the simulator's environment written into the copy.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from simulator.serve import serving
from tools.template import BUILD, ROOT, doors, load

NO_RUNTIME = (
    "sam-local: no container engine answers (`docker info` fails), so nothing was invoked: "
    "start Docker, or point DOCKER_HOST to the socket of one"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sam", default="sam", help="the SAM CLI")
    parser.add_argument("--check", action="store_true", help="only look for a container engine")
    parser.add_argument("events", nargs="*", type=Path, help="files of events/; all of them without")
    given = parser.parse_args()
    bridge = _bridge()
    if given.check:
        return
    events = given.events or sorted((ROOT / "events").glob("*.json"))
    with serving(bridge) as served, _template(served.environment) as template:
        failed = [event.stem for event in events if not _invoke(given.sam, template, event)]
    print(f"{len(events) - len(failed)} passed, {len(failed)} failed")
    if failed:
        sys.exit(f"sam-local: {', '.join(failed)} failed")


def _bridge() -> str:
    """The address at which containers reach this machine."""
    query = ["docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        sys.exit(NO_RUNTIME)


@contextmanager
def _template(environment: Mapping[str, str]) -> Iterator[Path]:
    """A copy of the built template that gives every door the environment, and folders instead of archives.

    It lies beside it, for its paths are relative.
    """
    template = load(BUILD / "template.yaml")
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Serverless::LayerVersion":
            resource["Properties"]["ContentUri"] = name
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["Environment"]["Variables"] |= environment
            resource["Properties"]["CodeUri"] = name
    with tempfile.NamedTemporaryFile("w", dir=BUILD, suffix=".yaml") as file:
        yaml.safe_dump(template, file)
        file.flush()
        yield Path(file.name)


def _invoke(sam: str, template: Path, event: Path) -> bool:
    """Whether the door of a sample event answered it, and did not fail."""
    door = doors(load())[event.stem.partition("_")[0]]
    command = [
        sam, "local", "invoke", door.logical_id, "--template", str(template), "--event", str(event),
        "--skip-pull-image",
    ]  # fmt: skip
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_EC2_METADATA_DISABLED": "true"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    answer = (done.stdout.strip().splitlines() or [""])[-1]
    passed = done.returncode == 0 and is_success(answer)
    print(f"{event.stem}: {answer if passed else 'FAILED'}", flush=True)
    if not passed:
        print(done.stdout + done.stderr, file=sys.stderr)
    return passed


def is_success(answer: str) -> bool:
    """Whether a door's answer says that it did what it was woken for:
    a failed bell is an answer, too, and so is a 403.
    """
    try:
        document = json.loads(answer)
    except ValueError:
        return False
    successes: tuple[dict[str, object], ...] = ({"outcome": "done"}, {"batchItemFailures": []}, {"statusCode": 200})
    return isinstance(document, dict) and any(document.items() >= success.items() for success in successes)


if __name__ == "__main__":
    main()
