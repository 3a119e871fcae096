"""What a cold start pays for: a door and a command import what their own work needs."""

import json
import subprocess
import sys

import pytest

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


#: What no plan of a file needs whose pods all get a place.
NOT_FOR_A_PLAN = (
    "boto3",
    "botocore",
    "kubernetes",
    "urllib3",
    "jinja2",
    "scipy",
    "simulator",
    "joinery.controllers",
    "joinery.decisions.disruption",
    "joinery.decisions.lifecycle",
    "joinery.decisions.termination",
    "joinery.decisions.scheduling.explain.explanation",
    "joinery.decisions.scheduling.explain.reasons",
    "joinery.gateways.aws",
    "joinery.gateways.kubernetes",
    "joinery_cli.doctor.checks",
    "joinery_cli.explained_nodes",
    "joinery_cli.page",
    "joinery_cli.relocation",
)
#: What only a command's own work needs: help and a misspelt option wait for none of it.
NOT_FOR_A_START = (
    "boto3",
    "jinja2",
    "msgspec",
    "numpy",
    "pydantic",
    "rich",
    "yaml",
    "joinery.gateways",
    "joinery.decisions.scheduling",
    "joinery.objects.karpenter.nodepool",
    "joinery_cli.reading",
)
_COMMAND = """
import json, sys
from joinery_cli.main import main
try:
    main(json.loads(sys.argv[1]))
except SystemExit as ended:
    print()
    print(json.dumps([ended.code, sorted(sys.modules)]))
"""


@pytest.mark.parametrize(
    ("output", "others"),
    [
        ("table", ("joinery_cli.output.json", "rich.markdown", "rich._emoji_codes")),
        ("json", ("rich", "joinery_cli.output.table")),
    ],
)
def test_a_plan_imports_nothing_that_only_other_commands_use(output: str, others: tuple[str, ...]) -> None:
    """Half of a small plan's time is imports: neither clients, templates nor other decisions are among them."""
    arguments = ["plan", "-f", "examples/spread.yaml", "--output", output]
    status, modules = _run(*arguments)

    assert status == 0
    assert sorted({*NOT_FOR_A_PLAN, *others} & modules) == []


def test_to_start_imports_nothing_of_any_command() -> None:
    """Before a command runs, its options are known, and nothing else."""
    status, modules = _run("--version")

    assert status == 0
    assert sorted({*NOT_FOR_A_START} & modules) == []


def _run(*arguments: str) -> tuple[int, set[str]]:
    """How the command ended, and all that was imported for it."""
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, json.dumps(arguments)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    status, modules = json.loads(done.stdout.splitlines()[-1])
    return status, set(modules)
