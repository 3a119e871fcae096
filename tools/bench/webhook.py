"""How long does kube-scheduler take to mark pods that fit nowhere, with an admission webhook in its way?

The scheduler reports such a pod twice: it patches ``pods/status`` inside its scheduling loop, and it emits an Event
outside it. This runs both designs of a doorbell, and none, on a real control plane, and prints why Joinery's listens to
Events.

    python -m tools.bench.webhook --pods 200
"""

import argparse
import base64
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from joinery.gateways.kubernetes.auth import from_kubeconfig
from joinery.gateways.kubernetes.transport import Transport
from tools.bench.frame import show
from tools.controlplane.assets import MissingBinaryError
from tools.controlplane.https import Answer, Call, HttpsServer
from tools.controlplane.plane import ControlPlane, running

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PODS = "/api/v1/namespaces/default/pods"
STATUS, EVENTS = ("", "v1", "pods/status", "UPDATE"), ("events.k8s.io", "v1", "events", "CREATE")
Rule = tuple[str, str, str, str]


@dataclass(frozen=True)
class Trial:
    """One webhook: what it is called for (nothing, for a run without), and how long it takes to answer."""

    name: str
    rule: Rule | None
    seconds: float


TRIALS = (
    Trial("no webhook", None, 0),
    Trial("50 ms, on pods/status", STATUS, 0.05),
    Trial("50 ms, on Events", EVENTS, 0.05),
    Trial("1 s, on Events", EVENTS, 1.0),
)


@dataclass(frozen=True)
class Outcome:
    """How many pods were marked Unschedulable within so many seconds, and how often the webhook was called."""

    marked: int
    seconds: float
    calls: int


def measure(plane: ControlPlane, trial: Trial, *, pods: int, limit: float) -> Outcome:
    """One trial. The control plane must have no nodes and no pods."""
    transport, calls = Transport(from_kubeconfig(plane.kubeconfig())), [0]

    def answer(call: Call) -> Answer:
        calls[0] += 1
        time.sleep(trial.seconds)
        review = json.loads(call.body)
        response = {"uid": review["request"]["uid"], "allowed": True}
        return 200, json.dumps({**review, "response": response}).encode()

    with HttpsServer(answer, now=datetime.now(UTC)) as server:  # noqa: TID251 - certificates need the real time
        if trial.rule:
            transport.request("POST", CONFIGURATIONS, configuration(trial.rule, server))
            time.sleep(2)  # the API server reads a new configuration within a second
        begun = time.monotonic()
        for number in range(pods):
            transport.request("POST", PODS, pod(number))
        marked = _watch(transport, pods, begun + limit)
        outcome = Outcome(marked, time.monotonic() - begun, calls[0])
        if trial.rule:
            transport.request("DELETE", f"{CONFIGURATIONS}/bench")
    return outcome


def pod(number: int) -> dict[str, Any]:
    """A pod that fits nowhere, because there are no nodes."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"name": f"bench-{number}"}, "spec": {"containers": [container]}}


def configuration(rule: Rule, server: HttpsServer) -> dict[str, Any]:
    """A webhook that is called for the rule and cannot fail a request."""
    group, version, resource, operation = rule
    return {
        "metadata": {"name": "bench"},
        "webhooks": [
            {
                "name": "bench.joinery.dev",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "timeoutSeconds": 3,
                "clientConfig": {"url": f"{server.url}/bench", "caBundle": base64.b64encode(server.authority).decode()},
                "rules": [
                    {"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": [operation]}
                ],
            }
        ],
    }


def _watch(transport: Transport, pods: int, deadline: float) -> int:
    while (marked := _marked(transport)) < pods and time.monotonic() < deadline:
        time.sleep(0.25)
    return marked


def _marked(transport: Transport) -> int:
    items = msgspec.json.decode(transport.get(PODS))["items"]
    return sum(
        any(condition.get("reason") == "Unschedulable" for condition in item["status"].get("conditions", []))
        for item in items
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--pods", type=int, default=400, help="pods that fit nowhere (default 400; the design's figures: 2000)"
    )
    parser.add_argument("--limit", type=float, default=60, help="give up a trial after so many seconds (default 60)")
    arguments = parser.parse_args()
    rows = []
    try:
        for trial in TRIALS:
            # A control plane of its own: what one trial left in the scheduler's queues must not slow the next.
            with tempfile.TemporaryDirectory() as folder, running(Path(folder), controls=False) as plane:
                outcome = measure(plane, trial, pods=arguments.pods, limit=arguments.limit)
            marked = f"{outcome.marked} of {arguments.pods}"
            rows.append([trial.name, marked, f"{outcome.seconds:.1f}", str(outcome.calls)])
    except (MissingBinaryError, RuntimeError) as error:
        sys.exit(f"webhook-bench: {error}")
    show(("webhook", "marked", "seconds", "calls"), rows)


if __name__ == "__main__":
    main()
