"""The status of an EC2NodeClass: what its selectors select now, and whether it can be used."""

from collections.abc import Mapping

from pydantic import Field

from joinery.objects.karpenter.meta import Condition, Model, Requirement, TrueOrFalse
from joinery.objects.karpenter.nodeclass import NodeClassStatus

#: The types of its conditions, beside those that every kind has (Karpenter for AWS, ec2nodeclass_status).
SUBNETS_READY, SECURITY_GROUPS_READY, IMAGES_READY = "SubnetsReady", "SecurityGroupsReady", "AMIsReady"
PROFILE_READY, RESERVATIONS_READY = "InstanceProfileReady", "CapacityReservationsReady"
PLACEMENT_READY = "PlacementGroupReady"


class SubnetStatus(Model):
    """A subnet that was selected."""

    id: str
    """The subnet's id."""
    zone: str
    """Its zone, by name."""
    zone_id: str = Field(default="", alias="zoneID")
    """Its zone, by the id that it has in all accounts."""


class SecurityGroupStatus(Model):
    """A security group that was selected."""

    id: str
    """The group's id."""
    name: str = ""
    """The group's name."""


class AMIStatus(Model):
    """An image that was selected, and the instances that it fits."""

    required_on_wire = frozenset({"requirements"})

    id: str
    """The image's id."""
    name: str = ""
    """The image's name."""
    deprecated: TrueOrFalse = False
    """Whether its owner has deprecated it."""
    requirements: list[Requirement] = []
    """The nodes that it is for."""

    def fits(self, node_labels: Mapping[str, tuple[str, ...]]) -> bool:
        """Whether nodes with these labels can boot it. A label may have several values, any of which will do."""
        return all(_meets(rule, node_labels.get(rule.key)) for rule in self.requirements)


class CapacityReservationStatus(Model):
    """A capacity reservation that was selected."""

    required_on_wire = frozenset(
        {"availability_zone", "instance_type", "owner_id", "instance_match_criteria", "reservation_type", "state"}
    )

    id: str
    """The reservation's id."""
    availability_zone: str = ""
    """Its zone."""
    instance_type: str = ""
    """The instance type that it holds."""
    owner_id: str = Field(default="", alias="ownerID")
    """The account that owns it."""
    instance_match_criteria: str = ""
    """`open`, or `targeted`: only for launches that name it."""
    reservation_type: str = "default"
    """default or capacity-block."""
    interruptible: TrueOrFalse = False
    """Whether EC2 may take its instances back."""
    end_time: str | None = None
    """When it ends; absent where it does not."""
    state: str = "active"
    """active, or expiring: a capacity block that ends within 40 minutes."""


class EC2NodeClassStatus(NodeClassStatus):
    """What the selectors select now."""

    subnets: list[SubnetStatus] = []
    """The subnets that the class selects, the one with most free addresses first."""
    security_groups: list[SecurityGroupStatus] = []
    """The security groups that the class selects."""
    amis: list[AMIStatus] = []
    """The images that the class selects, the newest first."""
    capacity_reservations: list[CapacityReservationStatus] = []
    """The capacity reservations that the class selects."""
    instance_profile: str = ""
    """The instance profile of its instances."""
    conditions: list[Condition] = []
    """Whether the class can be used; `Ready` sums it up."""

    def image_for(self, node_labels: Mapping[str, tuple[str, ...]]) -> AMIStatus | None:
        """The image for nodes with these labels: the newest that fits, which the status lists first."""
        return next((ami for ami in self.amis if ami.fits(node_labels)), None)


def _meets(rule: Requirement, values: tuple[str, ...] | None) -> bool:
    if rule.operator == "DoesNotExist":
        return values is None
    if values is None:
        return rule.operator == "NotIn"
    if rule.operator == "NotIn":
        return any(value not in rule.values for value in values)
    return rule.operator == "Exists" or any(value in rule.values for value in values)
