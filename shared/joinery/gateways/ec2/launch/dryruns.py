"""Dry runs: whether EC2 would launch for a class at all, asked before pods wait for it (EC2 API, "DryRun").

As Karpenter for AWS does (nodeclass/validation): a launch template is made, CreateFleet and RunInstances are tried with
it, and then it is removed. EC2 checks the rights of whoever calls and what the request names, and answers
DryRunOperation where it would have launched. Only RunInstances says that an instance profile does not exist. The type
that is named is one that the class's NodePools would launch, because rights may depend on it; it stands for all. What
is said of it alone says nothing about the class.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.gateway import LaunchRequest, Likely, Override
from joinery.gateways.ec2.instancetypes.capacity import PODS_WITHOUT_ENI_LIMIT
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.gateways.ec2.launch.fleet import fleet, subnets_by_zone
from joinery.gateways.ec2.launch.templates import Template, TemplateKey, creation, tag_specifications, template_of
from joinery.gateways.ec2.nodeclass.readiness import Unmet, said
from joinery.gateways.ec2.nodeclass.tags import instance_tags
from joinery.objects.codes import ALREADY_EXISTS, DENIED, TEMPLATE_NOT_FOUND
from joinery.objects.errors import ConfigurationError, JoineryError, NotFoundError, UnavailableError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.conditions import VALID, is_true
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus, of_ec2
from joinery.objects.snapshot.offerings import LikelyLaunch

#: How long a class counts as tried (Karpenter for AWS ``ValidationTTL``), and one that EC2 would not launch for: its
#: user is waiting.
TRIED_FOR, REFUSED_FOR = timedelta(minutes=30), timedelta(minutes=1)
#: The types that are tried where nobody knows the class's, by architecture: small, and sold in nearly every zone.
_TYPES = {"amd64": "m5.large", "arm64": "m6g.large"}
#: The reason of a class whose profile EC2 does not know; EC2's words for that, with the code InvalidParameterValue
#: (Karpenter for AWS ``IsInstanceProfileNotFound``).
PROFILE_NOT_FOUND, _INVALID_PROFILE = "InstanceProfileNotFound", "Invalid IAM Instance Profile"
#: EC2's words where a policy denies the instance explicitly, most often for its type (``ec2:InstanceType``), and the
#: tried one stands for all (IAM User Guide, "Access denied error message examples").
_DENIED_INSTANCE = re.compile(r":instance/\S* with an explicit deny")
#: How codes end of what a class names and EC2 does not have; codes of disks that EC2 does not make.
_ABSENT, _UNUSABLE = (".NotFound", ".Malformed"), ("InvalidBlockDeviceMapping", "InvalidSnapshot.NotFound")


@dataclass(frozen=True)
class _Tried:
    """``what``: what a launch is made of (``_made_of``). ``problem``: why EC2 would not launch."""

    what: str
    at: datetime
    problem: Unmet | None


class DryRuns:
    """Those of one process. Safe to use from several threads."""

    def __init__(self, clients: Clients, now: Callable[[], datetime]) -> None:
        self._clients, self._now = clients, now
        self._tried: dict[str, _Tried] = {}

    def problem(
        self, node_class: EC2NodeClass, status: EC2NodeClassStatus, facts: Callable[[], ClusterFacts], likely: Likely
    ) -> Unmet | None:
        """Why EC2 would not launch for the class, once it has this status; None if it would, as far as one can tell.

        A class that was found valid and has not changed is not tried again by a new process. ``facts``: about the
        cluster. ``likely``: what would be launched. Raises ``UnavailableError``.
        """
        name, now = node_class.metadata.name, self._now()
        what = _made_of(node_class, status)
        tried = self._tried.get(name)
        if tried is None and _made_of(node_class, node_class.status) == what and _was_valid(node_class):
            tried = self._tried[name] = _Tried(what, now, None)
        lasts = REFUSED_FOR if tried and tried.problem else TRIED_FOR
        if tried is None or tried.what != what or now - tried.at >= lasts:
            try:
                problem = self._run(node_class.model_copy(update={"status": status}), facts(), likely)
            except (ConfigurationError, NotFoundError) as error:
                problem = Unmet("LaunchNotPossible", said(error))
            if problem and problem.reason == PROFILE_NOT_FOUND and node_class.spec.role:
                # IAM has it, so it is new ("Changes that I make are not always immediately visible").
                raise UnavailableError(f"EC2 does not see instance profile {status.instance_profile} yet")
            tried = self._tried[name] = _Tried(what, now, problem)
        return tried.problem

    def expire(self, name: str) -> None:
        """A launch for the class of that name was refused: try it again, whatever was found before.

        The entry is one that nothing agrees with. Without any, what the class's status says would be believed.
        """
        self._tried[name] = _Tried("", self._now(), None)

    def _run(self, node_class: EC2NodeClass, facts: ClusterFacts, likely: Likely) -> Unmet | None:
        launch = likely(node_class)
        image, instance_type = _tried_image(node_class.status, launch)
        subnets = subnets_by_zone(node_class)
        pools = tuple(Override(instance_type, zone, 0.0, max_pods=PODS_WITHOUT_ENI_LIMIT) for zone in subnets)
        request = LaunchRequest(
            token="", count=1, node_pool="", node_class=node_class, capacity_type=labels.ON_DEMAND, overrides=pools,
            labels={}, tenancy=launch.tenancy if launch else labels.SHARED_TENANCY,
        )  # fmt: skip
        key = TemplateKey(image, max_pods=PODS_WITHOUT_ENI_LIMIT, efa=(), reservation=None)
        template = template_of(request, node_class, facts, key, self._clients.region)
        try:
            return self._refusal_of(request, template, facts)
        finally:
            with suppress(JoineryError), translated("removing a launch template"):
                self._clients.ec2.delete_launch_template(LaunchTemplateName=template.name)

    def _refusal_of(self, request: LaunchRequest, template: Template, facts: ClusterFacts) -> Unmet | None:
        ec2, node_class = self._clients.ec2, of_ec2(request.node_class)
        tags = instance_tags(facts.name, node_class, "")
        asked = fleet(request, [(template.name, request.overrides)], tags, subnets_by_zone(node_class))
        fleet_call = {**asked, "ClientToken": template.name.rpartition("/")[2]}
        run_call = _instances(template, request.overrides[0].instance_type, node_class, tags)
        steps: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("CreateLaunchTemplate", lambda: ec2.create_launch_template(**creation(template))),
            ("CreateFleet", lambda: ec2.create_fleet(**fleet_call, DryRun=True)),
            ("RunInstances", lambda: ec2.run_instances(**run_call, DryRun=True)),
        )
        for call, run in steps:
            if error := _refused(call, run):
                if (problem := refusal(call, error)) is None:
                    self._clients.log(f"{error}; this says nothing about the class")
                return problem
        return None


def _refused(call: str, run: Callable[[], Any]) -> JoineryError | None:
    """What EC2 says against the call. Raises ``UnavailableError``."""
    try:
        with translated(f"a dry run of {call}"):
            run()
    except JoineryError as error:
        if isinstance(error, UnavailableError):
            raise
        if error.code in TEMPLATE_NOT_FOUND:
            # EC2 does not see it everywhere yet, or another function has just removed it.
            raise UnavailableError(str(error), is_answer=True) from error
        return None if error.code == "DryRunOperation" or error.code in ALREADY_EXISTS else error
    return None


def refusal(call: str, error: JoineryError) -> Unmet | None:
    """What EC2's answer to a dry run says about a class; None if nothing."""
    if error.code in DENIED:
        if _DENIED_INSTANCE.search(str(error)):
            return None
        return Unmet(f"{call}AuthCheckFailed", f"ec2:{call} is not allowed: {said(error)}")
    if _INVALID_PROFILE in str(error) or error.code == "NoSuchEntity":
        return Unmet(PROFILE_NOT_FOUND, said(error))
    if error.code == "InvalidUserData.Malformed":
        return Unmet("UserDataSizeLimitExceeded", said(error))
    is_of_class = error.code.startswith("Invalid") and error.code.endswith(_ABSENT)
    return Unmet(f"{call}DryRunFailed", said(error)) if is_of_class or error.code in _UNUSABLE else None


