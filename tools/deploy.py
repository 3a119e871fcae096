"""Deploy Joinery for a cluster with one command: ``make deploy CLUSTER=blue``, or for several, of which one's stack
serves the others (``tools.deploy_many``): ``make deploy CLUSTER=blue,green,red``.

Before ``sam deploy`` it looks at what would make it fail after minutes, or half succeed: whether the cluster is there
and lets access entries in, whether the account may reserve concurrency, and which stack the cluster has already. What
it decides is a pure function of that (``tools.deploy_plan``). Afterwards it says what there is to do by hand: nothing,
or what.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from joinery.decisions.installation.shipped import GROUP
from joinery.objects.settings import in_force
from tools.deploy_many import Stacks, stacks_of
from tools.deploy_plan import Account, Deployment, parameters_in, planned_for
from tools.deploy_settings import RefusedError
from tools.template import LAMBDA_BUILD

#: So many members are deployed at a time.
_AT_ONCE = 5
#: How a stack's operation begins, among its events.
_BEGINNINGS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")


def dated(template: str, now: datetime) -> str:
    """The template with the moment of its deployment: without a change CloudFormation would not call the installer, and
    what somebody deleted in the cluster would be missing from then on.
    """
    return re.sub(r"DeployedAt: [^,}]+", f'DeployedAt: "{now:%Y-%m-%dT%H:%M:%SZ}"', template, count=1)


def command(sam: str, region: str, planned: Deployment, template: Path, more: Sequence[str]) -> list[str]:
    """The call of SAM. Nobody is asked anything; ``more`` may say ``--confirm-changeset``."""
    overrides = [f'{key}="{value}"' for key, value in planned.parameters.items()]
    asks = [] if "--confirm-changeset" in more else ["--no-confirm-changeset"]
    return [
        sam, "deploy", "--template-file", str(template), "--stack-name", planned.stack, "--region", region,
        "--no-fail-on-empty-changeset", *asks, "--parameter-overrides", *overrides, *more,
    ]  # fmt: skip


def left_by_hand(outputs: Mapping[str, str], parameters: Mapping[str, str]) -> list[str]:
    """What a person has to do after the deployment, and what they may do next."""
    if parameters.get("AccessEntries") == "false":
        return [
            "Left to do by hand, because AccessEntries is false: add these roles to mapRoles of aws-auth,",
            *_role_mappings(outputs.get("FunctionRoles", "")),
            "and apply the manifests (manifests/README.md).",
        ]
    lines = ["Nothing is left to do by hand."]
    if "Notes" in outputs:
        lines.append(f"Noted {outputs['Notes']}.")
    if parameters.get("StarterNodePool") != "true":
        lines.append(f"Next: NodePools and EC2NodeClasses. The role for nodes is {outputs.get('NodeRole', '')}.")
    return lines


def _role_mappings(roles: str) -> Iterator[str]:
    """Entries of aws-auth for the output FunctionRoles. There a role has no path (EKS User Guide, "aws-auth")."""
    for pair in filter(None, roles.split(",")):
        group, _, arn = pair.partition("=")
        account, _, path = arn.partition(":role/")
        yield f"  - rolearn: {account}:role/{path.rpartition('/')[2]}"
        yield f"    username: {group}"
        yield f"    groups: [{GROUP}, {group}]"


def failures(events: Sequence[Mapping[str, Any]], before: str = "") -> list[str]:
    """Why the newest operation of a stack failed. ``events``: CloudFormation's, newest first.

    ``before``: the EventId of the newest event before the deployment. A deployment that CloudFormation refused has
    no events, and what failed in an earlier one is not printed again.
    """
    failed = []
    for event in events:
        if before and event.get("EventId") == before:
            break
        status, reason = event["ResourceStatus"], event.get("ResourceStatusReason", "")
        if event["ResourceType"] == "AWS::CloudFormation::Stack" and status in _BEGINNINGS:
            break
        if status.endswith("_FAILED") and "cancelled" not in reason:
            failed.append(f"{event['LogicalResourceId']}: {reason}")
    return failed[::-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("cluster", "region", "sam"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--member-of", default="", help="the cluster whose stack serves it, where that is not named")
    parser.add_argument("--look", action="store_true", help="say what would fail, and deploy nothing")
    parser.add_argument("more", nargs="*", help="for sam deploy")
    asked = parser.parse_args()
    now = datetime.now(UTC)  # noqa: TID251 - the command's one clock
    try:
        given = parameters_in(os.environ.get("PARAMETERS", ""))
        site = Site(asked.region, asked.sam, now, asked.more)
        planned = planned_for(asked.cluster, asked.member_of, given, site.account, site.tagged)
    except RefusedError as refused:
        sys.exit(f"make deploy: {refused}")
    sys.stderr.writelines(f"{name}: {why}\n" for name, why in planned.refused.items())
    if asked.look:
        return
    if planned.home and not _deployed(site, planned.home):
        sys.exit(1)
    failed = list(planned.refused)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        works = pool.map(lambda one: _deployed(site, one, is_alone=len(planned.members) == 1), planned.members.values())
        failed += [name for name, works_well in zip(planned.members, works, strict=True) if not works_well]
    if failed:
        sys.exit(f"make deploy: not deployed: {', '.join(failed)}. Of the others nothing is left to do")


@dataclass(frozen=True)
class Site:
    """Where it is deployed, and by what: ``more`` is for ``sam deploy``."""

    region: str
    sam: str
    now: datetime
    more: Sequence[str]

    def account(self, cluster: str) -> Account:
        """What the account says of a cluster, and of itself, which it is asked once. Raises ``RefusedError``."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            try:
                described = self._eks.describe_cluster(name=cluster)["cluster"]
            except self._eks.exceptions.ResourceNotFoundException:
                described = None
            return Account(cluster=described, concurrency=self._concurrency, stacks=self._stacks)
        except (BotoCoreError, ClientError) as error:
            raise RefusedError(f"AWS cannot be asked about {cluster} in {self.region}: {error}") from error

    @cached_property
    def _session(self) -> Any:
        return _session(self.region)

    @cached_property
    def _eks(self) -> Any:
        return self._session.client("eks")

    @cached_property
    def _concurrency(self) -> int:
        limits = self._session.client("lambda").get_account_settings()["AccountLimit"]
        return int(limits["UnreservedConcurrentExecutions"])

    @cached_property
    def _stacks(self) -> Stacks:
        return stacks_in(self._session.client("cloudformation"))

    def tagged(self, key: str, value: str) -> list[str]:
        """The EKS clusters with a tag. Raises ``RefusedError``."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            pages = self._eks.get_paginator("list_clusters").paginate()
            names = [name for page in pages for name in page["clusters"]]
            described = {name: self._eks.describe_cluster(name=name)["cluster"] for name in names}
        except (BotoCoreError, ClientError) as error:
            raise RefusedError(f"AWS cannot be asked about the clusters in {self.region}: {error}") from error
        return [name for name, cluster in described.items() if (cluster.get("tags") or {}).get(key) == value]


def _deployed(site: Site, planned: Deployment, *, is_alone: bool = True) -> bool:
    """Deploy a stack. Whether that went well. Where it is one of several at once, all that is said comes at its end."""
    stacks = _session(site.region).client("cloudformation")
    before = next((event["EventId"] for event in events(stacks, planned.stack)), "")
    template = LAMBDA_BUILD / f"deployed-{planned.stack}.yaml"
    template.write_text(dated((LAMBDA_BUILD / planned.template).read_text(), site.now))
    if is_alone and planned.notes:
        print(*planned.notes, sep="\n", flush=True)
    call = command(site.sam, site.region, planned, template, site.more)
    done = subprocess.run(call, check=False, capture_output=not is_alone, text=True)
    if not is_alone:
        print(f"--- {planned.stack}", *planned.notes, done.stdout, done.stderr, sep="\n", flush=True)
    if done.returncode:
        sys.stderr.writelines(f"{line}\n" for line in failures(events(stacks, planned.stack), before))
        return False
    _tell(planned, stacks)
    return True


def events(stacks: Any, stack: str) -> Sequence[Mapping[str, Any]]:
    """The stack's events, newest first; none where there is no such stack (the API knows no error code for that)."""
    from botocore.exceptions import ClientError

    try:
        answer: Sequence[Mapping[str, Any]] = stacks.describe_stack_events(StackName=stack)["StackEvents"]
    except ClientError as error:
        if "does not exist" in str(error):
            return ()
        raise
    return answer


def _tell(planned: Deployment, stacks: Any) -> None:
    stack = stacks.describe_stacks(StackName=planned.stack)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    parameters = {one["ParameterKey"]: one.get("ParameterValue", "") for one in stack.get("Parameters", [])}
    print(*left_by_hand(outputs, {**in_force(parameters.get("Settings", "")), **parameters}), sep="\n")


def stacks_in(client: Any) -> Stacks:
    """What CloudFormation says of all stacks."""
    pages = client.get_paginator("describe_stacks").paginate()
    return stacks_of(stack for page in pages for stack in page["Stacks"])


def _session(region: str) -> Any:
    import boto3

    return boto3.session.Session(region_name=region)


if __name__ == "__main__":
    main()
