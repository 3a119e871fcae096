"""Instance types as nodes of one EC2NodeClass would have them: labels, capacity, allocatable, offerings.

The same machine is a different node under another class. AMI family, kubelet settings, disks, subnets and images decide
what it holds, where it may stand and whether it can boot at all. A type that the class rules out is still listed, with
offerings that are not available, because the price of nodes that exist must stay known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from msgspec.structs import replace as with_fields

from joinery.gateways.ec2.catalog.description import Description, NetworkInfo
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.ec2.catalog.resolved import ResolvedCatalog
from joinery.gateways.ec2.instancetypes.capacity import (
    USUAL,
    NodeAssumptions,
    NodeSettings,
    allocatable,
    attachments,
    capacity,
    evaluated,
    node_settings,
)
from joinery.gateways.ec2.instancetypes.devices import slices_of
from joinery.gateways.ec2.instancetypes.reserved import reservation_labels, reserved_offerings
from joinery.gateways.ec2.instancetypes.typelabels import Labels, type_labels
from joinery.gateways.ec2.nodeclass.placement import PlacementGroup
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec, NetworkInterface
from joinery.objects.kubernetes.cel_tokens import ExpressionError
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.snapshot.offerings import InstanceType, Offering

_BOUGHT_AS = (labels.ON_DEMAND, labels.SPOT)
#: A moment at which no capacity reservation is about to end.
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class _Region:
    """What all types of a class share.

    ``zones``: name to id, of the zones that the class reaches. ``sold``: on-demand and spot offerings, by type.
    ``reserved``: offerings of the class's capacity reservations, by type. ``in_preview``: those without a price.
    ``group``: the class's placement group, as far as it is known. ``labels``: those that offerings decide, by the
    zones and ways in which a type is sold: most types are sold in the same.
    """

    name: str
    zones: Mapping[str, str]
    sold: Mapping[str, tuple[Offering, ...]]
    reserved: Mapping[str, tuple[Offering, ...]]
    in_preview: Mapping[str, tuple[Offering, ...]]
    group: PlacementGroup | None
    labels: dict[tuple[tuple[str, ...], tuple[str, ...]], Labels] = field(default_factory=dict)


def resolve(
    catalog: Catalog,
    node_class: EC2NodeClass,
    *,
    now: datetime = LONG_AGO,
    reservations: Sequence[CapacityReservation] | None = None,
    assumed: NodeAssumptions = USUAL,
    group: PlacementGroup | None = None,
    memory: Mapping[str, int] | None = None,
) -> tuple[InstanceType, ...]:
    """The catalogue's types for a class. It costs about 40 microseconds a type.

    ``now``: decides which capacity reservations are about to end. ``reservations``: what is left of them, where that is
    known better than by the catalogue. ``memory``: bytes that nodes have, by type, where that is known. A class without
    subnets in its status reaches all zones. Types of a ``ResolvedCatalog`` are taken as they are, except for the zones.
    Whether the class is Ready is not asked here. Raises ``ConfigurationError`` for a broken catalogue.
    """
    zones = _zones(catalog, node_class)
    if isinstance(catalog, ResolvedCatalog):
        return tuple(_confined(instance_type, zones) for instance_type in catalog.types)
    settings = node_settings(node_class.spec, assumed, memory or {})
    counted = catalog.capacity_reservations if reservations is None else reservations
    reserved = reserved_offerings(node_class, counted, catalog.sold, zones, now)
    region = _Region(catalog.region, zones, catalog.sold, reserved, catalog.in_preview, group)
    return tuple(_resolve(description, node_class, settings, region) for description in catalog.described)


def _zones(catalog: Catalog, node_class: EC2NodeClass) -> Mapping[str, str]:
    """Zone name to zone id, of the zones that the class reaches."""
    ids = {zone.name: zone.id for zone in catalog.zones}
    subnets = {subnet.zone: subnet.zone_id for subnet in node_class.status.subnets}
    return {zone: zone_id or ids.get(zone, "") for zone, zone_id in subnets.items()} if subnets else ids


def _resolve(
    description: Description, node_class: EC2NodeClass, settings: NodeSettings, region: _Region
) -> InstanceType:
    name = description.instance_type
    settings, is_evaluated = _evaluated(settings, description)
    total = capacity(description, settings)
    left = allocatable(description, total, settings)
    sold, reserved = region.sold.get(name, ()), region.reserved.get(name, ())
    node_labels = type_labels(description, settings.family, region.name)
    node_labels |= _offering_labels(description, sold, region)
    node_labels |= reservation_labels(node_labels[labels.CAPACITY_TYPE], reserved)
    node_labels |= _group_labels(region.group)
    takes_it = is_evaluated and takes(description, region.group)
    is_usable = takes_it and _is_usable(description, node_class, node_labels, left)
    zones = region.zones if is_usable else {}
    offerings = _reachable((*sold, *reserved) if reserved else sold, zones)
    unpriced = _reachable(region.in_preview.get(name, ()), zones)
    slices = slices_of(name, node_class.metadata.annotations.get(labels.GPU_SHARING, ""))
    return InstanceType(name, node_labels, total, left, offerings, attachments(description, settings), unpriced, slices)


def _evaluated(settings: NodeSettings, description: Description) -> tuple[NodeSettings, bool]:
    """The settings for the type, and whether all of them have a value for it: without one no node would start."""
    try:
        return evaluated(settings, description), True
    except ExpressionError:
        return settings, False


def left_out(catalog: Catalog, node_class: EC2NodeClass, assumed: NodeAssumptions = USUAL) -> str:
    """How many types the class leaves out because an expression has no value for them, and the first of them with the
    reason; empty where none is, or where the class is refused as a whole. Raises ``ConfigurationError``.
    """
    settings = node_settings(node_class.spec, assumed, {})
    if not settings.depends_on_type or node_class.unsupported:
        return ""
    problems = [said for description in catalog.described if (said := _problem(settings, description))]
    count = f"{len(problems)} of {len(catalog.described)} types are left out"
    return f"{count}: spec.kubelet.{problems[0]}" if problems else ""


def _problem(settings: NodeSettings, description: Description) -> str:
    try:
        evaluated(settings, description)
    except ExpressionError as error:
        return str(error)
    return ""


def _confined(instance_type: InstanceType, zones: Mapping[str, str]) -> InstanceType:
    """A type that was resolved before, in the zones that the class reaches."""
    if slices := slices_of(instance_type.name):
        instance_type = replace(instance_type, slices=slices)
    everywhere = instance_type.labels.get(labels.ZONE, ())
    reached = tuple(zone for zone in everywhere if zone in zones)
    if len(reached) == len(everywhere):
        return instance_type
    ids = tuple(zones[zone] for zone in reached if zones[zone])
    confined = {**instance_type.labels, labels.ZONE: reached, labels.ZONE_ID: ids}
    return replace(instance_type, labels=confined, offerings=_reachable(instance_type.offerings, zones))


def _is_usable(
    description: Description, node_class: EC2NodeClass, node_labels: Mapping[str, tuple[str, ...]], left: Resources
) -> bool:
    """Whether a node of the type could boot and hold a pod at all."""
    # Windows has no images for arm64: such a type has no system.
    has_system = bool(description.arch and node_labels[labels.OS])
    if not has_system or min(left.values()) < 0 or not serves(node_class.spec, description):
        return False
    # A class from a file has no status: then nothing is known about its images, and none is assumed to be missing.
    status = node_class.status
    return not status.amis or status.image_for(node_labels) is not None


def _group_labels(group: PlacementGroup | None) -> Labels:
    if group is None:
        return {}
    partitions: Labels = {labels.PARTITION: group.partition_numbers} if group.partitions else {}
    return ({labels.PLACEMENT_GROUP: (group.id,)} if group.id else {}) | partitions


def takes(description: Description, group: PlacementGroup | None) -> bool:
    """Whether instances of the type may be in the group (EC2 User Guide, "Placement strategies")."""
    strategies = description.placement_group_info.supported_strategies
    return group is None or not group.strategy or not strategies or group.strategy in strategies


def _offering_labels(description: Description, sold: tuple[Offering, ...], region: _Region) -> Labels:
    zones, ways = region.zones, description.supported_usage_classes
    key = tuple([offering.zone for offering in sold]), ways
    if key not in region.labels:
        reached = tuple(zone for zone in dict.fromkeys(key[0]) if zone in zones)
        bought_as = tuple(way for way in _BOUGHT_AS if way in ways)
        ids = tuple(zones[zone] for zone in reached if zones[zone])
        region.labels[key] = {labels.ZONE: reached, labels.CAPACITY_TYPE: bought_as} | (
            {labels.ZONE_ID: ids} if ids else {}
        )
    return region.labels[key]


def _reachable(offerings: tuple[Offering, ...], zones: Mapping[str, str]) -> tuple[Offering, ...]:
    """The offerings, with those outside these zones marked unavailable."""
    # Usually all are inside. Then nothing is copied, which matters with thousands of offerings.
    if all(offering.zone in zones for offering in offerings):
        return offerings
    return tuple(
        offering if offering.zone in zones or not offering.available else with_fields(offering, available=False)
        for offering in offerings
    )


def serves(spec: EC2NodeClassSpec, description: Description) -> bool:
    """Whether an instance of this type can be made as the class says."""
    # AL2023 needs the arm64 v8.2 instructions, which the first Graviton does not have.
    if spec.family == "AL2023" and description.instance_type.startswith("a1."):
        return False
    if spec.network_interfaces and not _has_cards(spec.network_interfaces, description.network_info):
        return False
    # This leaves bare metal out, of which EC2 says no hypervisor, as Karpenter for AWS 1.15.1 does. AWS says "Nitro
    # based instances", and not whether it means those.
    if spec.connection_tracking is not None and description.hypervisor != "nitro":
        return False
    return _has_features(spec, description)


def _has_features(spec: EC2NodeClassSpec, description: Description) -> bool:
    if spec.enclave_options and spec.enclave_options.enabled and description.nitro_enclaves_support != "supported":
        return False
    is_nested = spec.cpu_options is not None and spec.cpu_options.nested_virtualization == "enabled"
    return not is_nested or "nested-virtualization" in description.processor_info.supported_features


def _has_cards(wanted: Iterable[NetworkInterface], network: NetworkInfo) -> bool:
    """Whether a type has the network cards, with enough interfaces each, that the class wants to attach to."""
    cards = {card.network_card_index: card for card in network.network_cards}
    if not cards or network.ena_support == "unsupported":
        return False
    efa = sum(nic.interface_type == "efa-only" for nic in wanted)
    if efa > (network.efa_info.maximum_efa_interfaces if network.efa_info else 0):
        return False
    return all(
        nic.network_card_index in cards and nic.device_index < cards[nic.network_card_index].maximum_network_interfaces
        for nic in wanted
    )