def _made_of(node_class: EC2NodeClass, status: EC2NodeClassStatus) -> str:
    """What decides whether a launch is refused, as a text."""
    selected = (status.subnets, status.security_groups, [image.id for image in status.amis], status.instance_profile)
    return f"{node_class.metadata.uid} {node_class.metadata.generation} {node_class.spec!r} {selected!r}"


def _was_valid(node_class: EC2NodeClass) -> bool:
    return is_true(node_class.status.conditions, VALID, generation=node_class.metadata.generation)


def _tried_image(status: EC2NodeClassStatus, launch: LikelyLaunch | None) -> tuple[str, str]:
    """An image and a type that boots it; if all are for GPUs, one whose architecture fits."""
    images = status.amis
    if launch and (image := status.image_for(launch.instance_type.labels)):
        return image.id, launch.instance_type.name
    for arch, instance_type in _TYPES.items():
        if fitting := status.image_for({labels.ARCH: (arch,)}):
            return fitting.id, instance_type
    arches = {value for rule in images[0].requirements if rule.key == labels.ARCH for value in rule.values or ()}
    return images[0].id, next((_TYPES[arch] for arch in sorted(arches) if arch in _TYPES), _TYPES["amd64"])


def _instances(template: Template, instance_type: str, node_class: EC2NodeClass, tags: Any) -> dict[str, Any]:
    """The RunInstances call: the template, in the subnet with the most addresses.

    Policies on ``ec2:MetadataHttpTokens`` look at the call's options, not at the template's (Karpenter for AWS, issue
    9018).
    """
    subnet = {"SubnetId": node_class.status.subnets[0].id}
    declared = node_class.spec.network_interfaces or ()
    interfaces = [
        {"NetworkCardIndex": each.network_card_index, "DeviceIndex": each.device_index}
        | {"InterfaceType": each.interface_type}
        | subnet
        for each in declared
    ]
    return {
        "MinCount": 1,
        "MaxCount": 1,
        "LaunchTemplate": {"LaunchTemplateName": template.name, "Version": "$Latest"},
        "MetadataOptions": template.data["MetadataOptions"],
        "InstanceType": instance_type,
        "IamInstanceProfile": {"Name": node_class.status.instance_profile},
        "NetworkInterfaces": interfaces or [{"DeviceIndex": 0, **subnet}],
        "TagSpecifications": tag_specifications(("instance", "volume", "network-interface"), tags),
    }
