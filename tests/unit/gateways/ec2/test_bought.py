"""What an account has bought is read from four sources, of which each may be missing.

The answers have the fields that the API references show: Savings Plans "SavingsPlan", "SavingsPlanRate"; EC2
"DescribeReservedInstances", "DescribeInstances".
"""

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import Stubber

from joinery.gateways.aws import Clients
from joinery.gateways.ec2.catalog.bought import read
from joinery.objects.commitments import Bought, OtherInstance, ReservedInstances
from joinery.objects.errors import ConfigurationError

END = datetime(2027, 3, 1, tzinfo=UTC)
FAMILY = {
    "savingsPlanId": "sp-m7a", "savingsPlanType": "EC2Instance", "region": "eu-central-1", "ec2InstanceFamily": "m7a",
    "state": "active", "commitment": "12.50000000", "currency": "USD", "end": "2027-03-01T00:00:00.000Z",
}  # fmt: skip
COMPUTE = {"savingsPlanId": "sp-all", "savingsPlanType": "Compute", "state": "active", "commitment": "4.0"}
ELSEWHERE = {**FAMILY, "savingsPlanId": "sp-us", "region": "us-east-1"}
MACHINE_LEARNING = {**COMPUTE, "savingsPlanId": "sp-ml", "savingsPlanType": "SageMaker"}
RESERVED = {
    "ReservedInstancesId": "ri-1", "InstanceType": "m7a.large", "InstanceCount": 3, "State": "active", "End": END,
    "ProductDescription": "Linux/UNIX (Amazon VPC)", "InstanceTenancy": "default", "Scope": "Availability Zone",
    "AvailabilityZone": "eu-central-1a",
}  # fmt: skip
OTHERS = [{**RESERVED, "ProductDescription": "Windows"}, {**RESERVED, "InstanceTenancy": "dedicated"}]


def rate(kind: str, amount: str, platform: str = "Linux/UNIX", **more: str) -> dict[str, Any]:
    """One of a plan's rates."""
    said = {"instanceType": kind, "productDescription": platform, "tenancy": "shared", "region": "eu-central-1"}
    properties = [{"name": name, "value": value} for name, value in said.items()]
    return {"rate": amount, "unit": "Hrs", "usageType": f"EUC1-BoxUsage:{kind}", "properties": properties, **more}


def instance(kind: str, **given: Any) -> dict[str, Any]:
    """One that runs."""
    placement = {"AvailabilityZone": "eu-central-1b", "Tenancy": "default"}
    return {"InstanceId": "i-1", "InstanceType": kind, "Placement": placement, "PlatformDetails": "Linux/UNIX", **given}


RUNNING = [
    instance("m7a.large"),
    instance("m7a.xlarge", PlatformDetails="Windows"),
    instance("c7a.large", InstanceLifecycle="spot"),
    instance("c7a.large", Placement={"Tenancy": "host"}),
    instance("c7a.large", Tags=[{"Key": "kubernetes.io/cluster/blue", "Value": "owned"}]),
    instance("c7a.large", Tags=[{"Key": "eks:cluster-name", "Value": "blue"}]),
]


def found(denied: str = "") -> Bought:
    """What is read of an account that has a bit of everything. ``denied``: an operation that may not be asked."""
    clients = Clients("eu-central-1")
    filters: Any = [
        {"name": "region", "values": ["eu-central-1"]},
        {"name": "productType", "values": ["EC2"]},
        {"name": "productDescription", "values": ["Linux/UNIX", "Windows"]},
        {"name": "tenancy", "values": ["shared"]},
    ]
    if denied == "describe_instances":
        filters[2]["values"] = ["Linux/UNIX"]
    asked: Any = {"filters": filters, "maxResults": 1000}
    other_unit = rate("m7a.large", "9.9", unit="Request")
    steps: list[tuple[str, str, Any, Any]] = [
        ("savingsplans", "describe_savings_plans", None, {"savingsPlans": [COMPUTE, FAMILY], "nextToken": "more"}),
        ("savingsplans", "describe_savings_plans", None, {"savingsPlans": [ELSEWHERE, MACHINE_LEARNING]}),
        ("ec2", "describe_reserved_instances", None, {"ReservedInstances": [RESERVED, *OTHERS]}),
        ("ec2", "describe_instances", None, {"Reservations": [{"Instances": RUNNING}]}),
        ("savingsplans", "describe_savings_plan_rates", {"savingsPlanId": "sp-all", **asked},
            {"searchResults": [rate("m7a.large", "0.08"), rate("m7a.xlarge", "0.4", "Windows"), other_unit],
            "nextToken": "more"}),
        ("savingsplans", "describe_savings_plan_rates", {"savingsPlanId": "sp-all", **asked, "nextToken": "more"},
            {"searchResults": [rate("c7a.large", "0.07")]}),
        ("savingsplans", "describe_savings_plan_rates", {"savingsPlanId": "sp-m7a", **asked},
            {"searchResults": [rate("m7a.large", "0.06")]}),
    ]  # fmt: skip
    with ExitStack() as stack:
        stubs = {name: stack.enter_context(Stubber(clients.of(name))) for name in ("savingsplans",)}
        stubs["ec2"] = stack.enter_context(Stubber(clients.ec2))
        refused = False
        for service, operation, parameters, answer in steps:
            if operation == denied:
                if not refused:
                    stubs[service].add_client_error(operation, "AccessDenied", "no", 403)
                refused = True
            elif not (denied == "describe_savings_plans" and service == "savingsplans"):
                stubs[service].add_response(operation, answer, parameters)
        return read(clients, "blue")


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")


def test_what_pays_for_linux_in_the_region_is_there_with_its_rates() -> None:
    """And who else uses it: on-demand instances that are not the cluster's, Windows at rates of its own."""
    bought = found()
    assert not isinstance(bought.savings_plans, Exception)
    by_name = {plan.name: plan for plan in bought.savings_plans}
    assert by_name.keys() == {"sp-all", "sp-m7a"}
    family, compute = by_name["sp-m7a"], by_name["sp-all"]
    assert (family.family, family.commitment, family.end, family.rates) == ("m7a", 12.5, END, {"m7a.large": 0.06})
    assert compute.rates == {"m7a.large": 0.08, "m7a.xlarge (Windows, shared)": 0.4, "c7a.large": 0.07}
    assert (compute.family, compute.end) == ("", None)
    zone = "eu-central-1a"
    reserved = ReservedInstances(name="ri-1", instance_type="m7a.large", count=3, zone=zone, end=END)
    assert bought.reserved_instances == (reserved,)
    assert bought.others == (
        OtherInstance("m7a.large", "Linux/UNIX", "shared", "eu-central-1b"),
        OtherInstance("m7a.xlarge", "Windows", "shared", "eu-central-1b"),
    )


@pytest.mark.parametrize(
    ("denied", "lacking"),
    [
        ("describe_savings_plans", {"savings_plans"}),
        ("describe_savings_plan_rates", {"savings_plans"}),
        ("describe_reserved_instances", {"reserved_instances"}),
        ("describe_instances", {"others"}),
    ],
)
def test_each_source_alone_may_be_missing(denied: str, lacking: set[str]) -> None:
    """A right that nobody gave keeps nobody from the others."""
    bought = found(denied)
    sources = ("savings_plans", "reserved_instances", "others")
    assert {name for name in sources if isinstance(getattr(bought, name), ConfigurationError)} == lacking
