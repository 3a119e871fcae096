"""A member's doors act as its own role, so that AWS refuses what a mistake of ours would do to another cluster.

The doors are the product's own over moto, which gives them a session of the role that the register names, and asks the
policies of that role, as ``member.yaml`` has them.
"""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from joinery import bootstrap
from joinery.gateways.memory.register import DynamoRegister
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels
from joinery.objects.member import Member
from simulator.awsserver.account import ACCOUNT, REGION
from simulator.awsserver.guard import guarded
from simulator.serve import CLUSTER, Served, WallClock, serving
from tools.cloudformation import Stack
from tools.roles import statements_of_member
from tools.template import MEMBER

pytestmark = pytest.mark.xdist_group("rights")

CLUSTERS = ("green", "blue")


def _role(cluster: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{cluster}-lifecycle"


def _policies(cluster: str) -> Any:
    names = {"NodeRole": "nodes", "NodeRole.Arn": f"arn:aws:iam::{ACCOUNT}:role/nodes"}
    names["NodeInstanceProfile.Arn"] = f"arn:aws:iam::{ACCOUNT}:instance-profile/nodes"
    return statements_of_member(Stack({"ClusterName": cluster}, names, MEMBER))["LifecycleFunctionRole"]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """An account with two members beside the stack's own cluster. Only their roles are asked for rights."""
    roles = {_role(cluster): _policies(cluster) for cluster in CLUSTERS}
    with guarded(assumed=roles), serving() as found, pytest.MonkeyPatch.context() as environment:
        given = {"JOINERY_MODE": "act", "JOINERY_COMMITMENTS": "off", "JOINERY_SETTINGS": "Members=true"}
        for name, value in {**found.environment, **given}.items():
            environment.setenv(name, value)
        register = DynamoRegister(found.environment["JOINERY_TABLE"], REGION, now=WallClock().now)
        for cluster in CLUSTERS:
            register.put(Member(cluster, {"lifecycle": _role(cluster)}, mode="act"))
        bootstrap.reset()
        yield found
    bootstrap.reset()


def door(cluster: str) -> bootstrap.Door:
    """Lifecycle for a cluster, as a bell of it would find it."""
    found = bootstrap.door("lifecycle", {"cluster": cluster})
    found.in_force()
    return found


def instance(served: Served, cluster: str) -> str:
    """An instance of that cluster's. Its id."""
    tags = {f"kubernetes.io/cluster/{cluster}": "owned", labels.NODE_POOL: "default", "eks:eks-cluster-name": cluster}
    ec2: Any = boto3.client("ec2", region_name=REGION, endpoint_url=served.aws)
    made = ec2.run_instances(
        ImageId=ec2.describe_images()["Images"][0]["ImageId"], MinCount=1, MaxCount=1, InstanceType="m7a.xlarge",
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    )  # fmt: skip
    return str(made["Instances"][0]["InstanceId"])


def test_a_member_ends_its_own_instance_and_no_other_cluster_s(served: Served) -> None:
    """Whatever id a mistake of ours would name."""
    green, blue = (instance(served, cluster) for cluster in CLUSTERS)
    cloud = door("green").gateways.cloud
    with pytest.raises(ConfigurationError, match="UnauthorizedOperation"):
        cloud.terminate([blue])
    with pytest.raises(ConfigurationError, match="UnauthorizedOperation"):
        cloud.reboot(blue)
    with pytest.raises(ConfigurationError, match="UnauthorizedOperation"):
        cloud.tag(blue, {labels.NODE_POOL: "default"})
    cloud.terminate([green])
    assert [one.state for one in cloud.look_up([blue])] == ["running"]


def test_a_member_whose_doors_were_mixed_up_with_another_s_can_do_nothing(served: Served) -> None:
    """The gateways of one cluster under the role of the other: each call that changes something is refused."""
    blue = instance(served, "blue")
    mixed = door("blue")
    mixed.registered(Member("blue", {"lifecycle": _role("green")}, mode="act"))
    with pytest.raises(ConfigurationError, match="UnauthorizedOperation"):
        mixed.gateways.cloud.terminate([blue])


def test_a_member_without_a_role_for_a_function_is_not_served_with_the_function_s_own(served: Served) -> None:
    """A person must mend its stack."""
    broken = door("green")
    broken.registered(Member("green", {}, mode="act"))
    with pytest.raises(ConfigurationError, match="green has no role for lifecycle"):
        _ = broken.gateways


def test_the_stack_s_own_cluster_takes_no_role(served: Served) -> None:
    """No call is made that was not made before there were members."""
    from moto.sts.models import sts_backends

    taken = len(sts_backends[ACCOUNT]["aws"].assumed_roles)
    own = instance(served, CLUSTER)
    bootstrap.door("lifecycle", {"cluster": CLUSTER}).gateways.cloud.terminate([own])
    assert len(sts_backends[ACCOUNT]["aws"].assumed_roles) == taken
