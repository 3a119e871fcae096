"""What the register of clusters promises, in memory and over DynamoDB."""

import boto3
import pytest

from joinery.gateways.memory.dynamodb import DynamoUnavailableOfferings
from joinery.gateways.memory.members import Register
from joinery.gateways.memory.register import DynamoRegister
from joinery.gateways.memory.table import KEY
from joinery.objects.errors import ConfigurationError, NotFoundError, UnavailableError
from joinery.objects.member import Member
from joinery.objects.snapshot.offerings import OfferingKey
from simulator.aws import InMemoryRegister
from simulator.clock import START, Clock

GREEN = Member(
    "green", {"provisioning": "arn:aws:iam::1:role/p"}, "NodeRepair=reboot", "act", "arn:secret", "arn:stack", "0.1.0"
)
RED = Member("red", {}, mode="observe")


@pytest.fixture(params=["memory", "dynamodb"])
def register(request: pytest.FixtureRequest) -> Register:
    """Both forms, empty."""
    if request.param == "memory":
        return InMemoryRegister()
    request.getfixturevalue("aws")
    return over_dynamodb()


def over_dynamodb() -> Register:
    """With a table of its own."""
    boto3.client("dynamodb").create_table(
        TableName="joinery",
        KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return DynamoRegister("joinery", "us-east-1", now=Clock().now)


def test_what_is_put_there_is_found_by_its_cluster(register: Register) -> None:
    """And nothing else is."""
    register.put(GREEN)
    register.put(RED)
    assert register.get("green") == GREEN
    assert register.get("blue") is None
    assert {one.cluster: one for one in register.all()} == {"green": GREEN, "red": RED}


def test_what_is_put_there_again_is_what_holds(register: Register) -> None:
    """A mode is changed by an update of the member's stack."""
    register.put(Member("green", {}, mode="observe"))
    register.put(GREEN)
    assert register.get("green") == GREEN


def test_what_is_removed_is_gone(register: Register) -> None:
    """Also for whoever removes it twice: a stack's deletion may be tried again."""
    register.put(GREEN)
    register.remove("green")
    register.remove("green")
    assert register.get("green") is None
    assert register.all() == ()


def test_it_shares_the_table_with_what_ec2_is_out_of(aws: str) -> None:
    """Neither is taken for the other."""
    register, marks = over_dynamodb(), DynamoUnavailableOfferings("joinery", "us-east-1")
    register.put(GREEN)
    marks.mark([OfferingKey("m7a.large", "us-east-1a", "spot")], now=START, reason="x")
    assert register.all() == (GREEN,)
    assert len(marks.at(START)) == 1


def test_an_item_that_cannot_be_read_is_a_persons_and_no_other_clusters_business(aws: str) -> None:
    """Whoever has written it wrote it by hand."""
    register = over_dynamodb()
    register.put(GREEN)
    boto3.client("dynamodb").put_item(TableName="joinery", Item={KEY: {"S": "cluster#red"}, "roles": {"S": "no JSON"}})
    with pytest.raises(ConfigurationError, match="cluster#red"):
        register.get("red")
    assert register.all() == (GREEN,)


def test_a_table_that_is_missing_is_not_an_empty_register(aws: str) -> None:
    """Nobody may take all members for removed."""
    with pytest.raises(NotFoundError, match="register of clusters"):
        DynamoRegister("absent", "us-east-1", now=Clock().now).get("green")


def test_a_service_that_is_silent_is_unavailable() -> None:
    """The bell is rung again."""
    given = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    with pytest.raises(UnavailableError):
        DynamoRegister("joinery", "us-east-1", now=Clock().now, environment=given).get("green")
