"""What a cold start pays for: a door imports what its own work needs."""

import json
import subprocess
import sys

from tools.template import ROOT

HEAVY = (
    "pydantic",
    "boto3",
    "kubernetes",
    "numpy",
    "msgspec",
    "requests",
    "joinery.gateways.bundles",
    "joinery.decisions.scheduling",
    "joinery.decisions.verification",
)

# Nothing listens on the discard port, so the bell cannot be rung, and everything up to that was imported.
_PROGRAM = f"""
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("app", "functions/webhook/app.py")
app = importlib.util.module_from_spec(spec)
spec.loader.exec_module(app)
class Context:
    function_name, memory_limit_in_mb, invoked_function_arn, aws_request_id = "webhook", 128, "arn", "id"
answer = app.handler(json.load(open("events/webhook_failed_scheduling.json")), Context())
heavy = [name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps([answer["statusCode"], "joinery.gateways.doorbell.sqs" in sys.modules, heavy]))
"""


def test_the_webhook_imports_nothing_heavy() -> None:
    """From the review to the signed request, the API server waits for no library that the doorbell does not use."""
    token = json.loads((ROOT / "events" / "webhook_failed_scheduling.json").read_text())["rawPath"][1:]
    environment = {
        "JOINERY_CLUSTER": "blue",
        "JOINERY_REGION": "us-east-1",
        "JOINERY_WEBHOOK_TOKEN": token,
        "JOINERY_PROVISIONING_QUEUE": "http://127.0.0.1:9/queue.fifo",
        "JOINERY_LIFECYCLE_QUEUE": "http://127.0.0.1:9/queue.fifo",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout.splitlines()[-1]) == [200, True, []]
