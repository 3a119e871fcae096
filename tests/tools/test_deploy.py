"""`make deploy`: what is looked at first, what SAM is told, and what is said afterwards."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from joinery.decisions.installation.requests import stack_name
from joinery.objects.settings import in_force
from tools.deploy import command, dated, failures, left_by_hand
from tools.deploy_many import Stacks
from tools.deploy_plan import Account, Deployment, parameters_in, plan, refuse_unknown
from tools.deploy_settings import RefusedError, text_of
from tools.template import TEMPLATE, load

CLUSTER = {"version": "1.33", "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"}}
ACCOUNT = Account(cluster=CLUSTER, concurrency=1000)


def test_a_cluster_has_one_stack_that_is_named_after_it() -> None:
    """Any number of clusters fit into one account and region."""
    planned = plan("blue", ACCOUNT, {})
    assert (planned.stack, planned.parameters["ClusterName"], planned.notes) == ("joinery-blue", "blue", [])
    assert stack_name("team_blue") == "joinery-team-blue"


def test_a_stack_of_another_name_is_updated() -> None:
    """Before, a stack was called joinery, whatever its cluster."""
    planned = plan("blue", Account(cluster=CLUSTER, concurrency=1000, stacks=Stacks({"blue": "joinery"})), {})

    assert planned.stack == "joinery"
    assert "run by stack joinery" in planned.notes[0]


def test_a_small_quota_is_no_obstacle() -> None:
    """New accounts have ten executions: nothing is reserved, and that is said."""
    planned = plan("blue", Account(cluster=CLUSTER, concurrency=10), {})

    assert planned.parameters["Settings"] == "WebhookConcurrency=0"
    assert "10 concurrent executions" in planned.notes[0]
    assert "a flood of calls" in planned.notes[0]


def test_what_was_not_reserved_in_a_small_account_is_reserved_once_its_quota_has_grown() -> None:
    """CloudFormation would keep the 0, and what a flood of calls costs would be bounded by the quota alone."""
    settings = {"blue": "WebhookConcurrency=0"}
    grown = Account(cluster=CLUSTER, concurrency=1000, stacks=Stacks({"blue": "joinery-blue"}, settings=settings))
    assert plan("blue", grown, {}).parameters["Settings"] == ""
    assert plan("blue", grown, {"WebhookConcurrency": "0"}).parameters["Settings"] == "WebhookConcurrency=0"


def test_what_is_reserved_stays_reserved() -> None:
    """It is no longer to spare, because the stack has it; and a number of the user's own is left alone."""
    for settings in ("", "WebhookConcurrency=20", "WebhookConcurrency=30"):
        stacks, present = {"blue": "joinery-blue"}, {"blue": settings}
        account = Account(cluster=CLUSTER, concurrency=101, stacks=Stacks(stacks, settings=present))
        assert plan("blue", account, {}).parameters["Settings"] == settings


def test_edits_are_overwritten_once_and_not_from_then_on() -> None:
    """A setting that nobody names keeps its value, but for this one."""
    present = replace(ACCOUNT, stacks=Stacks(settings={"blue": "ForceConflicts=true; NodeRepair=reboot"}))
    assert plan("blue", present, {}).parameters["Settings"] == "NodeRepair=reboot"
    assert plan("blue", ACCOUNT, {"ForceConflicts": "true"}).parameters["Settings"] == "ForceConflicts=true"


def test_a_setting_that_nobody_names_keeps_its_value() -> None:
    """One that is given replaces what was there, and one without a value has its default again."""
    present = replace(ACCOUNT, stacks=Stacks(settings={"blue": "NodeRepair=reboot; Canary=off"}))
    given = {"Mode": "observe", "Canary": "", "MaxLaunches": "7"}
    parameters = {"ClusterName": "blue", "Mode": "observe", "Settings": "NodeRepair=reboot; MaxLaunches=7"}
    assert plan("blue", present, given).parameters == parameters
    assert plan("blue", present, {"Settings": "SpotToSpot=false"}).parameters["Settings"] == "SpotToSpot=false"


