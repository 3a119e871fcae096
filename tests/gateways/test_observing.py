"""Observe mode as the wires see it: over the real adapters no door sends anything that changes anything.

One world in which every door has something to do. The same world in ``act`` mode shows that there was.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient

from joinery.gateways.bundles import Gateways
from joinery.gateways.ec2.adapter import Ec2Cloud
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.api_errors import Response
from joinery.gateways.kubernetes.events import KubernetesRecorder
from joinery.gateways.memory.dynamodb import DynamoUnavailableOfferings
from joinery.gateways.memory.s3 import S3Store
from joinery.gateways.memory.table import KEY
from joinery.gateways.observing import read_only
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from simulator import builders
from simulator.awsserver.account import REGION, Account
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.world import World
from tests.functional.in_process import InProcess
from tests.functional.stand import Stand
from tests.gateways.eks import create_cluster

#: What operations of AWS that change nothing begin with.
READING = ("Describe", "Get", "List", "Query", "Scan", "BatchGet", "Head")
#: What observe mode is for: Events, and the decision records and the catalogue in the stack's own bucket.
EVENTS = "/apis/events.k8s.io/v1/"
KEPT = "s3.PutObject"
ZONE = "us-east-1a"
#: Later than moto starts instances, which it does by the real clock: a young instance is no garbage yet.
LATER = datetime(2040, 1, 1, tzinfo=UTC)


class Wires(InProcess):
    """Requests to the simulated API server, and the calls of boto3: those that change something are remembered."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        super().__init__(cluster)
        self.changes: list[str] = []

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        if method != "GET" and not path.startswith(EVENTS):
            self.changes.append(f"{method} {path.partition('?')[0]}")
        return super().ask(method, path, body, **options)

    def called(self, service: str, operation: str) -> None:
        """Take note of a call of boto3."""
        name = f"{service}.{operation}"
        if not operation.startswith(READING) and name != KEPT:
            self.changes.append(name)


@dataclass
class Eventful:
    """A world in which every door has something to do."""

    world: World
    wires: Wires
    gateways: Gateways
    interrupted: str

    def open_all(self, gateways: Gateways) -> list[str]:
        """What changes when each door looks once. That some of it is refused (moto lacks much) does not matter."""
        stand = Stand(self.world, gateways=gateways)
        self.wires.changes.clear()
        doors: list[Callable[[], object]] = [
            lambda: stand.receive("interruption_spot_warning", self.interrupted),
            stand.provision,
            stand.expire,
            stand.live,
            stand.live,
        ]
        for door in doors:
            try:
                door()
            except JoineryError:
                continue
        return sorted({change.rpartition("/")[0] if "/" in change else change for change in self.wires.changes})


@pytest.fixture
def eventful(account: Account, monkeypatch: pytest.MonkeyPatch) -> Eventful:
    """Pods that wait, nodes that join, go, expire and vanish, an instance of nobody, a class without a profile."""
    world = World(start=LATER)
    instances = _account(account)
    _cluster(world, instances)
    wires = Wires(world.cluster)
    call = BaseClient._make_api_call  # type: ignore[attr-defined]

    def told(client: Any, operation: str, parameters: Any) -> Any:
        wires.called(client.meta.service_model.service_name, operation)
        return call(client, operation, parameters)

    gateways = Gateways(
        cluster=KubernetesCluster(wires, now=world.clock.now, node_class=EC2NodeClass),
        recorder=KubernetesRecorder(wires, now=world.clock.now),
        cloud=Ec2Cloud("joinery", REGION, now=world.clock.now),
        doorbell=world.doorbell,
        store=S3Store("joinery", REGION),
        unavailable=DynamoUnavailableOfferings("joinery", REGION),
    )
    gateways.store.put_catalog(world.cloud.catalog())
    monkeypatch.setattr(BaseClient, "_make_api_call", told)
    return Eventful(world, wires, gateways, instances[1])


def _account(account: Account) -> list[str]:
    """An account with a cluster, a bucket, a table, and three instances of the cluster: their ids."""
    create_cluster(account)
    ec2: Any = boto3.client("ec2")
    boto3.client("s3").create_bucket(Bucket="joinery")
    boto3.client("dynamodb").create_table(
        TableName="joinery",
        KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    tags = {labels.NODE_POOL: "default", labels.NODE_CLASS: "default", "eks:eks-cluster-name": "joinery"}
    started = ec2.run_instances(
        ImageId="ami-al2023x8664standard", MinCount=4, MaxCount=4, InstanceType="m5.large",
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    )  # fmt: skip
    return [instance["InstanceId"] for instance in started["Instances"]]


def _cluster(world: World, instances: list[str]) -> None:
    """A claim for each instance but the last: one that joins, one that EC2 warns of, one that is drained; others."""
    joining, warned, drained, _ = instances
    now = world.clock.now()
    recently, long_ago = now - timedelta(minutes=2), now - timedelta(days=400)
    node_class = builders.node_class()
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"])
    world.cluster.add(node_class, builders.node_class("roleless", ready=False, role="nodes"), pool)
    world.cluster.add(
        builders.node_claim("joins", provider_id=_id(joining), conditions=("Launched",), created=recently),
        builders.node("joins", provider_id=_id(joining), labels={labels.REGISTERED: ""}, initialized=False),
        builders.node_claim("warned", node="warned", provider_id=_id(warned), capacity_type="spot", created=recently),
        builders.node("warned", provider_id=_id(warned), capacity_type="spot"),
        builders.node_claim("drains", node="drains", provider_id=_id(drained), created=long_ago, deleted=recently),
        builders.node("drains", provider_id=_id(drained)),
        builders.pod("moves", node="drains", phase="Running", cpu="100m"),
        builders.node_claim("waits", conditions=(), created=recently),
        builders.node_claim("expired", node="expired", created=long_ago),
        builders.node("expired"),
        builders.node_claim("lost", node="lost", created=long_ago),
        builders.node("orphan", deleted=recently),
        *(builders.pod(f"pending-{number}", cpu="900m") for number in range(3)),
    )
    world.cluster.add_document(
        {"kind": "NodeClaim", "metadata": {"name": "unreadable"}, "spec": {"requirements": "none"}}
    )


def _id(instance: str) -> str:
    return f"aws:///{ZONE}/{instance}"


def test_no_door_sends_a_write(eventful: Eventful) -> None:
    """Neither to the API server, whatever the path, nor to any service of AWS."""
    assert eventful.open_all(read_only(eventful.gateways)) == []


def test_there_was_much_to_write(eventful: Eventful) -> None:
    """The same doors in ``act`` mode: without this the silence of the other test would prove nothing."""
    changes = eventful.open_all(eventful.gateways)
    assert {"ec2.TerminateInstances", "iam.CreateInstanceProfile", "dynamodb.BatchWriteItem"} <= set(changes)
    assert {change.partition(" ")[0] for change in changes if " " in change} == {"PATCH", "POST", "DELETE"}


def test_reading_a_class_makes_no_instance_profile(eventful: Eventful) -> None:
    """What is missing is said in its conditions."""
    roleless = eventful.world.cluster.node_classes["roleless"]
    conditions = {each.type: each.reason for each in eventful.gateways.cloud.status_of(roleless).conditions}
    assert conditions["InstanceProfileReady"] == "InstanceProfileNotFound"
    assert eventful.wires.changes == []
