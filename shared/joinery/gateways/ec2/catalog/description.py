"""An entry of EC2's DescribeInstanceTypes, as far as a node's labels and capacity need it.

The catalogue keeps the entries as bytes, because it is written and read more often than they are looked at. Decoding
twelve hundred of them into these structs takes a tenth of the time that dictionaries take. Field names are EC2's own,
in snake case. What EC2 leaves out has its default here.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from joinery.gateways.answers import Answer, Log
from joinery.objects.kubernetes.decoding import convert

T = TypeVar("T")


class _Part(msgspec.Struct, frozen=True, rename="pascal", gc=False):
    pass


class CpuCount(_Part, frozen=True):
    default_v_cpus: int = 0


class MemoryInfo(_Part, frozen=True):
    size_in_mib: int = msgspec.field(default=0, name="SizeInMiB")


class ProcessorInfo(_Part, frozen=True):
    supported_architectures: tuple[str, ...] = ()
    supported_features: tuple[str, ...] = ()
    sustained_clock_speed_in_ghz: float = 0.0
    manufacturer: str = ""


class StorageInfo(_Part, frozen=True):
    total_size_in_gb: int = msgspec.field(default=0, name="TotalSizeInGB")
    nvme_support: str = "unsupported"


class EbsBandwidth(_Part, frozen=True):
    maximum_bandwidth_in_mbps: int = 0


class EbsInfo(_Part, frozen=True):
    ebs_optimized_support: str = "unsupported"
    ebs_optimized_info: EbsBandwidth | None = None
    maximum_ebs_attachments: int | None = None
    attachment_limit_type: str = "shared"


class NetworkCard(_Part, frozen=True):
    network_card_index: int = 0
    maximum_network_interfaces: int = 0


class EfaInfo(_Part, frozen=True):
    maximum_efa_interfaces: int = 0


class NetworkInfo(_Part, frozen=True):
    network_cards: tuple[NetworkCard, ...] = ()
    default_network_card_index: int = 0
    maximum_network_interfaces: int = 0
    ipv4_addresses_per_interface: int = 0
    ena_support: str = "unsupported"
    encryption_in_transit_supported: bool = False
    efa_info: EfaInfo | None = None


class DeviceMemory(_Part, frozen=True):
    size_in_mib: int = msgspec.field(default=0, name="SizeInMiB")


class GpuDevice(_Part, frozen=True):
    name: str = ""
    manufacturer: str = ""
    whole: int = msgspec.field(default=0, name="Count")
    logical: int = msgspec.field(default=0, name="LogicalGpuCount")
    partition_size: float = msgspec.field(default=1.0, name="GpuPartitionSize")
    memory_info: DeviceMemory = DeviceMemory()

    @property
    def is_part(self) -> bool:
        """Whether each device that a node shows is a part of a GPU.

        That EC2 counts no whole ones does not say it: of p5.4xlarge, which has a GPU of its own, it has counted none
        either.
        """
        return self.partition_size < 1

    @property
    def shown(self) -> int:
        """Devices that a node shows, parts of GPUs among them."""
        return (self.logical or self.whole) if self.is_part else (self.whole or self.logical)


class GpuInfo(_Part, frozen=True):
    gpus: tuple[GpuDevice, ...] = ()


class NeuronCores(_Part, frozen=True):
    count: int = 0


class NeuronDevice(_Part, frozen=True):
    name: str = ""
    count: int = 0
    core_info: NeuronCores = NeuronCores()


class NeuronInfo(_Part, frozen=True):
    neuron_devices: tuple[NeuronDevice, ...] = ()


class InferenceAccelerator(_Part, frozen=True):
    name: str = ""
    manufacturer: str = ""
    count: int = 0


class InferenceAcceleratorInfo(_Part, frozen=True):
    accelerators: tuple[InferenceAccelerator, ...] = ()


class PlacementGroupInfo(_Part, frozen=True):
    """In which placement groups instances may be; empty where a catalogue does not say."""

    supported_strategies: tuple[str, ...] = ()


class Description(_Part, frozen=True):
    """One instance type: an entry of DescribeInstanceTypes."""

    instance_type: str
    supported_usage_classes: tuple[str, ...] = ()
    hypervisor: str = ""
    processor_info: ProcessorInfo = ProcessorInfo()
    v_cpu_info: CpuCount = CpuCount()
    memory_info: MemoryInfo = MemoryInfo()
    instance_storage_info: StorageInfo | None = None
    ebs_info: EbsInfo = EbsInfo()
    network_info: NetworkInfo = NetworkInfo()
    gpu_info: GpuInfo | None = None
    neuron_info: NeuronInfo | None = None
    inference_accelerator_info: InferenceAcceleratorInfo | None = None
    nitro_enclaves_support: str = "unsupported"
    placement_group_info: PlacementGroupInfo = PlacementGroupInfo()

    @property
    def arch(self) -> str:
        """Kubernetes' name of the first architecture that it has one for, so that ``i386, x86_64`` is amd64; empty
        without one.
        """
        names = {"x86_64": "amd64", "arm64": "arm64"}
        return next((names[name] for name in self.processor_info.supported_architectures if name in names), "")

    @property
    def is_nitro(self) -> bool:
        """Of bare metal, which is Nitro too since c5 and m5, EC2 says no hypervisor."""
        return self.hypervisor in ("nitro", "")

    @property
    def gpus(self) -> tuple[GpuDevice, ...]:
        return self.gpu_info.gpus if self.gpu_info else ()

    @property
    def neurons(self) -> tuple[NeuronDevice, ...]:
        return self.neuron_info.neuron_devices if self.neuron_info else ()

    @property
    def efa_on_first_card(self) -> bool:
        """Whether the first network card takes an Elastic Fabric Adapter.

        That of p6-b300, with 17 cards and 16 adapters, does not: the first is for ordinary interfaces alone
        (https://github.com/aws/aws-parallelcluster/issues/7143).
        """
        efa = self.network_info.efa_info
        return efa is None or efa.maximum_efa_interfaces >= len(self.network_info.network_cards)

    @property
    def efa_only_cards(self) -> frozenset[int]:
        """The further network cards on which an adapter is EFA-only: those that take one interface, and of p6e-gb200
        those with odd numbers (https://github.com/aws/aws-parallelcluster/pull/6930).
        """
        single = {c.network_card_index for c in self.network_info.network_cards if c.maximum_network_interfaces == 1}
        numbers = range(1, len(self.network_info.network_cards), 2) if self.instance_type.startswith("p6e-gb") else ()
        return frozenset((*single, *numbers)) - {0}

    @property
    def default_card_interfaces(self) -> int:
        """How many network interfaces the default card has.

        That limits pods; the maximum of the whole instance overstates it.
        """
        network = self.network_info
        for card in network.network_cards:
            if card.network_card_index == network.default_network_card_index:
                return card.maximum_network_interfaces
        return network.maximum_network_interfaces


def converted(
    listed: Iterable[Answer], struct: type[T], name: str, *, call: str, log: Log, strict: bool = True
) -> Iterator[T]:
    """Entries as structs. ``strict``: False where numbers are texts.

    One that does not fit is left out, and ``log`` hears of it by the value of its field ``name``.
    """
    for entry in listed:
        try:
            yield convert(entry, struct, strict=strict)
        except msgspec.ValidationError as error:
            log(f"{call}: {entry.get(name)} is left out: {error}")