def test_what_is_said_in_the_parameter_itself_counts_as_by_its_name() -> None:
    """Also what is not kept, and what is worked out where nobody says it."""
    small = Account(cluster=CLUSTER, concurrency=10)
    for said in ("WebhookConcurrency=7", "WebhookConcurrency=7; ForceConflicts=true"):
        assert plan("blue", small, {"Settings": said}).parameters["Settings"] == said
    private = {"Settings": "WebhookEndpoint=private", "WebhookVpcEndpointId": "vpce-1"}
    assert (
        plan("blue", ACCOUNT, private).parameters["Settings"] == "WebhookEndpoint=private; WebhookVpcEndpointId=vpce-1"
    )
    both = {"Settings": "NodeRepair=reboot; Canary=off", "NodeRepair": "replace"}
    assert plan("blue", ACCOUNT, both).parameters["Settings"] == "NodeRepair=replace; Canary=off"


def test_what_has_its_default_again_is_said() -> None:
    """Whoever names one setting in Settings takes all others back."""
    present = replace(
        ACCOUNT, stacks=Stacks(settings={"blue": "NodeRepair=reboot; Canary=off; SpotToSpot=true; MaxLaunches=3"})
    )
    assert plan("blue", present, {"Settings": "Canary=5% for 1h", "MaxLaunches": ""}).notes == [
        "NodeRepair was reboot, and has its default again, because Settings does not name it.",
    ]
    assert plan("blue", present, {"Canary": ""}).notes == []


@pytest.mark.parametrize("kept", ["AccessEntries=false", "KmsKeyArn=arn:aws:kms:eu-west-1:1:key/1",
                                  "PermissionsBoundaryArn=arn:aws:iam::aws:policy/a"])  # fmt: skip
def test_a_key_a_boundary_and_the_access_are_not_lost_unsaid(kept: str) -> None:
    """Each must be named, with its value or without."""
    name = kept.partition("=")[0]
    present = replace(ACCOUNT, stacks=Stacks(settings={"blue": kept}))
    with pytest.raises(RefusedError, match=f"Settings does not name {name}, which the stack has: say {name}=, too"):
        plan("blue", present, {"Settings": "Canary=off"})
    assert plan("blue", present, {"Settings": f"Canary=off; {kept}"}).notes == []
    assert plan("blue", present, {"Settings": "Canary=off", name: ""}).parameters["Settings"] == "Canary=off"


def test_what_is_switched_on_again_is_said() -> None:
    """The list replaces the one that the stack has."""
    present = replace(ACCOUNT, stacks=Stacks(settings={"blue": "SwitchedOff=disruption, catalog"}))
    assert plan("blue", present, {"SwitchedOff": "catalog"}).notes == ["disruption is switched on again."]
    assert len(plan("blue", present, {"SwitchedOff": ""}).notes) == 2


def test_a_stack_of_another_release_can_be_deployed_to() -> None:
    """What this one does not know is left out and said; `Gone=` may be said, too."""
    present = replace(ACCOUNT, stacks=Stacks(settings={"blue": "Gone=1; NodeRepair=reboot; WebhookConcurrency=many"}))
    planned = plan("blue", present, {"Gone": ""})
    assert planned.parameters == {"ClusterName": "blue", "Settings": "NodeRepair=reboot"}
    assert planned.notes == ["The stack's Settings: there is no setting Gone, so it is left out."]
    refuse_unknown({"Gone": ""}, load()["Parameters"], {"Gone"})
    for given, stored in (({"Gone": "2"}, {"Gone"}), ({"Gone": ""}, set())):
        with pytest.raises(RefusedError, match="the stack has no Gone"):
            refuse_unknown(given, load()["Parameters"], stored)


def test_a_setting_of_the_stack_that_is_not_taken_any_more_must_be_given() -> None:
    """To leave out a key, because its pattern has changed, would be worse."""
    present = replace(ACCOUNT, stacks=Stacks(settings={"blue": "KmsKeyArn=key/1; NodeRepair=reboot"}))
    said = "^The stack's Settings: KmsKeyArn is 'key/1': expected an ARN. Say KmsKeyArn=..., or KmsKeyArn= for its"
    with pytest.raises(RefusedError, match=said):
        plan("blue", present, {})
    assert plan("blue", present, {"KmsKeyArn": ""}).parameters["Settings"] == "NodeRepair=reboot"


