"""Launch templates: what instances that are launched alike have in common (EC2 API CreateLaunchTemplate).

A template is named after a hash of everything in it. So making one is idempotent: whoever comes second finds it there,
and a change of anything makes another template. Nothing here talks to EC2; ``launch_templates`` does.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from joinery.gateways.ec2.gateway import LaunchRequest, Override
from joinery.gateways.ec2.instancetypes.families import FAMILIES
from joinery.gateways.ec2.launch.bootstrap import bootstrap
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.gateways.ec2.launch.userdata import user_data
from joinery.gateways.ec2.nodeclass.tags import instance_tags
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import BlockDevice, EC2NodeClass, EC2NodeClassSpec, NetworkInterface
from joinery.objects.kubernetes.quantity import amount
from joinery.objects.snapshot.offerings import CAPACITY_BLOCK, Reservation

PREFIX = "karpenter.k8s.aws/"
RESERVED_ONLY = "capacity-reservations-only"
#: How many launch templates one call may name (EC2 API CreateFleet, ``LaunchTemplateConfigs``: at most 50 items).
_MOST_CONFIGS = 50
_ISOLATED = ("us-iso-", "us-isob-", "us-isof-")


class FabricAdapter(NamedTuple):
    """An Elastic Fabric Adapter on a network card. ``is_only``: without an ordinary interface, so without addresses."""

    card: int
    is_only: bool = False


class TemplateKey(NamedTuple):
    """What pools must have in common to share a launch template.

    ``efa``: the Elastic Fabric Adapters. ``reserved``: as JSON, what the class's expressions
    reserve for kubelet and system; empty where it has none.
    """

    image_id: str
    max_pods: int
    efa: tuple[FabricAdapter, ...]
    reservation: Reservation | None
    reserved: str = ""


@dataclass(frozen=True, kw_only=True)
class Template:
    """``data``: EC2's LaunchTemplateData. ``tags``: the template's own, and not those of its instances."""

    name: str
    data: Mapping[str, Any]
    tags: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What of a template does not come from the class alone.

    ``user_data``: base64. ``reservation``: the capacity reservation to launch into, None to use none. ``efa``: the
    Elastic Fabric Adapters. ``tenancy``: EC2's word. ``partition``: of the placement group, empty
    for any.
    """

    image_id: str
    user_data: str
    capacity_type: str
    region: str
    ipv6: bool
    reservation: Reservation | None = None
    efa: tuple[FabricAdapter, ...] = ()
    tenancy: str = labels.SHARED_TENANCY
    partition: str = ""


def pools_by_template(
    overrides: Iterable[Override],
    images: Mapping[str, str],
    reserved: Callable[[Override], str],
    efa: Callable[[Override], tuple[FabricAdapter, ...]],
) -> dict[TemplateKey, list[Override]]:
    """The pools of each template, of as many templates as a call may name: those with the cheapest pools.

    ``images``: by instance type, the id of its image. ``reserved``, ``efa``: of a pool, as a template's key has them.
    """
    pools: dict[TemplateKey, list[Override]] = {}
    seen: set[tuple[str, str]] = set()
    for override in overrides:
        # EC2 refuses a call that names a type and zone twice, even in two templates.
        pool = (override.instance_type, override.zone)
        if override.instance_type in images and pool not in seen:
            seen.add(pool)
            image = images[override.instance_type]
            key = TemplateKey(image, override.max_pods, efa(override), override.reservation, reserved(override))
            pools.setdefault(key, []).append(override)
    if len(pools) <= _MOST_CONFIGS:
        return pools
    cheapest = sorted(pools, key=lambda key: min(pool.price for pool in pools[key]))
    return {key: pools[key] for key in cheapest[:_MOST_CONFIGS]}


def template_of(
    request: LaunchRequest, node_class: EC2NodeClass, facts: ClusterFacts, key: TemplateKey, region: str
) -> Template:
    """The launch template of a request's pools that have the key in common."""
    boot = bootstrap(
        facts,
        labelled=request.labels,
        taints=request.taints,
        capacity_type=request.capacity_type,
        max_pods=key.max_pods,
        reserved=json.loads(key.reserved or "{}"),
        image_name=next((image.name for image in node_class.status.amis if image.id == key.image_id), ""),
    )
    machine = Machine(
        image_id=key.image_id,
        user_data=user_data(node_class.spec, boot),
        capacity_type=request.capacity_type,
        region=region,
        ipv6=facts.ipv6,
        reservation=key.reservation,
        efa=key.efa,
        tenancy=request.tenancy,
        partition=request.partition,
    )
    return template(node_class, machine, instance_tags(facts.name, node_class, request.node_pool))


