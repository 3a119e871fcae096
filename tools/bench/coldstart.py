"""How long a cold start takes: a fresh process, the built layers with their bytecode, up to the first request sent.

The clock starts before the door is imported and stops when a server in this process receives the door's first request:
for the webhook that is the bell's message, for provisioning the first call of a gateway. What Lambda itself needs
before (the sandbox, the interpreter, its runtime client) is not in it, and a Lambda function has a part of a core only.

Beside the wall's time stands the processor's, where the system tells it (Linux): on a machine that has other work to
do, that is the one to compare.

``--without-bytecode`` measures what a build costs whose Python was not at hand: sources alone, compiled in each cold
start anew, because Lambda cannot write into a layer.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from tools.bench.frame import spread
from tools.smoke import path_of
from tools.template import BUILD, ROOT, doors, load

TARGETS = {"webhook": 130.0, "provisioning": 700.0}
EVENTS = {"webhook": "webhook_failed_scheduling", "provisioning": "provisioning_bell"}

_PROGRAM = """
import sys, time
started, worked = time.monotonic(), time.process_time()
sys.path[:0] = sys.argv[2:]
import app, json
class Context:
    function_name, memory_limit_in_mb, invoked_function_arn, aws_request_id = "door", 1769, "arn", "id"
    def get_remaining_time_in_millis(self):
        return 60_000
print(started, worked, flush=True)
app.handler(json.load(open(sys.argv[1])), Context())
"""


@dataclass(frozen=True)
class Taken:
    """Seconds up to the first request: by the clock, and of the processor (not a number where nobody tells)."""

    wall: float
    processor: float


class _Receiver(BaseHTTPRequestHandler):
    """Notes when requests came and what the child had worked by then, and answers every one with an empty object."""

    child = 0
    arrivals: list[Taken] = []

    def _answer(self) -> None:
        self.arrivals.append(Taken(time.monotonic(), _worked(self.child)))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = do_PATCH = _answer  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--without-bytecode", action="store_true", help="with sources alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _measure(_sources(Path(folder)) if given.without_bytecode else BUILD, given.runs)


def _sources(folder: Path) -> Path:
    """A copy of the build without its bytecode."""
    return Path(shutil.copytree(BUILD, folder / "build", ignore=shutil.ignore_patterns("__pycache__", "*.zip")))


def _measure(build: Path, runs: int) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    packages = next((ROOT / ".venv-ric" / "lib").glob("python3*/site-packages"))
    for door, target in TARGETS.items():
        _cold_start(
            door, server.server_port, packages, build
        )  # so that pages are cached and the runtime's bytecode is there
        taken = [_cold_start(door, server.server_port, packages, build) for _ in range(runs)]
        wall = [1000 * each.wall for each in taken]
        processor = 1000 * statistics.median(each.processor for each in taken)
        verdict = "ok" if statistics.median(wall) < target else "TOO SLOW"
        print(
            f"cold start of {door}: {spread(wall, '{:.0f}')} ms in {runs} runs, {processor:.0f} ms of processor, "
            f"target {target:.0f} ms: {verdict}"
        )
    server.shutdown()


def _cold_start(door: str, port: int, packages: Path, build: Path) -> Taken:
    """From before the door's import to the arrival of its first request."""
    _Receiver.arrivals.clear()
    event = ROOT / "events" / f"{EVENTS[door]}.json"
    path = path_of(doors(load())[door], packages, build=build)
    # -B: what was compiled in one cold start is not there in the next.
    command = [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, str(event), *path]
    child = subprocess.Popen(
        command, env=_environment(door, port, event), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    _Receiver.child = child.pid
    said, complaints = child.communicate()
    if not _Receiver.arrivals:
        sys.exit(f"the {door} door sent nothing\n{said}{complaints}")
    first, (started, worked) = _Receiver.arrivals[0], map(float, said.splitlines()[0].split())
    return Taken(first.wall - started, first.processor - worked)


def _worked(process: int) -> float:
    """Seconds of processor time that all threads of a process have had; not a number where the system does not tell."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except OSError:
        return math.nan


def _environment(door: str, port: int, event: Path) -> dict[str, str]:
    address = f"http://127.0.0.1:{port}"
    token = json.loads(event.read_text()).get("rawPath", "/")[1:]
    return {
        "PATH": os.environ["PATH"],
        "AWS_ENDPOINT_URL": address,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "JOINERY_CLUSTER": "blue",
        "JOINERY_REGION": "us-east-1",
        "JOINERY_PROVISIONING_QUEUE": f"{address}/1/provisioning.fifo",
        "JOINERY_LIFECYCLE_QUEUE": f"{address}/1/lifecycle.fifo",
        "JOINERY_DISRUPTION_QUEUE": f"{address}/1/disruption.fifo",
        "JOINERY_BUCKET": "bucket",
        "JOINERY_TABLE": "table",
        "JOINERY_WEBHOOK_TOKEN": token,
        "POWERTOOLS_SERVICE_NAME": door,
        "POWERTOOLS_METRICS_NAMESPACE": "Joinery/blue",
    }


if __name__ == "__main__":
    main()
