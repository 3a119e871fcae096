"""A member's doors act as its own role, so that AWS refuses what a mistake of ours would do to another cluster.

The doors are the product's own over moto, which gives them a session of the role that the register names, and asks the
policies of that role, as ``member.yaml`` has them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from moto.eks.models import eks_backends

from joinery import bootstrap
from joinery.gateways.memory.register import DynamoRegister
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels
from joinery.objects.kubernetes.webhook_secret import WebhookSecret
from joinery.objects.member import Member
from simulator.awsserver.account import ACCOUNT, REGION
from simulator.awsserver.guard import guarded
from simulator.doors.doors import Context, handler
from simulator.doors.queues import record
from simulator.serve import BUCKET, CLUSTER, ROLE, Served, WallClock, serving
from tools.cloudformation import Stack
from tools.roles import statements_of_member
from tools.template import MEMBER

pytestmark = pytest.mark.xdist_group("rights")

CLUSTERS, DOORS = ("green", "blue"), ("provisioning", "lifecycle")


@dataclass
class Stage:
    """What is served, and who has asked EC2 for what: operations and roles that were assumed."""

    served: Served
    asked: list[tuple[str, str]]


def _role(cluster: str, door: str = "lifecycle") -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{cluster}-{door}"


def _policies(cluster: str, door: str) -> Any:
    names = {"NodeRole": ROLE, "NodeRole.Arn": f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"}
    names["NodeInstanceProfile.Arn"] = f"arn:aws:iam::{ACCOUNT}:instance-profile/nodes"
    return statements_of_member(Stack({"ClusterName": cluster}, names, MEMBER))[f"{door.capitalize()}FunctionRole"]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """An account with two members beside the stack's own cluster. Only their roles are asked for rights."""
    roles = {_role(cluster, door): _policies(cluster, door) for cluster in CLUSTERS for door in DOORS}
    with guarded(assumed=roles) as asked, serving() as found, pytest.MonkeyPatch.context() as environment:
        given = {"JOINERY_MODE": "act", "JOINERY_COMMITMENTS": "off", "JOINERY_SETTINGS": "Members=true"}
        for name, value in {**found.environment, **given}.items():
            environment.setenv(name, value)
        environment.setenv("JOINERY_WEBHOOK_SECRET", "own")
        register = DynamoRegister(found.environment["JOINERY_TABLE"], REGION, now=WallClock().now)
        secrets: Any = boto3.client("secretsmanager", region_name=REGION, endpoint_url=found.aws)
        secrets.create_secret(Name="own", SecretString=WebhookSecret(_token(CLUSTER)).text)
        for cluster in CLUSTERS:
            secret = secrets.create_secret(Name=cluster, SecretString=WebhookSecret(_token(cluster)).text)["ARN"]
            doors = {door: _role(cluster, door) for door in DOORS}
            register.put(Member(cluster, doors, mode="act", secret=secret))
            _add_cluster(cluster, found)
        bootstrap.reset()
        yield Stage(found, asked)
    bootstrap.reset()


def _add_cluster(name: str, served: Served) -> None:
    """EKS knows it, and has the same API server for all: who comes is known by the token alone."""
    eks: Any = boto3.client("eks", region_name=REGION, endpoint_url=served.aws)
    eks.create_cluster(
        name=name, version="1.33", roleArn=f"arn:aws:iam::{ACCOUNT}:role/eks", resourcesVpcConfig={"subnetIds": []}
    )
    eks_backends[ACCOUNT][REGION].clusters[name].endpoint = served.kubernetes


def _token(cluster: str) -> str:
    return f"the-token-of-the-webhook-of-{cluster}-and-of-no-other"


def door(cluster: str) -> bootstrap.Door:
    """Lifecycle for a cluster, as a bell of it would find it."""
    found = bootstrap.door("lifecycle", {"cluster": cluster})
    found.in_force()
    return found


