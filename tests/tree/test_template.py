"""The template agrees with the code: doors, environment, bells, schedules, permissions."""

import ast
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from joinery.controllers.acting.lease import ACTING_SECONDS, LEASE_SECONDS
from joinery.controllers.disruption import READING_SECONDS
from joinery.controllers.installer.controller import ROTATE
from joinery.decisions.installation.shipped import DOORS as IN_CLUSTER
from joinery.decisions.installation.shipped import groups_of
from joinery.decisions.interruption.notice import Notice, NoticeKind, parse
from joinery.gateways.doorbell.gateway import DELAYS, Bell
from joinery.gateways.memory.bucket import CATALOG_KEY
from joinery.gateways.memory.table import EXPIRES, KEY
from joinery.objects.errors import ConfigurationError
from joinery.objects.settings import (
    MOST_DISRUPTION_SECONDS,
    NEEDS,
    SETTINGS,
    SWITCHES,
    Settings,
    in_force,
    variable,
)
from joinery.objects.stack_settings import BY_THE_TEMPLATE, MOST_CHARACTERS, VALUE
from tests.tree.resources import DOORS, RESOURCES, TEMPLATE, logical_id, policies_of, policy, resources, setting
from tools.template import ROOT, Door

FOLDERS = sorted(path.name for path in (ROOT / "functions").iterdir() if path.is_dir())
BANNED = {"boto3", "botocore", "kubernetes", "os", "urllib3", "logging", "time"}

every_door = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


def source(door: Door) -> Path:
    """The file of a door's handler."""
    return door.folder / f"{door.handler.partition('.')[0]}.py"


def imports(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def test_every_folder_of_functions_is_a_door_and_every_door_a_folder() -> None:
    """The template names no door that does nothing, and no door is left out of it."""
    assert sorted(DOORS) == FOLDERS == sorted(NEEDS)
    assert all(door.folder == ROOT / "functions" / door.name for door in DOORS.values())


@every_door
def test_a_door_has_a_handler_of_at_most_forty_lines(door: Door) -> None:
    """A door parses and calls; what does not fit in forty lines is a decision in the wrong place."""
    spec = importlib.util.spec_from_file_location(f"door_{door.name}", source(door))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert callable(getattr(module, door.handler.partition(".")[2]))
    assert len(source(door).read_text().splitlines()) <= 40
    assert module.__doc__


@every_door
def test_a_door_owns_no_client_no_environment_and_no_error(door: Door) -> None:
    """A door imports no library that does input or output, and lets errors escape to whoever sent the event."""
    tree = ast.parse(source(door).read_text())

    assert not imports(source(door)) & BANNED
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Try | ast.If | ast.For | ast.While)]


FOR_MEMBERS = {"Fn::If": ["HasMembers", {"Ref": "Table"}, {"Ref": "AWS::NoValue"}]}


@every_door
def test_a_function_that_serves_members_finds_the_register(door: Door) -> None:
    """All but the catalogue's, which is about the account and the region."""
    table = door.variables.get("JOINERY_TABLE")
    assert table == (
        {"Ref": "Table"} if "table" in NEEDS[door.name] else None if door.name == "catalog" else FOR_MEMBERS
    )


@every_door
def test_a_function_is_given_exactly_the_settings_it_needs(door: Door) -> None:
    """No variable is missing, and none is declared that nobody reads. Where there are members each finds them."""
    given = {name for name in door.variables if not name.startswith("POWERTOOLS_")} - {"JOINERY_SETTINGS"}
    given -= {name for name in given if door.variables[name] == FOR_MEMBERS}

    assert given == {variable(name) for name in NEEDS[door.name]}
    assert {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOG_LEVEL", "POWERTOOLS_METRICS_NAMESPACE"} <= set(door.variables)


@every_door
def test_every_door_but_the_installer_is_given_the_settings(door: Door) -> None:
    """CloudFormation must be answered, so no setting keeps the installer from starting."""
    given = {"Ref": "Settings"} if door.name != "installer" else None
    assert door.variables.get("JOINERY_SETTINGS") == given
    assert set(SWITCHES) == set(DOORS) - {"installer"}


def test_a_guided_deployment_asks_for_few_things() -> None:
    """SAM asks for every parameter. Each is described, and only the cluster has no default."""
    parameters = TEMPLATE["Parameters"]
    groups = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]

    assert len(parameters) <= 8
    assert all(parameter["Description"] for parameter in parameters.values())
    assert [name for name, parameter in parameters.items() if "Default" not in parameter] == ["ClusterName"]
    assert [name for group in groups for name in group["Parameters"]] == list(parameters)
    assert parameters["Mode"]["Default"] == Settings(cluster="blue").mode
    assert not parameters.keys() & SETTINGS.keys()


