"""An AWS account in moto: what the adapters need and moto lacks.

moto's CreateFleet takes the first override always, never runs out of a pool, knows no tokens, and gives instances no
profile; it has no capacity reservations; its SSM has no EKS parameters and its images are of 2017, so they are left
out. ``Account`` puts that right from the inside, so it works in the process that serves moto. Nothing of Joinery's own
is touched.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch
from urllib.request import Request, urlopen

from joinery.gateways.ec2.nodeclass.images import variants
from joinery.objects.karpenter.ec2nodeclass import AMISelectorTerm
from joinery.objects.snapshot.offerings import OfferingKey

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
ACCOUNT, REGION = "123456789012", "us-east-1"
DISCOVERY = {"karpenter.sh/discovery": "joinery"}
_ARCHES = {"amd64": "x86_64", "arm64": "arm64"}


@dataclass
class Account:
    """The pools that are out, the launches by their token, and how the account is filled.

    ``reservations``, ``placement_groups``, ``reserved_instances`` and ``savings_plans``: as AWS prints them.
    ``is_vague``: whether CreateFleet leaves out types and zones of instances.
    """

    out_of: set[OfferingKey] = field(default_factory=set)
    answers: dict[str, tuple[str, Any]] = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    reservations: list[dict[str, Any]] = field(default_factory=list)
    placement_groups: list[dict[str, Any]] = field(default_factory=list)
    reserved_instances: list[dict[str, Any]] = field(default_factory=list)
    savings_plans: list[dict[str, Any]] = field(default_factory=list)
    is_vague: bool = False

    def reset(self) -> None:
        """Empty the account, except what moto itself keeps."""
        self.out_of.clear()
        self.answers.clear()
        self.reservations.clear()
        self.placement_groups.clear()
        self.reserved_instances.clear()
        self.savings_plans.clear()
        self.is_vague = False

    @contextmanager
    def corrected(self) -> Iterator[None]:
        """Correct moto for as long as the ``with`` lasts; serve it inside."""
        from moto.ec2.models.fleets import FleetsBackend
        from moto.ec2.responses import EC2Response
        from moto.ec2.responses.fleets import Fleets
        from moto.ec2.responses.tags import TagResponse

        with ExitStack() as corrections:
            for place, name, correction in (
                (Fleets, "create_fleet", _answering(self, Fleets.create_fleet)),
                (FleetsBackend, "create_fleet", _choosing(self, FleetsBackend.create_fleet)),
                (TagResponse, "create_tags", _looking(TagResponse.create_tags)),
            ):
                corrections.enter_context(patch.object(place, name, correction))
            # Hundreds of images, which every reset would load and every search would filter.
            corrections.enter_context(patch.dict(os.environ, {"MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}))
            groups = patch.object(EC2Response, "describe_placement_groups", _placement_groups(self), create=True)
            corrections.enter_context(groups)
            listing = patch.object(EC2Response, "describe_capacity_reservations", _reserved(self), create=True)
            corrections.enter_context(listing)
            bought = patch.object(EC2Response, "describe_reserved_instances", _bought(self))
            corrections.enter_context(bought)
            yield

    def seed_images(self, alias: str, version: str, created_at: datetime, *, release: str = "") -> list[str]:
        """EKS-optimised images and the SSM parameters that name them. Their ids, in the order of the variants.

        ``release``: what their ids end with.
        """
        from moto.ec2.models import ec2_backends
        from moto.ec2.models.amis import Ami
        from moto.ssm.models import Parameter, ssm_backends

        ec2, ssm = ec2_backends[ACCOUNT][REGION], ssm_backends[ACCOUNT][REGION]
        images = []
        for variant in variants(AMISelectorTerm(alias=alias), version):
            image = f"ami-{alias.partition('@')[0]}{variant.arch}{''.join(variant.kinds)}{release}"
            ec2.amis[image] = Ami(
                ec2, image, name=image, owner_id="amazon", public=True, creation_date=created_at,
                architecture=_ARCHES[variant.arch], virtualization_type="hvm", hypervisor="xen",
            )  # fmt: skip
            parameter = Parameter(
                ACCOUNT, variant.parameter, image, "String", None, None, None, created_at, version=1, data_type="text"
            )
            ssm._parameters[variant.parameter] = [parameter]
            images.append(image)
        return images


def _looking(create_tags: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An instance that does not exist cannot be tagged."""

    def tag(response: Any) -> Any:
        for resource in response._get_param("Resources", []):
            if resource.startswith("i-"):
                response.ec2_backend.get_instance(resource)
        return create_tags(response)

    return tag


def _placement_groups(account: Account) -> Callable[[Any], Any]:
    """DescribePlacementGroups by ids or by names."""

    def describe(response: Any) -> Any:
        from moto.core.responses import ActionResult
        from moto.ec2.exceptions import EC2ClientError

        wanted = {*response._get_param("GroupIds", []), *response._get_param("GroupNames", [])}
        found = [group for group in account.placement_groups if wanted & {group["GroupId"], group["GroupName"]}]
        if not found:
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group {wanted} is unknown.")
        return ActionResult({"PlacementGroups": found})

    return describe


