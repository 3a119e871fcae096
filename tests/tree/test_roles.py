"""What each function's role may call of AWS: exactly what its code calls, and every call of the code is somebody's."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from joinery_cli.doctor.allowed import account_rights
from joinery_cli.doctor.findings import CheckStatus
from tests.functional.doctored import FakeAws, site
from tests.tree.resources import setting
from tools.template import ROOT, doors, load

TEMPLATE = load()
RESOURCES = TEMPLATE["Resources"]
PACKAGE = ROOT / "shared" / "joinery"
#: Names of a client in ``joinery.gateways.aws.Clients``, by the prefix of its actions.
SERVICES = {"dynamodb", "ec2", "eks", "iam", "s3", "ssm", "pricing", "functions", "secrets", "stacks", "arc"}
PREFIXES = {"functions": "lambda", "stacks": "cloudformation", "secrets": "secretsmanager", "arc": "arc-zonal-shift"}
#: What IAM calls otherwise than the API does.
RENAMED = {"lambda:Invoke": "lambda:InvokeFunction"}
#: Actions that another call needs (Service Authorization Reference), and what makes Lambda's pollers need theirs.
IMPLIED = {
    "ec2:RunInstances": "ec2:CreateFleet",
    "iam:PassRole": "ec2:CreateFleet",
    "iam:TagInstanceProfile": "iam:CreateInstanceProfile",
    "s3:ListBucket": "s3:GetObject",
    "eks:TagResource": "eks:CreateAccessEntry",
}
_POLLER = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}

_BELLS = {"sqs:SendMessage"}
_CLUSTER = {"eks:DescribeCluster"}
_CATALOGUE = {"s3:GetObject", "s3:ListBucket"}
_LAUNCH = {
    "ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateLaunchTemplate", "ec2:CreateTags", "iam:PassRole",
    "ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeCapacityReservations", "ec2:DescribeSubnets",
    "arc-zonal-shift:GetManagedResource", "dynamodb:Scan", "dynamodb:BatchWriteItem",
}  # fmt: skip
#: By door, what its code calls. A door that calls more must say so here, and be given it.
CALLS: Mapping[str, set[str]] = {
    "webhook": _BELLS | {"secretsmanager:GetSecretValue"},
    "provisioning": _BELLS | _POLLER | _CLUSTER | _CATALOGUE | _LAUNCH | {"s3:PutObject"},
    "disruption": _BELLS | _POLLER | _CLUSTER | _CATALOGUE | _LAUNCH | {"s3:PutObject"},
    "lifecycle": _BELLS | _POLLER | _CLUSTER | _CATALOGUE | _LAUNCH | {
        "ec2:TerminateInstances", "ec2:RebootInstances", "ec2:DescribeImages",
        "ec2:DescribeSecurityGroups", "ssm:GetParameter", "iam:GetInstanceProfile", "iam:ListInstanceProfiles",
        "iam:CreateInstanceProfile", "iam:TagInstanceProfile", "iam:AddRoleToInstanceProfile",
    },
    "interruption": _BELLS | _POLLER | _CLUSTER | {
        "ec2:DescribeInstanceStatus", "dynamodb:Scan", "dynamodb:BatchWriteItem",
    },
    "expiration": _BELLS | _CLUSTER,
    "catalog": _BELLS | _CATALOGUE | {
        "s3:PutObject", "pricing:GetProducts", "ec2:DescribeAvailabilityZones", "ec2:DescribeCapacityReservations",
        "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes", "ec2:DescribeSpotPriceHistory",
    },
}  # fmt: skip


def listed(value: Any) -> list[Any]:
    """A value that may stand alone, as IAM writes them."""
    return value if isinstance(value, list) else [value]


def statements(document: Any) -> list[dict[str, Any]]:
    """Those of a policy, also of one that is JSON text."""
    if "Fn::Sub" in document:
        text = listed(document["Fn::Sub"])[0]
        document = json.loads(text)
    found: list[dict[str, Any]] = document["Statement"]
    return found


def granted(door: str) -> set[str]:
    """The actions that the door's role has from its function, from managed policies and from policies for roles."""
    return {action for statement in allowing(door) for action in listed(statement["Action"])}


def allowing(door: str) -> list[dict[str, Any]]:
    """The statements that allow them."""
    (logical,) = (one.logical_id for one in doors(TEMPLATE).values() if one.name == door)
    policies = RESOURCES[logical]["Properties"].get("Policies", [])
    given = [one if "Statement" in one else RESOURCES[one["Ref"]]["Properties"]["PolicyDocument"] for one in policies]
    role = {"Ref": f"{logical}Role"}
    given += [
        one["Properties"]["PolicyDocument"]
        for one in RESOURCES.values()
        if one["Type"] == "AWS::IAM::Policy" and role in one["Properties"]["Roles"] and "Condition" not in one
    ]
    return [one for document in given for one in statements(document) if one["Effect"] == "Allow"]


