"""The template agrees with the code: doors, environment, bells, rules, schedules, permissions."""

import ast
import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from joinery.account.aws import POLICY
from joinery.apis import duration
from joinery.apis.disruption import canary_of
from joinery.apis.labels import OWN_GROUP
from joinery.apis.policies import (
    MetricsDetail,
    MinValuesPolicy,
    NodeRepair,
    PreferencePolicy,
    Rebalance,
    terminate_first_of,
)
from joinery.controllers.disruption import READING_SECONDS
from joinery.controllers.installer.controller import ROTATE
from joinery.controllers.lease import ACTING_SECONDS, LEASE_SECONDS
from joinery.doorbell.gateway import DELAYS, Bell
from joinery.installation.groups import DOORS as IN_CLUSTER
from joinery.installation.groups import groups_of
from joinery.installation.requests import is_request
from joinery.interruption.envelope import detail_type
from joinery.interruption.notice import READERS, Notice, NoticeKind, parse
from joinery.settings import NEEDS, Settings, variable
from joinery.store.gateway import CATALOG_KEY
from joinery.unavailable.dynamodb import EXPIRES, KEY
from tools.template import ROOT, Door, doors, load, of_type

TEMPLATE = load()
DOORS = doors(TEMPLATE)
RESOURCES = TEMPLATE["Resources"]
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


def resources(kind: str) -> dict[str, dict[str, Any]]:
    """The properties of the template's resources of a type."""
    return of_type(TEMPLATE, kind)


def logical_id(reference: Any) -> str:
    """The resource that a Ref or GetAtt is about."""
    return str(reference.get("Ref") or str(reference["Fn::GetAtt"]).partition(".")[0])


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


RULES = resources("AWS::Events::Rule")


def test_six_rules_feed_the_interruption_queue_with_what_is_understood() -> None:
    """Each kind of event that the parser knows is sent by one rule, and no rule sends what it does not know."""
    patterns = [rule["EventPattern"] for rule in RULES.values()]
    sent = [(source, kind) for pattern in patterns for source in pattern["source"] for kind in pattern["detail-type"]]

    assert len(RULES) == 6
    assert sorted(sent) == sorted(sender for sender in READERS if sender[0] != OWN_GROUP)
    assert all(logical_id(rule["Targets"][0]["Arn"]) == "InterruptionQueue" for rule in RULES.values())


#: What no rule sends, because no node is about to go: the volume and the host of Health are told apart by the reader.
UNSENT = {
    "asg-terminate-lifecycle-action",
    "capacity-block-delivered",
    "capacity-reservation-reclamation-completed",
    "future-reservation-active",
}


@pytest.mark.parametrize("path", sorted((ROOT / "tests/data/real/eventbridge").glob("*.json")), ids=lambda p: p.stem)
def test_every_real_event_matches_the_rule_whose_reader_it_has(path: Path) -> None:
    """One rule for what the parser reads, none for what it would drop.

    EventBridge writes the detail-type with a hyphen.
    """
    event = json.loads(path.read_text())
    kind = detail_type(event)
    sent_by = [
        name
        for name, rule in RULES.items()
        if event["source"] in rule["EventPattern"]["source"] and kind in rule["EventPattern"]["detail-type"]
    ]

    assert len(sent_by) == (path.stem not in UNSENT)
    assert bool(sent_by) == ((event["source"], kind) in READERS)


def test_only_those_rules_may_send_interruptions_and_only_over_tls() -> None:
    """Nobody else's rule can retire a node."""
    allow, deny = RESOURCES["InterruptionQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    senders = {logical_id(arn) for arn in allow["Condition"]["ArnEquals"]["aws:SourceArn"]}

    assert senders == set(resources("AWS::Events::Rule"))
    assert deny["Effect"] == "Deny"


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


def policy(name: str) -> list[dict[str, Any]]:
    """The statements of a policy that is JSON text, because its condition keys hold the cluster's name."""
    document = RESOURCES[name]["Properties"]["PolicyDocument"]["Fn::Sub"]
    text = document if isinstance(document, str) else document[0]
    statements: list[dict[str, Any]] = json.loads(text)["Statement"]
    return statements


def policies_of(door: Door) -> list[Any]:
    """The policies of a door; the installer's are attached to a role of its own."""
    attached: list[Any] = RESOURCES[door.logical_id]["Properties"].get("Policies", [])
    return attached


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


# --- sample events ---
EVENTS = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))}

