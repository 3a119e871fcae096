"""How much room a node of an instance type has: capacity, overhead, pods (Karpenter for AWS `NewInstanceType`).

A node that boots with less than was planned for it leaves pods pending, so every figure here is what the node will say
itself: amounts are integers, rounded where and as the reference rounds them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from joinery.apis.ec2nodeclass import EC2NodeClassSpec, KubeletConfiguration
from joinery.apis.quantity import Resources, amount, amounts, total
from joinery.cloudprovider.catalog.description import Description
from joinery.cloudprovider.instancetypes.families import FAMILIES, Family
from joinery.cloudprovider.instancetypes.tables import branch_interfaces
from joinery.state.offerings import EFA

MIB = 1 << 20
PODS_WITHOUT_ENI_LIMIT = 110
_CPU_TIERS = ((1000, 0.06), (1000, 0.01), (2000, 0.005), (None, 0.0025))


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """What of a class and of the settings decides capacity, worked out once for all types.

    ``vm_memory_overhead`` is the fraction of memory that the hypervisor keeps; ``reserved_enis`` the interfaces that the
    VPC CNI's custom networking takes.
    """

    family: Family
    kubelet: KubeletConfiguration
    spec: EC2NodeClassSpec
    storage: int
    system_reserved: Resources
    kube_reserved: Resources
    vm_memory_overhead: float
    reserved_enis: int
    efa_only: int | None
    efa_only_on_first_card: int


def node_settings(spec: EC2NodeClassSpec, *, vm_memory_overhead: float, reserved_enis: int) -> NodeSettings:
    family, kubelet = FAMILIES[spec.family], spec.kubelet or KubeletConfiguration()
    efa = [nic for nic in spec.network_interfaces or () if nic.interface_type == "efa-only"]
    return NodeSettings(
        family=family,
        kubelet=kubelet,
        spec=spec,
        storage=_storage(spec, family),
        system_reserved=amounts(kubelet.system_reserved),
        kube_reserved=amounts(kubelet.kube_reserved),
        vm_memory_overhead=vm_memory_overhead,
        reserved_enis=reserved_enis,
        efa_only=None if spec.network_interfaces is None else len(efa),
        efa_only_on_first_card=sum(nic.network_card_index == 0 for nic in efa),
    )


def _storage(spec: EC2NodeClassSpec, family: Family) -> int:
    """Bytes of the device that holds pods' ephemeral storage; the first rule that says something wins (1.4)."""
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


def capacity(kind: Description, settings: NodeSettings) -> dict[str, int]:
    """What the node reports as capacity; resources it has none of are left out."""
    found = {
        "cpu": kind.v_cpu_info.default_v_cpus * 1000,
        "memory": _memory(kind, settings.vm_memory_overhead),
        "ephemeral-storage": _ephemeral(kind, settings),
        "pods": _pods(kind, settings),
    }
    extended = _extended(kind, settings)
    return found | {name: value for name, value in extended.items() if value}


def allocatable(kind: Description, capacity: Resources, settings: NodeSettings) -> dict[str, int]:
    """Capacity less what kubelet, the system and eviction keep. Negative where nothing is left."""
    kept = _overhead(kind, capacity, settings)
    return {name: value - kept.get(name, 0) for name, value in capacity.items()}


def _memory(kind: Description, overhead: float) -> int:
    # Gravitons set 64 MiB aside for the contiguous memory allocator.
    size = kind.memory_info.size_in_mib - (64 if kind.arch == "arm64" else 0)
    return (size - ceil(size * overhead)) * MIB


def _ephemeral(kind: Description, settings: NodeSettings) -> int:
    store = kind.instance_storage_info
    if settings.spec.instance_store_policy == "RAID0" and store and store.total_size_in_gb:
        return store.total_size_in_gb * 10**9
    return settings.storage


def _eni_limited_pods(kind: Description, settings: NodeSettings, reserved: int) -> int:
    usable = kind.default_card_interfaces - reserved - settings.efa_only_on_first_card
    return usable * (kind.network_info.ipv4_addresses_per_interface - 1) + 2 if usable > 0 else 0


def _pods(kind: Description, settings: NodeSettings) -> int:
    kubelet, family = settings.kubelet, settings.family
    if kubelet.max_pods is not None:
        count = kubelet.max_pods
    elif family.eni_density:
        count = _eni_limited_pods(kind, settings, settings.reserved_enis)
    else:
        count = PODS_WITHOUT_ENI_LIMIT
    if kubelet.pods_per_core and family.pods_per_core:
        count = min(count, kubelet.pods_per_core * kind.v_cpu_info.default_v_cpus)
    return count


def _extended(kind: Description, settings: NodeSettings) -> dict[str, int]:
    efa_info = kind.network_info.efa_info
    efa = settings.efa_only if settings.efa_only is not None else efa_info.maximum_efa_interfaces if efa_info else 0
    found = {
        "vpc.amazonaws.com/pod-eni": branch_interfaces(kind.instance_type),
        EFA: efa,
    }
    if kind.gpu_info or kind.neuron_info:
        found |= _accelerators(kind)
    if settings.family.windows_build and kind.arch == "amd64":
        found["vpc.amazonaws.com/PrivateIPv4Address"] = kind.network_info.ipv4_addresses_per_interface - 1
    return found


def _accelerators(kind: Description) -> dict[str, int]:
    makers = (("NVIDIA", "nvidia.com/gpu"), ("AMD", "amd.com/gpu"), ("Habana", "habana.ai/gaudi"))
    found = {resource: sum(gpu.count for gpu in kind.gpus if gpu.manufacturer == maker) for maker, resource in makers}
    if kind.neurons:
        first = kind.neurons[0]
        found["aws.amazon.com/neuron"] = sum(device.count for device in kind.neurons)
        found["aws.amazon.com/neuroncore"] = first.count * first.core_info.count
    return found


def _overhead(kind: Description, capacity: Resources, settings: NodeSettings) -> Mapping[str, int]:
    kube = _kube_reserved(kind, capacity, settings) | dict(settings.kube_reserved)
    kept = total((kube, settings.system_reserved))
    for name, threshold in _eviction(capacity, settings.kubelet.eviction_hard).items():
        kept[name] = kept.get(name, 0) + threshold
    return kept


def _kube_reserved(kind: Description, capacity: Resources, settings: NodeSettings) -> dict[str, int]:
    pods = _eni_limited_pods(kind, settings, 0) if settings.family.eni_memory else capacity["pods"]
    return {"cpu": _reserved_cpu(capacity["cpu"]), "memory": (11 * pods + 255) * MIB, "ephemeral-storage": 1 << 30}


def _reserved_cpu(millicores: int) -> int:
    """6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % above; each cut to whole millicores."""
    kept = 0
    for size, share in _CPU_TIERS:
        part = millicores if size is None else min(millicores, size)
        kept += int(part * share)
        millicores -= part
    return kept


def _eviction(capacity: Resources, hard: Mapping[str, str]) -> dict[str, int]:
    return {
        "memory": _threshold("memory", capacity["memory"], hard.get("memory.available", "100Mi")),
        "ephemeral-storage": _threshold(
            "ephemeral-storage", capacity["ephemeral-storage"], hard.get("nodefs.available", "10%")
        ),
    }


def _threshold(resource: str, size: int, rule: str) -> int:
    if not rule.endswith("%"):
        return amount(resource, rule)
    percent = float(rule[:-1])
    # 100 % is kubelet's way of saying: no such threshold.
    return 0 if percent == 100 else ceil(size / 100 * percent)