@pytest.mark.parametrize("door", CALLS)
def test_a_role_may_call_what_its_code_calls_and_nothing_else(door: str) -> None:
    """A stolen role is worth as little as the door's own work."""
    assert granted(door) == CALLS[door]


#: What the stand-in of a site gives the stack's names.
_WRITTEN = {
    "AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "123456789012", "ClusterName": "blue",
    "NamedRole": "KarpenterNodeRole-blue", "Bucket.Arn": "arn:aws:s3:::bucket", "AWS::URLSuffix": "amazonaws.com",
}  # fmt: skip


def written(value: Any) -> str:
    """A value of a policy as CloudFormation writes it."""
    text = value if isinstance(value, str) else value.get("Fn::Sub") or "${" + value["Ref"] + "}"
    return re.sub(r"\$\{([^}]+)\}", lambda name: _WRITTEN.get(name[1], name[1]), text)


def is_met(statement: Mapping[str, Any], action: str, resource: str, context: Mapping[str, str]) -> bool:
    """Whether a statement allows a call."""
    return (
        action in listed(statement["Action"])
        and any(fnmatchcase(resource, written(one)) for one in listed(statement["Resource"]))
        and all(
            any(fnmatchcase(context.get(written(key), ""), written(one)) for one in listed(values))
            for block in statement.get("Condition", {}).values()
            for key, values in block.items()
        )
    )


def test_the_doctor_asks_for_rights_that_the_roles_have() -> None:
    """Each role of an untouched stack, simulated by the template's own statements."""
    asked = []

    def simulated(**call: Any) -> dict[str, Any]:
        asked.extend(call["ActionNames"])
        context = {one["ContextKeyName"]: one["ContextKeyValues"][0] for one in call["ContextEntries"]}
        (action,), (resource,), door = call["ActionNames"], call["ResourceArns"], call["PolicySourceArn"]
        is_allowed = any(is_met(one, action, resource, context) for one in allowing(door.removeprefix("fn-").lower()))
        return {"EvaluationResults": [{"EvalDecision": "allowed" if is_allowed else "implicitDeny"}]}

    of_a_function = {"get_function_configuration": lambda **asked: {"Role": asked["FunctionName"]}}
    aws = FakeAws(simulate_principal_policy=simulated, **of_a_function)
    assert [(one.status, one.text) for one in account_rights(site(aws))] == [
        (CheckStatus.OK, "the functions may launch, tag, end and record")
    ]
    assert {"ec2:CreateFleet", "ec2:CreateTags", "ec2:TerminateInstances", "s3:PutObject"} <= set(asked)


@pytest.mark.parametrize(("given", "may_read"), [("", False), ("/images/*", True), ("/images/al2023", True)])
def test_parameters_of_the_users_own_may_be_read_where_the_stack_names_them(given: str, may_read: bool) -> None:
    """They may hold anything. AWS's own, which hold its images, may always be read."""
    (reading,) = (one for one in allowing("lifecycle") if one["Action"] == "ssm:GetParameter")
    resources = [written(one).replace("ImageParameters", given) for one in reading["Resource"]]
    own = "arn:aws:ssm:us-east-1:123456789012:parameter/images/al2023"
    assert any(fnmatchcase(own, one) for one in resources) is may_read
    assert any(fnmatchcase("arn:aws:ssm:us-east-1::parameter/aws/service/x/y", one) for one in resources)


def test_only_lifecycle_may_tag_what_runs_already() -> None:
    """Others tag what they create while they create it: tags say whose an instance is."""
    later = {
        door
        for door in CALLS
        for one in allowing(door)
        if "ec2:CreateTags" in listed(one["Action"]) and "ec2:CreateAction" not in json.dumps(one["Condition"])
    }
    assert later == {"lifecycle"}


def called() -> Iterator[tuple[str, Path]]:
    """Every call of an AWS client in the package, as IAM names it."""
    for path in PACKAGE.rglob("*.py"):
        if "cli" in path.relative_to(PACKAGE).parts:
            continue  # a person's own rights
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            client, method = node.func.value, node.func.attr
            name = client.attr.lstrip("_") if isinstance(client, ast.Attribute) else getattr(client, "id", "")
            # ``pricing`` and ``secrets`` are modules too.
            if name not in SERVICES or (isinstance(client, ast.Name) and name in ("pricing", "secrets")):
                continue
            if method == "get_paginator" and isinstance(node.args[0], ast.Constant):
                method = str(node.args[0].value)
            action = f"{PREFIXES.get(name, name)}:{''.join(part.title() for part in method.split('_'))}"
            yield RENAMED.get(action, action), path
        for target in re.findall(r'"(AmazonSQS|secretsmanager)\.(\w+)"', text):
            yield f"{'sqs' if target[0] == 'AmazonSQS' else target[0]}:{target[1]}", path


