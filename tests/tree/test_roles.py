"""What each function's role may call of AWS, as the template has it. What doors call is recorded: ``tests/rights``."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from joinery_cli.doctor.allowed import account_rights
from joinery_cli.doctor.findings import CheckStatus
from simulator.iam.policies import Request, Statement, is_allowed
from tests.functional.doctored import FakeAws, site
from tests.tree.resources import setting
from tools.cloudformation import Stack
from tools.roles import statements_of
from tools.template import ROOT, doors, load

TEMPLATE = load()
RESOURCES = TEMPLATE["Resources"]
PACKAGE = ROOT / "shared" / "joinery"
#: Names of a client in ``joinery.gateways.aws.Clients``, by the prefix of its actions.
SERVICES = {"dynamodb", "ec2", "eks", "iam", "s3", "ssm", "pricing", "functions", "secrets", "stacks", "arc"}
PREFIXES = {"functions": "lambda", "stacks": "cloudformation", "secrets": "secretsmanager", "arc": "arc-zonal-shift"}
#: What IAM calls otherwise than the API does.
RENAMED = {"lambda:Invoke": "lambda:InvokeFunction"}


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


def allowing(door: str) -> list[dict[str, Any]]:
    """What the door's role has from its function, from managed policies and from policies for roles."""
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


def stack(**settings: str) -> Mapping[str, tuple[Statement, ...]]:
    """What the roles of the doctor's site may do, by door."""
    given = "; ".join(f"{name}={value}" for name, value in settings.items())
    return statements_of(Stack({"ClusterName": "blue", "Settings": given}, {"Bucket.Arn": "arn:aws:s3:::bucket"}))


def test_the_doctor_asks_for_rights_that_the_roles_have() -> None:
    """Each role of an untouched stack, simulated by the template's own statements."""
    asked, roles = [], stack()

    def simulated(**call: Any) -> dict[str, Any]:
        asked.extend(call["ActionNames"])
        context = {one["ContextKeyName"]: one["ContextKeyValues"] for one in call["ContextEntries"]}
        (action,), (resource,) = call["ActionNames"], call["ResourceArns"]
        door = call["PolicySourceArn"].removeprefix("fn-").lower()
        decision = "allowed" if is_allowed(roles[door], Request(action, resource, context)) else "implicitDeny"
        return {"EvaluationResults": [{"EvalDecision": decision}]}

    of_a_function = {"get_function_configuration": lambda **asked: {"Role": asked["FunctionName"]}}
    aws = FakeAws(simulate_principal_policy=simulated, **of_a_function)
    assert [(one.status, one.text) for one in account_rights(site(aws))] == [
        (CheckStatus.OK, "the functions may launch, tag, end and record")
    ]
    assert {"ec2:CreateFleet", "ec2:CreateTags", "ec2:TerminateInstances", "s3:PutObject"} <= set(asked)


@pytest.mark.parametrize(("given", "may_read"), [("", False), ("/images/*", True), ("/images/al2023", True)])
def test_parameters_of_the_users_own_may_be_read_where_the_stack_names_them(given: str, may_read: bool) -> None:
    """They may hold anything. AWS's own, which hold its images, may always be read."""
    lifecycle = stack(ImageParameters=given)["lifecycle"]
    own = "arn:aws:ssm:us-east-1:123456789012:parameter/images/al2023"
    assert is_allowed(lifecycle, Request("ssm:GetParameter", own, {})) is may_read
    public = "arn:aws:ssm:us-east-1::parameter/aws/service/x/y"
    assert is_allowed(lifecycle, Request("ssm:GetParameter", public, {}))


@pytest.mark.parametrize("names", ["gpu", "gpu team/red", "a b team/red gpu"])
def test_other_node_roles_may_be_passed_where_the_stack_names_them(names: str) -> None:
    """To instances, by whoever launches; and none else."""
    doors_of_stack, to = stack(MoreNodeRoles=names), {"iam:PassedToService": ("ec2.amazonaws.com",)}
    for door, may_pass in (("provisioning", True), ("disruption", True), ("lifecycle", True), ("catalog", False)):
        for name in ("gpu", "team/red", "a", "b", "", "admin"):
            request = Request("iam:PassRole", f"arn:aws:iam::123456789012:role/{name}", to)
            assert is_allowed(doors_of_stack[door], request) is (may_pass and name in names.split())


def test_only_lifecycle_may_tag_what_runs_already() -> None:
    """Others tag what they create while they create it: tags say whose an instance is."""
    later = {
        door
        for door in doors(TEMPLATE)
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


def test_every_call_in_the_code_is_in_somebodys_rights() -> None:
    """Also one that no scene of ``tests/rights`` has met: what that records says the rest."""
    allowed = {
        action for statements in stack(Commitments="100%").values() for one in statements for action in one.actions
    }
    lacking = {f"{action}, called by {path.relative_to(ROOT)}" for action, path in called() if action not in allowed}
    assert not lacking, f"add to a policy of template.yaml, and to a scene of tests/rights/story.py: {lacking}"


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


def test_every_policy_of_the_template_is_on_the_page_of_permissions() -> None:
    """Also those that only a setting gives."""
    page = (ROOT / "docs" / "permissions.md").read_text()
    policies = {
        name for name, one in RESOURCES.items() if one["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
    }
    assert policies <= set(re.findall(r"^### (\w+)$", page, re.MULTILINE))
