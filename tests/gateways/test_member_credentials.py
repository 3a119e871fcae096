"""As whom a member's cluster and account are asked: as the member's role, and as nobody else."""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import boto3
from moto.sts.models import sts_backends

from joinery.gateways.aws import Clients
from joinery.gateways.credentials import assumed
from joinery.gateways.kubernetes import auth
from simulator.awsserver.account import ACCOUNT, REGION
from simulator.clock import Clock
from simulator.serve import WallClock
from tests.gateways.test_cluster_auth import cluster as cluster  # noqa: F401 - a fixture
from tests.gateways.test_cluster_auth import presigned_url

ROLE = f"arn:aws:iam::{ACCOUNT}:role/green-provisioning"


def _role_of(key: str) -> str:
    found = sts_backends[ACCOUNT]["aws"].get_assumed_role_from_access_key(key)
    return str(found.role_arn) if found else ""


def test_ec2_is_asked_as_the_members_role(aws: str) -> None:
    """CloudTrail says so, with the function's name."""
    session = assumed(ROLE, REGION, name="provisioning", now=Clock(WallClock().now()).now)
    clients = Clients(REGION, session=lambda: session)
    whose = clients.of("sts").get_caller_identity()["Arn"]
    assert whose == f"arn:aws:sts::{ACCOUNT}:assumed-role/green-provisioning/joinery-provisioning"
    assert "assumed-role" not in Clients(REGION).of("sts").get_caller_identity()["Arn"]


def test_a_members_cluster_is_signed_in_to_as_its_role(cluster: str) -> None:
    """EKS has an access entry for that role alone."""
    session = assumed(ROLE, REGION, name="provisioning", now=Clock(WallClock().now()).now)
    found = auth.for_eks(cluster, REGION, now=Clock().now, credentials=session.get_credentials)
    url = urlsplit(presigned_url(str(found.authorization())))
    key = parse_qs(url.query)["X-Amz-Credential"][0].partition("/")[0]
    assert _role_of(key) == ROLE


def test_credentials_are_kept_until_they_have_nearly_expired(aws: str) -> None:
    """They last for an hour, and each call of STS delays a run."""
    clock = Clock(WallClock().now())
    credentials = assumed(ROLE, REGION, name="provisioning", now=clock.now).get_credentials()
    assert credentials is not None
    first = credentials.access_key
    clock.advance(timedelta(minutes=40))
    assert credentials.access_key == first
    clock.advance(timedelta(minutes=15))
    assert _role_of(credentials.access_key) == ROLE
    assert credentials.access_key != first


def test_nobody_is_asked_before_credentials_are_needed(aws: str) -> None:
    """A door may fail to take the role: inside its run, where the bell is rung again."""
    assumed("arn:aws:iam::1:role/absent", REGION, name="provisioning", now=Clock().now)
    assert not sts_backends[ACCOUNT]["aws"].assumed_roles
    assert boto3.client("sts").get_caller_identity()["Account"] == ACCOUNT