Pattern = Callable[[dict[str, Any]], bool]


def from_queue(name: str) -> Pattern:
    """Whether an event is a batch of this queue."""
    return lambda event: all(f"-{name}-" in r["eventSourceARN"] for r in event.get("Records", [{"eventSourceARN": ""}]))


WAKES: dict[str, Pattern] = {
    "webhook": lambda event: (event.get("version") == "2.0" and "rawPath" in event) or "httpMethod" in event,
    "provisioning": from_queue("ProvisioningQueue"),
    "lifecycle": from_queue("LifecycleQueue"),
    "interruption": from_queue("InterruptionQueue"),
    "disruption": from_queue("DisruptionQueue"),
    "expiration": lambda event: event.get("door") == "expiration",
    "catalog": lambda event: event.get("door") == "catalog",
    "installer": is_request,
}


@pytest.mark.parametrize("name", EVENTS)
def test_a_sample_event_wakes_exactly_one_door(name: str) -> None:
    """The file's name says which, and its form says the same."""
    assert [door for door, wakes in WAKES.items() if wakes(EVENTS[name])] == [name.partition("_")[0]]


def test_every_door_has_a_sample_event() -> None:
    """Whoever changes a door can try it."""
    assert {name.partition("_")[0] for name in EVENTS} == set(DOORS)


@pytest.mark.parametrize("name", [name for name in EVENTS if name.startswith("interruption_")])
def test_a_sample_interruption_matches_exactly_one_rule(name: str) -> None:
    """What the samples show is what EventBridge would deliver."""
    for record in EVENTS[name]["Records"]:
        envelope = json.loads(record["body"])
        matching = [
            rule
            for rule, properties in resources("AWS::Events::Rule").items()
            if all(envelope[field] in values for field, values in properties["EventPattern"].items())
        ]
        assert len(matching) == 1


def test_every_rule_has_a_sample_event() -> None:
    """No kind of interruption is untried."""
    bodies = [json.loads(r["body"]) for n, e in EVENTS.items() if n.startswith("interruption_") for r in e["Records"]]
    sent = [kind for rule in RULES.values() for kind in rule["EventPattern"]["detail-type"]]

    assert sorted(sent) == sorted({body["detail-type"] for body in bodies})


# --- the installer ---


def references(part: Any) -> Iterator[str]:
    """The names in Ref, Fn::GetAtt, Fn::Sub and DependsOn, anywhere in a part of the template."""
    if isinstance(part, list):
        for each in part:
            yield from references(each)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "DependsOn":
                yield from value if isinstance(value, list) else [value]
            elif key in ("Ref", "Fn::GetAtt"):
                yield str(value).partition(".")[0]
            else:
                if key == "Fn::Sub":
                    text = value if isinstance(value, str) else value[0]
                    yield from re.findall(r"\$\{(\w+)", text)
                yield from references(value)


def dependencies(name: str) -> set[str]:
    """All that a resource depends on. A function has its generated role, and what the globals give every function."""
    reached: set[str] = set()
    todo = [name]
    while todo:
        resource = RESOURCES[todo.pop()]
        is_function = resource["Type"] == "AWS::Serverless::Function"
        parts = [resource, TEMPLATE["Globals"]["Function"] if is_function else {}]
        # A generated role exists as its function does.
        names = {each if each in RESOURCES else each.removesuffix("Role") for each in references(parts)}
        todo += names & set(RESOURCES) - reached
        reached |= names & set(RESOURCES)
    return reached - {name}


def test_the_connection_is_deleted_before_anything_else() -> None:
    """CloudFormation deletes what depends on others first. Where nodes are left, the Connection refuses, and by then
    nothing else may be gone: a stack whose deletion has failed cannot be updated, so not even an alarm would come back.
    """
    assert set(RESOURCES) - dependencies("Connection") == {"Connection"}


