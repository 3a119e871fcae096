"""Deploy Joinery for a cluster with one command: ``make deploy CLUSTER=blue``, or for several, of which one's stack
serves the others (``tools.deploy_many``): ``make deploy CLUSTER=blue,green,red``.

Before ``sam deploy`` it looks at what would make it fail after minutes, or half succeed: whether the cluster is there
and lets access entries in, whether the account may reserve concurrency, and which stack the cluster has already. What
it decides is a pure function of that (``plan``). Afterwards it says what there is to do by hand: nothing, or what.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from joinery.decisions.installation.objects import LEAST_KUBERNETES
from joinery.decisions.installation.requests import stack_name
from joinery.decisions.installation.shipped import GROUP
from joinery.objects.settings import SETTINGS, in_force, nearest
from tools.deploy_many import (
    Arrangement,
    Stacks,
    arranged,
    clusters_in,
    given_to_home,
    given_to_member,
    member_parameters,
    refuse_another_release,
    stacks_of,
)
from tools.deploy_settings import RefusedError, changes, named, pairs_of, settings_of, written
from tools.template import LAMBDA_BUILD, MEMBER, TEMPLATE, load
from tools.version import project_version

#: Lambda leaves at least so many executions to functions that reserve none; of a smaller quota nothing can be reserved.
_UNRESERVED = 100
#: What `make` says for the build. They are no parameters of the stack, so that both cannot differ.
_BUILDS = {"Runtime": "RUNTIME", "Architecture": "ARCHITECTURE"}

#: So many members are deployed at a time.
_AT_ONCE = 5
#: How a stack's operation begins, among its events.
_BEGINNINGS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")


@dataclass(frozen=True, kw_only=True)
class Account:
    """What the account says. ``cluster``: EKS's description, None if it is not there. ``concurrency``: executions that
    Lambda has left to reserve from. ``stacks``: what there is already.
    """

    cluster: Mapping[str, Any] | None
    concurrency: int
    stacks: Stacks = field(default_factory=Stacks)


@dataclass(frozen=True)
class Deployment:
    """``stack``: its name. ``parameters``: what is said of the stack's. ``notes``: what a person should know.
    ``template``: the file among what is built.
    """

    stack: str
    parameters: Mapping[str, str]
    notes: Sequence[str] = ()
    template: str = TEMPLATE.name


def plan(name: str, account: Account, given: Mapping[str, str]) -> Deployment:
    """What is deployed for a cluster. ``given``: the user's parameters, and settings by their own names.

    Raises ``RefusedError``.
    """
    stacks = account.stacks
    stack = stacks.names.get(name, stack_name(name))
    _refuse_a_stack_that_takes_no_update(stack, stacks.states.get(stack, ""))
    stored = pairs_of(stacks.settings.get(name, ""))
    settings = settings_of(stored, given)
    _refuse_what_would_fail(name, account, given, settings)
    notes = [*changes(stored, given, settings)]
    if "WebhookConcurrency" not in named(given):
        wanted = int(SETTINGS["WebhookConcurrency"].default)
        has = stored.get("WebhookConcurrency", str(wanted))
        reserved = int(has) if name in stacks.settings and has.isdecimal() else 0
        if account.concurrency + reserved - (reserved or wanted) < _UNRESERVED:
            settings["WebhookConcurrency"] = "0"
            notes.append(
                f"This account has {account.concurrency} concurrent executions to spare, so none are reserved for the "
                "webhook: a flood of calls may use up all of them. Raise Lambda's quota and deploy again, or say "
                "PARAMETERS=WebhookEndpoint=none."
            )
        elif reserved not in (0, wanted):
            settings["WebhookConcurrency"] = str(reserved)
    parameters = {
        "ClusterName": name,
        **{key: value for key, value in given.items() if key not in SETTINGS and key not in stored},
        "Settings": written(settings),
    }
    if stack != stack_name(name):
        notes.append(f"Cluster {name} is run by stack {stack}, which is updated.")
    return Deployment(stack, parameters, notes)


def plan_member(
    name: str, home: str, account: Account, given: Mapping[str, str], home_settings: Mapping[str, str]
) -> Deployment:
    """What is deployed for a member. ``home_settings``: its home's, as they will be. Raises ``RefusedError``."""
    stack = account.stacks.names.get(name, stack_name(name))
    _refuse_a_stack_that_takes_no_update(stack, account.stacks.states.get(stack, ""))
    parameters, notes = member_parameters(name, home, account.stacks, given, home_settings)
    _refuse_what_would_fail(name, account, given, pairs_of(parameters["Settings"]))
    return Deployment(stack, parameters, notes, MEMBER.name)


