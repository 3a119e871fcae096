"""How the adapter signs in: with an EKS token made from a signature, or with a kubeconfig file."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from moto.eks.models import eks_backends

from joinery.gateways import partitions
from joinery.gateways.kubernetes import auth
from joinery.objects.errors import ConfigurationError, NotFoundError
from simulator.clock import Clock

ACCOUNT, REGION = "123456789012", "us-east-1"
AUTHORITY = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
START = datetime(2026, 11, 21, 12, tzinfo=UTC)
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
current-context: here
"""


@pytest.fixture
def cluster(aws: str) -> str:
    """An EKS cluster in an otherwise empty account."""
    boto3.client("eks", region_name=REGION).create_cluster(
        name="prod",
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/eks",
        resourcesVpcConfig={"subnetIds": [], "securityGroupIds": []},
    )
    # moto makes up an authority that is no certificate.
    found = eks_backends[ACCOUNT][REGION].clusters["prod"]
    found.certificate_authority = {"data": base64.b64encode(AUTHORITY.encode()).decode()}
    return "prod"


def presigned_url(bearer: str) -> str:
    """The signed request inside a token."""
    encoded = bearer.removeprefix("Bearer ").removeprefix("k8s-aws-v1.")
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()


def test_an_eks_cluster_is_reached_by_its_name(cluster: str) -> None:
    """Endpoint and authority come from DescribeCluster, so a user configures neither."""
    described = boto3.client("eks", region_name=REGION).describe_cluster(name=cluster)["cluster"]
    found = auth.for_eks(cluster, REGION, now=Clock().now)
    assert found.host == described["endpoint"]
    assert found.new_pool().connection_pool_kw["ca_cert_data"] == AUTHORITY


def test_the_token_is_a_signed_question_to_sts_about_this_cluster(cluster: str) -> None:
    """EKS asks STS who signed; the cluster's name is part of what is signed, so no other cluster accepts it."""
    found = auth.for_eks(cluster, REGION, now=Clock().now)

    url = urlsplit(presigned_url(found.authorization() or ""))

    query = parse_qs(url.query)
    assert url.netloc == "sts.us-east-1.amazonaws.com"
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["X-Amz-Expires"] == ["60"]
    assert "x-k8s-aws-id" in query["X-Amz-SignedHeaders"][0].split(";")


def test_a_token_is_renewed_before_eks_stops_accepting_it() -> None:
    """A warm function keeps its token for fourteen of the fifteen minutes and then makes another."""
    clock = Clock(START)
    token = auth.Token("prod", REGION, now=clock.now, make=lambda *_: f"made at {clock.now():%H:%M:%S}")
    assert token.value() == "made at 12:00:00"
    clock.advance(timedelta(minutes=13, seconds=59))
    assert token.value() == "made at 12:00:00"
    clock.advance(timedelta(seconds=1))
    assert token.value() == "made at 12:14:00"


def test_a_cluster_that_is_not_there_is_named(aws: str) -> None:
    """A wrong cluster name in the settings is told by name."""
    with pytest.raises(NotFoundError, match="elsewhere"):
        auth.for_eks("elsewhere", REGION, now=Clock().now)


def test_china_has_endpoints_of_its_own() -> None:
    """The signed request goes to the partition's own STS."""
    assert partitions.endpoint("sts", "cn-north-1") == "https://sts.cn-north-1.amazonaws.com.cn"
    assert partitions.endpoint("sts", "eu-west-1") == "https://sts.eu-west-1.amazonaws.com"


def test_a_kubeconfig_gives_server_and_token(tmp_path: Path) -> None:
    """The command line signs in as kubectl does."""
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    found = auth.from_kubeconfig(path)
    assert found.host == "https://10.0.0.1:6443"
    assert found.authorization() == "Bearer secret"


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    """One line says which file, and why."""
    with pytest.raises(ConfigurationError, match="missing.yaml"):
        auth.from_kubeconfig(tmp_path / "missing.yaml")


def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    """One line says which context."""
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    with pytest.raises(ConfigurationError, match="there"):
        auth.from_kubeconfig(path, context="there")