def test_the_installer_outlives_what_it_removes() -> None:
    """Its function, role and rights are there before both custom resources, and after them."""
    for name in ("Preparation", "Connection"):
        assert {"InstallerFunction", "InstallerRole", "InstallerPolicy", "LogGroup"} <= dependencies(name)
    assert "Preparation" in dependencies("Connection")


def test_definitions_and_rights_come_before_the_code_that_needs_them() -> None:
    """Every door that talks to the cluster waits for the Preparation."""
    for door in DOORS.values():
        talks = {"Ref": "ClusterPolicy"} in policies_of(door)
        assert (RESOURCES[door.logical_id].get("DependsOn") == "Preparation") == talks


@pytest.mark.parametrize("name", ["Preparation", "Connection"])
def test_every_new_release_reaches_the_cluster(name: str) -> None:
    """CloudFormation updates a custom resource only if one of its properties changes: version, or the code."""
    properties = RESOURCES[name]["Properties"]

    assert properties["Version"] == {"Fn::FindInMap": ["Release", "Joinery", "Version"]}
    assert properties["Code"] == {"Ref": "SharedLayer"}


@pytest.mark.parametrize("name", ["Preparation", "Connection"])
def test_cloudformation_waits_no_longer_than_the_installer_may_work(name: str) -> None:
    """An hour is what it waits by itself for a function that was killed."""
    waits, works = RESOURCES[name]["Properties"]["ServiceTimeout"], DOORS["installer"].timeout

    assert works < waits <= works + 120


def test_the_installer_s_rights_are_good_for_its_function_alone() -> None:
    """A trust policy cannot name the function, so each right does."""
    for name in ("InstallerPolicy", "InstallerCatalogPolicy", "InstallerNodeRolePolicy"):
        for statement in RESOURCES[name]["Properties"]["PolicyDocument"]["Statement"]:
            if statement.get("Sid") == "TellOfAFailure":  # Lambda tells, in the role's name
                assert statement["Action"] == "sqs:SendMessage"
                continue
            bound = statement["Condition"]["ArnEquals"]["lambda:SourceFunctionArn"]
            assert logical_id(bound) == "InstallerFunction"
            assert statement["Resource"] != "*"


def test_the_installer_lets_nobody_in_but_itself() -> None:
    """Its own access entry, and one access policy."""
    by_sid = {s["Sid"]: s for s in RESOURCES["InstallerPolicy"]["Properties"]["PolicyDocument"]["Statement"]}

    assert logical_id(by_sid["MakeItsOwnAccessEntry"]["Condition"]["ArnEquals"]["eks:principalArn"]) == "InstallerRole"
    assert by_sid["BecomeAdministrator"]["Condition"]["ArnEquals"]["eks:policyArn"]["Fn::Sub"].endswith(POLICY)
    for sid in ("UseItsOwnAccessEntry", "BecomeAdministrator"):
        assert "/${ClusterName}/role/${AWS::AccountId}/${InstallerRole}/" in by_sid[sid]["Resource"]["Fn::Sub"]


def test_nodes_that_are_left_keep_their_role() -> None:
    """CloudFormation keeps it, unless the stack's own creation fails; the installer removes it when no node is left."""
    for name in ("NodeRole", "NodeInstanceProfile", "NodeAccess"):
        assert RESOURCES[name]["DeletionPolicy"] == "RetainExceptOnCreate"
        assert RESOURCES[name]["UpdateReplacePolicy"] == "Retain"
    assert {"NodeRole", "NodeInstanceProfile", "InstallerNodeRolePolicy"} <= dependencies("Preparation")


def test_a_role_has_no_more_managed_policies_than_iam_allows() -> None:
    """Ten, and SAM adds two: for the log, and for a VPC."""
    for door in DOORS.values():
        assert len([one for one in policies_of(door) if "Ref" in one]) + 2 <= 10


def test_nothing_that_the_stack_makes_has_a_name_of_its_own_choosing() -> None:
    """Any number of stacks fits into one account and region."""
    naming = {"FunctionName", "RoleName", "QueueName", "TableName", "BucketName", "LogGroupName", "ManagedPolicyName"}
    for name, resource in RESOURCES.items():
        # Some name by this what they are about, and not themselves.
        named = [value for key, value in resource.get("Properties", {}).items() if key in naming]
        assert all(isinstance(value, dict) for value in named), name