def _refuse_what_would_fail(name: str, account: Account, given: Mapping[str, str], settings: Mapping[str, str]) -> None:
    if given.get("ClusterName", name) != name:
        raise RefusedError(f"CLUSTER={name} and ClusterName={given['ClusterName']}: say one cluster")
    for key, variable in _BUILDS.items():
        if key in given:
            raise RefusedError(f"{key} is no parameter of the stack: say make deploy {variable}={given[key]}")
    if account.cluster is None:
        raise RefusedError(f"There is no EKS cluster {name} in this account and region. Is REGION right?")
    version = str(account.cluster.get("version", ""))
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    if numbers and numbers < LEAST_KUBERNETES:
        least = ".".join(map(str, LEAST_KUBERNETES))
        raise RefusedError(f"Cluster {name} runs Kubernetes {version}: Joinery needs {least} or newer")
    mode = account.cluster.get("accessConfig", {}).get("authenticationMode", "")
    if mode == "CONFIG_MAP" and settings.get("AccessEntries", "true") == "true":
        raise RefusedError(
            f"Cluster {name} takes no access entries. Allow them beside aws-auth, whose entries stay valid:\n"
            f"  aws eks update-cluster-config --name {name} --access-config authenticationMode=API_AND_CONFIG_MAP\n"
            "Or say PARAMETERS=AccessEntries=false, and apply the manifests by hand (manifests/README.md)."
        )


def _refuse_a_stack_that_takes_no_update(stack: str, state: str) -> None:
    """CloudFormation updates no stack whose creation failed, that is being changed, or whose rollback failed."""
    if state in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"):
        raise RefusedError(
            f"The first deployment of {stack} failed ({state}), and CloudFormation cannot update what is left of it.\n"
            "Remove that, and deploy again:\n"
            f"  aws cloudformation delete-stack --stack-name {stack}\n"
            f"  aws cloudformation wait stack-delete-complete --stack-name {stack}"
        )
    if state == "UPDATE_ROLLBACK_FAILED":
        raise RefusedError(
            f"An update of {stack} failed, and so did its rollback. Finish the rollback, and deploy again:\n"
            f"  aws cloudformation continue-update-rollback --stack-name {stack}"
        )
    if state == "DELETE_FAILED":
        raise RefusedError(
            f"Stack {stack} was deleted in part only. Delete the rest, and deploy again:\n"
            f"  aws cloudformation delete-stack --stack-name {stack}"
        )
    if state.endswith("_IN_PROGRESS") and state != "REVIEW_IN_PROGRESS":
        raise RefusedError(f"{stack} is {state}: another deployment is under way. Wait until it is done")


def dated(template: str, now: datetime) -> str:
    """The template with the moment of its deployment: without a change CloudFormation would not call the installer, and
    what somebody deleted in the cluster would be missing from then on.
    """
    return re.sub(r"DeployedAt: [^,}]+", f'DeployedAt: "{now:%Y-%m-%dT%H:%M:%SZ}"', template, count=1)


def parameters_in(text: str) -> dict[str, str]:
    """``Key=Value Key='a value'``, as a shell reads it. Raises ``RefusedError`` for what is none."""
    given = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RefusedError(f"PARAMETERS cannot be read: {error}: {text}") from None
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z0-9]+", key):
            raise RefusedError(f"PARAMETERS: {word!r} is not of the form Key=Value")
        if key in given:
            raise RefusedError(f"PARAMETERS: {key} is there twice")
        given[key] = value
    return given


def refuse_unknown(
    given: Mapping[str, str], parameters: Mapping[str, Mapping[str, Any]], stored: Collection[str] = ()
) -> None:
    """Raise ``RefusedError`` for a parameter that the stack does not have, or a value that it does not take.

    ``parameters``: the template's. SAM would leave an unknown one out without a word. ``stored``: names in the stack's
    Settings, which may be of another release: such a one may be given without a value.
    """
    names = [*parameters, *SETTINGS]
    for key, value in given.items():
        if any(character in value for character in '"\\'):
            raise RefusedError(f"PARAMETERS: {key}={value}: a value holds no quotation marks and no backslashes")
        if key in stored and not value:
            continue
        if rule := _broken_rule(parameters.get(key, {}), value):
            raise RefusedError(f"PARAMETERS: {key}={value}: {key} {rule}")
        if key not in names and key not in _BUILDS:
            advice = nearest(key, names) or "docs/reference.md lists them"
            raise RefusedError(f"PARAMETERS: the stack has no {key}: {advice}")


