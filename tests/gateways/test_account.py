"""The AWS account as the installer uses it: what is asked of AWS, and what CloudFormation is sent."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from botocore.stub import Stubber

from joinery.gateways.account.aws import AwsAccount
from joinery.gateways.account.gateway import AccessEntry
from joinery.objects.errors import ConfigurationError, ConflictError, NotFoundError, UnavailableError
from simulator.cloud.account import ROLE, InMemoryAccount

POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
OURS = {"clusterName": "blue", "principalArn": ROLE}
Stubs = dict[str, Stubber]


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> AwsAccount:
    """The adapter, with credentials that no AWS knows."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    return AwsAccount("us-east-1", ROLE)


@pytest.fixture
def stubs(account: AwsAccount) -> Iterator[Stubs]:
    """What AWS answers, by service: every answer must be asked for."""
    clients: dict[str, Any] = {name: getattr(account._clients, name) for name in ("eks", "iam", "functions")}
    stubbed = {name: Stubber(client) for name, client in clients.items()}
    for stub in stubbed.values():
        stub.activate()
    yield stubbed
    for stub in stubbed.values():
        stub.assert_no_pending_responses()


def test_the_installer_lets_itself_in_as_an_administrator(account: AwsAccount, stubs: Stubs) -> None:
    """Itself, nobody else, over the whole cluster."""
    tags = {"joinery.dev/run": "run-1"}
    stubs["eks"].add_response("create_access_entry", {}, {**OURS, "type": "STANDARD", "tags": tags})
    scope = {"type": "cluster"}
    stubs["eks"].add_response("associate_access_policy", {}, {**OURS, "policyArn": POLICY, "accessScope": scope})

    account.grant_access("blue", tags)


def test_a_secret_without_a_text_is_one_line(account: AwsAccount) -> None:
    """Somebody has put bytes into it. The line names the call and the field, and quotes nothing."""
    account = AwsAccount("us-east-1", ROLE, webhook_secret="blue-webhook")
    with Stubber(account._clients.secrets) as secrets:
        secrets.add_response("get_secret_value", {"SecretBinary": b"x", "VersionId": "x" * 32})
        with pytest.raises(
            UnavailableError, match="^SecretsManager GetSecretValue blue-webhook: the answer has no SecretString$"
        ):
            account.webhook_secret()


def test_a_stack_that_does_not_say_its_state_is_one_line(account: AwsAccount) -> None:
    """CloudFormation lists no stack for a name in a moment of its deletion."""
    with Stubber(account._clients.stacks) as stacks:
        stacks.add_response("describe_stacks", {"Stacks": []})
        with pytest.raises(UnavailableError, match="^CloudFormation DescribeStacks blue: the answer has no Stacks$"):
            account.stack_status("blue")


@pytest.mark.parametrize(("code", "error"), [
    ("ResourceInUseException", ConflictError),
    ("ResourceNotFoundException", NotFoundError),
    ("InvalidRequestException", ConfigurationError),
    ("AccessDeniedException", ConfigurationError),
    ("ServerException", UnavailableError),
])  # fmt: skip
def test_a_refused_entry_is_one_of_our_errors(
    code: str, error: type[Exception], account: AwsAccount, stubs: Stubs
) -> None:
    """Each is followed by another step."""
    status = 500 if code == "ServerException" else 400
    stubs["eks"].add_client_error("create_access_entry", code, "no", status)

    with pytest.raises(error, match="EKS CreateAccessEntry"):
        account.grant_access("blue", {})


def test_an_entry_is_found_with_its_tags(account: AwsAccount, stubs: Stubs) -> None:
    """They say which run has made it, and until when it may be at work."""
    stubs["eks"].add_response("describe_access_entry", {"accessEntry": {"tags": {"joinery.dev/run": "run-1"}}}, OURS)
    stubs["eks"].add_client_error("describe_access_entry", "ResourceNotFoundException", "", 404)

    assert account.access("blue") == AccessEntry(ROLE, {"joinery.dev/run": "run-1"})
    assert account.access("blue") is None


def test_an_entry_that_is_gone_is_no_error(account: AwsAccount, stubs: Stubs) -> None:
    """Removing twice is removing once."""
    stubs["eks"].add_response("delete_access_entry", {}, OURS)
    stubs["eks"].add_client_error("delete_access_entry", "ResourceNotFoundException", "", 404)

    account.revoke_access("blue")
    account.revoke_access("blue")


def test_the_role_of_spot_instances_is_made_once(account: AwsAccount, stubs: Stubs) -> None:
    """IAM has no other way to say that it is there already."""
    wanted = {"AWSServiceName": "spot.amazonaws.com"}
    made = {"RoleName": "AWSServiceRoleForEC2Spot", "RoleId": "A" * 21, "Arn": ROLE}
    answer = {"Role": {"Path": "/", "CreateDate": "2026-01-01", **made}}
    taken = "Service role name AWSServiceRoleForEC2Spot has been taken in this account, please try a different suffix."
    stubs["iam"].add_response("create_service_linked_role", answer, wanted)
    stubs["iam"].add_client_error("create_service_linked_role", "InvalidInput", taken, 400)
    stubs["iam"].add_client_error("create_service_linked_role", "AccessDenied", "boundary", 403)

    assert account.ensure_spot_role()
    assert not account.ensure_spot_role()
    with pytest.raises(ConfigurationError, match="AccessDenied: boundary"):
        account.ensure_spot_role()


def test_the_catalogue_is_read_without_being_waited_for(account: AwsAccount, stubs: Stubs) -> None:
    """An asynchronous invocation."""
    wanted = {"FunctionName": "catalog-1", "InvocationType": "Event", "Payload": b'{"door": "catalog"}'}
    stubs["functions"].add_response("invoke", {"StatusCode": 202}, wanted)

    account.refresh_catalog("catalog-1")


