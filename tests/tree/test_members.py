"""A home and its members: what each stack has, and that a member's roles reach into no other cluster."""

import json
import re
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest

from simulator.iam.policies import Request, is_allowed
from tests.tree.resources import RESOURCES, TEMPLATE
from tools import member
from tools.cloudformation import Stack
from tools.roles import statements_of, statements_of_member
from tools.template import MEMBER, load
from tools.template import TEMPLATE as TEMPLATE_FILE

ALONE = Stack({"ClusterName": "blue"}, {})
HOME = Stack({"ClusterName": "blue", "Settings": "Members=true"}, {"Table.Arn": "TABLE", "InstallerFunction.Arn": "FN"})


def _register(action: str, key: str, **more: list[str]) -> Request:
    return Request(f"dynamodb:{action}", "TABLE", {"dynamodb:LeadingKeys": [key], **more})


def test_a_stack_without_members_has_no_right_that_it_would_not_have_otherwise() -> None:
    """Nothing about the register, about others' roles and about others' instances."""
    more = {
        door: {one.name.partition(",")[0] for one in statements} - {one.name.partition(",")[0] for one in alone}
        for (door, statements), alone in zip(statements_of(HOME).items(), statements_of(ALONE).values(), strict=True)
    }
    assert more == {
        "webhook": {"MembersWebhookPolicy"},
        "provisioning": {"RegisterPolicy"},
        "interruption": {"RegisterPolicy", "MembersInstancesPolicy"},
        "expiration": {"RegisterPolicy"},
        "disruption": {"RegisterPolicy"},
        "lifecycle": {"RegisterPolicy"},
        "catalog": set(),
        "installer": {"MembersInstallerPolicy"},
    }


def test_only_the_installer_writes_the_register() -> None:
    """A door that is taken over points no other cluster to other roles; of the table it writes its marks alone."""
    function = {"lambda:SourceFunctionArn": ["FN"]}
    for door, statements in statements_of(HOME).items():
        for action in ("PutItem", "DeleteItem", "BatchWriteItem"):
            asked = _register(action, "cluster#green", **function)
            is_its_own = door == "installer" and action != "BatchWriteItem"
            assert is_allowed(statements, asked) == is_its_own, (door, action)


def test_the_register_is_all_that_is_read_item_by_item() -> None:
    """Of the functions that enter a cluster."""
    for door in ("provisioning", "interruption", "expiration", "disruption", "lifecycle"):
        statements = statements_of(HOME)[door]
        assert is_allowed(statements, _register("GetItem", "cluster#green"))
        assert not is_allowed(statements, _register("GetItem", "offering#m7g.large#a#spot"))


def test_the_installer_becomes_the_installer_of_its_own_members_alone() -> None:
    """By the tag of the role, and only in its function."""
    statements = statements_of(HOME)["installer"]
    role = "arn:aws:iam::123456789012:role/joinery-green-InstallerRole"
    its_own = {"iam:ResourceTag/joinery.dev/home": ["joinery"], "lambda:SourceFunctionArn": ["FN"]}
    assert is_allowed(statements, Request("sts:AssumeRole", role, its_own))
    for key, other in (("iam:ResourceTag/joinery.dev/home", "joinery-red"), ("lambda:SourceFunctionArn", "OTHER")):
        assert not is_allowed(statements, Request("sts:AssumeRole", role, {**its_own, key: [other]}))
        assert not is_allowed(statements, Request("sts:AssumeRole", role, {**its_own, key: []}))


def test_a_queue_s_messages_come_one_by_one_where_there_are_members() -> None:
    """A run serves one cluster: in a batch of several clusters one would wait for another."""
    for stack, size in ((ALONE, 10), (HOME, 1)):
        for name in ("ProvisioningBells", "LifecycleBells", "DisruptionBells"):
            assert stack.resources[name]["Properties"]["BatchSize"] == size


def test_what_members_import_is_exported_by_the_stack_s_name() -> None:
    """Only by a home: an export that is imported keeps its stack from being deleted, and its value from changing."""
    exported = {name: one for name, one in TEMPLATE["Outputs"].items() if "Export" in one}
    assert len(exported) == 16
    for name, one in exported.items():
        assert one["Condition"] == "HasMembers"
        assert one["Export"] == {"Name": {"Fn::Sub": f"${{AWS::StackName}}-{name}"}}
    assert {name for name, one in RESOURCES.items() if one.get("Condition") == "HasMembers"} == {
        "RegisterPolicy", "MembersWebhookPolicy", "MembersInstancesPolicy", "MembersInstallerPolicy",
    }  # fmt: skip


