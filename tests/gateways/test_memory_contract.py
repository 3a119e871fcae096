"""What the offering memory promises, in memory and over DynamoDB."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest

from joinery.errors import ConfigurationError
from joinery.memory.dynamodb import KEY, DynamoMemory
from joinery.memory.gateway import OfferingMemory
from joinery.state.offerings import OfferingKey
from simulator.aws import InMemoryMemory

NOW = datetime(2026, 8, 24, 9, 0, tzinfo=UTC)
LARGE = OfferingKey("m7a.large", "us-east-1a", "spot")
SMALL = OfferingKey("t3.small", "us-east-1b", "on-demand")


@pytest.fixture(params=["memory", "dynamodb"])
def memory(request: pytest.FixtureRequest) -> OfferingMemory:
    """Both forms, empty."""
    if request.param == "memory":
        return InMemoryMemory()
    request.getfixturevalue("aws")
    boto3.client("dynamodb").create_table(
        TableName="joinery",
        KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return DynamoMemory("joinery", "us-east-1")


def test_a_marked_pool_is_unavailable_for_three_minutes(memory: OfferingMemory) -> None:
    """And not a moment longer, whether or not the table has removed it."""
    memory.mark_unavailable([LARGE], now=NOW, reason="InsufficientInstanceCapacity")
    assert memory.unavailable(NOW) == {LARGE}
    assert memory.unavailable(NOW + timedelta(seconds=179)) == {LARGE}
    assert memory.unavailable(NOW + timedelta(minutes=3)) == frozenset()


def test_marking_again_extends_it(memory: OfferingMemory) -> None:
    """EC2 was asked again and was out again."""
    memory.mark_unavailable([LARGE, SMALL], now=NOW, reason="x")
    memory.mark_unavailable([LARGE], now=NOW + timedelta(minutes=2), reason="x")
    assert memory.unavailable(NOW + timedelta(minutes=4)) == {LARGE}


def test_many_pools_are_marked_at_once(memory: OfferingMemory) -> None:
    """More than one request may carry, and the same pool twice."""
    pools = [OfferingKey(f"m7a.{n}", "us-east-1a", "spot") for n in range(60)]
    memory.mark_unavailable([*pools, *pools], now=NOW, reason="x")
    assert memory.unavailable(NOW) == set(pools)


def test_nothing_marked_is_nothing_unavailable(memory: OfferingMemory) -> None:
    """Marking no pool is allowed."""
    memory.mark_unavailable([], now=NOW, reason="x")
    assert memory.unavailable(NOW) == frozenset()


def test_a_missing_table_is_a_wrong_setting(aws: str) -> None:
    """The error names the table."""
    with pytest.raises(ConfigurationError, match="reading table absent: ResourceNotFound"):
        DynamoMemory("absent", "us-east-1").unavailable(NOW)
