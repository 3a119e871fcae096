"""The labels that a node of an instance type will carry (Karpenter, Well-Known Labels)."""

import re

from joinery.apis import labels
from joinery.cloudprovider.catalog.description import Description
from joinery.cloudprovider.instancetypes.families import Family
from joinery.cloudprovider.instancetypes.tables import network_bandwidth

_NAME = re.compile(r"^([a-z]+)(?:-[0-9]+tb)?([0-9]+)")
_AWS = labels.AWS_GROUP
_TENANCIES = (labels.SHARED_TENANCY, labels.DEDICATED)

Labels = dict[str, tuple[str, ...]]


def type_labels(kind: Description, family: Family, region: str) -> Labels:
    """All labels that the type decides; zones and capacity types follow from the offerings."""
    found = {
        labels.INSTANCE_TYPE: kind.instance_type,
        labels.ARCH: kind.arch,
        labels.REGION: region,
        **_name_labels(kind.instance_type),
        **_hardware_labels(kind),
        **_storage_and_network(kind),
    }
    if kind.gpus:
        found |= _gpu_labels(kind)
    if kind.neuron_info or kind.inference_accelerator_info:
        found |= _accelerator_labels(kind)
    return {key: (value,) for key, value in found.items()} | _system_labels(kind, family)


def _system_labels(kind: Description, family: Family) -> Labels:
    tenancy: Labels = {labels.TENANCY: _TENANCIES}
    if not family.windows_build:
        return tenancy | {labels.OS: ("linux",)}
    # There is no Windows for arm64: a type that can run no system is compatible with nothing.
    system: tuple[str, ...] = ("windows",) if kind.arch == "amd64" else ()
    return tenancy | {labels.OS: system, labels.WINDOWS_BUILD: (family.windows_build,)}


def _name_labels(name: str) -> dict[str, str]:
    family, _, size = name.partition(".")
    found = {
        f"{_AWS}/instance-family": family,
        f"{_AWS}/instance-size": size,
        f"{_AWS}/instance-capability-flex": "true" if "-flex" in family else "false",
    }
    if match := _NAME.match(name):
        found[f"{_AWS}/instance-category"], found[f"{_AWS}/instance-generation"] = match.groups()
    return found


def _hardware_labels(kind: Description) -> dict[str, str]:
    processor = kind.processor_info
    return {
        f"{_AWS}/instance-cpu": str(kind.v_cpu_info.default_v_cpus),
        f"{_AWS}/instance-cpu-manufacturer": _kebab(processor.manufacturer),
        f"{_AWS}/instance-cpu-sustained-clock-speed-mhz": str(round(processor.sustained_clock_speed_in_ghz * 1000)),
        f"{_AWS}/instance-memory": str(kind.memory_info.size_in_mib),
        f"{_AWS}/instance-hypervisor": kind.hypervisor,
        f"{_AWS}/nitro-sandbox": "true" if kind.nitro_enclaves_support == "supported" else "false",
    }


def _storage_and_network(kind: Description) -> dict[str, str]:
    encrypted = kind.network_info.encryption_in_transit_supported
    found = {f"{_AWS}/instance-encryption-in-transit-supported": "true" if encrypted else "false"}
    ebs = kind.ebs_info
    if ebs.ebs_optimized_support == "default" and ebs.ebs_optimized_info:
        found[f"{_AWS}/instance-ebs-bandwidth"] = str(ebs.ebs_optimized_info.maximum_bandwidth_in_mbps)
    if (bandwidth := network_bandwidth(kind.instance_type)) is not None:
        found[f"{_AWS}/instance-network-bandwidth"] = str(bandwidth)
    store = kind.instance_storage_info
    if store and store.nvme_support != "unsupported":
        found[f"{_AWS}/instance-local-nvme"] = str(store.total_size_in_gb)
    return found


def _gpu_labels(kind: Description) -> dict[str, str]:
    if len(kind.gpus) != 1:
        return {}
    gpu = kind.gpus[0]
    return {
        f"{_AWS}/instance-gpu-name": _kebab(gpu.name),
        f"{_AWS}/instance-gpu-manufacturer": _kebab(gpu.manufacturer),
        f"{_AWS}/instance-gpu-count": str(gpu.count),
        f"{_AWS}/instance-gpu-memory": str(gpu.memory_info.size_in_mib),
    }


def _accelerator_labels(kind: Description) -> dict[str, str]:
    if len(kind.neurons) == 1:
        device = kind.neurons[0]
        return _accelerator(device.name, "aws", device.count)
    inference = kind.inference_accelerator_info
    if not kind.neurons and inference and len(inference.accelerators) == 1:
        found = inference.accelerators[0]
        return _accelerator(found.name, found.manufacturer, found.count)
    return {}


def _accelerator(name: str, manufacturer: str, count: int) -> dict[str, str]:
    return {
        f"{_AWS}/instance-accelerator-name": _kebab(name),
        f"{_AWS}/instance-accelerator-manufacturer": _kebab(manufacturer),
        f"{_AWS}/instance-accelerator-count": str(count),
    }


def _kebab(name: str) -> str:
    return name.lower().replace(" ", "-")