# --- members ---

OF_MEMBERS = load(MEMBER)
CLUSTERS = ("green", "red", "gre", "green-2")
ACCOUNT = "123456789012"
DOORS = ("Provisioning", "Interruption", "Expiration", "Disruption", "Lifecycle")


def _member(cluster: str, settings: str = "") -> Stack:
    roles = f"arn:aws:iam::{ACCOUNT}:role/{cluster}"
    names = {
        "AWS::StackId": f"{cluster}-stack",
        "InstallerRole": f"{cluster}-installer",
        "InstallerRole.Arn": f"{roles}-installer",
        "NodeInstanceProfile.Arn": f"arn:aws:iam::{ACCOUNT}:instance-profile/{cluster}-nodes",
        "NodeRole": f"{cluster}-nodes",
        "NodeRole.Arn": f"{roles}-nodes",
        "WebhookSecret": f"{cluster}-secret",
    }
    return Stack({"ClusterName": cluster, "Home": "joinery-blue", "Settings": settings}, names, MEMBER)


def test_the_template_of_members_is_written_from_the_other_one() -> None:
    """`python -m tools.member` writes it."""
    assert member.written(TEMPLATE_FILE.read_text(), member.SOURCE.read_text()) == MEMBER.read_text()


def test_a_member_has_nothing_that_costs_by_existing_but_its_secret() -> None:
    """No function, no queue, no alarm, no table, no bucket: its schedules cost by what they do."""
    kinds = {one["Type"].removeprefix("AWS::") for one in OF_MEMBERS["Resources"].values()}
    assert kinds == {
        "IAM::Role", "IAM::ManagedPolicy", "IAM::Policy", "IAM::InstanceProfile", "EKS::AccessEntry",
        "Scheduler::Schedule", "SecretsManager::Secret", "SecretsManager::ResourcePolicy",
        "Custom::JoineryPreparation", "Custom::JoineryConnection",
    }  # fmt: skip


def test_a_member_s_template_needs_no_sam() -> None:
    """CloudFormation takes it as it is: small enough for a request, without aliases, without a transform."""
    text = MEMBER.read_text()
    assert len(text.encode()) < 51_200
    assert "Transform" not in OF_MEMBERS
    assert not re.search(r"[\[ ][*&][A-Z]\w+[\],\s]", text)


