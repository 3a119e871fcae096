"""Everything together: the account, the cluster, and what connects them.

Doors find each service through the variables that every AWS SDK reads, the API server finds Function URLs through a
proxy, and the cluster learns from the stand-in of EKS who calls it. Nothing of Joinery's own knows.
"""

import base64
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from simulator.awsserver.account import Account, moto, tag_network
from simulator.awsserver.lacking import lacking
from tools.controlplane.https import HttpsServer
from tools.controlplane.plane import ControlPlane, running
from tools.standin.eks import Authenticator, Cluster, eks
from tools.standin.front import front
from tools.standin.ministack import REGION, ROOT_KEYS, ministack

VERSION = "1.36"
IMAGES_OF = datetime(2026, 8, 1, tzinfo=UTC)
#: How long the API server believes an answer about a token. Its own default is two minutes, EKS does not say.
_TOKEN_SECONDS = 1


@dataclass(frozen=True)
class StandIn:
    """A running account with a cluster.

    ``environment``: what a process needs to reach the account as its root user. ``account``: moto's, to run out of
    pools. ``cluster``: what EKS knows. ``folder``: logs and data. ``others``: API servers of further clusters, by name.
    """

    folder: Path
    environment: dict[str, str]
    account: Account
    cluster: Cluster
    plane: ControlPlane
    others: dict[str, ControlPlane] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A boto3 client of the account."""
        import boto3

        session = boto3.Session(ROOT_KEYS["AWS_ACCESS_KEY_ID"], ROOT_KEYS["AWS_SECRET_ACCESS_KEY"], region_name=REGION)
        named = f"AWS_ENDPOINT_URL_{service.upper().replace('-', '_')}"
        return session.client(service, endpoint_url=self.environment.get(named, self.environment["AWS_ENDPOINT_URL"]))  # type: ignore[call-overload]


@contextlib.contextmanager
def standing(folder: Path, cluster: str, *more: str) -> Iterator[StandIn]:
    """An account with a cluster of that name inside the ``with``; ``folder`` must be empty or absent.

    In the account there are a network that ``karpenter.sh/discovery: CLUSTER`` selects and the images of AL2023; in
    the cluster there is nothing. ``more`` are clusters of an API server alone, in which nothing is scheduled. Takes
    about ten seconds and 1.5 GB. Raises ``MissingBinaryError`` and
    ``MissingStandInError``.
    """
    clusters, account = {name: Cluster(name) for name in (cluster, *more)}, Account()
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(account.corrected())
        amazon, others, eks_url = enter(moto()), enter(lacking(account)), enter(eks(*clusters.values()))
        elsewhere = {
            "AWS_ENDPOINT_URL_EC2": amazon,
            "AWS_ENDPOINT_URL_SSM": amazon,
            **others,
            "AWS_ENDPOINT_URL_EKS": eks_url,
        }
        stacks = enter(ministack(folder / "ministack", elsewhere))
        faced = enter(front(stacks.gateway, REGION))
        (folder / "authority.pem").write_bytes(faced.authority)
        trust = {
            "HTTPS_PROXY": faced.proxy,
            "NO_PROXY": "127.0.0.1",
            "SSL_CERT_FILE": str(folder / "authority.pem"),
        }
        planes = {}
        for name, described in clusters.items():
            flags = _flags(folder / f"{name}.kubeconfig", enter(_authenticator(described, stacks.url)))
            is_whole = name == cluster
            where = folder / ("plane" if is_whole else f"plane-{name}")
            plane = running(where, schedules=is_whole, controls=is_whole, flags=flags, environment=trust)
            planes[name] = enter(plane)
            described.description.update(_description(name, planes[name]))
        environment = {**ROOT_KEYS, "AWS_ENDPOINT_URL": stacks.url, **elsewhere}
        of_more = {name: planes[name] for name in more}
        standin = StandIn(folder, environment, account, clusters[cluster], planes[cluster], of_more)
        tag_network(standin.client("ec2"), {"karpenter.sh/discovery": cluster})
        account.seed_images("al2023@latest", VERSION, IMAGES_OF)
        enter(_profiles_known(standin.client("iam")))
        yield standin


@contextlib.contextmanager
def _profiles_known(iam: Any) -> Iterator[None]:
    """Let EC2, which is moto's, know the account's instance profiles, which are ministack's."""
    from moto.iam.models import IAMBackend

    known = IAMBackend.get_instance_profile

    def get(backend: Any, profile_name: str) -> Any:
        if profile_name not in {profile.name for profile in backend.get_instance_profiles()}:
            with contextlib.suppress(iam.exceptions.NoSuchEntityException):
                iam.get_instance_profile(InstanceProfileName=profile_name)
                backend.create_instance_profile(name=profile_name, path="/", role_names=[], tags=[])
        return known(backend, profile_name)

    with patch.object(IAMBackend, "get_instance_profile", get):
        yield


@contextlib.contextmanager
def _authenticator(cluster: Cluster, sts: str) -> Iterator[HttpsServer]:
    now = datetime.now(UTC)  # noqa: TID251 - certificates need the real time
    with HttpsServer(Authenticator(cluster, sts), now=now) as server:
        yield server


def _flags(config: Path, authenticator: HttpsServer) -> tuple[str, ...]:
    """What makes the API server ask the authenticator about tokens that it does not know itself. ``config``: a file."""
    authority = base64.b64encode(authenticator.authority).decode()
    config.write_text(
        "apiVersion: v1\nkind: Config\n"
        f"clusters: [{{name: eks, cluster: "
        f"{{server: '{authenticator.url}', certificate-authority-data: {authority}}}}}]\n"
        "users: [{name: kube-apiserver}]\n"
        "contexts: [{name: eks, context: {cluster: eks, user: kube-apiserver}}]\ncurrent-context: eks\n"
    )
    return (
        f"--authentication-token-webhook-config-file={config}",
        "--authentication-token-webhook-version=v1",
        f"--authentication-token-webhook-cache-ttl={_TOKEN_SECONDS}s",
    )


def _description(cluster: str, plane: ControlPlane) -> dict[str, Any]:
    """What DescribeCluster says, as far as Joinery reads it."""
    return {
        "name": cluster,
        "arn": f"arn:aws:eks:{REGION}:{ROOT_KEYS['AWS_ACCESS_KEY_ID']}:cluster/{cluster}",
        "status": "ACTIVE",
        "version": VERSION,
        "endpoint": plane.server,
        "certificateAuthority": {"data": base64.b64encode(plane.certificate.read_bytes()).decode()},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.0.0.0/24", "ipFamily": "ipv4"},
        "accessConfig": {"authenticationMode": "API"},
        "resourcesVpcConfig": {"subnetIds": [], "controlPlaneEgressMode": "AWS_MANAGED"},
    }
