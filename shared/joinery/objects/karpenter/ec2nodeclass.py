"""EC2NodeClass (karpenter.k8s.aws/v1): what an instance is made of: AMI, network, disks, kubelet, identity."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, WithJsonSchema, model_validator

from joinery.objects.karpenter import labels
from joinery.objects.karpenter.conditions import VALID
from joinery.objects.karpenter.devices import (
    BlockDevice,
    BlockDeviceMapping,
    BlockDeviceMappings,
    CheckedConnectionTracking,
    ConnectionTracking,
    CPUOptions,
    EnclaveOptions,
    MetadataOptions,
    NetworkInterface,
    NetworkInterfaces,
)
from joinery.objects.karpenter.ec2nodeclass_status import (
    AMIStatus,
    CapacityReservationStatus,
    EC2NodeClassStatus,
    SecurityGroupStatus,
    SubnetStatus,
)
from joinery.objects.karpenter.hashing import digest
from joinery.objects.karpenter.kubelet import checks
from joinery.objects.karpenter.meta import Model, TrueOrFalse, WholeNumber
from joinery.objects.karpenter.nodeclass import Drift, MadeOf, NodeClass, Unsupported
from joinery.objects.karpenter.rules import Rule
from joinery.objects.karpenter.selectors import (
    AMISelectorTerm,
    AMISelectorTerms,
    CapacityReservationSelectorTerm,
    CapacityReservationSelectorTerms,
    CheckedPlacementGroupSelector,
    PlacementGroupSelector,
    SecurityGroupSelectorTerm,
    SecurityGroupSelectorTerms,
    SubnetSelectorTerm,
    SubnetSelectorTerms,
)

__all__ = [
    "FAMILIES",
    "AMISelectorTerm",
    "AMIStatus",
    "BlockDevice",
    "BlockDeviceMapping",
    "CPUOptions",
    "CapacityReservationSelectorTerm",
    "CapacityReservationStatus",
    "ConnectionTracking",
    "EC2NodeClass",
    "EC2NodeClassSpec",
    "EC2NodeClassStatus",
    "EnclaveOptions",
    "MetadataOptions",
    "NetworkInterface",
    "PlacementGroupSelector",
    "SecurityGroupSelectorTerm",
    "SecurityGroupStatus",
    "SubnetSelectorTerm",
    "SubnetStatus",
]

FAMILIES = ("AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025")
Family = Literal["AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"]

#: Fields of the spec that are not in the static hash as they are.
_DYNAMIC_FIELDS = {
    "subnet_selector_terms",
    "security_group_selector_terms",
    "capacity_reservation_selector_terms",
    "ami_selector_terms",
    "ami_family",
    "ip_prefix_count",
}

#: The setting of the kubelet with which it asks an URL for static pods.
_HEADERS = "staticPodURLHeader"

CLUSTER_NAME_TAG = "eks:eks-cluster-name"
#: Tags that Joinery sets itself.
RESTRICTED_TAGS = (CLUSTER_NAME_TAG, labels.NODE_POOL, f"{labels.CORE_GROUP}/nodeclaim", labels.NODE_CLASS)
CLUSTER_TAG_PREFIX = "kubernetes.io/cluster"


def _restricted(tag: str) -> Rule:
    return Rule(f"!('{tag}' in self)", f"tag {tag} is restricted", lambda tags: tag not in tags)


_RESTRICTED = tuple(map(_restricted, RESTRICTED_TAGS))
InstanceTags = Annotated[
    dict[str, str],
    Rule("!('' in self)", "empty tag keys are not supported", lambda tags: "" not in tags),
    Rule(
        f"self.all(k, !k.startsWith('{CLUSTER_TAG_PREFIX}'))",
        f"tags below {CLUSTER_TAG_PREFIX}/ are restricted",
        lambda tags: not any(key.startswith(CLUSTER_TAG_PREFIX) for key in tags),
    ),
    *_RESTRICTED,
]


#: The API server takes any map, as Karpenter's does since 1.15: ``kubelet.checks`` says what is wrong with it.
KubeletSettings = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]


class EC2NodeClassSpec(Model):
    """What an instance is made of."""

    subnet_selector_terms: SubnetSelectorTerms
    """Where instances may be launched. A subnet that matches any term is selected."""
    security_group_selector_terms: SecurityGroupSelectorTerms
    """The security groups of an instance: all that match any term."""
    capacity_reservation_selector_terms: CapacityReservationSelectorTerms = []
    """The capacity reservations that may be used."""
    placement_group_selector: CheckedPlacementGroupSelector | None = None
    """The placement group to launch into."""
    ami_selector_terms: AMISelectorTerms
    """Which images may be used. The newest one that fits the instance type is."""
    ami_family: Family | None = None
    """Decides the form of the user data and the default disks. Needed without an alias."""
    user_data: str | None = None
    """TOML for Bottlerocket, PowerShell without tags for Windows, a shell script or MIME for AL2, and for AL2023 also
    NodeConfig. Merged with what the family needs, but for Custom: taints and max pods are always those of the NodePool
    and of `kubelet`.
    """
    role: Annotated[str, Field(min_length=1)] = ""
    """The IAM role of the instances: their instance profile is made from it. Excludes `instanceProfile`."""
    instance_profile: Annotated[str, Field(min_length=1)] = ""
    """The instance profile. Excludes `role`."""
    tags: InstanceTags = {}
    """Put on instances, volumes, network interfaces and launch templates."""
    associate_public_ip_address: TrueOrFalse | None = Field(default=None, alias="associatePublicIPAddress")
    """Whether instances get a public address. If absent, the subnet decides."""
    ip_prefix_count: Annotated[WholeNumber, Field(ge=0)] | None = None
    """How many IPv4 prefixes the first network interface gets. In an IPv6 cluster the VPC CNI attaches the prefix."""
    kubelet: KubeletSettings = {}
    """Settings of the kubelet, by its own names. `maxPods`, and amounts that it reserves, may be expressions."""
    block_device_mappings: BlockDeviceMappings = []
    """The disks. If absent, those of the family."""
    instance_store_policy: Literal["RAID0"] | None = None
    """RAID0 makes one file system of the instance's own disks, for pods to use."""
    network_interfaces: NetworkInterfaces | None = None
    """The instance's network interfaces, instead of one."""
    detailed_monitoring: TrueOrFalse | None = None
    """Whether CloudWatch gets metrics every minute."""
    metadata_options: MetadataOptions = MetadataOptions()
    """The instance metadata service."""
    connection_tracking: CheckedConnectionTracking | None = None
    """How long security groups remember connections."""
    cpu_options: CPUOptions | None = None
    """Settings of the processor."""
    enclave_options: EnclaveOptions | None = None
    """Nitro Enclaves. If absent, there are none."""
    context: str | None = None
    """Passed to CreateFleet as it is."""
    _unknown: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _remembering_unknown(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(data)
        if isinstance(data, dict):
            known = {name for key, field in cls.model_fields.items() for name in (key, field.alias)}
            made._unknown = tuple(sorted(key for key, value in data.items() if key not in known and value is not None))
        return made

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """Fields that a newer definition has, such as that of a newer Karpenter in the cluster."""
        return self._unknown

    @property
    def family(self) -> str:
        """The AMI family, which decides user data, disks and pod density: ``amiFamily``, or that of the alias."""
        if self.ami_family:
            return self.ami_family
        return _BY_ALIAS.get(_alias_family(self), "Custom")

    @property
    def is_windows(self) -> bool:
        """Whether its nodes run Windows."""
        return self.family.startswith("Windows")


_BY_ALIAS = {name.lower(): name for name in FAMILIES}


def _alias_family(spec: Any) -> str:
    alias: str = next((term.alias for term in spec.ami_selector_terms if term.alias), "")
    return alias.partition("@")[0]


def _family_agrees(spec: Any) -> bool:
    alias = _alias_family(spec)
    return not alias or spec.ami_family in (None, "Custom") or spec.ami_family.lower() == alias


CheckedEC2NodeClassSpec = Annotated[
    EC2NodeClassSpec,
    Rule(
        "has(self.role) != has(self.instanceProfile)",
        "exactly one of role and instanceProfile must be set",
        lambda it: bool(it.role) != bool(it.instance_profile),
        field="role",
    ),
    Rule(
        "has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))",
        "amiFamily must be set if amiSelectorTerms has no alias",
        lambda it: it.ami_family is not None or bool(_alias_family(it)),
        field="amiFamily",
    ),
    Rule(
        "!has(self.amiFamily) || self.amiFamily == 'Custom'"
        " || self.amiSelectorTerms.all(x, !has(x.alias) || x.alias.find('^[^@]+') == self.amiFamily.lowerAscii())",
        "amiFamily must agree with the alias of amiSelectorTerms, or be Custom",
        _family_agrees,
        field="amiFamily",
    ),
]


class EC2NodeClass(NodeClass):
    """What an instance is made of: AMI, network, disks, kubelet, identity."""

    api_version = "karpenter.k8s.aws/v1"
    kind = "EC2NodeClass"
    plural = "ec2nodeclasses"
    unrecorded: ClassVar[frozenset[str]] = frozenset(
        {"userData", "context", "tags", "metadataOptions", "detailedMonitoring"}
    )

    spec: CheckedEC2NodeClassSpec
    status: EC2NodeClassStatus = EC2NodeClassStatus()

    def to_record(self) -> dict[str, Any]:
        document = super().to_record()
        kubelet = document["spec"].get("kubelet", {})
        if _HEADERS in kubelet:
            # Headers may hold credentials. No decision reads more of them than that they are an object.
            document["spec"]["kubelet"] = {**kubelet, _HEADERS: {}}
        return document

    @property
    def static_hash(self) -> str:
        """Selectors do not count (what they select is compared with each instance), the *effective* AMI family does.

        (Karpenter for AWS `EC2NodeClass.Hash`.) Detailed monitoring and enclaves are off where nothing is said of them.
        """
        content = self.spec.model_dump(mode="json", exclude_defaults=True, exclude=_DYNAMIC_FIELDS)
        content["ami_family"] = self.spec.family
        if self.spec.kubelet:
            # As a text: to a kubelet the order of a list may matter.
            content["kubelet"] = json.dumps(self.spec.kubelet, sort_keys=True)
        if not self.spec.detailed_monitoring:
            content.pop("detailed_monitoring", None)
        if self.spec.enclave_options and not self.spec.enclave_options.enabled:
            del content["enclave_options"]
        return digest(content)

    @property
    def unsupported(self) -> tuple[Unsupported, ...]:
        unusable = checks.problems(self.spec.kubelet, self.spec.family, is_older=self.origin is not None)
        return (*_unsupported(self.spec), *unusable)

    @property
    def unknown_problem(self) -> str:
        """Why a field that is not known keeps the class from being used, or the empty string.

        An object of an older API was converted, and its user has been told what was lost.
        """
        for name in self.spec.unknown_fields if self.origin is None else ():
            return f"spec.{name}: Joinery does not know it, and nodes would lack what it asks for"
        return ""

    @property
    def zones(self) -> tuple[tuple[str, str], ...]:
        """Of its subnets."""
        return tuple((subnet.zone, subnet.zone_id) for subnet in self.status.subnets)

    @property
    def subnets(self) -> tuple[tuple[str, str], ...]:
        return tuple((subnet.id, subnet.zone) for subnet in self.status.subnets)

    @property
    def placement_group(self) -> str:
        selector = self.spec.placement_group_selector
        return (selector.id or selector.name) if selector else ""

    @property
    def expiring_reservations(self) -> frozenset[str]:
        """Capacity blocks: the status says "expiring" forty minutes before one ends."""
        return frozenset(entry.id for entry in self.status.capacity_reservations if entry.state == "expiring")

    @property
    def claim_annotations(self) -> Mapping[str, str]:
        """The instance profile, by which Karpenter for AWS knows which profiles are in use."""
        profile = self.status.instance_profile
        return {labels.INSTANCE_PROFILE: profile} if profile else {}

    def drift_of(self, made_of: MadeOf) -> Drift | None:
        """By what its selectors select now, in Karpenter's order (Karpenter for AWS, cloudprovider/drift).

        A selector that selects nothing, for lack of a status for instance, says nothing.
        """
        status, name = self.status, self.metadata.name
        image = status.image_for({key: (value,) for key, value in made_of.labels.items()})
        is_known = bool(status.amis and made_of.image_id) and labels.ARCH in made_of.labels
        if is_known and (image is None or image.id != made_of.image_id):
            instead = f"selects {image.id} for it" if image else "selects no image that fits it"
            return Drift("AMIDrift", f"it has booted {made_of.image_id}, and EC2NodeClass {name} {instead} today")
        groups = {group.id for group in status.security_groups}
        if groups and made_of.security_groups and groups != made_of.security_groups:
            return Drift("SecurityGroupDrift", f"EC2NodeClass {name} selects other security groups")
        if status.subnets and made_of.subnet_id and made_of.subnet_id not in {subnet.id for subnet in status.subnets}:
            return Drift("SubnetDrift", f"EC2NodeClass {name} does not select its subnet {made_of.subnet_id} any more")
        if made_of.reservation and made_of.reservation not in {entry.id for entry in status.capacity_reservations}:
            text = f"EC2NodeClass {name} does not select its capacity reservation {made_of.reservation} any more"
            return Drift("CapacityReservationDrift", text)
        return self._placement_drift(made_of)

    def _placement_drift(self, made_of: MadeOf) -> Drift | None:
        """Whether the instance is in another placement group than the class names, or in one though it names none.

        Karpenter compares the claim's label with the group that it has looked up. EC2 itself says in which group an
        instance is, by id and by name, so there is nothing to look up, and no label to trust.
        """
        # A terminated instance says nothing of where it was.
        if not made_of.subnet_id:
            return None
        name, selector = self.metadata.name, self.spec.placement_group_selector
        if selector is None:
            actual, wanted = made_of.placement_group_id or made_of.placement_group, ""
        elif selector.id:
            actual, wanted = made_of.placement_group_id, selector.id
        else:
            actual, wanted = made_of.placement_group, selector.name
        if actual == wanted:
            return None
        where = f"in placement group {actual}" if actual else "in no placement group"
        instead = f"selects {wanted}" if wanted else "selects none"
        return Drift("PlacementGroupDrift", f"it runs {where}, and EC2NodeClass {name} {instead}")

    @property
    def images(self) -> frozenset[str]:
        return frozenset(image.id for image in self.status.amis)

    def image_for(self, labels: Mapping[str, tuple[str, ...]]) -> str:
        image = self.status.image_for(labels)
        return image.id if image else ""

    @property
    def declares_interfaces(self) -> bool:
        return bool(self.spec.network_interfaces)


def _unsupported(spec: EC2NodeClassSpec) -> Iterator[Unsupported]:
    if spec.is_windows and spec.instance_store_policy:
        yield Unsupported(
            "spec.instanceStorePolicy",
            "Windows nodes make no file system of the instance's own disks, and pods would have less room than planned",
            condition=VALID,
            reason="UnsupportedInstanceStorePolicy",
        )


def of_ec2(node_class: NodeClass) -> EC2NodeClass:
    """The class, which is an EC2NodeClass.

    Raises ``TypeError`` if it is not: then gateways of two clouds were mixed up.
    """
    if not isinstance(node_class, EC2NodeClass):
        raise TypeError(f"{node_class.kind} {node_class.metadata.name} is no {EC2NodeClass.kind}")
    return node_class
