"""AWS's Savings Plans, which moto does not have (Savings Plans API DescribeSavingsPlans, DescribeSavingsPlanRates).

Plans are what an ``Account`` says, as AWS prints them. Rates are a share of the on-demand prices of the sample
catalogue, and a page holds few of them.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from joinery.objects.karpenter.labels import ON_DEMAND
from simulator.cloud.market import sample

#: What is left of the on-demand price, by the type of the plan.
PAID = {"Compute": 0.7, "EC2Instance": 0.6}
_A_PAGE = 200


def plans(listed: Sequence[dict[str, Any]], asked: dict[str, Any]) -> dict[str, Any]:
    """The answer to DescribeSavingsPlans."""
    states = asked.get("states") or ["active"]
    return {"savingsPlans": [one for one in listed if one["state"] in states]}


def rates(listed: Sequence[dict[str, Any]], asked: dict[str, Any]) -> dict[str, Any]:
    """The answer to DescribeSavingsPlanRates: one page of the plan's."""
    plan = next(one for one in listed if one["savingsPlanId"] == asked["savingsPlanId"])
    wanted = {one["name"]: one["values"] for one in asked["filters"]}
    start = int(asked.get("nextToken", "0"))
    found = list(_rates(plan, wanted))
    more = {"nextToken": str(start + _A_PAGE)} if start + _A_PAGE < len(found) else {}
    return {"savingsPlanId": plan["savingsPlanId"], "searchResults": found[start : start + _A_PAGE], **more}


def _rates(plan: dict[str, Any], wanted: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    prices = {o.instance_type: o.price for o in sample().offerings if o.capacity_type == ON_DEMAND}
    kind = plan["savingsPlanType"]
    for name, price in sorted(prices.items()):
        if kind != "EC2Instance" or name.partition(".")[0] == plan["ec2InstanceFamily"]:
            for region, platform, tenancy in product(*(wanted[n] for n in ("region", "productDescription", "tenancy"))):
                said = {"region": region, "instanceType": name, "productDescription": platform, "tenancy": tenancy}
                yield {
                    "rate": f"{price * PAID[kind]:.6f}", "currency": "USD", "unit": "Hrs", "productType": "EC2",
                    "serviceCode": "AmazonEC2", "usageType": f"BoxUsage:{name}", "operation": "RunInstances",
                    "properties": [{"name": key, "value": value} for key, value in said.items()],
                }  # fmt: skip