def test_a_stack_that_takes_no_update_is_told_so_before_its_settings_are_read() -> None:
    """They may be why its creation failed."""
    states, settings = {"joinery-blue": "ROLLBACK_COMPLETE"}, {"blue": "NodeRepair=often"}
    account = replace(ACCOUNT, stacks=Stacks({"blue": "joinery-blue"}, states, settings))
    with pytest.raises(RefusedError, match="The first deployment of joinery-blue failed"):
        plan("blue", account, {})


def test_a_stack_with_a_parameter_for_each_setting_keeps_them() -> None:
    """As templates before the parameter Settings had them."""
    old = {
        "ClusterName": "blue", "DeployedAt": "2026-11-01T12:00:00Z", "MaxHourly": "1000", "NodeRepair": "reboot",
        "KmsKeyArn": "", "StarterSubnetIds": "subnet-1,subnet-2", "DisruptionEnabled": "false",
        "CatalogEnabled": "false", "WebhookEnabled": "true",
    }  # fmt: skip
    text = text_of(old)
    assert in_force(text) == in_force(
        "NodeRepair=reboot; StarterSubnetIds=subnet-1,subnet-2; SwitchedOff=disruption,catalog"
    )
    assert "MaxHourly" not in text
    assert text_of({**old, "Settings": ""}) == ""


@pytest.mark.parametrize("value", ['a"b', "a\\b"])
def test_what_would_end_the_text_that_sam_is_given_is_refused(value: str) -> None:
    """SAM takes parameters in quotation marks."""
    with pytest.raises(RefusedError, match="a value holds no quotation marks and no backslashes"):
        refuse_unknown({"AlarmTopicArn": value}, load()["Parameters"])


def test_each_deployment_has_the_installer_called(tmp_path: Path) -> None:
    """Nothing else may have changed but what somebody deleted in the cluster, which CloudFormation does not see."""
    noon = datetime(2026, 11, 1, 12, tzinfo=UTC)
    (tmp_path / "deployed.yaml").write_text(dated(TEMPLATE.read_text(), noon))
    release = load(tmp_path / "deployed.yaml")["Mappings"]["Release"]["Joinery"]
    assert release == {**load()["Mappings"]["Release"]["Joinery"], "DeployedAt": "2026-11-01T12:00:00Z"}
    for resource in ("Preparation", "Connection"):
        moment = load()["Resources"][resource]["Properties"]["DeployedAt"]
        assert moment == {"Fn::FindInMap": ["Release", "Joinery", "DeployedAt"]}


def test_what_a_person_says_counts() -> None:
    """Also where it may fail."""
    given = {"WebhookConcurrency": "5"}
    parameters = plan("blue", Account(cluster=CLUSTER, concurrency=10), given).parameters
    assert parameters["Settings"] == "WebhookConcurrency=5"


@pytest.mark.parametrize(("cluster", "given", "said"), [
    (None, {}, "There is no EKS cluster blue"),
    ({"version": "1.29"}, {}, "runs Kubernetes 1.29: Joinery needs 1.30"),
    ({"accessConfig": {"authenticationMode": "CONFIG_MAP"}}, {}, "authenticationMode=API_AND_CONFIG_MAP"),
    (CLUSTER, {"ClusterName": "red"}, "say one cluster"),
    (CLUSTER, {"Runtime": "python3.12"}, "say make deploy RUNTIME=python3.12"),
])  # fmt: skip
def test_what_would_fail_is_refused_before_anything_is_deployed(
    cluster: dict[str, object] | None, given: dict[str, str], said: str
) -> None:
    """In a second, and not after minutes of CloudFormation."""
    with pytest.raises(RefusedError, match=said):
        plan("blue", Account(cluster=cluster, concurrency=1000), given)


def test_a_cluster_with_aws_auth_alone_may_be_installed_by_hand() -> None:
    """Where that is asked for."""
    account = Account(cluster={"accessConfig": {"authenticationMode": "CONFIG_MAP"}}, concurrency=1000)
    assert plan("blue", account, {"AccessEntries": "false"})


