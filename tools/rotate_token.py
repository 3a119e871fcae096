"""Give the webhook a new token now, step by step, and wait in between: ``make rotate-token CLUSTER=... REGION=...``.

The installer does the work (``joinery.controllers.installer.rotation``). It takes about a quarter of an hour, in which
two tokens are valid and no call is refused. Whoever stops it loses nothing: the schedule goes on within the hour, or
this does when it is given again.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from joinery.decisions.installation.requests import stack_name
from tools.deploy import stacks_in

Step = Mapping[str, Any]
#: Seconds: the installer's timeout, and the time in which Lambda starts it.
_LONGEST_STEP = 310
_BEGIN: Step = {"operation": "rotate-token"}
#: No token is that old, so nothing begins.
_GO_ON: Step = {"operation": "rotate-token", "days": "99999"}


def main() -> int:
    """Returns the exit status: 1 if the installer failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cluster", required=True, help="the cluster's name")
    parser.add_argument("--region", required=True, help="where it is")
    asked = parser.parse_args()
    try:
        return rotated(boto3.session.Session(region_name=asked.region), asked.cluster)
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"make rotate-token: the stack of {asked.cluster} in {asked.region}: {error}")


def rotated(session: Any, cluster: str) -> int:
    """Step after step until the rotation has ended. Returns the exit status."""
    cloudformation = session.client("cloudformation")
    stacks = stacks_in(cloudformation)
    stack = stacks.names.get(cluster, stack_name(cluster))

    def physical_id(of: str, name: str) -> str:
        resource = cloudformation.describe_stack_resource(StackName=of, LogicalResourceId=name)
        return str(resource["StackResourceDetail"]["PhysicalResourceId"])

    home = stacks.homes.get(cluster)
    function = physical_id(home or stack, "InstallerFunction")
    member: Step = {}
    if home:
        role = session.client("iam").get_role(RoleName=physical_id(stack, "InstallerRole"))["Role"]["Arn"]
        member = {"cluster": cluster, "role": role, "secret": physical_id(stack, "WebhookSecret")}
    # Asked once: a second call beside the first would only wait for it.
    patience = Config(read_timeout=_LONGEST_STEP, retries={"total_max_attempts": 1})
    client = session.client("lambda", config=patience)

    def ask(event: Step) -> Step:
        answer = client.invoke(FunctionName=function, Payload=json.dumps({**event, **member}).encode())
        step: Step = json.loads(answer["Payload"].read())
        if "errorMessage" in step:
            sys.exit(f"make rotate-token: the installer failed: {step['errorMessage']}")
        return step

    rotate(ask, time.sleep)
    return 0


def rotate(ask: Callable[[Step], Step], sleep: Callable[[float], object]) -> None:
    """End a rotation that is under way, and then make a whole one: the token of now may be the one that leaked."""
    for event in (_GO_ON, _BEGIN):
        step = ask(event)
        while "again_in" in step:
            print(f"{step['step']}; the next step is due in {step['again_in']} s", flush=True)
            sleep(step["again_in"])
            step = ask(_GO_ON)
        if event is _BEGIN:
            print(step["step"], flush=True)


if __name__ == "__main__":
    sys.exit(main())
