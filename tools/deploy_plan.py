"""What ``make deploy`` deploys, and what it refuses: decided from what the account says, before anything is built."""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from joinery.decisions.installation.objects import LEAST_KUBERNETES
from joinery.decisions.installation.requests import stack_name
from joinery.objects.settings import SETTINGS, nearest
from joinery.objects.stack_settings import pairs_of, written
from tools.deploy_many import (
    Arrangement,
    Stacks,
    arranged,
    as_the_home,
    clusters_in,
    given_to_home,
    given_to_member,
    refuse_another_release,
    refuse_what_is_the_home_s,
)
from tools.deploy_settings import RefusedError, changes, named, settings_of
from tools.template import MEMBER, TEMPLATE, load
from tools.version import project_version

#: Lambda leaves at least so many executions to functions that reserve none; of a smaller quota nothing can be reserved.
_UNRESERVED = 100
#: What `make` says for the build. They are no parameters of the stack, so that both cannot differ.
_BUILDS = {"Runtime": "RUNTIME", "Architecture": "ARCHITECTURE"}


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
    stack, stored = _present(name, account.stacks)
    settings = settings_of(stored, given)
    _refuse_what_would_fail(name, account, given, settings)
    notes = [*changes(stored, given, settings)]
    if "WebhookConcurrency" not in named(given):
        wanted = int(SETTINGS["WebhookConcurrency"].default)
        has = stored.get("WebhookConcurrency", str(wanted))
        reserved = int(has) if name in account.stacks.settings and has.isdecimal() else 0
        if account.concurrency + reserved - (reserved or wanted) < _UNRESERVED:
            settings["WebhookConcurrency"] = "0"
            notes.append(
                f"This account has {account.concurrency} concurrent executions to spare, so none are reserved for the "
                "webhook: a flood of calls may use up all of them. Raise Lambda's quota and deploy again, or say "
                "PARAMETERS=WebhookEndpoint=none."
            )
        elif reserved not in (0, wanted):
            settings["WebhookConcurrency"] = str(reserved)
    if stack != stack_name(name):
        notes.append(f"Cluster {name} is run by stack {stack}, which is updated.")
    return Deployment(stack, _parameters({"ClusterName": name}, stored, given, settings), notes)


def plan_member(
    name: str, home: str, account: Account, given: Mapping[str, str], home_settings: Mapping[str, str]
) -> Deployment:
    """What is deployed for a member. ``home_settings``: its home's, as they will be. Raises ``RefusedError``."""
    stack, stored = _present(name, account.stacks)
    settings = settings_of({**as_the_home(home_settings, stored), **stored}, given)
    _refuse_what_would_fail(name, account, given, settings)
    own = {"ClusterName": name, "Home": account.stacks.names.get(home, stack_name(home))}
    notes = [*changes(stored, given, settings)]
    return Deployment(stack, _parameters(own, stored, given, settings), notes, MEMBER.name)


def _present(name: str, stacks: Stacks) -> tuple[str, dict[str, str]]:
    """The name of a cluster's stack, and its settings. Raises ``RefusedError`` where the stack takes no update."""
    stack = stacks.names.get(name, stack_name(name))
    _refuse_a_stack_that_takes_no_update(stack, stacks.states.get(stack, ""))
    return stack, pairs_of(stacks.settings.get(name, ""))


def _parameters(
    own: Mapping[str, str], stored: Mapping[str, str], given: Mapping[str, str], settings: Mapping[str, str]
) -> dict[str, str]:
    """What the stack is given. ``own``: what the command says of it, and no person."""
    said = {key: value for key, value in given.items() if key not in SETTINGS and key not in stored}
    return {**own, **said, "Settings": written(settings)}


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
        its_account = looked.get(arrangement.home) or account(arrangement.home)
        refuse_unknown(own, load()["Parameters"], pairs_of(stacks.settings.get(arrangement.home, "")))
        home = plan(arrangement.home, its_account, own)
    else:
        refuse_what_is_the_home_s(given, arrangement.home)
        refuse_another_release(arrangement.home, stacks, project_version())
    settings = pairs_of(home.parameters["Settings"] if home else stacks.settings[arrangement.home])
    return _with_members(Planned(home), arrangement, looked, given_to_member(given), settings)


def _with_members(
    planned: Planned,
    arrangement: Arrangement,
    looked: Mapping[str, Account],
    given: Mapping[str, str],
    settings: Mapping[str, str],
) -> Planned:
    parameters = load(MEMBER)["Parameters"] if arrangement.members else {}
    members, refused = {}, {}
    for name in arrangement.members:
        account = looked[name]
        try:
            refuse_unknown(given, parameters, pairs_of(account.stacks.settings.get(name, "")))
            members[name] = plan_member(name, arrangement.home, account, given, settings)
        except RefusedError as error:
            if len(arrangement.members) == 1:
                raise
            refused[name] = str(error)
    return replace(planned, members=members, refused=refused)