def test_every_call_in_the_code_is_in_somebodys_rights_and_no_right_is_without_a_call() -> None:
    """A right outlives the code that needed it, unless somebody counts."""
    calls = {action for action, _ in called()}
    table = set().union(*CALLS.values())
    own = [one["Properties"]["PolicyDocument"] for name, one in RESOURCES.items() if _is_of_installer(name)]
    installers = {action for document in own for one in statements(document) for action in listed(one["Action"])}
    installers -= {"logs:CreateLogStream", "logs:PutLogEvents"}  # Lambda's own
    assert calls - table - installers == set()
    unused = {one for one in table | installers if one not in calls and IMPLIED.get(one) not in calls}
    assert unused == _POLLER


def _is_of_installer(name: str) -> bool:
    return name.startswith("Installer") and bool(RESOURCES[name]["Type"] == "AWS::IAM::Policy")


def test_a_profile_is_tagged_only_if_it_is_this_clusters_already() -> None:
    """Otherwise one could make another's profile this cluster's, and put a role into it."""
    (tagging,) = (
        s
        for policy in RESOURCES.values()
        if policy["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        for s in statements(policy["Properties"]["PolicyDocument"])
        if s["Action"] == "iam:TagInstanceProfile"
    )
    keys = {key for block in tagging["Condition"].values() for key in block}
    for tag in ("kubernetes.io/cluster/${ClusterName}", "karpenter.k8s.aws/ec2nodeclass"):
        assert {f"aws:ResourceTag/{tag}", f"aws:RequestTag/{tag}"} <= keys


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    """The properties of all resources of a type."""
    return {name: one["Properties"] for name, one in RESOURCES.items() if one["Type"] == kind}


def test_every_role_has_the_boundary_that_is_asked_for() -> None:
    """An account that demands one refuses to make a role without it."""
    bounded = {"Fn::If": ["HasBoundary", setting("PermissionsBoundaryArn"), {"Ref": "AWS::NoValue"}]}
    assert TEMPLATE["Globals"]["Function"]["PermissionsBoundary"] == bounded
    assert TEMPLATE["Globals"]["Function"]["RolePath"] == setting("RolePath")
    assert [name for name, role in of_type("AWS::IAM::Role").items() if role["PermissionsBoundary"] != bounded] == []


def test_a_key_that_is_given_encrypts_whatever_is_kept() -> None:
    """Queues, table, bucket, logs and the webhook's secret; and whoever uses these may use the key."""
    kept = ("SQS::Queue", "DynamoDB::Table", "S3::Bucket", "Logs::LogGroup", "SecretsManager::Secret")
    for kind in kept:
        for name, properties in of_type(f"AWS::{kind}").items():
            assert json.dumps(setting("KmsKeyArn")) in json.dumps(properties), name
    roles = {role["Ref"] for role in RESOURCES["KeyPolicy"]["Properties"]["Roles"]}
    functions = {f"{door.logical_id}Role" for door in doors(TEMPLATE).values() if door.name != "installer"}
    assert roles == functions | {"InstallerRole", "SchedulerRole"}


def test_a_role_uses_the_key_by_way_of_what_is_kept_and_not_by_itself() -> None:
    """The key may be that of other data too. None of the code calls KMS; services do, for whoever calls them."""
    (statement,) = RESOURCES["KeyPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    services = {one["Fn::Sub"].partition(".")[0] for one in statement["Condition"]["StringLike"]["kms:ViaService"]}
    assert services == {"dynamodb", "s3", "secretsmanager", "sqs"}


def test_the_role_that_is_passed_is_one_role() -> None:
    """A pattern in its name would let instances be given any role of the account."""
    pattern = TEMPLATE["Parameters"]["NodeRoleName"]["AllowedPattern"]
    assert all(re.fullmatch(pattern, name) for name in ("", "KarpenterNodeRole-blue", "team/red/nodes_1@x.y=,+"))
    assert not any(re.fullmatch(pattern, name) for name in ("*", "nodes*", "node?", 'a", "*', "${AWS::Region}", "a b"))


def test_without_a_key_of_the_users_everything_is_encrypted_all_the_same() -> None:
    """By keys of AWS's own."""
    for queue in of_type("AWS::SQS::Queue").values():
        assert queue["SqsManagedSseEnabled"] == {"Fn::If": ["HasKey", False, True]}
