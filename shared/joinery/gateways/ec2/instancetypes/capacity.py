"""How much room a node of an instance type has: capacity, allocatable, pods (Karpenter for AWS `NewInstanceType`).

A node that has less than was planned for it leaves pods pending. So every figure is what the node will report itself,
in the units of ``Resources`` (millicores, bytes, counts), rounded where and as Karpenter rounds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from joinery.gateways.ec2.catalog.description import Description
from joinery.gateways.ec2.instancetypes.families import FAMILIES, Family, branch_interfaces, has_windows_addresses
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClassSpec
from joinery.objects.karpenter.kubelet.configuration import KubeletConfiguration, understood
from joinery.objects.karpenter.kubelet.expressions import expressions, max_pods, reserved
from joinery.objects.kubernetes.cel import Variables
from joinery.objects.kubernetes.quantity import Resources, amount, amounts, total
from joinery.objects.snapshot.offerings import EFA

if TYPE_CHECKING:
    from joinery.objects.settings import Settings

MIB = 1 << 20
#: Kubelet's own default of ``maxPods``.
PODS_WITHOUT_ENI_LIMIT = 110
#: Pods of the host's network, which need no address of the VPC CNI's.
_HOST_PODS = 2
#: With prefix delegation: addresses of a prefix; the most pods of an instance with more than so many vCPUs.
_PREFIX_ADDRESSES, _MOST_PODS_OF_LARGE, _LARGE_CPUS = 16, 250, 30
#: Network interfaces that the VPC CNI keeps ready beside the first (its WARM_ENI_TARGET).
SPARE_INTERFACES = 1
EBS_DRIVER = "ebs.csi.aws.com"
#: Millicores, and the share of them that kubelet and the system keep (the rules of EKS' bootstrap scripts and of
#: nodeadm).
_CPU_TIERS = ((1000, 0.06), (1000, 0.01), (2000, 0.005), (None, 0.0025))
#: Resources that kubelet frees by eviction: each with the signal for it, and its default hard threshold.
_EVICTION = (("memory", "memory.available", "100Mi"), ("ephemeral-storage", "nodefs.available", "10%"))


@dataclass(frozen=True, kw_only=True)
class NodeAssumptions:
    """What holds for all nodes of a cluster, and no object says.

    ``vm_memory_overhead``: the fraction of memory that the hypervisor keeps (Karpenter VM_MEMORY_OVERHEAD_PERCENT).
    ``reserved_enis``: how many network interfaces the VPC CNI's custom networking takes (Karpenter RESERVED_ENIS).
    ``prefix_delegation``: whether the VPC CNI gives interfaces prefixes of sixteen addresses.
    """

    vm_memory_overhead: float = 0.075
    reserved_enis: int = 0
    prefix_delegation: bool = False

    @classmethod
    def of(cls, settings: "Settings") -> "NodeAssumptions":
        """Those of an installation."""
        return cls(
            vm_memory_overhead=settings.vm_memory_overhead_percent,
            reserved_enis=settings.reserved_enis,
            prefix_delegation=settings.prefix_delegation,
        )


#: Of a cluster that somebody has not set anything for.
USUAL = NodeAssumptions()


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """What of a class decides its nodes' capacity, worked out once for all types.

    ``storage``: bytes of the device that holds pods' ephemeral storage. ``system_reserved`` and ``kube_reserved``: what
    the class says of them, which may be nothing. ``memory``: bytes that nodes of a type have, where that is known; by
    type. ``efa_only``: how many EFA-only interfaces the class asks for, None where it does not say anything of
    interfaces; those of them ``efa_only_on_first_card`` take interfaces from pods.
    ``depends_on_type``: whether there are expressions, without which the settings are the same for all types.
    """

    family: Family
    kubelet: KubeletConfiguration
    spec: EC2NodeClassSpec
    storage: int
    system_reserved: Resources
    kube_reserved: Resources
    assumed: NodeAssumptions
    memory: Mapping[str, int]
    efa_only: int | None
    efa_only_on_first_card: int
    depends_on_type: bool


def node_settings(spec: EC2NodeClassSpec, assumed: NodeAssumptions, memory: Mapping[str, int]) -> NodeSettings:
    """The settings of a class. ``memory`` is as in ``NodeSettings``."""
    family, kubelet = FAMILIES[spec.family], understood(spec.kubelet)
    efa = [nic for nic in spec.network_interfaces or () if nic.interface_type == "efa-only"]
    return NodeSettings(
        family=family,
        kubelet=kubelet,
        spec=spec,
        storage=_storage(spec, family),
        system_reserved=amounts(kubelet.system_reserved),
        kube_reserved=amounts(kubelet.kube_reserved),
        assumed=assumed,
        memory=memory,
        efa_only=None if spec.network_interfaces is None else len(efa),
        efa_only_on_first_card=sum(nic.network_card_index == 0 for nic in efa),
        depends_on_type=any(expressions(spec.kubelet)),
    )


def variables(description: Description, pods: int) -> Variables:
    """What expressions of a class know of the type. ``pods``: how many a node takes."""
    return {
        "default_enis": description.default_card_interfaces,
        "instance_type": description.instance_type,
        "ips_per_eni": description.network_info.ipv4_addresses_per_interface,
        "max_pods": pods,
        "memory_mib": description.memory_info.size_in_mib,
        "vcpus": description.v_cpu_info.default_v_cpus,
    }


def evaluated(settings: NodeSettings, description: Description) -> NodeSettings:
    """The settings of nodes of one type: expressions have their values.

    Raises ``ExpressionError`` where one has no usable value for the type.
    """
    if not settings.depends_on_type:
        return settings
    given = settings.spec.kubelet
    pods = max_pods(given, variables(description, _pods(description, settings)))
    if pods is not None:
        settings = replace(settings, kubelet=replace(settings.kubelet, max_pods=pods))
    kept = reserved(given, variables(description, _pods(description, settings)))
    return replace(
        settings,
        kube_reserved=amounts(kept.get("kubeReserved", {})),
        system_reserved=amounts(kept.get("systemReserved", {})),
    )


def _storage(spec: EC2NodeClassSpec, family: Family) -> int:
    """Bytes of the device that holds pods' ephemeral storage (Karpenter for AWS `ephemeralStorage`).

    That is the device marked as root volume; for the family Custom the last one; for others the one that the family
    uses for pods. Where the class gives that device no size, it has the family's default.
    """
    sized = [(m, m.ebs.volume_size) for m in spec.block_device_mappings if m.ebs and m.ebs.volume_size]
    for mapping, size in sized:
        if mapping.root_volume:
            return amount("ephemeral-storage", size)
    if family.name == "Custom":
        last = spec.block_device_mappings[-1:]
        return next((amount("ephemeral-storage", size) for m, size in sized if [m] == last), family.default_storage)
    for mapping, size in sized:
        if mapping.device_name == family.pod_storage:
            return amount("ephemeral-storage", size)
    return family.default_storage


def capacity(description: Description, settings: NodeSettings) -> dict[str, int]:
    """What the node reports as its capacity. Extended resources of which it has none are left out."""
    room = {
        "cpu": description.v_cpu_info.default_v_cpus * 1000,
        "memory": _memory(description, settings),
        "ephemeral-storage": _ephemeral(description, settings),
        "pods": _pods(description, settings),
    }
    extended = _extended(description, settings)
    return room | {resource: value for resource, value in extended.items() if value}


def allocatable(description: Description, capacity: Resources, settings: NodeSettings) -> dict[str, int]:
    """Capacity less what kubelet, the system and eviction keep. Negative where nothing is left."""
    kept = _overhead(description, capacity, settings)
    return {name: value - kept.get(name, 0) for name, value in capacity.items()}


def attachments(description: Description, settings: NodeSettings) -> dict[str, int]:
    """How many volumes for pods the EBS CSI driver will attach to the node; nothing where EC2 does not say.

    The class's own disks take some. Where the limit is shared with network interfaces, EC2 has counted one of them and
    the NVMe disks. The driver counts all that when it starts, and says at least one.
    """
    ebs = description.ebs_info
    if ebs.maximum_ebs_attachments is None:
        return {}
    taken = len(settings.spec.block_device_mappings or settings.family.devices) or 1
    if ebs.attachment_limit_type == "shared":
        taken += SPARE_INTERFACES
    return {EBS_DRIVER: max(ebs.maximum_ebs_attachments - taken, 1)}


def _memory(description: Description, settings: NodeSettings) -> int:
    # Graviton instances set 64 MiB aside for the contiguous memory allocator.
    size = description.memory_info.size_in_mib - (64 if description.arch == "arm64" else 0)
    estimate = (size - ceil(size * settings.assumed.vm_memory_overhead)) * MIB
    seen = settings.memory.get(description.instance_type, 0)
    # A kubelet that lies, or a broken host, must not spoil the type for all others.
    return seen if estimate // 2 <= seen <= size * MIB else estimate


def _ephemeral(description: Description, settings: NodeSettings) -> int:
    store = description.instance_storage_info
    if settings.spec.instance_store_policy == "RAID0" and store and store.total_size_in_gb:
        return store.total_size_in_gb * 10**9
    return settings.storage


def _eni_limited_pods(description: Description, settings: NodeSettings, reserved: int) -> int:
    # The first address of an interface is its own (EKS max-pods).
    usable = description.default_card_interfaces - reserved - settings.efa_only_on_first_card
    return usable * (description.network_info.ipv4_addresses_per_interface - 1) + _HOST_PODS if usable > 0 else 0


def _most_addressed_pods(description: Description, settings: NodeSettings) -> int:
    """How many pods the VPC CNI has addresses for.

    With prefix delegation, which Nitro instances have, each address is sixteen, and EKS caps the number of pods where
    Kubernetes is known to work well (amazon-eks-ami, max-pods-calculator.sh).
    """
    pods = _eni_limited_pods(description, settings, settings.assumed.reserved_enis)
    if not settings.assumed.prefix_delegation or not description.is_nitro or pods == 0:
        return pods
    most = _MOST_PODS_OF_LARGE if description.v_cpu_info.default_v_cpus > _LARGE_CPUS else PODS_WITHOUT_ENI_LIMIT
    return min((pods - _HOST_PODS) * _PREFIX_ADDRESSES + _HOST_PODS, most)


def _pods(description: Description, settings: NodeSettings) -> int:
    kubelet, family = settings.kubelet, settings.family
    if kubelet.max_pods is not None:
        count = kubelet.max_pods
    elif family.eni_density:
        count = _most_addressed_pods(description, settings)
    else:
        count = PODS_WITHOUT_ENI_LIMIT
    if kubelet.pods_per_core and family.pods_per_core:
        count = min(count, kubelet.pods_per_core * description.v_cpu_info.default_v_cpus)
    return count


def _extended(description: Description, settings: NodeSettings) -> dict[str, int]:
    efa_info = description.network_info.efa_info
    efa = settings.efa_only if settings.efa_only is not None else efa_info.maximum_efa_interfaces if efa_info else 0
    extended = {
        "vpc.amazonaws.com/pod-eni": branch_interfaces(description.instance_type),
        EFA: efa,
    }
    if description.gpu_info or description.neuron_info:
        extended |= _accelerators(description)
    is_windows = settings.family.windows_build and description.arch == "amd64"
    if is_windows and has_windows_addresses(description.instance_type):
        extended["vpc.amazonaws.com/PrivateIPv4Address"] = description.network_info.ipv4_addresses_per_interface - 1
    return extended


def _accelerators(description: Description) -> dict[str, int]:
    makers = (("NVIDIA", "nvidia.com/gpu"), ("AMD", "amd.com/gpu"), ("Habana", "habana.ai/gaudi"))
    devices = {
        resource: sum(gpu.shown for gpu in description.gpus if gpu.manufacturer == maker) for maker, resource in makers
    }
    if description.neurons:
        # Karpenter takes the cores of the first device for all: no type mixes them.
        first = description.neurons[0]
        devices["aws.amazon.com/neuron"] = sum(device.count for device in description.neurons)
        devices["aws.amazon.com/neuroncore"] = first.count * first.core_info.count
    return devices


def _overhead(description: Description, capacity: Resources, settings: NodeSettings) -> Mapping[str, int]:
    kube = _kube_reserved(description, capacity, settings) | dict(settings.kube_reserved)
    kept = total((kube, settings.system_reserved))
    for name, threshold in _eviction(capacity, settings).items():
        kept[name] = kept.get(name, 0) + threshold
    return kept


def _kube_reserved(description: Description, capacity: Resources, settings: NodeSettings) -> dict[str, int]:
    pods = _eni_limited_pods(description, settings, 0) if settings.family.eni_memory else capacity["pods"]
    return {"cpu": _reserved_cpu(capacity["cpu"]), "memory": (11 * pods + 255) * MIB, "ephemeral-storage": 1 << 30}


def _reserved_cpu(millicores: int) -> int:
    """6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % above; each cut to whole millicores."""
    kept = 0
    for size, share in _CPU_TIERS:
        part = millicores if size is None else min(millicores, size)
        kept += int(part * share)
        millicores -= part
    return kept


def _eviction(capacity: Resources, settings: NodeSettings) -> dict[str, int]:
    """What must stay free: the hard thresholds. Of the soft ones kubelet keeps nothing, and a node says so too."""
    hard = settings.kubelet.eviction_hard
    return {
        resource: _threshold(resource, capacity[resource], hard.get(signal, default))
        for resource, signal, default in _EVICTION
    }


def _threshold(resource: str, size: int, rule: str) -> int:
    if not rule.endswith("%"):
        return amount(resource, rule)
    percent = float(rule[:-1])
    # To kubelet 100 % means that there is no such threshold.
    return 0 if percent == 100 else ceil(size / 100 * percent)