def test_parameters_are_read_as_a_shell_reads_them() -> None:
    """Values may hold blanks and commas."""
    assert parameters_in("Mode=observe Canary='1 node for 10m' SubnetIds=subnet-1,subnet-2") == {
        "Mode": "observe",
        "Canary": "1 node for 10m",
        "SubnetIds": "subnet-1,subnet-2",
    }
    with pytest.raises(RefusedError, match="'Mode' is not of the form"):
        parameters_in("Mode observe")
    with pytest.raises(RefusedError, match="Mode is there twice"):
        parameters_in("Mode=observe Mode=act")
    with pytest.raises(RefusedError, match="PARAMETERS cannot be read: No closing quotation"):
        parameters_in("Canary='1 node")


@pytest.mark.parametrize(
    ("key", "advice"),
    [("Mod", r"do you mean Mode\?$"), ("mode", r"do you mean Mode\?$"), ("Xyzzy", r"reference\.md lists")],
)
def test_a_parameter_that_the_stack_does_not_have_is_refused(key: str, advice: str) -> None:
    """SAM would leave it out without a word, and a cluster would be acted on that should have been observed."""
    with pytest.raises(RefusedError, match=rf"^PARAMETERS: the stack has no {key}: .*{advice}"):
        refuse_unknown({key: "observe"}, load()["Parameters"])
    refuse_unknown({"Mode": "observe"}, load()["Parameters"])


@pytest.mark.parametrize(("given", "rule"), [
    ("Mode=actt", "Mode is one of observe, act"),
    ("ClusterName=blue/green", "ClusterName must match [0-9A-Za-z][0-9A-Za-z_-]{0,99}"),
])  # fmt: skip
def test_a_value_that_a_parameter_does_not_take_is_refused(given: str, rule: str) -> None:
    """Before the build, which takes longer than the mistake; CloudFormation would refuse it after that."""
    name, _, value = given.partition("=")
    with pytest.raises(RefusedError, match=f"^PARAMETERS: {re.escape(f'{given}: {rule}')}$"):
        refuse_unknown({name: value}, load()["Parameters"])


@pytest.mark.parametrize(("given", "said"), [
    ("LogRetentionDays=2", "LogRetentionDays is '2': expected 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365"),
    ("DisruptionPayback=soon", "DisruptionPayback is 'soon'"),
    ("RolePath=team/", "RolePath is 'team/': expected /path/"),
    ("MaxLaunches=-1", "MaxLaunches is '-1': expected a whole number"),
    ("DisruptionSeconds=201", "DisruptionSeconds is not from 1 to 200"),
    ("WebhookEndpoint=private", "WebhookEndpoint=private needs WebhookVpcEndpointId"),
])  # fmt: skip
def test_a_value_that_a_setting_does_not_take_is_refused(given: str, said: str) -> None:
    """The installer would refuse it too, but after the build and minutes of CloudFormation."""
    name, _, value = given.partition("=")
    refuse_unknown({name: value}, load()["Parameters"])
    with pytest.raises(RefusedError, match=f"^PARAMETERS: {re.escape(said)}"):
        plan("blue", ACCOUNT, {name: value})


def test_values_that_the_template_takes_are_taken() -> None:
    """Each default, and what the patterns are for."""
    parameters = load()["Parameters"]
    refuse_unknown({key: str(one["Default"]) for key, one in parameters.items() if "Default" in one}, parameters)
    taken = "Canary='5% for 1h30m' TerminateFirst=static,scarce RolePath=/a/ DisruptionMovePrice=0.02 MaxHourly=1.5"
    settings = plan("blue", ACCOUNT, parameters_in(taken)).parameters["Settings"]
    assert re.fullmatch(parameters["Settings"]["AllowedPattern"], settings)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("ROLLBACK_COMPLETE", "The first deployment of joinery-blue failed .* delete-stack --stack-name joinery-blue"),
        ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback --stack-name joinery-blue"),
        ("DELETE_FAILED", "deleted in part only"),
        ("UPDATE_IN_PROGRESS", "another deployment is under way"),
    ],
)
def test_a_stack_that_cannot_be_updated_is_refused_with_the_way_out(state: str, said: str) -> None:
    """The first deployment that fails leaves such a stack, and the second one must say what to do."""
    account = Account(cluster=CLUSTER, concurrency=1000, stacks=Stacks(states={"joinery-blue": state}))
    with pytest.raises(RefusedError, match=f"(?s){said}"):
        plan("blue", account, {})


