"""Stacks as a user makes them: by the SAM CLI, on the stand-in."""

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.deploy import command
from tools.deploy_plan import Deployment
from tools.standin.ministack import REGION
from tools.standin.world import StandIn
from tools.template import BUILD, ROOT

SAM = ROOT / ".venv-sam" / "bin" / "sam"
_CONFIGURED = ("--config-file", str(ROOT / "samconfig.toml"))
_SECONDS = 300
_POLL_SECONDS = 0.2


class StackError(Exception):
    """The SAM CLI failed. The message is what it said, which names the resource and its reason."""


@dataclass(frozen=True)
class Stack:
    """A stack of that name in the stand-in, there or not."""

    standin: StandIn
    name: str

    def deploy(self, parameters: Mapping[str, str], template: Path = BUILD / "template.yaml") -> None:
        """``sam deploy`` of a built template, as `make deploy` does it. Raises ``StackError``."""
        planned = Deployment(self.name, parameters)
        self._run(command(str(SAM), REGION, planned, template, _CONFIGURED))

    def delete(self) -> None:
        """What ``sam delete`` asks of CloudFormation: SAM looks every half minute, and asks twice if it failed.

        Raises ``StackError`` with the reasons of the resources that could not be deleted.
        """
        self.standin.client("cloudformation").delete_stack(StackName=self.name)
        deadline = time.monotonic() + _SECONDS
        while (status := self.status).endswith("_IN_PROGRESS"):
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} is {status} after {_SECONDS} s")
            time.sleep(_POLL_SECONDS)
        if status == "DELETE_FAILED":
            raise StackError(self._reasons())

    @property
    def outputs(self) -> dict[str, str]:
        (stack,) = self.standin.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}

    @property
    def status(self) -> str:
        """Of the stack of that name, as CloudFormation words it."""
        (stack,) = self.standin.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return str(stack["StackStatus"])

    def _reasons(self) -> str:
        client = self.standin.client("cloudformation")
        pages = client.get_paginator("describe_stack_events").paginate(StackName=self.name)
        events = [event for page in pages for event in page["StackEvents"]]
        failed = [event for event in events if event["ResourceStatus"] == "DELETE_FAILED"]
        return "\n".join(f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason', '')}" for one in failed)

    def _run(self, command: list[str]) -> None:
        environment = {
            **os.environ, **self.standin.environment, "SAM_CLI_TELEMETRY": "0", "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_SECONDS)
        if done.returncode:
            raise StackError(done.stdout + done.stderr)
