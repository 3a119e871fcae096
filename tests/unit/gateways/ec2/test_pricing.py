"""Prices, as AWS writes them."""

import json
import re
from importlib.resources import files
from typing import Any

import pytest

from joinery.gateways.aws import Clients
from joinery.gateways.ec2.catalog import pricing
from joinery.gateways.ec2.catalog.pricing import on_demand_prices
from joinery.gateways.partitions import pricing_region
from simulator.cloud.market import sample


def document(kind: str, **prices: str) -> str:
    """A document of the price list."""
    dimensions: dict[str, Any] = {"X.Y.Z": {"unit": "Hrs", "pricePerUnit": prices}}
    terms = {"OnDemand": {"X.Y": {"priceDimensions": dimensions}}}
    return json.dumps({"product": {"attributes": {"instanceType": kind}, "sku": "X"}, "terms": terms})


def test_a_price_is_taken_in_the_regions_currency() -> None:
    """Dollars everywhere but in China."""
    both = [document("m5.large", USD="0.0960000000", CNY="0.66")]
    assert on_demand_prices(both, "USD") == {"m5.large": 0.096}
    assert on_demand_prices(both, "CNY") == {"m5.large": 0.66}


def test_a_price_that_is_none_is_left_out() -> None:
    """Zero is what AWS writes where it does not sell; unreadable is not a price either."""
    documents = [
        document("a", USD="0.0000000000"),
        document("b", USD="free"),
        document("c", EUR="1"),
        '{"product": {}}',
    ]
    assert on_demand_prices(documents, "USD") == {}


@pytest.mark.parametrize(
    ("region", "asked"),
    [
        ("us-west-2", "us-east-1"),
        ("sa-east-1", "us-east-1"),
        ("eu-west-3", "eu-central-1"),
        ("ap-southeast-2", "ap-south-1"),
        ("cn-north-1", "cn-northwest-1"),
    ],
)
def test_prices_are_asked_for_where_the_price_list_is(region: str, asked: str) -> None:
    """It answers in a few regions only."""
    assert pricing_region(region) == asked


def test_estimates_are_those_of_the_sample() -> None:
    """1,235 types as they are priced in us-east-1, and 132 that the sample does not describe."""
    listed = {o.instance_type: o.price for o in sample().offerings if o.capacity_type == "on-demand"}
    estimates = pricing.estimates("us-gov-west-1")

    assert {name: price for name, price in estimates.items() if name in listed} == listed
    assert len(estimates) == len(listed) + 132
    assert all(0.001 < price < 1000 for price in estimates.values())
    assert pricing.estimates("cn-north-1")["m5.large"] == pytest.approx(7 * listed["m5.large"])


def test_estimates_name_their_source_and_their_month() -> None:
    """A release is older than its prices may be believed."""
    document = json.loads((files("joinery.gateways.ec2.catalog") / "data" / "on-demand-us-east-1.json").read_text())
    assert re.fullmatch(r"\d{4}-\d{2}", document["as_of"])
    assert (document["region"], document["currency"]) == ("us-east-1", "USD")
    assert "price list" in document["source"]


def test_where_nobody_says_prices_they_are_estimated() -> None:
    """GovCloud has no Price List API, so nothing is asked. Elsewhere a setting says that the list is out of reach."""
    government = pricing.on_demand(Clients("us-gov-west-1"))

    assert government["m5.large"] > 0
    assert pricing.on_demand(Clients("eu-west-1"), is_estimated=True) == government
