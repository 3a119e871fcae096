"""DescribeInstanceStatus as EC2 answers it: what is wrong with which instance."""

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from joinery.gateways.aws import Clients
from joinery.gateways.ec2.launch.impaired import EVENT_CODES, impaired
from joinery.objects.errors import ConfigurationError
from joinery.objects.snapshot.instances import InstanceStatus
from tests.real.answers import ERRORS, answering, as_parsed, read

NOBODY: dict[str, Any] = {"InstanceStatuses": []}
STOP = InstanceStatus("i-0598c7d356eba48d7", events=("instance-stop",), starts=datetime(2026, 12, 4, 20, tzinfo=UTC))
FAILED = InstanceStatus(
    "i-0598c7d356eba48d9",
    instance_failed=datetime(2026, 11, 21, 21, 50, tzinfo=UTC),
    system_failed=datetime(2026, 11, 21, 21, 49, tzinfo=UTC),
)


def test_only_what_is_wrong_now_or_to_come_is_told(clients: Clients) -> None:
    """Events that are completed or cancelled are listed for another week; checks that begin have not failed."""
    calls = [
        ("ec2", "describe_instance_status", answer) for answer in (NOBODY, read("describe-instance-status"), NOBODY)
    ]

    with answering(clients, *calls):
        assert impaired(clients) == (STOP, FAILED)


def test_an_instance_with_several_troubles_is_told_once(clients: Clients) -> None:
    """Each of the three calls finds it."""
    with answering(clients, *[("ec2", "describe_instance_status", read("describe-instance-status"))] * 3):
        assert impaired(clients) == (STOP, FAILED)


def test_ec2_is_asked_for_impaired_instances_only_and_for_every_page(clients: Clients) -> None:
    """Three calls, whatever the number of nodes, as long as little is wrong."""
    ec2 = clients.ec2
    answer = as_parsed(ec2, "DescribeInstanceStatus", read("describe-instance-status"))
    asked = [
        [{"Name": "instance-status.status", "Values": ["impaired"]}],
        [{"Name": "system-status.status", "Values": ["impaired"]}],
        [{"Name": "event.code", "Values": list(EVENT_CODES)}],
    ]
    with Stubber(ec2) as stub:
        first = {"InstanceStatuses": answer["InstanceStatuses"][:1], "NextToken": "more"}
        second = {"InstanceStatuses": answer["InstanceStatuses"][1:]}
        stub.add_response("describe_instance_status", first, {"Filters": asked[0]})
        stub.add_response("describe_instance_status", second, {"Filters": asked[0], "NextToken": "more"})
        stub.add_response("describe_instance_status", NOBODY, {"Filters": asked[1]})
        stub.add_response("describe_instance_status", NOBODY, {"Filters": asked[2]})

        assert impaired(clients) == (STOP, FAILED)
        stub.assert_no_pending_responses()


def test_a_check_that_does_not_say_since_when_has_failed_for_long(clients: Clients) -> None:
    """The moment is optional in EC2's model."""
    failed = {"Name": "reachability", "Status": "failed"}
    entry = {"InstanceId": "i-1", "SystemStatus": {"Status": "impaired", "Details": [failed]}}

    with answering(clients, *[("ec2", "describe_instance_status", {"InstanceStatuses": [entry]})] * 3):
        (status,) = impaired(clients)

    assert status.system_failed is not None
    assert status.system_failed.year == 1


def test_every_code_is_one_that_ec2_knows() -> None:
    """A misspelt code would find nothing for ever."""
    model = boto3.client("ec2", region_name="us-east-1").meta.service_model
    event = model.shape_for("InstanceStatusEvent")

    assert sorted(EVENT_CODES) == sorted(event.members["Code"].enum)  # type: ignore[attr-defined]


def test_a_missing_right_is_the_users_to_grant(clients: Clients) -> None:
    """The poll fails, loudly, and nothing else does."""
    refusal = next(error for name, error in ERRORS.items() if "UnauthorizedOperation" in name)

    with (
        answering(clients, ("ec2", "describe_instance_status", refusal)),
        pytest.raises(ConfigurationError, match="UnauthorizedOperation"),
    ):
        impaired(clients)
