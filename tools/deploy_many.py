"""Which clusters ``make deploy`` is about, which of them is the home of the others, and what is said of which.

    CLUSTER=blue                     a stack of its own, or the member that it is already
    CLUSTER=blue,green               a home and a member
    CLUSTER=blue,tag:joinery=yes     a home, and as members all EKS clusters of account and region with that tag
    CLUSTER=green MEMBER_OF=blue     a member of a home that is there

All of this is decided from what the account says; nothing here asks it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from joinery.objects.stack_settings import pairs_of
from tools.deploy_settings import RefusedError, text_of

#: What is said of the part that is shared, and so of the home alone.
_OF_THE_HOME = (
    "SubnetIds", "SecurityGroupIds", "AlarmTopicArn",
    "Commitments", "Dashboard", "DecisionRetentionDays", "LogLevel", "LogRetentionDays", "Members",
    "WebhookConcurrency", "WebhookVpcEndpointId",
)  # fmt: skip
#: What a new member has as its home has it, unless something else is said: keys, boundaries and paths are an account's.
_AS_THE_HOME = ("KmsKeyArn", "PermissionsBoundaryArn", "RolePath")
SWITCH = "Members"
_TAG = "tag:"


@dataclass(frozen=True)
class Stacks:
    """Joinery's stacks, by the cluster in their parameters, and what is known of all others.

    ``names``: of the stacks. ``states``: the StackStatus of every stack of the account, by the stack's name.
    ``settings``: what their parameter Settings says. ``homes``: of a member, the name of its home's stack.
    ``versions``: the release that they say in their outputs.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    homes: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def stacks_of(described: Iterable[Mapping[str, object]]) -> Stacks:
    """From CloudFormation's descriptions of all stacks. The parameter StarterNodePool tells Joinery's apart from those
    of others, the parameter Home its members.
    """
    tables: tuple[dict[str, str], ...] = ({}, {}, {}, {}, {})
    names, states, settings, homes, versions = tables
    for stack in described:
        name, status = str(stack["StackName"]), str(stack["StackStatus"])
        states[name] = status
        parameters = _pairs(stack, "Parameters", "ParameterKey", "ParameterValue")
        if "StarterNodePool" not in parameters or status.startswith("DELETE"):
            continue
        cluster = parameters.get("ClusterName", "")
        names[cluster], settings[cluster] = name, text_of(parameters)
        versions[cluster] = _pairs(stack, "Outputs", "OutputKey", "OutputValue").get("Version", "")
        if "Home" in parameters:
            homes[cluster] = parameters["Home"]
    return Stacks(names, states, settings, homes, versions)


def _pairs(stack: Mapping[str, object], name: str, key: str, value: str) -> dict[str, str]:
    listed = stack.get(name) or ()
    assert isinstance(listed, Sequence)
    return {str(one[key]): str(one.get(value, "")) for one in listed}


@dataclass(frozen=True)
class Arrangement:
    """``home``: the cluster whose stack serves the others, or the only one. ``members``: in the order in which they are
    deployed; none where one stack is deployed by itself. ``deploys_home``: whether the home's stack is deployed, too.
    """

    home: str
    members: tuple[str, ...] = ()
    deploys_home: bool = True


