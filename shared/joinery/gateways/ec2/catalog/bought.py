"""What an account has bought in advance, and which instances use it besides this cluster's.

(Savings Plans API DescribeSavingsPlans, DescribeSavingsPlanRates; EC2 API DescribeReservedInstances,
DescribeInstances.) Whatever cannot be read keeps nobody from the rest.
"""

from collections.abc import Callable, Iterator, Set
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from joinery.gateways.answers import Answer, at, entries
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog.description import converted
from joinery.gateways.workers import OneByOne, Workers
from joinery.objects.commitments import LINUX, SHARED, Bought, OtherInstance, ReservedInstances, SavingsPlan, kind_of
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter.ec2nodeclass import CLUSTER_NAME_TAG, CLUSTER_TAG_PREFIX

#: A platform and a tenancy, in the words of Savings Plans.
Usage = tuple[str, str]
_PLANS, _RATES = "Savings Plans DescribeSavingsPlans", "Savings Plans DescribeSavingsPlanRates"
_RESERVED, _INSTANCES = "EC2 DescribeReservedInstances", "EC2 DescribeInstances"
#: The types of Savings Plans that pay for EC2; others are for SageMaker or databases.
_COMPUTE, _OF_FAMILY = "Compute", "EC2Instance"
_A_PAGE = 1000
#: Where the account had EC2-Classic, its platforms are followed by this (EC2 API, DescribeReservedInstances).
_IN_VPC = " (Amazon VPC)"
#: EC2's tenancies in the words of Savings Plans. On a Dedicated Host instances cost nothing; the host does.
_TENANCIES = {"default": SHARED, "dedicated": "dedicated"}
#: The tags that name a cluster beside ``kubernetes.io/cluster/NAME``: of managed node groups and of EKS Auto Mode.
_CLUSTER_TAGS = ("eks:cluster-name", "aws:eks:cluster-name", CLUSTER_NAME_TAG)


