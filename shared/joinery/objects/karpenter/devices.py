"""The parts of an EC2NodeClass that become a launch template's devices: disks, network interfaces, metadata service."""

from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from joinery.objects.karpenter import duration
from joinery.objects.karpenter.meta import VOLUME_SIZE, Model, TrueOrFalse, WholeNumber
from joinery.objects.karpenter.rules import Rule

VolumeSize = Annotated[str, Field(pattern=VOLUME_SIZE)]


class BlockDevice(Model):
    """An EBS volume."""

    delete_on_termination: TrueOrFalse | None = None
    """Whether the volume ends with its instance."""
    encrypted: TrueOrFalse | None = None
    """Whether the volume is encrypted."""
    iops: WholeNumber | None = None
    """Operations a second, for types that are sold by them."""
    kms_key_id: str = Field(default="", alias="kmsKeyID")
    """The KMS key that encrypts it: id, ARN or alias."""
    snapshot_id: str = Field(default="", alias="snapshotID")
    """The snapshot that it is made from."""
    throughput: WholeNumber | None = None
    """MiB/s, of gp3."""
    volume_initialization_rate: Annotated[WholeNumber, Field(ge=100, le=300)] | None = None
    """MiB/s at which a volume made from a snapshot is filled."""
    volume_size: VolumeSize | None = None
    """Its size, such as `100Gi`."""
    volume_type: Literal["", "standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"] = ""
    """EBS' volume type, such as `gp3`."""


CheckedBlockDevice = Annotated[
    BlockDevice,
    Rule(
        "has(self.snapshotID) || has(self.volumeSize)",
        "a disk needs a snapshotID or a volumeSize",
        lambda it: bool(it.snapshot_id) or it.volume_size is not None,
    ),
    Rule(
        "!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
        "volumeInitializationRate needs a snapshotID",
        lambda it: it.volume_initialization_rate is None or bool(it.snapshot_id),
        field="volumeInitializationRate",
    ),
]


class BlockDeviceMapping(Model):
    """A disk of the instance."""

    device_name: str = ""
    """The device's name, such as `/dev/xvda`."""
    root_volume: TrueOrFalse = False
    """Whether this is the disk that pods' ephemeral storage is on."""
    ebs: CheckedBlockDevice | None = None
    """The EBS volume."""


BlockDeviceMappings = Annotated[
    list[BlockDeviceMapping],
    Field(max_length=50),
    Rule(
        "self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",
        "at most one block device may have rootVolume",
        lambda mappings: sum(mapping.root_volume for mapping in mappings) <= 1,
    ),
]


class NetworkInterface(Model):
    """A network interface of the instance, in addition to none: the first one has to be listed as well."""

    required_on_wire = frozenset({"network_card_index", "device_index", "interface_type"})

    network_card_index: Annotated[WholeNumber, Field(ge=0)] = 0
    """The network card that it is on."""
    device_index: Annotated[WholeNumber, Field(ge=0)] = 0
    """Its place on that card."""
    interface_type: Literal["interface", "efa-only"] = "interface"
    """`interface`, or `efa-only` for an Elastic Fabric Adapter without addresses."""


def _has_primary(interfaces: list[Any]) -> bool:
    return not interfaces or any(
        (it.network_card_index, it.device_index, it.interface_type) == (0, 0, "interface") for it in interfaces
    )


def _unique(interfaces: list[Any]) -> bool:
    return len({(it.network_card_index, it.device_index) for it in interfaces}) == len(interfaces)


def _one_efa_a_card(interfaces: list[Any]) -> bool:
    return (
        max(Counter(it.network_card_index for it in interfaces if it.interface_type == "efa-only").values(), default=0)
        <= 1
    )


NetworkInterfaces = Annotated[
    list[NetworkInterface],
    Field(max_length=150),
    Rule(
        "self.size() == 0"
        " || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 && x.interfaceType == 'interface')",
        "the interface with networkCardIndex 0 and deviceIndex 0 must be listed, with interfaceType 'interface'",
        _has_primary,
    ),
    Rule(
        "self.all(x, self.exists_one(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex))",
        "networkCardIndex and deviceIndex must be unique together",
        _unique,
    ),
    Rule(
        "self.all(x, x.interfaceType != 'efa-only'"
        " || self.exists_one(y, y.interfaceType == 'efa-only' && x.networkCardIndex == y.networkCardIndex))",
        "a network card may have one efa-only interface",
        _one_efa_a_card,
    ),
]


class MetadataOptions(Model):
    """The instance metadata service."""

    http_endpoint: Literal["enabled", "disabled"] = "enabled"
    """Whether the service answers at all: `enabled` or `disabled`."""
    http_protocol_ipv6: Literal["enabled", "disabled"] = Field(default="disabled", alias="httpProtocolIPv6")
    """Whether it answers at its IPv6 address, too."""
    http_put_response_hop_limit: Annotated[WholeNumber, Field(ge=1, le=64)] = 1
    """How many hops its answers may take; with 1, pods without the host's network get none."""
    http_tokens: Literal["required", "optional"] = "required"
    """Whether a session token is `required` (IMDSv2) or `optional`."""


def _in_seconds(value: object) -> object:
    length = duration.parse(value) if isinstance(value, str) else None
    return value if length is None else length.total_seconds()


#: Whole seconds, or a duration such as ``350s``: both are found in the wild.
Seconds = Annotated[
    int,
    BeforeValidator(_in_seconds),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
]


def _between(least: int, most: int) -> Rule:
    number = f"self >= {least} && self <= {most}"
    text = f"duration(self) >= duration('{least}s') && duration(self) <= duration('{most}s')"
    message = f"must be between {least} and {most} seconds"
    return Rule(f"type(self) == int ? {number} : {text}", message, lambda seconds: least <= seconds <= most)


class ConnectionTracking(Model):
    """Idle timeouts of tracked connections."""

    tcp_established_timeout: Annotated[Seconds, _between(60, 432000)] | None = None
    """How long an idle TCP connection is remembered, such as `350s`."""
    udp_stream_timeout: Annotated[Seconds, _between(60, 180)] | None = None
    """How long an idle UDP flow is remembered that has seen several packets."""
    udp_timeout: Annotated[Seconds, _between(30, 60)] | None = None
    """How long an idle UDP flow is remembered that has seen one packet each way."""


CheckedConnectionTracking = Annotated[
    ConnectionTracking,
    Rule(
        "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
        "expected at least one of tcpEstablishedTimeout, udpStreamTimeout, udpTimeout",
        lambda it: (it.tcp_established_timeout, it.udp_stream_timeout, it.udp_timeout) != (None, None, None),
    ),
]


class EnclaveOptions(Model):
    """Nitro Enclaves: parts of an instance that nobody can look into."""

    enabled: TrueOrFalse
    """Whether the instance may have any. Only types that can are launched then."""


class CPUOptions(Model):
    """Processor features."""

    nested_virtualization: Literal["enabled", "disabled"] | None = None
    """Whether virtual machines may run in the instance: `enabled` or `disabled`."""