def _imports(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if "Fn::ImportValue" in part:
            yield part["Fn::ImportValue"]["Fn::Sub"]
        for one in part.values():
            yield from _imports(one)
    elif isinstance(part, list):
        for one in part:
            yield from _imports(one)


def test_a_member_imports_all_that_its_home_exports_and_nothing_else() -> None:
    """So a home is deleted after its members."""
    exported = {f"${{Home}}-{name}" for name, one in TEMPLATE["Outputs"].items() if "Export" in one}
    assert set(_imports(OF_MEMBERS)) == exported


@pytest.mark.parametrize("door", DOORS)
def test_a_member_s_role_trusts_the_home_s_role_of_that_function_alone(door: str) -> None:
    """IAM lets a principal that is named in the trust policy assume a role of its own account without another right."""
    trust = _member("green").resources[f"{door}FunctionRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    principal = {"AWS": f"joinery-blue-{door}FunctionRoleArn"}
    assert trust == [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}]


def test_the_installer_s_role_trusts_the_home_s_installer_which_needs_a_right_of_its_own() -> None:
    """That right is good in its function alone, which a trust policy cannot say."""
    role = _member("green").resources["InstallerRole"]["Properties"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    assert trust["Condition"] == {"ArnEquals": {"aws:PrincipalArn": "joinery-blue-InstallerRoleArn"}}
    assert role["Tags"] == [{"Key": "joinery.dev/home", "Value": "joinery-blue"}]


def _about(cluster: str) -> Iterator[Request]:
    """What would change something of a cluster, or show it: with every tag that a resource of it has."""
    instance = f"arn:aws:ec2:us-east-1:{ACCOUNT}:instance/i-1"
    template = f"arn:aws:ec2:us-east-1:{ACCOUNT}:launch-template/lt-1"
    profile = f"arn:aws:iam::{ACCOUNT}:instance-profile/karpenter/us-east-1/{cluster}/1/p"
    tags = {
        f"kubernetes.io/cluster/{cluster}": "owned", "eks:eks-cluster-name": cluster,
        "karpenter.sh/nodepool": "default",
        "karpenter.k8s.aws/ec2nodeclass": "default", "topology.kubernetes.io/region": "us-east-1",
    }  # fmt: skip
    has = {f"aws:ResourceTag/{key}": [value] for key, value in tags.items()}
    gets = {f"aws:RequestTag/{key}": [value] for key, value in tags.items()} | {"aws:TagKeys": ["Name"]}
    for action in ("TerminateInstances", "RebootInstances", "CreateTags"):
        yield Request(f"ec2:{action}", instance, has | {"aws:TagKeys": ["Name"]})
    for resource in (instance, template):
        yield Request("ec2:RunInstances", resource, gets)
    yield Request("ec2:RunInstances", template, has)
    yield Request("ec2:CreateTags", instance, gets | {"ec2:CreateAction": ["RunInstances"]})
    yield Request("ec2:DeleteLaunchTemplate", template, has)
    for action in ("AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"):
        yield Request(f"iam:{action}", profile, has)
    yield Request("iam:CreateInstanceProfile", profile, gets)
    yield Request("iam:TagInstanceProfile", profile, has | gets)
    yield Request(
        "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/{cluster}-nodes", {"iam:PassedToService": ["ec2.amazonaws.com"]}
    )
    yield Request("eks:DescribeCluster", f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/{cluster}", {})
    entry = f"arn:aws:eks:us-east-1:{ACCOUNT}:access-entry/{cluster}/role/{ACCOUNT}/{cluster}-installer/1"
    yield Request("eks:DeleteAccessEntry", entry, {})
    yield Request("eks:AssociateAccessPolicy", entry, {"eks:policyArn": [_ADMINISTRATOR]})
    yield Request("secretsmanager:GetSecretValue", f"{cluster}-secret", {})
    yield Request("iam:DeleteRole", f"arn:aws:iam::{ACCOUNT}:role/{cluster}-nodes", {})
    yield Request("cloudformation:DescribeStacks", f"{cluster}-stack", {})


_ADMINISTRATOR = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


@pytest.mark.parametrize(("one", "other"), list(permutations(CLUSTERS, 2)))
def test_a_member_s_roles_touch_nothing_of_another_cluster(one: str, other: str) -> None:
    """Whatever mistake mixes clusters up: IAM refuses it. Names that begin alike are other names."""
    for role, statements in statements_of_member(_member(one)).items():
        assert [asked for asked in _about(other) if is_allowed(statements, asked)] == [], role


def test_what_is_refused_for_another_cluster_is_allowed_for_its_own() -> None:
    """Or else the test above would prove nothing: some role of the member may do each of these things."""
    roles = statements_of_member(_member("green")).values()
    refused = [asked for asked in _about("green") if not any(is_allowed(statements, asked) for statements in roles)]
    assert refused == []


def test_no_member_s_role_reads_or_writes_what_the_home_keeps() -> None:
    """Queues, table, bucket and log are the home's, and its functions ask for them in their own names."""
    for role, statements in statements_of_member(_member("green", "KmsKeyArn=arn:aws:kms:r:1:key/k")).items():
        actions = {action.partition(":")[0] for one in statements for action in one.actions}
        assert not actions & {"s3", "sqs", "dynamodb", "lambda", "logs", "sts"}, role


def test_a_member_s_schedules_are_the_home_s_and_say_their_cluster() -> None:
    """In the home's queues and functions, in a message group of the cluster's own."""
    for name, resource in _member("green").resources.items():
        if resource["Type"] != "AWS::Scheduler::Schedule" or name == "RotationSchedule":
            continue
        target, own = resource["Properties"]["Target"], HOME.resources[name]["Properties"]["Target"]
        event = json.loads(target["Input"])
        assert event.pop("cluster") == "green"
        assert event == json.loads(own["Input"])
        assert target.get("SqsParameters", {}) in ({}, {"MessageGroupId": "green-schedule"})
        assert target["Arn"] == f"joinery-blue-{own['Arn'].replace('.', '')}"