READ = sorted(set(BY_THE_TEMPLATE) - {"ForceConflicts", "StarterSubnetIds", "StarterSecurityGroupIds"})
PATTERN = re.compile(TEMPLATE["Parameters"]["Settings"]["AllowedPattern"])


def test_the_template_reads_settings_with_the_defaults_of_the_code() -> None:
    """Of those that it reads itself, and not the installer alone."""
    written = json.dumps(TEMPLATE)

    assert sorted(name for name in SETTINGS if json.dumps(setting(name)) in written) == READ
    assert sorted(set(re.findall(r'\{"Fn::Split": \[";(\w+)="', written))) == READ


def test_the_template_takes_the_text_that_the_code_takes() -> None:
    """CloudFormation checks its form, so that nothing but a value can stand where the template puts one."""
    assert PATTERN.pattern == f"([A-Za-z]+={VALUE}(; ?|$))*"
    assert TEMPLATE["Parameters"]["Settings"]["MaxLength"] == MOST_CHARACTERS


@pytest.mark.parametrize(
    "text",
    [
        *(f"{name}=" for name in READ),
        "AccessEntries=; Canary=off",
        "Canary=off; KmsKeyArn=",
        'ImageParameters=/a"]},{"Effect":"Allow"',
        "RolePath=/a\\/",
        "RolePath=/a\n/",
        "Canary=off ; RolePath=/a/",
        "Canary=off;  RolePath=/a/",
    ],
)
def test_a_text_that_could_be_read_in_two_ways_is_refused_by_both(text: str) -> None:
    """An empty value would be the default to the code and empty to the template, which would take the cluster away."""
    assert not PATTERN.fullmatch(text)
    with pytest.raises(ConfigurationError):
        in_force(text)


def by_the_template(text: str, name: str) -> str:
    """What the template reads of a setting, as CloudFormation evaluates it."""

    def evaluated(node: Any) -> Any:
        match node:
            case {"Ref": "Settings"}:
                return text
            case {"Fn::Join": [mark, parts]}:
                return mark.join(evaluated(parts))
            case {"Fn::Split": [mark, source]}:
                return evaluated(source).split(mark)
            case {"Fn::Select": [index, source]}:
                return evaluated(source)[index]
            case list():
                return [evaluated(one) for one in node]
        return node

    return str(evaluated(setting(name)))


VALUES = {
    **{name: strategies.from_regex(one.pattern, fullmatch=True).filter(bool) for name, one in BY_THE_TEMPLATE.items()},
    "Canary": strategies.sampled_from(["off", "5% for 1h"]),
    "SwitchedOff": strategies.sampled_from(["webhook", "catalog, disruption"]),
    "WebhookEndpoint": strategies.sampled_from(["public", "none"]),
    # Names of other settings inside of values.
    "RolePath": strategies.sampled_from([f"/{name}=x/" for name in SETTINGS] + ["/a/b/", "/"]),
    "PermissionsBoundaryArn": strategies.sampled_from([f"arn:aws:iam::aws:policy/{name}=x" for name in SETTINGS]),
}


@given(data=strategies.data())
@settings(max_examples=200, deadline=None)
def test_the_template_and_the_code_read_the_same(data: strategies.DataObject) -> None:
    """Whatever somebody chooses, in any order, and whatever stands in a value."""
    names = data.draw(strategies.lists(strategies.sampled_from(sorted(VALUES)), unique=True))
    parts = [f"{name}={data.draw(VALUES[name])}" for name in names]
    text = "".join(part + data.draw(strategies.sampled_from([";", "; "])) for part in parts)
    text = text if data.draw(strategies.booleans()) else text.rstrip("; ")
    try:
        everything = in_force(text)
    except ConfigurationError:
        return
    assert PATTERN.fullmatch(text)
    assert {name: by_the_template(text, name) for name in READ} == {name: everything[name] for name in READ}


@pytest.mark.parametrize("bell", Bell)
def test_a_bell_s_queue_is_delayed_by_its_slot(bell: Bell) -> None:
    """Only then has every ring that was dropped as a duplicate come before the read (doorbell.gateway)."""
    queue = resources("AWS::SQS::Queue")[f"{bell.value.capitalize()}Queue"]

    assert queue["FifoQueue"]
    assert queue["ContentBasedDeduplication"]
    assert queue["DelaySeconds"] == DELAYS[bell].total_seconds()