def _reserved(account: Account) -> Callable[[Any], Any]:
    """DescribeCapacityReservations by ids or by filters."""

    def describe(response: Any) -> Any:
        from moto.core.responses import ActionResult
        from moto.ec2.exceptions import EC2ClientError

        ids = response._get_param("CapacityReservationIds", [])
        filters = {condition["Name"]: condition["Values"] for condition in response._get_param("Filters", [])}
        existing = {reservation["CapacityReservationId"] for reservation in account.reservations}
        if missing := [name for name in ids if name not in existing]:
            raise EC2ClientError("InvalidCapacityReservationId.NotFound", f"{missing[0]} does not exist")
        selected = [
            reservation
            for reservation in account.reservations
            if (not ids or reservation["CapacityReservationId"] in ids) and _passes(reservation, filters)
        ]
        return ActionResult({"CapacityReservations": selected})

    return describe


def _bought(account: Account) -> Callable[[Any], Any]:
    """DescribeReservedInstances by filters."""

    def describe(response: Any) -> Any:
        from moto.core.responses import ActionResult

        filters = {condition["Name"]: condition["Values"] for condition in response._get_param("Filters", [])}
        return ActionResult({"ReservedInstances": [one for one in account.reserved_instances if _passes(one, filters)]})

    return describe


_BY_FILTER = {"state": "State", "owner-id": "OwnerId", "instance-match-criteria": "InstanceMatchCriteria"}


def _passes(entry: dict[str, Any], filters: dict[str, list[str]]) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in entry.get("Tags", ())}
    for name, values in filters.items():
        if name == "tag-key":
            passes = any(value in tags for value in values)
        elif name.startswith("tag:"):
            passes = tags.get(name.removeprefix("tag:")) in values
        else:
            passes = entry.get(_BY_FILTER[name]) in values
        if not passes:
            return False
    return True


def _answering(account: Account, create_fleet: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """CreateFleet gives one answer for each token, errors included.

    A token that comes with another request is refused.
    """

    def answer(response: Any) -> Any:
        from moto.ec2.exceptions import EC2ClientError

        token, asked = response._get_param("ClientToken"), repr(response._get_param("LaunchTemplateConfigs", []))
        if token not in account.answers:
            account.errors = []
            answered = create_fleet(response)
            answered.result["Errors"] = account.errors
            if account.is_vague:
                answered.result["Instances"] = [
                    {"InstanceIds": launched["InstanceIds"]} for launched in answered.result.get("Instances", ())
                ]
            account.answers[token] = (asked, answered)
        if account.answers[token][0] != asked:
            raise EC2ClientError("IdempotentParameterMismatch", "The token was used with other parameters.")
        return account.answers[token][1]

    return answer


def _choosing(account: Account, create_fleet: Callable[..., Any]) -> Callable[..., Any]:
    """The cheapest pool in stock, and an error for each cheaper one."""

    def choose(backend: Any, **asked: Any) -> Any:
        bought_as = asked["target_capacity_specification"]["DefaultTargetCapacityType"]
        pools = [(config, override) for config in asked["launch_template_configs"] for override in config["Overrides"]]
        for config, override in sorted(pools, key=lambda pool: float(pool[1]["Priority"])):
            if OfferingKey(override["InstanceType"], override["AvailabilityZone"], bought_as) in account.out_of:
                account.errors.append(_error(config, override))
                continue
            chosen = [{**config, "Overrides": [override]}]
            return _with_profiles(backend, create_fleet(backend, **{**asked, "launch_template_configs": chosen}))
        none = {**asked["target_capacity_specification"], "TotalTargetCapacity": 0}
        return create_fleet(backend, **{**asked, "target_capacity_specification": none})

    return choose


def _with_profiles(backend: Any, fleet: Any) -> Any:
    """The fleet, whose instances say which instance profile of their launch template they have."""
    # moto keeps the template's {"Name": ...} where an ARN belongs.
    profiles = [spec.iam_instance_profile["Arn"]["Name"] for spec in fleet.launch_specs if spec.iam_instance_profile]
    for instance in backend.all_instances() if profiles else ():
        if not isinstance((instance.iam_instance_profile or {}).get("Arn"), str):
            instance.iam_instance_profile = {"Arn": f"arn:aws:iam::{ACCOUNT}:instance-profile/{profiles[0]}"}
    return fleet


def _error(config: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    return {
        "LaunchTemplateAndOverrides": {
            "LaunchTemplateSpecification": config["LaunchTemplateSpecification"],
            "Overrides": override,
        },
        "Lifecycle": "on-demand",
        "ErrorCode": "InsufficientInstanceCapacity",
        "ErrorMessage": f"There is no Spot capacity available for {override['InstanceType']}.",
    }


@contextmanager
def moto(host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """moto inside the ``with``, empty whatever was before in this process; gives its URL. Port 0 takes a free one."""
    from moto.server import ThreadedMotoServer

    # It logs every request, and the doors make many.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address=host, port=port, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    try:
        # moto's state is its process', in which another server may have filled it.
        with urlopen(Request(f"{url}/moto-api/reset", method="POST")):
            yield url
    finally:
        server.stop()


def age(by: timedelta, *, template: str, profile: str) -> None:
    """Make a launch template and an instance profile, by their names, so much older than they are."""
    from moto.ec2.models import ec2_backends
    from moto.iam.models import iam_backends

    made = ec2_backends[ACCOUNT][REGION].get_launch_template_by_name(template)
    made.create_time -= by
    iam_backends[ACCOUNT]["aws"].get_instance_profile(profile).create_date -= by


def tag_network(ec2: Any, tags: Mapping[str, str]) -> None:
    """Tag a subnet in each of three zones, and a security group."""
    subnets = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": list(ZONES)}])["Subnets"]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    ec2.create_tags(Resources=[*(subnet["SubnetId"] for subnet in subnets), group], Tags=pairs)