def test_the_nodes_role_is_removed_with_all_that_holds_it(account: AwsAccount, stubs: Stubs) -> None:
    """Entry, profile, policies, and then the role."""
    nodes = {"Path": "/", "CreateDate": "2026-01-01", "RoleName": "nodes-1", "RoleId": "A" * 21, "Arn": f"{ROLE}-nodes"}
    profile, role, policy = {"InstanceProfileName": "profile-1"}, {"RoleName": "nodes-1"}, {"PolicyArn": POLICY}
    stubs["iam"].add_response("get_role", {"Role": nodes}, role)
    stubs["eks"].add_response("delete_access_entry", {}, {"clusterName": "blue", "principalArn": f"{ROLE}-nodes"})
    stubs["iam"].add_response("remove_role_from_instance_profile", {}, {**profile, **role})
    stubs["iam"].add_response("delete_instance_profile", {}, profile)
    stubs["iam"].add_response("list_attached_role_policies", {"AttachedPolicies": [policy]}, role)
    stubs["iam"].add_response("detach_role_policy", {}, {**role, **policy})
    stubs["iam"].add_response("delete_role_policy", {}, {**role, "PolicyName": "AssignIpv6Addresses"})
    stubs["iam"].add_response("delete_role", {}, role)

    account.remove_node_role("blue", "nodes-1", "profile-1")


def test_a_nodes_role_that_is_gone_is_no_error(account: AwsAccount, stubs: Stubs) -> None:
    """A deletion that was stopped is repeated."""
    stubs["iam"].add_client_error("get_role", "NoSuchEntity", "", 404)

    account.remove_node_role("blue", "nodes-1", "profile-1")


def test_what_becomes_of_the_stack_is_asked(account: AwsAccount) -> None:
    """By its ARN."""
    stack = {"StackName": "arn:stack", "CreationTime": "2026-01-01", "StackStatus": "DELETE_IN_PROGRESS"}
    with Stubber(account._clients.stacks) as stacks:
        stacks.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": "arn:stack"})
        assert account.stack_status("arn:stack") == "DELETE_IN_PROGRESS"
        stacks.assert_no_pending_responses()


def test_other_partitions_have_policies_of_their_own(stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> None:
    """``arn:aws-us-gov``."""
    account = AwsAccount("us-gov-west-1", ROLE)
    with Stubber(account._clients.eks) as eks:
        eks.add_response("create_access_entry", {})
        policy, scope = POLICY.replace("arn:aws:", "arn:aws-us-gov:"), {"type": "cluster"}
        eks.add_response("associate_access_policy", {}, {**OURS, "policyArn": policy, "accessScope": scope})
        account.grant_access("blue", {})
        eks.assert_no_pending_responses()


# --- the answer to CloudFormation ---


class Bucket:
    """S3 as CloudFormation waits there. ``statuses``: what the next requests are answered, and 200 after them.
    ``retry_after``: for how many seconds it asks not to be asked again.
    """

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.retry_after = 0
        self.received: list[tuple[str, str | None, bytes]] = []
        bucket = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:  # noqa: N802 - the library's name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                bucket.received.append((self.path, self.headers["Content-Type"], body))
                self.send_response(bucket.statuses.pop(0) if bucket.statuses else 200)
                self.send_header("Retry-After", str(bucket.retry_after))
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/answer?X-Amz-Signature=secret"


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    """A local server."""
    bucket = Bucket()
    thread = threading.Thread(target=bucket.server.serve_forever)
    thread.start()
    yield bucket
    bucket.server.shutdown()
    bucket.server.server_close()
    thread.join()


def test_an_answer_is_put_with_an_empty_content_type(account: AwsAccount, bucket: Bucket) -> None:
    """The URL's signature is over an empty one."""
    account.answer(bucket.url, b"{}")

    assert bucket.received == [("/answer?X-Amz-Signature=secret", "", b"{}")]


def test_an_answer_is_put_again_if_s3_is_busy(account: AwsAccount, bucket: Bucket) -> None:
    """Without it CloudFormation would wait for an hour."""
    bucket.statuses = [503, 500]
    account.answer(bucket.url, b"{}")

    assert len(bucket.received) == 3


def test_an_answer_waits_for_s3_no_longer_than_the_run_can(account: AwsAccount, bucket: Bucket) -> None:
    """However long S3 asks for: a run that is killed has not answered at all."""
    bucket.statuses, bucket.retry_after = [503], 3600
    account.answer(bucket.url, b"{}")

    assert len(bucket.received) == 2


@pytest.mark.parametrize("statuses", [[403], [503, 503, 503]])
def test_an_answer_that_is_refused_is_an_error_without_the_secret(
    statuses: list[int], account: AwsAccount, bucket: Bucket
) -> None:
    """Whoever reads the log must not be able to answer in our name."""
    bucket.statuses = statuses
    with pytest.raises(UnavailableError) as refused:
        account.answer(bucket.url, b"{}")

    assert "secret" not in str(refused.value)


# --- the one in memory ---


def test_the_account_in_memory_does_the_same() -> None:
    """An entry is made once, and removed as often as one likes."""
    account = InMemoryAccount("blue")
    account.grant_access("blue", {"a": "b"})

    assert account.access("blue") == AccessEntry(ROLE, {"a": "b"})
    with pytest.raises(ConflictError, match="EKS CreateAccessEntry"):
        account.grant_access("blue", {})
    with pytest.raises(NotFoundError, match="EKS CreateAccessEntry"):
        account.grant_access("red", {})
    account.revoke_access("blue")
    account.revoke_access("blue")
    assert account.access("blue") is None
    assert [account.ensure_spot_role(), account.ensure_spot_role()] == [True, False]
