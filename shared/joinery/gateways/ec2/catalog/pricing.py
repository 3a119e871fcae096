"""What offerings cost: on-demand from the price list, spot from EC2.

(Price List API GetProducts, EC2 API DescribeSpotPriceHistory.) An on-demand price is a type's in the whole region; a
spot price is a type's in one zone. Linux prices stand for every system. A price that is missing or zero is no price:
such an offering is not in the catalogue, so that it cannot be bought by mistake.

Where no price list is at hand, on-demand prices are estimates: those of us-east-1, which come with the release. What
one type costs beside another is much the same everywhere, and that decides what is bought.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from importlib.resources import files
from typing import Any

import msgspec

from joinery.gateways.answers import Log, unlogged
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog.document import HIGHEST
from joinery.gateways.partitions import partition_of, pricing_region
from joinery.objects.errors import UnavailableError
from joinery.objects.kubernetes.decoding import decode

#: Yuan for a dollar, roughly.
_YUAN = 7.0
_SPOT_PRODUCTS = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
#: The most entries that a page may have.
_PRODUCTS_A_PAGE, _PRICES_A_PAGE = 100, 1000
_FILTERS = {
    "serviceCode": "AmazonEC2",
    "preInstalledSw": "NA",
    "operatingSystem": "Linux",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
_SHARED = {"tenancy": "Shared", "productFamily": "Compute Instance"}
_BARE_METAL = {"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"}


class _Dimension(msgspec.Struct, frozen=True, rename="camel"):
    price_per_unit: dict[str, str] = {}


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    price_dimensions: dict[str, _Dimension] = {}


class _PriceTerms(msgspec.Struct, frozen=True, rename="pascal"):
    on_demand: dict[str, _Term] = {}


class _Attributes(msgspec.Struct, frozen=True, rename="camel"):
    instance_type: str = ""


class _Product(msgspec.Struct, frozen=True):
    attributes: _Attributes = _Attributes()


class _Estimates(msgspec.Struct, frozen=True):
    """The file that comes with the release. It names its source and its month, too."""

    prices: dict[str, float]


class _PriceListEntry(msgspec.Struct, frozen=True):
    """One of the price list's JSON documents, as far as it is read."""

    product: _Product = _Product()
    terms: _PriceTerms = _PriceTerms()


def on_demand(clients: Clients, *, is_estimated: bool = False) -> dict[str, float]:
    """Instance type to $/h (CNY/h in China), bare metal included. ``is_estimated``: the price list is not asked.

    Raises ``UnavailableError`` where the list has no price at all.
    """
    if is_estimated or not pricing_region(clients.region):
        return estimates(clients.region)
    currency = "CNY" if _is_in_china(clients.region) else "USD"
    prices: dict[str, float] = {}
    with translated("reading the price list"):
        pages = clients.pricing.get_paginator("get_products")
        for product in (_SHARED, _BARE_METAL):
            terms = {**_FILTERS, **product, "regionCode": clients.region}
            filters = [{"Type": "TERM_MATCH", "Field": key, "Value": value} for key, value in terms.items()]
            products: Any = {"ServiceCode": "AmazonEC2", "Filters": filters}
            for page in pages.paginate(**products, PaginationConfig={"PageSize": _PRODUCTS_A_PAGE}):
                prices |= on_demand_prices(page.get("PriceList") or (), currency, log=clients.log)
    if not prices:
        raise UnavailableError(f"reading the price list: it has no price of {clients.region}")
    return prices


def estimates(region: str) -> dict[str, float]:
    """The same without asking anybody. In China times seven, to compare with spot prices, which are in CNY."""
    text = (files("joinery.gateways.ec2.catalog") / "data" / "on-demand-us-east-1.json").read_bytes()
    prices = decode(text, _Estimates).prices
    return {name: price * _YUAN for name, price in prices.items()} if _is_in_china(region) else prices


def on_demand_prices(documents: Iterable[str], currency: str, *, log: Log = unlogged) -> dict[str, float]:
    """Instance type to price an hour, from documents of the price list. A document that cannot be read is left out."""
    prices: dict[str, float] = {}
    for document in documents:
        try:
            entry = decode(document.encode(), _PriceListEntry)
        except msgspec.DecodeError as error:
            log(f"Pricing GetProducts: a product is left out: {error}")
            continue
        for term in entry.terms.on_demand.values():
            for dimension in term.price_dimensions.values():
                if price := _price(dimension.price_per_unit.get(currency, "")):
                    prices[entry.product.attributes.instance_type] = price
    return prices


def spot(clients: Clients, now: datetime) -> dict[tuple[str, str], float]:
    """Instance type and zone to $/h now."""
    with translated("reading spot prices"):
        pages = clients.ec2.get_paginator("describe_spot_price_history").paginate(
            StartTime=now,
            ProductDescriptions=list(_SPOT_PRODUCTS),
            PaginationConfig={"PageSize": _PRICES_A_PAGE},
        )
        return newest(row for page in pages for row in page.get("SpotPriceHistory") or ())


def newest(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Instance type and zone to the price of the latest row. The rows may come in any order."""
    latest: dict[tuple[str, str], tuple[datetime, float]] = {}
    for row in rows:
        pool, at = (row.get("InstanceType") or "", row.get("AvailabilityZone") or ""), row.get("Timestamp")
        price = _price(row.get("SpotPrice") or "") if all(pool) else 0.0
        is_linux = (row.get("ProductDescription") or _SPOT_PRODUCTS[0]) in _SPOT_PRODUCTS
        if at is not None and price and is_linux and (pool not in latest or at > latest[pool][0]):
            latest[pool] = (at, price)
    return {pool: price for pool, (_, price) in latest.items()}


def _is_in_china(region: str) -> bool:
    return partition_of(region) == "aws-cn"


def _price(text: str) -> float:
    """Zero for what is no price. One such would make the whole catalogue unreadable (``document.Price``)."""
    try:
        price = float(text)
    except ValueError:
        return 0.0
    return price if 0 < price <= HIGHEST else 0.0