def _broken_rule(parameter: Mapping[str, Any], value: str) -> str | None:
    """The rule of the template that a value breaks, in words. CloudFormation has the same rules
    (User Guide, "Parameters"), and would say so after the build.
    """
    allowed = [str(one) for one in parameter.get("AllowedValues", ())]
    if allowed and value not in allowed:
        return f"is one of {', '.join(allowed)}"
    pattern = parameter.get("AllowedPattern", "")
    if pattern and not re.fullmatch(pattern, value):
        return f"must match {pattern}"
    if parameter.get("Type") != "Number":
        return None
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", value):
        return "must be a number"
    if float(value) < parameter.get("MinValue", float("-inf")):
        return f"must be {parameter['MinValue']} or more"
    if float(value) > parameter.get("MaxValue", float("inf")):
        return f"must be {parameter['MaxValue']} or less"
    return None


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
class Planned:
    """``home``: the stack by itself, or that of the home; None where only members are deployed. ``members``: by their
    cluster. ``refused``: the members that would fail, with the reason; they stop no other.
    """

    home: Deployment | None
    members: Mapping[str, Deployment] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


def planned_for(
    clusters: str,
    member_of: str,
    given: Mapping[str, str],
    account: Callable[[str], Account],
    tagged: Callable[[str, str], Iterable[str]],
) -> Planned:
    """All that is deployed. ``account``: what it says of itself and a cluster. Raises ``RefusedError`` for what would
    stop all of it.
    """
    names, is_first_named = clusters_in(clusters, tagged)
    looked = {name: account(name) for name in dict.fromkeys([*names, *filter(None, [member_of])])}
    stacks = looked[names[0]].stacks
    arrangement = arranged(names, stacks, member_of=member_of, is_first_named=is_first_named)
    home = None
    if arrangement.deploys_home:
        own = given_to_home(given, arrangement, is_named=arrangement.home in names)
        home = _checked(arrangement.home, looked.get(arrangement.home) or account(arrangement.home), own, TEMPLATE)
    else:
        refuse_another_release(arrangement.home, stacks, project_version())
    settings = pairs_of(home.parameters["Settings"] if home else stacks.settings[arrangement.home])
    return _with_members(Planned(home), arrangement, looked, given_to_member(given), settings)


def _checked(name: str, account: Account, given: Mapping[str, str], template: Path) -> Deployment:
    refuse_unknown(given, load(template)["Parameters"], pairs_of(account.stacks.settings.get(name, "")))
    return plan(name, account, given)


def _with_members(
    planned: Planned,
    arrangement: Arrangement,
    looked: Mapping[str, Account],
    given: Mapping[str, str],
    settings: Mapping[str, str],
) -> Planned:
    members, refused = {}, {}
    for name in arrangement.members:
        account = looked[name]
        try:
            refuse_unknown(given, load(MEMBER)["Parameters"], pairs_of(account.stacks.settings.get(name, "")))
            members[name] = plan_member(name, arrangement.home, account, given, settings)
        except RefusedError as error:
            if len(arrangement.members) == 1:
                raise
            refused[name] = str(error)
            print(f"{name}: {error}", file=sys.stderr)
    return replace(planned, members=members, refused=refused)


@dataclass(frozen=True)
class Site:
    """Where it is deployed, and by what: ``more`` is for ``sam deploy``."""

    region: str
    sam: str
    now: datetime
    more: Sequence[str]

    def account(self, cluster: str) -> Account:
        """What the account says. Raises ``RefusedError``."""
        return looked_at(cluster, self.region)

    def tagged(self, key: str, value: str) -> list[str]:
        """The EKS clusters with a tag. Raises ``RefusedError``."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            eks = _session(self.region).client("eks")
            pages = eks.get_paginator("list_clusters").paginate()
            names = [name for page in pages for name in page["clusters"]]
            described = {name: eks.describe_cluster(name=name)["cluster"] for name in names}
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


def looked_at(cluster: str, region: str) -> Account:
    """What the account says of itself and the cluster. Raises ``RefusedError`` if AWS is not to be asked."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        session = _session(region)
        eks = session.client("eks")
        try:
            described = eks.describe_cluster(name=cluster)["cluster"]
        except eks.exceptions.ResourceNotFoundException:
            described = None
        limits = session.client("lambda").get_account_settings()["AccountLimit"]
        return Account(
            cluster=described,
            concurrency=int(limits["UnreservedConcurrentExecutions"]),
            stacks=stacks_in(session.client("cloudformation")),
        )
    except (BotoCoreError, ClientError) as error:
        raise RefusedError(f"AWS cannot be asked about {cluster} in {region}: {error}") from error


def stacks_in(client: Any) -> Stacks:
    """What CloudFormation says of all stacks."""
    pages = client.get_paginator("describe_stacks").paginate()
    return stacks_of(stack for page in pages for stack in page["Stacks"])


def _session(region: str) -> Any:
    import boto3

    return boto3.session.Session(region_name=region)


if __name__ == "__main__":
    main()
