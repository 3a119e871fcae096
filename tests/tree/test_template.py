"""The template agrees with the code: doors, environment, bells, schedules, permissions."""

import ast
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from joinery.controllers.acting.lease import ACTING_SECONDS, LEASE_SECONDS
from joinery.controllers.disruption import READING_SECONDS
from joinery.controllers.installer.controller import ROTATE
from joinery.decisions.installation.groups import DOORS as IN_CLUSTER
from joinery.decisions.installation.groups import groups_of
from joinery.decisions.interruption.notice import Notice, NoticeKind, parse
from joinery.gateways.doorbell.gateway import DELAYS, Bell
from joinery.gateways.memory.bucket import CATALOG_KEY
from joinery.gateways.memory.table import EXPIRES, KEY
from joinery.objects.karpenter import duration
from joinery.objects.karpenter.disruption import canary_of
from joinery.objects.policies import (
    MetricsDetail,
    MinValuesPolicy,
    NodeRepair,
    PreferencePolicy,
    Rebalance,
    terminate_first_of,
)
from joinery.objects.settings import NEEDS, Settings, variable
from tests.tree.resources import DOORS, RESOURCES, TEMPLATE, logical_id, policies_of, policy, resources
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


@every_door
def test_a_function_is_given_exactly_the_settings_it_needs(door: Door) -> None:
    """No variable is missing, and none is declared that nobody reads."""
    given = {name for name in door.variables if not name.startswith("POWERTOOLS_")}

    assert given == {variable(name) for name in NEEDS[door.name]}
    assert {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOG_LEVEL", "POWERTOOLS_METRICS_NAMESPACE"} <= set(door.variables)


def test_the_template_s_defaults_are_the_code_s() -> None:
    """A user who chooses nothing gets what the settings promise."""
    parameters, defaults = TEMPLATE["Parameters"], Settings(cluster="blue")

    assert parameters["Mode"]["Default"] == defaults.mode
    assert parameters["MaxLaunches"]["Default"] == defaults.max_launches
    assert parameters["MaxHourly"]["Default"] == defaults.max_hourly
    assert parameters["NodeSize"]["Default"] == defaults.node_size
    assert parameters["NodeRepair"]["Default"] == defaults.node_repair
    assert parameters["PreferencePolicy"]["Default"] == defaults.preference_policy
    assert parameters["PreferencePolicy"]["AllowedValues"] == list(PreferencePolicy)
    assert parameters["MinValuesPolicy"]["Default"] == defaults.min_values_policy
    assert parameters["MinValuesPolicy"]["AllowedValues"] == list(MinValuesPolicy)
    assert parameters["Rebalance"]["Default"] == defaults.rebalance
    assert parameters["Rebalance"]["AllowedValues"] == list(Rebalance)
    assert parameters["ZonalShift"]["Default"] == str(defaults.zonal_shift).lower()
    assert parameters["NodeRepair"]["AllowedValues"] == list(NodeRepair)
    assert parameters["DisruptionMovePrice"]["Default"] == defaults.disruption_move_price
    assert duration.parse(parameters["DisruptionPayback"]["Default"]) == defaults.disruption_payback
    assert parameters["DisruptionSeconds"]["Default"] == defaults.disruption_seconds
    assert parameters["LegacyObjects"]["Default"] == str(defaults.legacy_objects).lower()
    assert parameters["DefaultInstanceProfile"]["Default"] == defaults.default_instance_profile
    assert parameters["SpotToSpot"]["Default"] == str(defaults.spot_to_spot).lower()
    assert terminate_first_of(parameters["TerminateFirst"]["Default"]) == defaults.terminate_first
    assert canary_of(parameters["Canary"]["Default"]) == defaults.canary
    assert parameters["PodDeletionCost"]["Default"] == str(defaults.pod_deletion_cost).lower()
    assert parameters["NewNodesRepay"]["Default"] == str(defaults.new_nodes_repay).lower()
    assert parameters["ExpirationObeysBudgets"]["Default"] == str(defaults.expiration_obeys_budgets).lower()
    assert parameters["Metrics"]["Default"] == defaults.metrics
    assert parameters["Metrics"]["AllowedValues"] == list(MetricsDetail)
    assert parameters["Steering"]["Default"] == defaults.steering
    assert parameters["SurgeSingleReplicas"]["Default"] == str(defaults.surge_single_replicas).lower()


def test_each_door_has_an_off_switch_of_its_own() -> None:
    """Any door can be silenced without touching the others."""
    # CloudFormation waits for the installer's answer: it is never off.
    doors_with_switches = [door for door in DOORS.values() if door.name != "installer"]
    switches = {door.variables["JOINERY_ENABLED"]["Ref"] for door in doors_with_switches}

    assert len(switches) == len(doors_with_switches)
    assert all(TEMPLATE["Parameters"][switch]["Default"] == "true" for switch in switches)


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
    asked = json.loads(ROTATION["Target"]["Input"]["Fn::Sub"])
    assert asked == {"operation": ROTATE, "days": "${WebhookRotationDays}"}


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
    longest = TEMPLATE["Parameters"]["DisruptionSeconds"]["MaxValue"]

    assert longest + ACTING_SECONDS + READING_SECONDS <= DOORS["disruption"].timeout


def test_doors_that_talk_to_the_cluster_are_known_there() -> None:
    """Each role that may find the API server is mapped to the groups that the manifests name, and no other is."""
    # Nodes have an entry of another type, which gives them their own groups.
    access = [entry for entry in resources("AWS::EKS::AccessEntry").values() if entry.get("Type") != "EC2_LINUX"]
    talking = {door.logical_id for door in DOORS.values() if {"Ref": "ClusterPolicy"} in policies_of(door)}

    groups = {logical_id(entry["PrincipalArn"]).removesuffix("Role"): entry["KubernetesGroups"] for entry in access}
    assert groups.keys() == talking
    assert groups == {f"{door}Function": list(groups_of(door)) for door in IN_CLUSTER}
