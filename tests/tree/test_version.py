"""One version, said wherever a person looks: package, stack, layers, logs."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import joinery
from joinery.controllers.telemetry import VERSION, logger
from tools.template import TEMPLATE, load, of_type
from tools.version import PLACES, project_version, said_in

MAPPED = {"Fn::FindInMap": ["Release", "Joinery", "Version"]}


@pytest.mark.parametrize("place", PLACES, ids=lambda path: path.name)
def test_every_place_says_the_version_of_the_project(place: Any) -> None:
    """``make lint`` says so as well, and names the command that writes them."""
    assert said_in(place) == project_version() == joinery.__version__


def test_the_version_costs_no_metadata() -> None:
    """Reading a package's metadata takes tens of milliseconds of a cold start, and Lambda has none of ours."""
    program = "import joinery, sys; print(joinery.__version__, 'importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(TEMPLATE.parent / "shared")})  # fmt: skip
    assert done.stdout.split() == [joinery.__version__, "False"]


def test_the_stack_says_its_version() -> None:
    """In an output, in a tag of each function, and in the layers' descriptions."""
    template = load()
    assert template["Outputs"]["Version"]["Value"] == MAPPED
    assert template["Globals"]["Function"]["Tags"]["joinery.dev/version"] == MAPPED
    for layer in of_type(template, "AWS::Serverless::LayerVersion").values():
        text, variables = layer["Description"]["Fn::Sub"]
        assert "${Version}" in text
        assert variables == {"Version": MAPPED}


class _Context:
    function_name, memory_limit_in_mb, invoked_function_arn, aws_request_id = "door", 1769, "arn", "id"


@pytest.fixture
def line_of_an_invocation(capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, Any]]:
    """What a handler logs, as each of the doors wraps its own."""

    @logger.inject_lambda_context(clear_state=True)
    def handler(event: dict[str, Any], context: Any) -> None:
        logger.info("answered")

    handler({}, _Context())
    yield json.loads(capsys.readouterr().out.splitlines()[-1])
    logger.clear_state()


def test_every_line_of_the_log_says_the_version(line_of_an_invocation: dict[str, Any]) -> None:
    """While a stack is updated two versions are at work for a minute, and a line says whose it is."""
    assert line_of_an_invocation[VERSION] == joinery.__version__