def test_a_resource_keeps_its_type_as_long_as_it_has_its_name() -> None:
    """CloudFormation refuses an update that changes the type of a logical ID. The file has those that were released."""
    released: dict[str, str] = json.loads((ROOT / "tests/data/released-resources.json").read_text())

    assert [name for name, kind in released.items() if RESOURCES.get(name, {"Type": kind})["Type"] != kind] == []


def test_nothing_is_reserved_where_the_quota_is_too_small() -> None:
    """New accounts have ten concurrent executions, of which none may be reserved."""
    assert TEMPLATE["Parameters"]["WebhookConcurrency"]["MinValue"] == 0
    reserved = RESOURCES["WebhookFunction"]["Properties"]["ReservedConcurrentExecutions"]["Fn::If"]
    assert reserved[0] == "ReservedWebhook"
    assert reserved[2] == {"Ref": "AWS::NoValue"}


# --- private clusters and other partitions ---


def test_the_webhook_is_called_in_one_of_three_ways() -> None:
    """A Function URL, an API that only one endpoint of the VPC reaches, or nothing at all."""
    conditions = {name: r["Condition"] for name, r in RESOURCES.items() if r.get("Condition") in WAYS}
    policy = RESOURCES["WebhookApi"]["Properties"]["Policy"]["Statement"]

    assert {name for name, way in conditions.items() if way == "PublicWebhook"} == {
        "WebhookFunctionUrl", "WebhookFunctionUrlPublicPermissions", "WebhookFunctionURLInvokeAllowPublicAccess",
    }  # fmt: skip
    assert all(name.startswith("WebhookApi") for name, way in conditions.items() if way == "PrivateWebhook")
    assert [s["Condition"] for s in policy] == [{"StringEquals": {"aws:SourceVpce": {"Ref": "WebhookVpcEndpointId"}}}]
    assert RESOURCES["WebhookApi"]["Properties"]["EndpointConfiguration"]["Types"] == ["PRIVATE"]


def test_a_function_url_has_both_permissions() -> None:
    """New ones need them since October 2025 (Lambda Developer Guide, "Control access to function URLs")."""
    url, invoke = (RESOURCES[name]["Properties"] for name in sorted(WAYS_IN, reverse=True))

    assert (url["Action"], url["FunctionUrlAuthType"]) == ("lambda:InvokeFunctionUrl", "NONE")
    assert (invoke["Action"], invoke["InvokedViaFunctionUrl"]) == ("lambda:InvokeFunction", True)


WAYS = {"PublicWebhook", "PrivateWebhook"}
WAYS_IN = {"WebhookFunctionUrlPublicPermissions", "WebhookFunctionURLInvokeAllowPublicAccess"}
#: Names of services as principals: they are the same in every partition, unlike ARNs and addresses.
PRINCIPALS = {
    "apigateway.amazonaws.com", "ec2.amazonaws.com", "events.amazonaws.com", "lambda.amazonaws.com",
    "scheduler.amazonaws.com", "spot.amazonaws.com",
}  # fmt: skip


def test_the_template_names_no_partition() -> None:
    """GovCloud, China and isolated regions have ARNs and addresses of their own."""
    text = "\n".join(line.partition(" #")[0] for line in (ROOT / "template.yaml").read_text().splitlines())

    assert not re.search(r"arn:aws\b", text)
    assert set(re.findall(r"[\w-]+\.amazonaws\.com", text)) <= PRINCIPALS


def test_the_code_names_no_partition() -> None:
    """Addresses and ARNs are made in ``joinery.partitions``."""
    for path in sorted((ROOT / "shared").rglob("*.py")):
        if path.name == "partitions.py":
            continue
        strings = [n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)]
        addresses = [s for s in strings if isinstance(s, str) and re.search(r"https://\S*amazonaws\.com", s)]
        arns = [s for s in strings if isinstance(s, str) and re.match(r"arn:aws\b", s)]
        assert (addresses, arns) == ([], []), path
