"""What the memory of unavailable offerings promises, in memory and over DynamoDB."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.stub import Stubber

from joinery.gateways.memory.dynamodb import DynamoUnavailableOfferings
from joinery.gateways.memory.table import EXPIRES, KEY
from joinery.gateways.memory.unavailable import UnavailableOfferings, UnavailableToMember
from joinery.objects.errors import ConfigurationError
from joinery.objects.snapshot.offerings import ALL_SPOT, OfferingKey
from joinery.objects.snapshot.shortages import MARKED_FOR, REMEMBERED, Shortage
from simulator.aws import InMemoryUnavailableOfferings

NOW = datetime(2026, 8, 24, 9, 0, tzinfo=UTC)
LARGE = OfferingKey("m7a.large", "us-east-1a", "spot")
SMALL = OfferingKey("t3.small", "us-east-1b", "on-demand")
RESERVED = OfferingKey("m7a.large", "us-east-1a", "reserved", "cr-1")
FULL = OfferingKey("", "us-east-1a", "", scope="subnet-1")


@pytest.fixture(params=["memory", "dynamodb"])
def offerings(request: pytest.FixtureRequest) -> UnavailableOfferings:
    """Both forms, empty."""
    if request.param == "memory":
        return InMemoryUnavailableOfferings()
    request.getfixturevalue("aws")
    return over_dynamodb()


def over_dynamodb() -> UnavailableOfferings:
    """With a table of its own."""
    boto3.client("dynamodb").create_table(
        TableName="joinery",
        KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return DynamoUnavailableOfferings("joinery", "us-east-1")


def test_a_marked_pool_is_unavailable_for_three_minutes(offerings: UnavailableOfferings) -> None:
    """And not a moment longer, whether or not the table has removed it."""
    offerings.mark([LARGE, RESERVED], now=NOW, reason="InsufficientInstanceCapacity")
    assert offerings.at(NOW) == {LARGE, RESERVED}
    assert offerings.at(NOW + timedelta(seconds=179)) == {LARGE, RESERVED}
    assert offerings.at(NOW + timedelta(minutes=3)) == frozenset()


def test_marking_again_extends_it(offerings: UnavailableOfferings) -> None:
    """EC2 was asked again and was out again."""
    offerings.mark([LARGE, SMALL], now=NOW, reason="x")
    offerings.mark([LARGE], now=NOW + timedelta(minutes=2), reason="x")
    assert offerings.at(NOW + timedelta(minutes=4)) == {LARGE}


def test_what_is_out_again_is_marked_for_twice_as_long_until_it_serves(offerings: UnavailableOfferings) -> None:
    """Whichever process finds it out again. What else is known of other pools stays."""
    offerings.mark([LARGE, RESERVED, ALL_SPOT, FULL], now=NOW, reason="x")
    later = NOW + timedelta(minutes=4)
    assert offerings.at(later) == frozenset()
    offerings.mark([LARGE, RESERVED, FULL], now=later, reason="x")
    assert offerings.at(later + timedelta(minutes=5)) == {LARGE, RESERVED}
    offerings.forget([LARGE])
    assert offerings.at(later + timedelta(minutes=5)) == {RESERVED}
    offerings.mark([LARGE], now=later + timedelta(minutes=5), reason="x")
    assert offerings.at(later + timedelta(minutes=8)) == frozenset()


def test_many_pools_are_marked_at_once(offerings: UnavailableOfferings) -> None:
    """More than one request may carry, and the same pool twice."""
    pools = [OfferingKey(f"m7a.{n}", "us-east-1a", "spot") for n in range(60)]
    offerings.mark([*pools, *pools], now=NOW, reason="x")
    assert offerings.at(NOW) == set(pools)


@pytest.mark.parametrize("ends", [NOW.replace(year=9999), NOW + timedelta(days=1)])
def test_a_mark_that_lasts_longer_than_any_of_ours_is_none(aws: object, ends: datetime) -> None:
    """Or whoever may write the table would stop all buying of an offering, or of all spot, for good."""
    for offerings in (over_dynamodb(), InMemoryUnavailableOfferings({ALL_SPOT: Shortage(ends)})):
        offerings.mark([LARGE], now=NOW, reason="x")
        if isinstance(offerings, DynamoUnavailableOfferings):
            item = {KEY: {"S": "offering###spot"}, EXPIRES: {"N": str(int(ends.timestamp()))}}
            boto3.client("dynamodb").put_item(TableName="joinery", Item=item)
        assert offerings.at(NOW) == {LARGE}


def test_an_item_that_another_version_wrote_is_passed_over(aws: object) -> None:
    """Two versions run side by side while a release replaces another; both know the other items."""
    offerings = over_dynamodb()
    until = {"N": str((NOW + timedelta(minutes=1)).timestamp())}
    for key in ("offering#m7a.large#us-east-1a#spot##rack-7", "offering#m7a.large", "type#m7a.large"):
        boto3.client("dynamodb").put_item(TableName="joinery", Item={KEY: {"S": key}, EXPIRES: until})
    offerings.mark([LARGE], now=NOW, reason="x")
    assert offerings.at(NOW) == {LARGE}


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> DynamoUnavailableOfferings:
    """Over a table whose answers a test gives."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    return DynamoUnavailableOfferings("joinery", "us-east-1")


