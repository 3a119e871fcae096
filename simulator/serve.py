"""The simulated cluster and AWS over HTTP, for doors that run in another process or in a container.

``python -m simulator serve`` prints the environment that a door needs to work against them, and serves until Ctrl-C.
Nothing in the product knows: DescribeCluster of the local AWS names the local Kubernetes API, and ``AWS_ENDPOINT_URL``
is read by every SDK.

In the cluster there are a NodePool, its EC2NodeClass and pods that fit nowhere; in the account the network, images and
role that the class selects, the queues of the bells, the table, and the bucket with a catalogue. Nodes do not boot
here: instances are moto's.
"""

import argparse
import contextlib
import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.kubernetes.core import Pod
from joinery.objects.settings import environment
from simulator.awsserver.account import ACCOUNT, DISCOVERY, REGION, Account, moto, tag_network
from simulator.awsserver.lacking import lacking
from simulator.builders import node_class, node_pool, pod
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.kubeapi import KubernetesServer

CLUSTER, BUCKET, TABLE, ROLE = "joinery", "joinery", "joinery", "joinery-node"
VERSION = "1.33"
#: The token of the sample events.
TOKEN = "sample-token-4f9Jq2xWm7Rk0TzB8vLc"
_QUEUES = {
    "provisioning_queue": "provisioning.fifo",
    "lifecycle_queue": "lifecycle.fifo",
    "disruption_queue": "disruption.fifo",
}


class WallClock(Clock):
    """The machine's clock, because doors in other processes use it too."""

    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - see the class


@dataclass(frozen=True)
class Served:
    """What is served.

    ``kubernetes``, ``aws``: their URLs. ``environment``: what a door needs in its environment. ``cluster``: behind the
    first; ``account``: behind the second.
    """

    kubernetes: str
    aws: str
    environment: Mapping[str, str]
    cluster: InMemoryCluster
    account: Account


@contextmanager
def serving(host: str = "127.0.0.1", *, kubernetes_port: int = 0, aws_port: int = 0) -> Iterator[Served]:
    """Serve inside the ``with``, at an address that the doors can reach; port 0 takes a free one."""
    clock, account = WallClock(), Account()
    cluster = InMemoryCluster(clock)
    with (
        KubernetesServer(cluster, host=host, port=kubernetes_port) as kubernetes,
        account.corrected(),
        moto(host, aws_port) as aws,
        lacking(account, host) as others,
    ):
        environment = {**_fill(account, kubernetes.url, aws), **others}
        with _exported(environment):
            cluster.add(_resolved(node_class(**_SELECTORS), clock), node_pool(), *pending())
        yield Served(kubernetes.url, aws, environment, cluster, account)


_SELECTORS: dict[str, Any] = {
    "role": ROLE,
    "subnetSelectorTerms": [{"tags": DISCOVERY}],
    "securityGroupSelectorTerms": [{"tags": DISCOVERY}],
}


def pending() -> list[Pod]:
    """Pods of three shapes that the scheduler marked Unschedulable."""
    shapes = (("web", "500m", "1Gi", 6), ("worker", "2", "4Gi", 3), ("cache", "1", "14Gi", 2))
    return [
        pod(f"{name}-{number}", cpu=cpu, memory=memory, labels={"app": name})
        for name, cpu, memory, count in shapes
        for number in range(count)
    ]


def main(arguments: Sequence[str]) -> int:
    """``python -m simulator serve``. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m simulator serve", description="A simulated cluster and AWS over HTTP."
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to serve at; a container bridge's for sam local"
    )
    parser.add_argument("--kubernetes-port", type=int, default=6440, help="of the Kubernetes API (default 6440)")
    parser.add_argument("--aws-port", type=int, default=4570, help="of AWS (default 4570)")
    parser.add_argument("--env-file", type=Path, help="write the environment as JSON, for sam local invoke --env-vars")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with serving(options.host, kubernetes_port=options.kubernetes_port, aws_port=options.aws_port) as served:
        if options.env_file:
            options.env_file.write_text(json.dumps({"Parameters": dict(served.environment)}, indent=2) + "\n")
        for name, value in served.environment.items():
            print(f"export {name}={value}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


@contextmanager
def _exported(environment: Mapping[str, str]) -> Iterator[None]:
    """boto3 in this process finds AWS as the doors do."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _fill(account: Account, kubernetes: str, aws: str) -> dict[str, str]:
    """Everything a stack would have made, in an empty account. Returns the environment of a door."""
    import boto3

    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
    session = boto3.Session("test", "test", region_name=REGION)
    queues = {name: _queue(session.client("sqs", endpoint_url=aws), called) for name, called in _QUEUES.items()}
    _storage(session, aws)
    _network(session, aws)
    _eks(session, aws, kubernetes)
    account.seed_images("al2023@latest", VERSION, datetime.fromisoformat("2026-08-01T00:00:00+00:00"))
    settings = {
        "cluster": CLUSTER,
        "region": REGION,
        "bucket": BUCKET,
        "table": TABLE,
        "webhook_token": TOKEN,
        **queues,
    }
    return {"AWS_ENDPOINT_URL": aws, **keys, **environment(settings)}


def _queue(sqs: Any, name: str) -> str:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    return str(sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])


def _storage(session: Any, aws: str) -> None:
    from joinery.gateways.memory.bucket import CATALOG_KEY
    from joinery.gateways.memory.table import KEY

    session.client("dynamodb", endpoint_url=aws).create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    s3 = session.client("s3", endpoint_url=aws)
    s3.create_bucket(Bucket=BUCKET)
    catalog = resources.files("joinery_cli").joinpath("data", "catalog-us-east-1.json.gz").read_bytes()
    s3.put_object(Bucket=BUCKET, Key=CATALOG_KEY, Body=catalog, ContentType="application/gzip")


def _network(session: Any, aws: str) -> None:
    tag_network(session.client("ec2", endpoint_url=aws), DISCOVERY)
    session.client("iam", endpoint_url=aws).create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")


def _eks(session: Any, aws: str, kubernetes: str) -> None:
    from moto.eks.models import eks_backends

    session.client("eks", endpoint_url=aws).create_cluster(
        name=CLUSTER, version=VERSION, roleArn=f"arn:aws:iam::{ACCOUNT}:role/eks", resourcesVpcConfig={"subnetIds": []}
    )
    # moto makes an address up; ours answers.
    eks_backends[ACCOUNT][REGION].clusters[CLUSTER].endpoint = kubernetes


def _resolved(node_class: EC2NodeClass, clock: Clock) -> EC2NodeClass:
    """The class with the status that its selectors have in the account, as the NodeClass door would write it."""
    from joinery.gateways.ec2.adapter import Ec2Cloud

    return node_class.model_copy(update={"status": Ec2Cloud(CLUSTER, REGION, now=clock.now).prepare(node_class)})