@pytest.mark.parametrize("bell", Bell)
def test_a_bell_is_not_delivered_again_while_its_run_may_be_at_work(bell: Bell) -> None:
    """Six times the function's timeout, as AWS recommends; and a bell that kills every run reaches the dead letters."""
    queue = resources("AWS::SQS::Queue")[f"{bell.value.capitalize()}Queue"]

    assert queue["VisibilityTimeout"] >= 6 * DOORS[bell.value].timeout
    assert queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"] < queue["MessageRetentionPeriod"]


def test_an_interruption_is_tried_again_as_soon_as_its_run_is_over() -> None:
    """A warning is worth two minutes, and two runs that mark the same nodes do no harm."""
    visible = resources("AWS::SQS::Queue")["InterruptionQueue"]["VisibilityTimeout"]

    assert DOORS["interruption"].timeout < visible <= DOORS["interruption"].timeout + 10


def test_every_queue_that_wakes_a_door_has_dead_letters_and_every_dead_letter_an_alarm() -> None:
    """What could not be handled rests where a person is told of it."""
    queues = resources("AWS::SQS::Queue")
    alarmed = {
        logical_id(alarm["Dimensions"][0]["Value"])
        for alarm in resources("AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
    }
    for mapping in resources("AWS::Lambda::EventSourceMapping").values():
        queue = queues[logical_id(mapping["EventSourceArn"])]
        letters = logical_id(queue["RedrivePolicy"]["deadLetterTargetArn"])
        assert letters in alarmed
        assert queues[letters].get("FifoQueue") == queue.get("FifoQueue")
    assert {name for name in queues if name.endswith("DeadLetters")} == alarmed


def test_a_failing_interruption_reaches_the_dead_letters_before_it_expires() -> None:
    """Five tries fit into the five minutes that an interruption is worth keeping."""
    queue = resources("AWS::SQS::Queue")["InterruptionQueue"]

    assert queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"] < queue["MessageRetentionPeriod"]


def test_interruptions_are_answered_one_by_one() -> None:
    """The interruption queue takes partial batch responses; bells need none."""
    mappings = resources("AWS::Lambda::EventSourceMapping")

    assert mappings["Interruptions"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


ROTATION = resources("AWS::Scheduler::Schedule")["RotationSchedule"]
SCHEDULES = {name: one for name, one in resources("AWS::Scheduler::Schedule").items() if one != ROTATION}


def test_every_door_but_those_that_others_call_has_a_schedule() -> None:
    """Whatever was lost, a schedule makes up for: webhook and installer are called by others alone."""
    called = {"webhook", "installer"}
    assert {json.loads(s["Target"]["Input"])["door"] for s in SCHEDULES.values()} == set(DOORS) - called


def test_the_rotation_is_looked_after_every_hour() -> None:
    """The installer is asked for one step, with the age at which a token is to go."""
    assert ROTATION["ScheduleExpression"] == "rate(1 hour)"
    assert logical_id(ROTATION["Target"]["Arn"]) == "InstallerFunction"
    asked, variables = ROTATION["Target"]["Input"]["Fn::Sub"]
    assert json.loads(asked) == {"operation": ROTATE, "days": "${Days}"}
    assert variables == {"Days": setting("WebhookRotationDays")}


def test_what_the_schedule_sends_to_the_interruption_function_is_a_poll() -> None:
    """It comes without a queue, as an event of our own."""
    notice = parse(json.loads(SCHEDULES["InstanceStatusSchedule"]["Target"]["Input"]))

    assert isinstance(notice, Notice)
    assert notice.kind is NoticeKind.STATUS_POLL


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_a_schedule_rings_its_door_with_the_scheduled_time(schedule: dict[str, Any]) -> None:
    """Each ring has content of its own, or a FIFO queue would drop it as a repetition for five minutes."""
    target = schedule["Target"]
    message = json.loads(target["Input"])
    door = DOORS[message["door"]]

    assert message["schedule"] == "<aws.scheduler.scheduled-time>"
    if "SqsParameters" in target:
        assert logical_id(target["Arn"]) == f"{door.name.capitalize()}Queue"
        # Not the group of the bells, which is the cluster's name: a killed run blocks its group for minutes.
        assert target["SqsParameters"]["MessageGroupId"] == {"Fn::Sub": "${ClusterName}-schedule"}
    else:
        assert logical_id(target["Arn"]) == door.logical_id
    assert door.name == "catalog" or schedule["ScheduleExpression"] == "rate(1 minute)"


def test_functions_that_ring_their_own_bell_may_loop() -> None:
    """Lambda stops a loop after about sixteen rounds unless the function says that it is meant."""
    looped = {m["FunctionName"]["Ref"] for m in resources("AWS::Lambda::EventSourceMapping").values()}
    for name in looped - {"InterruptionFunction"}:
        assert RESOURCES[name]["Properties"]["RecursiveLoop"] == "Allow"


def test_the_state_is_where_the_adapters_look_for_it() -> None:
    """Table key, TTL attribute and the catalogue's key are the code's."""
    table = resources("AWS::DynamoDB::Table")["Table"]
    granted = json.dumps([RESOURCES["CataloguePolicy"], RESOURCES["RecordPolicy"]])

    assert table["KeySchema"] == [{"AttributeName": KEY, "KeyType": "HASH"}]
    assert table["TimeToLiveSpecification"] == {"AttributeName": EXPIRES, "Enabled": True}
    assert f"/{CATALOG_KEY}" in granted
    assert "/decisions/*" in granted


@pytest.mark.parametrize("name", ["LaunchPolicy", "RetirePolicy"])
def test_what_is_launched_or_terminated_belongs_to_the_cluster(name: str) -> None:
    """Every statement on things that we create asks for the cluster's tag, of the request or of the resource."""
    for statement in policy(name):
        if statement["Sid"] not in ("AllowScopedEC2InstanceAccessActions", "AllowPassingInstanceRole"):
            assert "kubernetes.io/cluster/${ClusterName}" in json.dumps(statement["Condition"])
            # A Machine's instance has the older name of its pool's label.
            pool = "provisioner-name" if statement["Sid"].endswith("OfMachines") else "nodepool"
            assert f"karpenter.sh/{pool}" in json.dumps(statement["Condition"])


@pytest.mark.parametrize("action", ["ec2:TerminateInstances", "ec2:RebootInstances"])
@pytest.mark.parametrize("pool", ["nodepool", "provisioner-name"])
def test_a_node_of_any_karpenter_may_be_ended_and_rebooted(action: str, pool: str) -> None:
    """An instance of a Machine has its pool's older tag, and repair reboots it as any other."""
    asked = {
        next(iter(statement["Condition"]["StringLike"]))
        for statement in policy("RetirePolicy")
        if action in statement["Action"]
    }
    assert f"aws:ResourceTag/karpenter.sh/{pool}" in asked


def test_only_lifecycle_may_terminate_and_only_launching_doors_may_launch() -> None:
    """A door that has a bug can do no more harm than its job."""

    def holders(name: str) -> set[str]:
        return {d.name for d in DOORS.values() if {"Ref": name} in policies_of(d)}

    assert holders("RetirePolicy") == {"lifecycle"}
    assert holders("LaunchPolicy") == {"provisioning", "disruption", "lifecycle"}
    assert RESOURCES["NodeClassRights"]["Properties"]["Roles"] == [{"Ref": "LifecycleFunctionRole"}]


def test_the_lease_outlives_the_function_that_holds_it() -> None:
    """A run that is killed while it holds the Lease is over before another may take it."""
    assert max(DOORS["provisioning"].timeout, DOORS["lifecycle"].timeout) < LEASE_SECONDS
    # Disruption runs for longer, and ends what it does by the Lease by itself.
    assert ACTING_SECONDS < LEASE_SECONDS


def test_disruption_has_time_left_to_act_on_what_it_has_found() -> None:
    """The search that a user may ask for, reading before it and acting after it fit into the function's timeout."""
    longest = MOST_DISRUPTION_SECONDS

    assert longest + ACTING_SECONDS + READING_SECONDS <= DOORS["disruption"].timeout


def test_doors_that_talk_to_the_cluster_are_known_there() -> None:
    """Each role that may find the API server is mapped to the groups that the manifests name, and no other is."""
    # Nodes have an entry of another type, which gives them their own groups.
    access = [entry for entry in resources("AWS::EKS::AccessEntry").values() if entry.get("Type") != "EC2_LINUX"]
    talking = {door.logical_id for door in DOORS.values() if {"Ref": "ClusterPolicy"} in policies_of(door)}

    groups = {logical_id(entry["PrincipalArn"]).removesuffix("Role"): entry["KubernetesGroups"] for entry in access}
    assert groups.keys() == talking
    assert groups == {f"{door}Function": list(groups_of(door)) for door in IN_CLUSTER}
