"""The installer in the template: when it is asked, what it may do, and the ways to the webhook."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from joinery.gateways.account.aws import POLICY
from joinery.objects.settings import in_force
from tests.tree.resources import DOORS, RESOURCES, TEMPLATE, logical_id, policies_of, setting
from tools.template import ROOT


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
    """Every door waits for the Preparation, which also refuses wrong settings before any function has them."""
    waiting = {name for name, door in DOORS.items() if RESOURCES[door.logical_id].get("DependsOn") == "Preparation"}
    assert waiting == set(DOORS) - {"installer"}


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


def test_the_dashboard_is_named_after_cluster_and_region() -> None:
    """Dashboards have no region (Service Authorization Reference: ``cloudwatch::ACCOUNT:dashboard/NAME``)."""
    name = RESOURCES["WatchDashboard"]["Properties"]["DashboardName"]["Fn::Sub"]
    assert {"${ClusterName}", "${AWS::Region}"} <= set(re.findall(r"\$\{[^}]+\}", name))


def test_a_resource_keeps_its_type_as_long_as_it_has_its_name() -> None:
    """CloudFormation refuses an update that changes the type of a logical ID. The file has those that were released."""
    released: dict[str, str] = json.loads((ROOT / "tests/data/released-resources.json").read_text())

    assert [name for name, kind in released.items() if RESOURCES.get(name, {"Type": kind})["Type"] != kind] == []


def test_nothing_is_reserved_where_the_quota_is_too_small() -> None:
    """New accounts have ten concurrent executions, of which none may be reserved."""
    assert in_force("WebhookConcurrency=0")["WebhookConcurrency"] == "0"
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
    assert [s["Condition"] for s in policy] == [{"StringEquals": {"aws:SourceVpce": setting("WebhookVpcEndpointId")}}]
    assert RESOURCES["WebhookApi"]["Properties"]["EndpointConfiguration"]["Types"] == ["PRIVATE"]


def holds(condition: Any, given: dict[str, Any]) -> bool:
    """A condition of the section ``Rules``, of parameters (CloudFormation User Guide, "Rule-specific functions")."""
    ((function, parts),) = condition.items()
    if function == "Fn::Not":
        return not holds(parts[0], given)
    first, second = (given[part["Ref"]] if isinstance(part, dict) else part for part in parts)
    return bool(second in first if function == "Fn::Contains" else first == second)


@pytest.mark.parametrize(
    ("parameters", "refusal"),
    [
        ({}, ""),
        ({"SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}, ""),
        ({"SubnetIds": ["subnet-1"]}, "SubnetIds needs SecurityGroupIds"),
        ({"SecurityGroupIds": ["sg-1"]}, "SecurityGroupIds needs SubnetIds"),
    ],
)
def test_half_a_network_is_refused_before_anything_is_made(parameters: dict[str, Any], refusal: str) -> None:
    """And neither half is passed over."""
    lists = {name: [""] for name, one in TEMPLATE["Parameters"].items() if one["Type"] == "CommaDelimitedList"}
    given = {name: one.get("Default") for name, one in TEMPLATE["Parameters"].items()} | lists | parameters
    broken = [
        assertion["AssertDescription"]
        for rule in TEMPLATE["Rules"].values()
        if holds(rule["RuleCondition"], given)
        for assertion in rule["Assertions"]
        if not holds(assertion["Assert"], given)
    ]
    assert [one.partition(",")[0] for one in broken] == ([refusal] if refusal else [])


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
    """Addresses and ARNs are made in ``joinery.gateways.partitions``."""
    for path in sorted((ROOT / "shared").rglob("*.py")):
        if path.name == "partitions.py":
            continue
        text = path.read_text()
        if "amazonaws" not in text and "arn:" not in text:
            continue
        strings = [n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)]
        addresses = [s for s in strings if isinstance(s, str) and re.search(r"https://\S*amazonaws\.com", s)]
        arns = [s for s in strings if isinstance(s, str) and re.match(r"arn:aws\b", s)]
        assert (addresses, arns) == ([], []), path
