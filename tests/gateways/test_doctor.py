"""The doctor's gateways: AWS over HTTP, and a real API server with our definitions and rights."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest

from joinery.gateways.workers import OneByOne
from joinery.objects.errors import ConfigurationError, NotFoundError
from joinery_cli.doctor import allowed, health, installed, reachable
from joinery_cli.doctor.findings import Check, CheckStatus, examine
from joinery_cli.doctor.reaching import Boto, ClusterApi, current_cluster
from joinery_cli.doctor.site import Site
from joinery_cli.main import main
from simulator.awsserver.account import REGION
from tests.controlplane.objects import connect
from tests.functional.doctored import FakeAws, FakeWeb, site
from tools.controlplane.plane import ControlPlane

OK, WARN, FAIL = CheckStatus.OK, CheckStatus.WARN, CheckStatus.FAIL


def findings(given: Site, *looks: object) -> list[tuple[str, CheckStatus]]:
    """Topic and status of what these checks say."""
    checks = [Check("the check", look) for look in looks]  # type: ignore[arg-type]
    return [(finding.topic, finding.status) for finding in examine(checks, given, OneByOne())]


# --- AWS ---


def test_a_cluster_that_is_not_there_is_one_line(
    aws: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not one a check, of which each asks for rights: the region is wrong, most often."""
    assert aws
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "green", "--region", REGION])
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", f"joinery: there is no EKS cluster green in {REGION}: is --region right?\n")


@pytest.fixture
def boto(aws: str) -> Boto:
    """An empty account, over HTTP."""
    assert aws
    return Boto(REGION)


def test_pages_are_put_together(boto: Boto) -> None:
    """A caller never sees half of a list."""
    client = boto3.client("sqs")
    for number in range(12):
        client.create_queue(QueueName=f"queue-{number:02}")
    assert len(boto.ask("sqs", "list_queues", PaginationConfig={"PageSize": 5})["QueueUrls"]) == 12


def test_what_is_not_there_is_told_apart_from_what_is_not_allowed(boto: Boto) -> None:
    """The doctor names another remedy for each."""
    with pytest.raises(NotFoundError):
        boto.ask("iam", "get_role", RoleName="nobody")
    with pytest.raises(ConfigurationError):
        boto.ask("ec2", "describe_subnets", SubnetIds=["nonsense"])


def test_dead_letters_and_stale_prices_are_seen_in_a_real_account(boto: Boto) -> None:
    """SQS counts the letters, S3 says when the catalogue was written."""
    queue = boto3.client("sqs").create_queue(QueueName="dead")["QueueUrl"]
    boto3.client("sqs").send_message(QueueUrl=queue, MessageBody="{}")
    boto3.client("s3").create_bucket(Bucket="bucket")
    given = site()
    stack = FakeAws()

    class Mixed:
        """The stack as it is described in memory, everything else in the account."""

        def ask(self, service: str, operation: str, **parameters: object) -> object:
            if service != "cloudformation":
                return boto.ask(service, operation, **parameters)
            if operation == "describe_stacks":
                return stack.ask(service, operation)
            kinds = {"LogicalResourceId": "BellDeadLetters", "ResourceType": "q", "PhysicalResourceId": queue}
            return {"StackResourceSummaries": [kinds]}

    given.aws = Mixed()  # type: ignore[assignment]
    assert findings(given, health.dead_letters) == [("dead letters", FAIL)]
    assert findings(given, health.catalogue) == [("catalogue", FAIL)]
    boto3.client("s3").put_object(Bucket="bucket", Key="catalog.json.gz", Body=b"{}")
    given.now = lambda: datetime.now(UTC)  # noqa: TID251 - S3 says its own moment
    assert findings(given, health.catalogue) == [("catalogue", OK)]
    given.now = lambda: datetime.now(UTC) + timedelta(hours=3)  # noqa: TID251
    assert findings(given, health.catalogue) == [("catalogue", WARN)]


# --- a real API server ---


@pytest.mark.xdist_group("api_server")
def test_a_real_api_server_answers_what_the_doctor_asks(joinery_api_server: ControlPlane) -> None:
    """Its version, the definitions and rights of this release, what the group joinery may do, and its clock."""
    given = site(web=FakeWeb())
    given.api = ClusterApi(lambda: connect(joinery_api_server))
    given.now = lambda: datetime.now(UTC)  # noqa: TID251 - the API server has a clock of its own
    aws = FakeAws(get_caller_identity={})
    given.aws = aws
    looks = (reachable.api_server, installed.versions, allowed.cluster_rights, reachable.clocks)
    assert findings(given, *looks) == [("api server", OK), ("version", OK), ("rights", OK), ("clock", OK)]
    # No webhook configuration was applied there.
    assert findings(given, reachable.webhook) == [("webhook", FAIL)]


# --- the kubeconfig ---


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("arn:aws:eks:eu-central-1:123456789012:cluster/blue", ("blue", "eu-central-1")),
        ("blue.eu-west-1.eksctl.io", ("blue", "eu-west-1")),
        ("kind-blue", ("", "")),
    ],
)
def test_the_kubeconfig_says_which_cluster_is_meant(
    name: str, meant: tuple[str, str], tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As aws eks update-kubeconfig and eksctl write it."""
    path = f"{tmp_path}/config"
    with open(path, "w") as config:
        config.write(f"current-context: here\ncontexts: [{{name: here, context: {{cluster: '{name}'}}}}]\n")
    monkeypatch.setenv("KUBECONFIG", path)
    assert current_cluster() == meant


def test_without_a_kubeconfig_no_cluster_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a person names one."""
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    assert current_cluster() == ("", "")
