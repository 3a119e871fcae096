"""What pages ask their reader to copy is there: operations of AWS with their parameters, targets of make with theirs.

Commands of kubectl and `joinery plan` are run (tests/controlplane/test_getting_started.py); nothing is run here.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
import typer
from botocore import xform_name
from botocore.exceptions import UnknownServiceError

from joinery.cli.main import app
from tools.page_commands import commands
from tools.template import ROOT, load

#: Pages whose commands are for copying.
PAGES = ("getting-started", "karpenter")
#: What the AWS CLI adds to every operation, and operations that it has of its own.
OF_THE_CLI = {"query", "output", "region"}
CUSTOM = {("eks", "update-kubeconfig")}
_WORD = r"[a-z][a-z0-9-]*"
AWS = re.compile(rf"\baws ({_WORD}) ({_WORD})((?: (?!aws )[^|&;]*)?)")


def asked(page: str, start: str) -> Iterator[str]:
    """The commands of a page that begin so, also those inside others: ``$(aws ...)``."""
    for command in commands(ROOT / "docs" / f"{page}.md"):
        if start in command:
            yield command


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_aws_exist(page: str) -> None:
    """The operation, and each parameter of it."""
    missing = []
    for command in asked(page, "aws "):
        for service, operation, options in AWS.findall(command):
            missing += [f"aws {service} {operation} {name}" for name in unknown(service, operation, options)]
    assert missing == []


def unknown(service: str, operation: str, options: str) -> Iterator[str]:
    """The options that the operation does not have; or the operation itself."""
    if (service, operation) in CUSTOM:
        return
    try:
        model = botocore.session.get_session().get_service_model(service)
    except UnknownServiceError:
        yield "is no service"
        return
    names = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in names:
        yield "is no operation"
        return
    shape = model.operation_model(names[operation]).input_shape
    parameters = {xform_name(name, "-") for name in shape.members} if shape else set()
    for option in re.findall(rf"(?<=--){_WORD}", options.partition("$(")[0]):
        if option.removeprefix("no-") not in parameters | OF_THE_CLI:
            yield f"--{option}"


@pytest.mark.parametrize("page", PAGES)
def test_parameters_of_make_are_the_stack_s(page: str) -> None:
    """`make deploy PARAMETERS="..."` names parameters of the template, with values that it allows."""
    parameters = load()["Parameters"]
    for command in asked(page, "make deploy"):
        for text in re.findall(r'PARAMETERS="([^"]*)"', command):
            for name, _, value in (pair.partition("=") for pair in shlex.split(text)):
                assert name in parameters
                assert value in parameters[name].get("AllowedValues", [value])


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_joinery_exist(page: str) -> None:
    """The command, and each option of it."""
    group: Any = typer.main.get_command(app)
    for command in asked(page, "joinery "):
        for name, rest in re.findall(rf"(?:^|/|\b)joinery ({_WORD})([^|;]*)", command):
            known = {option for parameter in group.get_command(None, name).params for option in parameter.opts}
            given = set(re.findall(rf"(?<!\S)(-[a-zA-Z]|--{_WORD})(?!\S)", rest))
            assert given - known == set(), command
