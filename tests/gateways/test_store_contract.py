"""What the store promises, in memory and over S3."""

import gzip
import json
from datetime import UTC, datetime, timedelta, timezone

import boto3
import pytest

from joinery.gateways.ec2.catalog.document import Catalog, CatalogOffering, Zone, entry
from joinery.gateways.memory.bucket import CATALOG_KEY, Store
from joinery.gateways.memory.s3 import S3Store
from joinery.objects.commitments import PaidFor
from joinery.objects.errors import ConfigurationError, NotFoundError
from simulator.aws import InMemoryStore

NOW = datetime(2026, 8, 24, 9, 0, tzinfo=UTC)


def catalog(price: float = 0.1) -> Catalog:
    """A small catalogue."""
    return Catalog(
        region="us-east-1",
        zones=(Zone("us-east-1a", "use1-az6"),),
        instance_types=(entry({"InstanceType": "m7a.large"}),),
        offerings=(CatalogOffering("m7a.large", "us-east-1a", "spot", price),),
    )


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest) -> Store:
    """Both forms, empty."""
    if request.param == "memory":
        return InMemoryStore()
    request.getfixturevalue("aws")
    boto3.client("s3").create_bucket(Bucket="joinery")
    return S3Store("joinery", "us-east-1")


def test_no_catalogue_is_not_found(store: Store) -> None:
    """Before the catalog door ran there is nothing to plan with, and the caller is told so."""
    with pytest.raises(NotFoundError):
        store.catalog()


def test_the_catalogue_comes_back_as_it_was_put(store: Store) -> None:
    """And again, from memory."""
    store.put_catalog(catalog())
    assert store.catalog() == catalog()
    assert store.catalog() is store.catalog()


def test_a_new_catalogue_replaces_the_old(store: Store) -> None:
    """A warm reader sees new prices at its next read."""
    store.put_catalog(catalog(0.1))
    store.catalog()
    store.put_catalog(catalog(0.2))
    assert store.catalog().offerings[0].price == 0.2


def test_what_is_paid_for_comes_back_as_it_was_put(store: Store) -> None:
    """It replaces what was there; before that there is nothing. A person may write it, too."""
    with pytest.raises(NotFoundError):
        store.paid_for()
    for discount in (0.1, 0.2):
        document = PaidFor(discount=discount, read=NOW)
        store.put_paid_for(document)
        assert store.paid_for() == document


def test_a_document_of_commitments_that_says_something_else_is_a_wrong_one(aws: str) -> None:
    """Whoever has written it learns which field."""
    bucket = boto3.client("s3")
    bucket.create_bucket(Bucket="joinery")
    bucket.put_object(Bucket="joinery", Key="commitments.json", Body=b'{"savingsPlans": [{"name": "sp"}]}')
    with pytest.raises(ConfigurationError, match=r"commitments.*commitment.*savingsPlans"):
        S3Store("joinery", "us-east-1").paid_for()


def test_a_decision_is_filed_by_day_and_moment(store: Store) -> None:
    """In UTC, with the controller's name; the same decision gets the same key, another one another."""
    decision = {"kind": "List", "items": []}
    eastern = NOW.astimezone(timezone(timedelta(hours=-4)))
    key = store.record("provisioning", eastern, decision)
    assert key.startswith("decisions/2026/08/24/090000.000000-provisioning-")
    assert store.record("provisioning", NOW, decision) == key
    assert store.record("provisioning", NOW, {"kind": "List"}) != key


def test_a_recorded_decision_can_be_read_as_a_file(aws: str) -> None:
    """It is gzipped JSON, as ``joinery plan -f`` reads it."""
    boto3.client("s3").create_bucket(Bucket="joinery")
    key = S3Store("joinery", "us-east-1").record("provisioning", NOW, {"kind": "List", "items": [{"at": NOW}]})
    body = boto3.client("s3").get_object(Bucket="joinery", Key=key)["Body"].read()
    assert json.loads(gzip.decompress(body)) == {"kind": "List", "items": [{"at": "2026-08-24T09:00:00Z"}]}


def test_a_missing_bucket_is_a_wrong_setting(aws: str) -> None:
    """The error names the bucket."""
    with pytest.raises(ConfigurationError, match="s3://absent/catalog.json.gz: NoSuchBucket"):
        S3Store("absent", "us-east-1").catalog()


@pytest.mark.parametrize(
    "body",
    [b"{}", gzip.compress(b"{}", mtime=0)[:-4], b"\x1f\x8b\x08" + bytes(20)],
    ids=["no gzip file", "cut short", "no content"],
)
def test_a_catalogue_that_is_no_whole_gzip_file_is_a_wrong_one(aws: str, body: bytes) -> None:
    """Somebody has put it there by hand. The catalog door replaces what it cannot read; no other error tells it to."""
    bucket = boto3.client("s3")
    bucket.create_bucket(Bucket="joinery")
    bucket.put_object(Bucket="joinery", Key=CATALOG_KEY, Body=body)
    with pytest.raises(ConfigurationError, match="catalog.json.gz"):
        S3Store("joinery", "us-east-1").catalog()


def test_a_members_records_are_below_its_name_and_the_catalogue_is_decoded_once_for_all(aws: str) -> None:
    """The bucket is the stack's."""
    boto3.client("s3").create_bucket(Bucket="joinery")
    store = S3Store("joinery", "us-east-1")
    store.put_catalog(catalog())
    green = store.of_member("green")
    assert green.catalog() is store.catalog()
    assert green.record("provisioning", NOW, {"kind": "List"}).startswith("decisions/green/2026/")
    assert store.record("provisioning", NOW, {"kind": "List"}).startswith("decisions/2026/")