def instance(stage: Stage, cluster: str) -> str:
    """An instance of that cluster's. Its id."""
    tags = {f"kubernetes.io/cluster/{cluster}": "owned", labels.NODE_POOL: "default", "eks:eks-cluster-name": cluster}
    ec2: Any = boto3.client("ec2", region_name=REGION, endpoint_url=stage.served.aws)
    made = ec2.run_instances(
        ImageId=ec2.describe_images()["Images"][0]["ImageId"], MinCount=1, MaxCount=1, InstanceType="m7a.xlarge",
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    )  # fmt: skip
    return str(made["Instances"][0]["InstanceId"])


def test_a_member_ends_its_own_instance_and_no_other_cluster_s(stage: Stage) -> None:
    """Whatever id a mistake of ours would name."""
    green, blue = (instance(stage, cluster) for cluster in CLUSTERS)
    cloud = door("green").gateways.cloud
    with pytest.raises(ConfigurationError, match="UnauthorizedOperation"):
        cloud.terminate([blue])
    with pytest.raises(ConfigurationError, match="UnauthorizedOperation"):
        cloud.reboot(blue)
    with pytest.raises(ConfigurationError, match="UnauthorizedOperation"):
        cloud.tag(blue, {labels.NODE_POOL: "default"})
    cloud.terminate([green])
    assert [one.state for one in cloud.look_up([blue])] == ["running"]


def test_a_member_whose_doors_were_mixed_up_with_another_s_can_do_nothing(stage: Stage) -> None:
    """The gateways of one cluster under the role of the other: each call that changes something is refused."""
    blue = instance(stage, "blue")
    mixed = door("blue")
    mixed.registered(Member("blue", {"lifecycle": _role("green")}, mode="act"))
    with pytest.raises(ConfigurationError, match="UnauthorizedOperation"):
        mixed.gateways.cloud.terminate([blue])


def test_a_member_without_a_role_for_a_function_is_not_served_with_the_function_s_own(stage: Stage) -> None:
    """A person must mend its stack."""
    broken = door("green")
    broken.registered(Member("green", {}, mode="act"))
    with pytest.raises(ConfigurationError, match="green has no role for lifecycle"):
        _ = broken.gateways


def test_the_stack_s_own_cluster_takes_no_role(stage: Stage) -> None:
    """No call is made that was not made before there were members."""
    from moto.sts.models import sts_backends

    taken = len(sts_backends[ACCOUNT]["aws"].assumed_roles)
    own = instance(stage, CLUSTER)
    bootstrap.door("lifecycle", {"cluster": CLUSTER}).gateways.cloud.terminate([own])
    assert len(sts_backends[ACCOUNT]["aws"].assumed_roles) == taken


def test_a_members_bell_has_its_nodes_launched_by_its_own_role(stage: Stage) -> None:
    """From the message to the instance: what is asked of EC2 meanwhile is asked by nobody else."""
    stage.asked.clear()
    event = {"Records": [record("bell", "joinery-provisioning.fifo", {}, group="green")]}
    answer = handler("provisioning")(event, Context("joinery-provisioning", "call"))
    assert answer["launched"] >= 1, answer
    assert "CreateFleet" in {operation for operation, _ in stage.asked}
    assert {caller for _, caller in stage.asked} == {_role("green", "provisioning")}
    ec2: Any = boto3.client("ec2", region_name=REGION, endpoint_url=stage.served.aws)
    made = ec2.describe_instances(Filters=[{"Name": "tag:eks:eks-cluster-name", "Values": ["green"]}])["Reservations"]
    assert made
    s3: Any = boto3.client("s3", region_name=REGION, endpoint_url=stage.served.aws)
    records = s3.list_objects_v2(Bucket=BUCKET, Prefix="decisions/")["Contents"]
    assert all(one["Key"].startswith("decisions/green/") for one in records)


@pytest.mark.parametrize(("path", "status"), [("green/", 200), ("blue/", 403), ("gone/", 403), ("", 403)])
def test_the_token_of_one_cluster_opens_no_other_s_webhook(stage: Stage, path: str, status: int) -> None:
    """Each member has a secret of its own."""
    call = {"rawPath": f"/{path}{_token('green')}", "body": "{}"}
    assert handler("webhook")(call, Context("joinery-webhook", "call"))["statusCode"] == status
