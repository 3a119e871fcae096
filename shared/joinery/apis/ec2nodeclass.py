"""EC2NodeClass (karpenter.k8s.aws/v1): what an instance is made of: AMI, network, disks, kubelet, identity."""

from typing import Annotated, Any, Literal

from pydantic import Field

from joinery.apis import labels
from joinery.apis.devices import (
    BlockDevice,
    BlockDeviceMapping,
    BlockDeviceMappings,
    CheckedConnectionTracking,
    ConnectionTracking,
    CPUOptions,
    MetadataOptions,
    NetworkInterface,
    NetworkInterfaces,
)
from joinery.apis.kubelet import CheckedKubeletConfiguration, KubeletConfiguration
from joinery.apis.meta import Condition, CustomResource, Model, Requirement, TrueOrFalse, WholeNumber
from joinery.apis.rules import Rule
from joinery.apis.selectors import (
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
    "KubeletConfiguration",
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

#: Tags that Joinery sets itself.
RESTRICTED_TAGS = ("eks:eks-cluster-name", labels.NODE_POOL, f"{labels.CORE_GROUP}/nodeclaim", labels.NODE_CLASS)
CLUSTER_TAG_PREFIX = "kubernetes.io/cluster"


def _restricted(tag: str) -> Rule:
    return Rule(f"!('{tag}' in self)", f"tag {tag} is restricted", lambda tags: tag not in tags)


InstanceTags = Annotated[
    dict[str, str],
    Rule("!('' in self)", "empty tag keys are not supported", lambda tags: "" not in tags),
    Rule(
        f"self.all(k, !k.startsWith('{CLUSTER_TAG_PREFIX}'))",
        f"tags below {CLUSTER_TAG_PREFIX}/ are restricted",
        lambda tags: not any(key.startswith(CLUSTER_TAG_PREFIX) for key in tags),
    ),
    _restricted(RESTRICTED_TAGS[0]),
    _restricted(RESTRICTED_TAGS[1]),
    _restricted(RESTRICTED_TAGS[2]),
    _restricted(RESTRICTED_TAGS[3]),
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
    """Merged with what the family needs."""
    role: Annotated[str, Field(min_length=1)] = ""
    """The IAM role of the instances: their instance profile is made from it. Excludes `instanceProfile`."""
    instance_profile: Annotated[str, Field(min_length=1)] = ""
    """The instance profile. Excludes `role`."""
    tags: InstanceTags = {}
    """Put on instances, volumes, network interfaces and launch templates."""
    associate_public_ip_address: TrueOrFalse | None = Field(default=None, alias="associatePublicIPAddress")
    """Whether instances get a public address. If absent, the subnet decides."""
    ip_prefix_count: Annotated[WholeNumber, Field(ge=0)] | None = None
    """How many address prefixes the first network interface gets."""
    kubelet: CheckedKubeletConfiguration | None = None
    block_device_mappings: BlockDeviceMappings = []
    """The disks. If absent, those of the family."""
    instance_store_policy: Literal["RAID0"] | None = None
    """RAID0 makes one file system of the instance's own disks, for pods to use."""
    network_interfaces: NetworkInterfaces | None = None
    detailed_monitoring: TrueOrFalse | None = None
    """Whether CloudWatch gets metrics every minute."""
    metadata_options: MetadataOptions = MetadataOptions()
    connection_tracking: CheckedConnectionTracking | None = None
    cpu_options: CPUOptions | None = None
    context: str | None = None
    """Passed to CreateFleet as it is."""

    @property
    def family(self) -> str:
        """The AMI family that decides user data, disks and pod density: named, or told by the alias."""
        if self.ami_family:
            return self.ami_family
        known = {name.lower(): name for name in FAMILIES}
        return known.get(_alias_family(self), "Custom")


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


class SubnetStatus(Model):
    """A subnet that was selected."""

    id: str
    zone: str
    zone_id: str = Field(default="", alias="zoneID")


class SecurityGroupStatus(Model):
    """A security group that was selected."""

    id: str
    name: str = ""


class AMIStatus(Model):
    """An image that was selected, and the instances that it fits."""

    required_on_wire = frozenset({"requirements"})

    id: str
    name: str = ""
    deprecated: TrueOrFalse = False
    requirements: list[Requirement] = []


class CapacityReservationStatus(Model):
    """A capacity reservation that was selected."""

    required_on_wire = frozenset(
        {"availability_zone", "instance_type", "owner_id", "instance_match_criteria", "reservation_type", "state"}
    )

    id: str
    availability_zone: str = ""
    instance_type: str = ""
    owner_id: str = Field(default="", alias="ownerID")
    instance_match_criteria: str = ""
    reservation_type: str = "default"
    """default or capacity-block."""
    interruptible: TrueOrFalse = False
    end_time: str | None = None
    state: str = "active"
    """active, or expiring: a capacity block that ends within 40 minutes."""


class EC2NodeClassStatus(Model):
    """What the selectors select now."""

    subnets: list[SubnetStatus] = []
    security_groups: list[SecurityGroupStatus] = []
    amis: list[AMIStatus] = []
    capacity_reservations: list[CapacityReservationStatus] = []
    instance_profile: str = ""
    conditions: list[Condition] = []


class EC2NodeClass(CustomResource):
    """What an instance is made of: AMI, network, disks, kubelet, identity."""

    api_version = "karpenter.k8s.aws/v1"
    kind = "EC2NodeClass"

    spec: CheckedEC2NodeClassSpec
    status: EC2NodeClassStatus = EC2NodeClassStatus()