def template(node_class: EC2NodeClass, machine: Machine, tags: Mapping[str, str]) -> Template:
    """The template of such machines of a class, named after all that is in it."""
    data = _data(node_class, machine, tags)
    digest = sha256(json.dumps([data, dict(tags)], sort_keys=True).encode()).digest()
    return Template(name=f"{PREFIX}{int.from_bytes(digest[:8])}", data=data, tags=tags)


def creation(wanted: Template) -> dict[str, Any]:
    """The CreateLaunchTemplate call."""
    return {
        "LaunchTemplateName": wanted.name,
        "LaunchTemplateData": wanted.data,
        "TagSpecifications": tag_specifications(("launch-template",), wanted.tags),
    }


def tag_specifications(resource_types: tuple[str, ...], tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """EC2's TagSpecifications: the same tags on resources of several types."""
    pairs = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
    return [{"ResourceType": resource_type, "Tags": pairs} for resource_type in resource_types]


def _data(node_class: EC2NodeClass, machine: Machine, tags: Mapping[str, str]) -> dict[str, Any]:
    spec = node_class.spec
    spot = ("spot-instances-request",) if machine.capacity_type == labels.SPOT else ()
    data: dict[str, Any] = {
        "ImageId": machine.image_id,
        "IamInstanceProfile": {"Name": node_class.status.instance_profile},
        "Monitoring": {"Enabled": bool(spec.detailed_monitoring)},
        "MetadataOptions": _metadata(spec, machine.region),
        "NetworkInterfaces": _interfaces(node_class, machine),
        "TagSpecifications": tag_specifications(("network-interface", *spot), tags),
        "Placement": {"Tenancy": machine.tenancy} | _group(spec, machine.partition),
        "CapacityReservationSpecification": _reservation(machine.reservation),
    }
    optional = {
        "UserData": machine.user_data,
        "BlockDeviceMappings": _disks(spec),
        "CpuOptions": _cpu(spec),
        "EnclaveOptions": {"Enabled": True} if spec.enclave_options and spec.enclave_options.enabled else {},
        "InstanceMarketOptions": _market(machine.reservation),
    }
    return data | {key: value for key, value in optional.items() if value}


def _reservation(reservation: Reservation | None) -> dict[str, Any]:
    """In that reservation and nowhere else. Without one in none, so that no open reservation is used up unnoticed."""
    if reservation is None:
        return {"CapacityReservationPreference": "none"}
    target = {"CapacityReservationId": reservation.id}
    return {"CapacityReservationPreference": RESERVED_ONLY, "CapacityReservationTarget": target}


def _group(spec: EC2NodeClassSpec, partition: str) -> dict[str, Any]:
    """The placement group. Without a number EC2 fills its partitions evenly."""
    selector = spec.placement_group_selector
    if selector is None:
        return {}
    group: dict[str, Any] = {"GroupId": selector.id} if selector.id else {"GroupName": selector.name}
    return group | ({"PartitionNumber": int(partition)} if partition.isdecimal() else {})


def _market(reservation: Reservation | None) -> dict[str, Any]:
    if reservation is None:
        return {}
    if reservation.kind == CAPACITY_BLOCK:
        return {"MarketType": CAPACITY_BLOCK}
    return {"MarketType": "interruptible-capacity-reservation"} if reservation.is_interruptible else {}


def _metadata(spec: EC2NodeClassSpec, region: str) -> dict[str, Any]:
    options = spec.metadata_options
    metadata: dict[str, Any] = {
        "HttpEndpoint": options.http_endpoint,
        "HttpProtocolIpv6": options.http_protocol_ipv6,
        "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
        "HttpTokens": options.http_tokens,
        "InstanceMetadataTags": "disabled",
    }
    # The isolated partitions do not know this field.
    if region.startswith(_ISOLATED):
        del metadata["HttpProtocolIpv6"]
    return metadata


def _cpu(spec: EC2NodeClassSpec) -> dict[str, Any]:
    nested = spec.cpu_options.nested_virtualization if spec.cpu_options else None
    return {"NestedVirtualization": nested} if nested else {}


# --- disks ---


def _disks(spec: EC2NodeClassSpec) -> list[dict[str, Any]]:
    """The user's disks, or else those of the family. A family without any leaves them to the image."""
    if spec.block_device_mappings:
        return [
            {"DeviceName": mapping.device_name} | ({"Ebs": _ebs(mapping.ebs)} if mapping.ebs else {})
            for mapping in spec.block_device_mappings
        ]
    return [
        {"DeviceName": name, "Ebs": {"Encrypted": True, "VolumeType": "gp3", "VolumeSize": _gib(size)}}
        for name, size in FAMILIES[spec.family].devices
    ]


def _ebs(disk: BlockDevice) -> dict[str, Any]:
    ebs = {
        "DeleteOnTermination": disk.delete_on_termination,
        "Encrypted": disk.encrypted,
        "Iops": disk.iops or None,
        "KmsKeyId": disk.kms_key_id or None,
        "SnapshotId": disk.snapshot_id or None,
        "Throughput": disk.throughput or None,
        "VolumeInitializationRate": disk.volume_initialization_rate,
        "VolumeSize": _gib(disk.volume_size) if disk.volume_size else None,
        "VolumeType": disk.volume_type or None,
    }
    return {key: value for key, value in ebs.items() if value is not None}


def _gib(size: str) -> int:
    """A quantity in GiB, rounded up."""
    return -(-amount("ephemeral-storage", size) >> 30) if size else 0


# --- network ---


def _interfaces(node_class: EC2NodeClass, machine: Machine) -> list[dict[str, Any]]:
    """EC2 wants security groups inside of the interfaces, if there are any. The subnet comes with the launch."""
    groups, spec = [group.id for group in node_class.status.security_groups], node_class.spec
    if spec.network_interfaces:
        return [_declared(interface, groups, spec, machine.ipv6) for interface in spec.network_interfaces]
    addresses = _addresses(spec, machine.ipv6)
    if any(adapter.card == 0 for adapter in machine.efa):
        return [_adapter(*adapter, groups) | ({} if adapter.is_only else addresses) for adapter in machine.efa]
    primary = {"DeviceIndex": 0, "Groups": groups} | addresses
    return [primary, *(_adapter(adapter.card, True, groups) for adapter in machine.efa)]


def _adapter(card: int, is_only: bool, groups: list[str]) -> dict[str, Any]:
    """The Elastic Fabric Adapter of one network card.

    Beside an ordinary interface on the first card it needs no addresses, and is the first device of its own card (EC2
    User Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards").
    """
    kind, device = ("efa-only", 0) if is_only else ("efa", min(card, 1))
    return {"NetworkCardIndex": card, "DeviceIndex": device, "InterfaceType": kind, "Groups": groups}


def _declared(interface: NetworkInterface, groups: list[str], spec: EC2NodeClassSpec, ipv6: bool) -> dict[str, Any]:
    declared: dict[str, Any] = {
        "NetworkCardIndex": interface.network_card_index,
        "DeviceIndex": interface.device_index,
        "InterfaceType": interface.interface_type,
        "Groups": groups,
    }
    # An EFA-only interface has no IP address.
    return declared if interface.interface_type == "efa-only" else declared | _addresses(spec, ipv6)


def _addresses(spec: EC2NodeClassSpec, ipv6: bool) -> dict[str, Any]:
    addresses: dict[str, Any] = {}
    if spec.associate_public_ip_address is not None:
        addresses["AssociatePublicIpAddress"] = spec.associate_public_ip_address
    if ipv6:
        # EC2 takes an address or a prefix, and only an address is primary: the VPC CNI attaches the prefix.
        addresses |= {"PrimaryIpv6": True, "Ipv6AddressCount": 1}
    elif spec.ip_prefix_count:
        addresses["Ipv4PrefixCount"] = spec.ip_prefix_count
    if spec.connection_tracking:
        tracking = spec.connection_tracking
        timeouts = {
            "TcpEstablishedTimeout": tracking.tcp_established_timeout,
            "UdpStreamTimeout": tracking.udp_stream_timeout,
            "UdpTimeout": tracking.udp_timeout,
        }
        given = {key: value for key, value in timeouts.items() if value is not None}
        addresses["ConnectionTrackingSpecification"] = given
    return addresses