class _Plan(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of DescribeSavingsPlans, as far as it is read. ``commitment``: $/h."""

    savings_plan_id: str
    savings_plan_type: str
    commitment: float
    region: str = ""
    family: str = msgspec.field(default="", name="ec2InstanceFamily")
    end: datetime | None = None


class _Property(msgspec.Struct, frozen=True):
    name: str
    value: str


class _Rate(msgspec.Struct, frozen=True):
    """An entry of DescribeSavingsPlanRates. ``rate``: of currency a unit."""

    rate: float
    unit: str = ""
    properties: tuple[_Property, ...] = ()


class _Reserved(msgspec.Struct, frozen=True, rename="pascal"):
    """An entry of DescribeReservedInstances."""

    reserved_instances_id: str
    instance_type: str
    instance_count: int
    availability_zone: str = ""
    product_description: str = LINUX
    instance_tenancy: str = "default"
    end: datetime | None = None


def read(clients: Clients, cluster: str, workers: Workers | None = None) -> Bought:
    """What there is in the clients' region. It takes some three calls, and one or two a Savings Plan.

    ``cluster``: whose instances are left out, because its nodes are known better.
    """
    working = workers or OneByOne()
    asked: list[Callable[[], Any]] = [
        lambda: tuple(_plans(clients)),
        lambda: tuple(_reserved_instances(clients)),
        lambda: tuple(_others(clients, cluster)),
    ]
    plans, reserved, others = working.run(asked)
    if not isinstance(plans, JoineryError):
        used = (
            {(LINUX, SHARED)} if isinstance(others, JoineryError) else {(LINUX, SHARED), *(one.usage for one in others)}
        )
        rated = working.run([partial(_with_rates, clients, plan, used) for plan in plans])
        failed = next((one for one in rated if isinstance(one, JoineryError)), None)
        plans = failed or tuple(one for one in rated if not isinstance(one, JoineryError))
    return Bought(savings_plans=plans, reserved_instances=reserved, others=others)


def _plans(clients: Clients) -> Iterator[SavingsPlan]:
    """Those that are active and pay for EC2 here. They are asked of one endpoint for all regions."""
    for answer in _pages(clients, _PLANS, "describe_savings_plans", states=["active"]):
        listed = entries(answer, "savingsPlans", "savingsPlanId", call=_PLANS, log=clients.log)
        for one in converted(listed, _Plan, "savingsPlanId", call=_PLANS, log=clients.log, strict=False):
            is_of_family = one.savings_plan_type == _OF_FAMILY and one.region == clients.region
            if is_of_family or one.savings_plan_type == _COMPUTE:
                family = one.family if is_of_family else ""
                yield SavingsPlan(name=one.savings_plan_id, commitment=one.commitment, family=family, end=one.end)


def _with_rates(clients: Clients, plan: SavingsPlan, used: Set[Usage]) -> SavingsPlan:
    """The plan with its rates in the region, for the platforms and tenancies that are in use."""
    platforms, tenancies = ({one[index] for one in used} for index in (0, 1))
    wanted = {"region": {clients.region}, "productType": {"EC2"}, "productDescription": platforms, "tenancy": tenancies}
    filters = [{"name": name, "values": sorted(values)} for name, values in wanted.items()]
    answers = _pages(clients, _RATES, "describe_savings_plan_rates", savingsPlanId=plan.name, filters=filters)
    rates: dict[str, float] = {}
    for answer in answers:
        listed = entries(answer, "searchResults", "usageType", call=_RATES, log=clients.log)
        for one in converted(listed, _Rate, "usageType", call=_RATES, log=clients.log, strict=False):
            said = {each.name: each.value for each in one.properties}
            if one.unit == "Hrs" and "instanceType" in said:
                platform, tenancy = said.get("productDescription", LINUX), said.get("tenancy", SHARED)
                rates[kind_of(said["instanceType"], platform, tenancy)] = one.rate
    return msgspec.structs.replace(plan, rates=rates)


def _pages(clients: Clients, call: str, operation: str, **asked: Any) -> Iterator[Answer]:
    """The answers of an operation that botocore does not page through."""
    token: dict[str, str] = {}
    while True:
        with translated(f"asking {call}"):
            answer = getattr(clients.of("savingsplans"), operation)(**asked, **token, maxResults=_A_PAGE)
        yield answer
        if not at(answer, "nextToken"):
            return
        token = {"nextToken": answer["nextToken"]}


def _reserved_instances(clients: Clients) -> Iterator[ReservedInstances]:
    """Those that are active, for Linux on shared hardware, as nodes are. Windows has its own."""
    with translated(f"asking {_RESERVED}"):
        filters: Any = [{"Name": "state", "Values": ["active"]}]
        answer = clients.ec2.describe_reserved_instances(Filters=filters)
    name = "ReservedInstancesId"
    listed = entries(answer, "ReservedInstances", name, call=_RESERVED, log=clients.log)
    for one in converted(listed, _Reserved, name, call=_RESERVED, log=clients.log):
        if one.product_description.removesuffix(_IN_VPC) == LINUX and one.instance_tenancy == "default":
            yield ReservedInstances(
                name=one.reserved_instances_id,
                instance_type=one.instance_type,
                count=one.instance_count,
                zone=one.availability_zone,
                end=one.end,
            )


def _others(clients: Clients, cluster: str) -> Iterator[OtherInstance]:
    """The on-demand instances that run and are not the cluster's."""
    filters: Any = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    with translated(f"asking {_INSTANCES}"):
        pages = clients.ec2.get_paginator("describe_instances").paginate(
            Filters=filters, PaginationConfig={"PageSize": _A_PAGE}
        )
        for page in pages:
            for reservation in entries(page, "Reservations", call=_INSTANCES):
                for one in entries(reservation, "Instances", "InstanceType", call=_INSTANCES):
                    tenancy = _TENANCIES.get(at(one, "Placement.Tenancy") or "default")
                    if tenancy and not at(one, "InstanceLifecycle") and not _is_of_cluster(one, cluster):
                        platform = at(one, "PlatformDetails") or LINUX
                        yield OtherInstance(
                            one["InstanceType"], platform, tenancy, at(one, "Placement.AvailabilityZone") or ""
                        )


def _is_of_cluster(one: Answer, cluster: str) -> bool:
    tags = {tag["Key"]: tag.get("Value") for tag in entries(one, "Tags", "Key", call=_INSTANCES)}
    return f"{CLUSTER_TAG_PREFIX}/{cluster}" in tags or cluster in map(tags.get, _CLUSTER_TAGS)