def clusters_in(text: str, tagged: Callable[[str, str], Iterable[str]]) -> tuple[list[str], bool]:
    """The clusters that ``CLUSTER`` names, each once, and whether the first one was named by its name.

    ``tagged``: those with a tag of that key and value. Raises ``RefusedError`` where none is named.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    named: dict[str, None] = {}
    for part in parts:
        if not part.startswith(_TAG):
            named[part] = None
            continue
        key, equals, value = part.removeprefix(_TAG).partition("=")
        if not equals:
            raise RefusedError(f"CLUSTER: {part} is not of the form tag:key=value")
        found = sorted(tagged(key, value))
        if not found:
            raise RefusedError(f"CLUSTER: no EKS cluster of this account and region has the tag {key}={value}")
        named |= dict.fromkeys(found)
    if not named:
        raise RefusedError("CLUSTER names no cluster")
    return list(named), not parts[0].startswith(_TAG)


def arranged(named: Sequence[str], stacks: Stacks, *, member_of: str = "", is_first_named: bool = True) -> Arrangement:
    """Which of the named clusters is the home, and which are members. Raises ``RefusedError`` where that is not clear.

    ``member_of``: the home that somebody says. ``is_first_named``: whether the first may be the home, because somebody
    has written it first.
    """
    own = [name for name in named if name in stacks.names and name not in stacks.homes]
    if member_of:
        return _of(member_of, [name for name in named if name != member_of], own, stacks, member_of in named)
    if len(named) == 1 and is_first_named and named[0] not in stacks.homes:
        return Arrangement(named[0])
    served_by = {stacks.homes[name] for name in named if name in stacks.homes}
    by_stack = {stack: cluster for cluster, stack in stacks.names.items()}
    homes = list(dict.fromkeys([*own[:1], *(by_stack[stack] for stack in sorted(served_by) if stack in by_stack)]))
    if len(homes) > 1:
        raise RefusedError(f"These clusters have several homes: {', '.join(homes)}. Deploy those of one home at a time")
    if not homes and not is_first_named:
        raise RefusedError(f"There is no home yet: name it first, as in CLUSTER={named[0]},tag:...")
    home = homes[0] if homes else named[0]
    return _of(home, [name for name in named if name != home], own, stacks, home in named)


def _of(home: str, members: Sequence[str], own: Sequence[str], stacks: Stacks, is_named: bool) -> Arrangement:
    if home in stacks.homes:
        raise RefusedError(f"Cluster {home} is a member itself, of {stacks.homes[home]}: a member serves no others")
    for name in own:
        if name != home:
            raise RefusedError(
                f"Cluster {name} has a stack of its own ({stacks.names[name]}). To make it a member of {home}, remove "
                f"that first, and its nodes stay: make undeploy CLUSTER={name} NODES=keep"
            )
    if not is_named and home not in stacks.names:
        raise RefusedError(f"Cluster {home} has no stack that could be a home: make deploy CLUSTER={home}")
    serves = pairs_of(stacks.settings.get(home, "")).get(SWITCH) == "true"
    return Arrangement(home, tuple(members), deploys_home=is_named or not serves)


def given_to_home(given: Mapping[str, str], arrangement: Arrangement, *, is_named: bool) -> dict[str, str]:
    """What the home's stack is given. What is said of clusters that are not the home is not said of it."""
    kept = {**given} if is_named else {name: given[name] for name in given if name in _OF_THE_HOME}
    return {**kept, SWITCH: "true"} if arrangement.members else kept


def given_to_member(given: Mapping[str, str]) -> dict[str, str]:
    """What a member's stack is given."""
    kept = {name: value for name, value in given.items() if name not in _OF_THE_HOME}
    if kept.get("WebhookEndpoint", "") not in ("", "none"):
        del kept["WebhookEndpoint"]  # which of the two ways is the home's to say; a member may be called not at all
    return kept


def as_the_home(home_settings: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """What a member has of its home's settings, unless it has its own. ``stored``: the member's."""
    return {key: home_settings[key] for key in _AS_THE_HOME if key in home_settings and key not in stored}


def refuse_what_is_the_home_s(given: Mapping[str, str], home: str) -> None:
    """Raise ``RefusedError`` where something is said of the shared part, and the home is not deployed."""
    if shared := sorted(given.keys() & set(_OF_THE_HOME)):
        raise RefusedError(
            f"PARAMETERS: {', '.join(shared)}: that is said of the home, for all of its members: "
            f"make deploy CLUSTER={home}"
        )


def refuse_another_release(home: str, stacks: Stacks, version: str) -> None:
    """Raise ``RefusedError`` where a member alone is deployed, and its home's code is of another release."""
    theirs = stacks.versions.get(home, "")
    if theirs != version:
        raise RefusedError(
            f"The home of cluster {home} is of release {theirs or 'unknown'}, and this is {version}: deploy the home "
            f"first (make deploy CLUSTER={home})"
        )