@pytest.mark.parametrize("state", ["UPDATE_ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS"])
def test_a_stack_that_was_rolled_back_or_only_reviewed_is_deployed_to(state: str) -> None:
    """CloudFormation updates the one and creates the other."""
    assert plan("blue", Account(cluster=CLUSTER, concurrency=1000, stacks=Stacks(states={"joinery-blue": state})), {})


def test_sam_asks_nobody_unless_it_is_to() -> None:
    """One command in."""
    planned = Deployment("joinery-blue", {"ClusterName": "blue", "Settings": "Canary=1 node for 10m"})

    told = command("sam", "eu-central-1", planned, Path("t.yaml"), [])
    assert told[:6] == ["sam", "deploy", "--template-file", "t.yaml", "--stack-name", "joinery-blue"]
    assert "--no-confirm-changeset" in told
    assert told[-2:] == ['ClusterName="blue"', 'Settings="Canary=1 node for 10m"']
    assert "--no-confirm-changeset" not in command(
        "sam", "eu-central-1", planned, Path("t.yaml"), ["--confirm-changeset"]
    )


def test_what_is_left_to_do_is_said() -> None:
    """Nothing; or what the user has chosen to do themselves."""
    assert left_by_hand({}, {"StarterNodePool": "true"}) == ["Nothing is left to do by hand."]
    assert "The role for nodes is nodes-1." in left_by_hand({"NodeRole": "nodes-1"}, {})[1]
    assert "Noted in the cluster: nothing." in left_by_hand({"Notes": "in the cluster: nothing"}, {})


def test_roles_are_mapped_by_hand_as_aws_auth_knows_them() -> None:
    """Each to the group of all doors and to its own, and without the path of its ARN."""
    roles = "joinery-lifecycle=arn:aws:iam::1:role/team/a,joinery-expiration=arn:aws:iam::1:role/b"

    assert left_by_hand({"FunctionRoles": roles}, {"AccessEntries": "false"})[1:-1] == [
        "  - rolearn: arn:aws:iam::1:role/a",
        "    username: joinery-lifecycle",
        "    groups: [joinery, joinery-lifecycle]",
        "  - rolearn: arn:aws:iam::1:role/b",
        "    username: joinery-expiration",
        "    groups: [joinery, joinery-expiration]",
    ]


def test_what_an_earlier_deployment_failed_of_is_not_said_again() -> None:
    """A change set that CloudFormation refuses leaves no events, so the newest ones are of another deployment."""
    old = {
        "EventId": "7",
        "LogicalResourceId": "Preparation",
        "ResourceStatus": "UPDATE_FAILED",
        "ResourceStatusReason": "an older failure",
        "ResourceType": "Custom::Joinery",
    }
    assert failures([old], before="7") == []
    assert failures([{**old, "EventId": "8"}, old], before="7") == ["Preparation: an older failure"]


def test_a_failure_is_said_in_the_installer_s_words() -> None:
    """Of the newest operation alone, and not what was cancelled because of it."""

    def event(name: str, status: str, reason: str = "", kind: str = "AWS::SQS::Queue") -> dict[str, str]:
        return {
            "LogicalResourceId": name,
            "ResourceStatus": status,
            "ResourceStatusReason": reason,
            "ResourceType": kind,
        }

    stack = "AWS::CloudFormation::Stack"
    newest_first = [
        event("joinery-blue", "UPDATE_ROLLBACK_COMPLETE", kind=stack),
        event("joinery-blue", "UPDATE_ROLLBACK_IN_PROGRESS", kind=stack),
        event("Queue", "UPDATE_FAILED", "Resource update cancelled"),
        event("Preparation", "UPDATE_FAILED", "ClusterRole joinery: .rules by kubectl-edit"),
        event("joinery-blue", "UPDATE_IN_PROGRESS", kind=stack),
        event("Preparation", "CREATE_FAILED", "an older failure"),
    ]
    assert failures(newest_first) == ["Preparation: ClusterRole joinery: .rules by kubectl-edit"]
