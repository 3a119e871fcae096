"""AWS's price list, which moto does not have: GetProducts with the on-demand prices of the sample catalogue."""

import json
from typing import Any

from joinery.objects.karpenter.labels import ON_DEMAND
from simulator.cloud.market import sample


def products(asked: dict[str, Any]) -> dict[str, Any]:
    """The answer to GetProducts. All products are of shared tenancy, so for another tenancy the list is empty."""
    fields = {condition["Field"]: condition["Value"] for condition in asked.get("Filters", [])}
    prices = {o.instance_type: o.price for o in sample().offerings if o.capacity_type == ON_DEMAND}
    documents = [product(name, price) for name, price in sorted(prices.items())]
    return {"FormatVersion": "aws_v1", "PriceList": documents if fields.get("tenancy") == "Shared" else []}


def product(instance_type: str, price: float) -> str:
    """An instance type in the price list. ``price``: $/h on demand."""
    dimensions = {"hour": {"unit": "Hrs", "pricePerUnit": {"USD": f"{price:.10f}"}}}
    terms = {"OnDemand": {"term": {"priceDimensions": dimensions}}}
    return json.dumps({"product": {"attributes": {"instanceType": instance_type}}, "terms": terms})
