"""What the memory of refused requests promises, in a process and over DynamoDB."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest

from joinery.gateways.memory.dynamodb import DynamoRefusals
from joinery.gateways.memory.table import EXPIRES, KEY, Table
from joinery.gateways.memory.unavailable import RefusedRequests, RememberedRefusals
from joinery.objects.refusals import REMEMBERED, Refusal

NOW = datetime(2026, 8, 24, 9, 0, tzinfo=UTC)
ENDED = Refusal("TerminateInstance i-1", NOW - timedelta(minutes=1), NOW, "OperationNotPermitted")
TAGGED = Refusal("TagInstance i-2", NOW, NOW, "UnauthorizedOperation")


def _table() -> None:
    boto3.client("dynamodb").create_table(
        TableName="joinery",
        KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


@pytest.fixture(params=["process", "dynamodb"])
def refusals(request: pytest.FixtureRequest) -> RefusedRequests:
    """Both forms, empty."""
    if request.param == "process":
        return RememberedRefusals()
    request.getfixturevalue("aws")
    _table()
    return DynamoRefusals(Table("joinery", "us-east-1"))


def test_what_was_refused_is_known_until_it_is_granted_or_nobody_asks_any_more(refusals: RefusedRequests) -> None:
    """Its object may be gone by then."""
    refusals.note([ENDED, TAGGED])
    assert dict(refusals.at(NOW)) == {ENDED.request: ENDED, TAGGED.request: TAGGED}
    refusals.forget([TAGGED.request])
    assert dict(refusals.at(NOW)) == {ENDED.request: ENDED}
    assert dict(refusals.at(NOW + REMEMBERED)) == {}


def test_another_process_knows_it_too(aws: object) -> None:
    """Items that another version wrote are passed over, and so is a moment that nobody can have asked at."""
    _table()
    DynamoRefusals(Table("joinery", "us-east-1")).note([ENDED])
    until = {"N": str((NOW + timedelta(days=9999)).timestamp())}
    moments = {"since": {"N": "1"}, "asked": until, "reason": {"S": "x"}}
    for item in ({KEY: {"S": "refused#x"}}, {KEY: {"S": "refused#y"}, **moments}, {KEY: {"S": "offering#z"}}):
        boto3.client("dynamodb").put_item(TableName="joinery", Item={**item, EXPIRES: until})
    assert dict(DynamoRefusals(Table("joinery", "us-east-1")).at(NOW)) == {ENDED.request: ENDED}


def test_without_the_table_a_process_knows_what_it_was_refused(aws: object) -> None:
    """A door must not fail for what only spares calls."""
    refusals = DynamoRefusals(Table("nowhere", "us-east-1"))
    refusals.note([ENDED])
    assert dict(refusals.at(NOW)) == {ENDED.request: ENDED}


def test_what_was_refused_in_one_cluster_was_not_refused_in_another(aws: str) -> None:
    """Objects of two clusters may have one name."""
    _table()
    own, green = (DynamoRefusals(Table("joinery", "us-east-1"), member) for member in ("", "green"))
    green.note([ENDED])
    assert dict(own.at(NOW)) == {}
    assert dict(DynamoRefusals(Table("joinery", "us-east-1"), "green").at(NOW)) == {ENDED.request: ENDED}
    assert dict(DynamoRefusals(Table("joinery", "us-east-1"), "red").at(NOW)) == {}