def test_what_the_table_does_not_take_is_unavailable_to_this_process(scripted: DynamoUnavailableOfferings) -> None:
    """Else the next plan would ask EC2 for it again, a second later. Whoever marked it hears of the failure."""
    with Stubber(scripted._clients.dynamodb) as table:
        table.add_client_error("batch_write_item", "AccessDeniedException", "no", http_status_code=400)
        with pytest.raises(ConfigurationError, match="writing table joinery"):
            scripted.mark([LARGE], now=NOW, reason="x")
        table.add_response("scan", {"Items": []})
        assert scripted.at(NOW + timedelta(seconds=179)) == {LARGE}
        table.add_response("scan", {"Items": []})
        assert scripted.at(NOW + MARKED_FOR) == frozenset()


def test_what_an_answer_lacks_is_not_there(scripted: DynamoUnavailableOfferings) -> None:
    """By DynamoDB's model a page need not have items; one that is nobody's keeps no other from being read."""
    offerings = scripted
    first, second = {"LastEvaluatedKey": {KEY: {"S": "x"}}}, {"Items": [{}, {KEY: {"S": "offering#a#b#spot"}}]}
    with Stubber(offerings._clients.dynamodb) as table:
        table.add_response("scan", first)
        table.add_response("scan", second)
        assert offerings.at(NOW) == {OfferingKey("a", "b", "spot")}


def test_the_tables_ttl_can_read_when_an_item_expires(aws: object) -> None:
    """Whole seconds since 1970: "if you use any other format, the TTL processes ignore the item"."""
    over_dynamodb().mark([LARGE], now=NOW + timedelta(milliseconds=250), reason="x")
    (item,) = boto3.client("dynamodb").scan(TableName="joinery")["Items"]
    assert item[EXPIRES] == {"N": str(int((NOW + MARKED_FOR + REMEMBERED).timestamp()))}


def test_all_of_spot_may_be_marked(offerings: UnavailableOfferings) -> None:
    """There is none at all where its role is lacking."""
    offerings.mark([ALL_SPOT], now=NOW, reason="x")
    assert offerings.at(NOW) == {ALL_SPOT}


def test_nothing_marked_is_nothing_unavailable(offerings: UnavailableOfferings) -> None:
    """Marking no pool is allowed."""
    offerings.mark([], now=NOW, reason="x")
    assert offerings.at(NOW) == frozenset()


def test_a_missing_table_is_a_wrong_setting(aws: str) -> None:
    """The error names the table."""
    with pytest.raises(ConfigurationError, match="reading table absent: ResourceNotFound"):
        DynamoUnavailableOfferings("absent", "us-east-1").at(NOW)


def test_a_member_knows_what_ec2_is_out_of_and_not_what_anothers_class_lacks(offerings: UnavailableOfferings) -> None:
    """EC2 is out of it for the whole account. A class of the same name is another class."""
    green, red = (UnavailableToMember(offerings, name) for name in ("green", "red"))
    lacks = OfferingKey("", "us-east-1b", "", scope="class/default/1")
    dedicated = OfferingKey("", "us-east-1b", "", scope="tenancy/dedicated/class/default/1")
    green.mark([LARGE, FULL, lacks, dedicated], now=NOW, reason="x")
    assert green.at(NOW) == {LARGE, FULL, lacks, dedicated}
    assert red.at(NOW) == {LARGE, FULL}
    assert offerings.at(NOW).isdisjoint({lacks, dedicated})
    red.forget([lacks, LARGE])
    assert green.at(NOW) == {FULL, lacks, dedicated}
    green.forget([lacks])
    assert green.at(NOW) == {FULL, dedicated}
