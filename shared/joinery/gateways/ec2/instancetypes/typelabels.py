"""The labels that a node of an instance type will carry (Karpenter, Well-Known Labels)."""

import re
from functools import lru_cache

from joinery.gateways.ec2.catalog.description import Description
from joinery.gateways.ec2.instancetypes.families import Family, network_bandwidth
from joinery.objects.karpenter import labels

#: Category and generation in a type's name: ``m7g.large``, ``u-6tb1.metal``.
_NAME = re.compile(r"^([a-z]+)(?:-[0-9]+tb)?([0-9]+)")
_AWS = labels.AWS_GROUP
_TENANCIES = (labels.SHARED_TENANCY, labels.DEDICATED)

Labels = dict[str, tuple[str, ...]]


def type_labels(description: Description, family: Family, region: str) -> Labels:
    """All labels that the type decides. Zones and capacity types follow from its offerings."""
    single = {
        labels.INSTANCE_TYPE: description.instance_type,
        labels.ARCH: description.arch,
        labels.REGION: region,
        **_name_labels(description.instance_type),
        **_hardware_labels(description),
        **_storage_and_network(description),
    }
    if description.gpus:
        single |= _gpu_labels(description)
    if description.neuron_info or description.inference_accelerator_info:
        single |= _accelerator_labels(description)
    return {key: _only(value) for key, value in single.items()} | _system_labels(description, family)


@lru_cache(maxsize=8192)
def _only(value: str) -> tuple[str, ...]:
    """A label's only value. Most are many types', and fewer objects are less work for the garbage collector."""
    return (value,)


def _system_labels(description: Description, family: Family) -> Labels:
    tenancy: Labels = {labels.TENANCY: _TENANCIES}
    if not family.windows_build:
        return tenancy | {labels.OS: ("linux",)}
    # There is no Windows for arm64: a type that can run no system is compatible with nothing.
    system: tuple[str, ...] = ("windows",) if description.arch == "amd64" else ()
    return tenancy | {labels.OS: system, labels.WINDOWS_BUILD: (family.windows_build,)}


def _name_labels(name: str) -> dict[str, str]:
    family, _, size = name.partition(".")
    from_name = {
        f"{_AWS}/instance-family": family,
        f"{_AWS}/instance-size": size,
        f"{_AWS}/instance-capability-flex": "true" if "-flex" in family else "false",
    }
    if match := _NAME.match(name):
        from_name[f"{_AWS}/instance-category"], from_name[f"{_AWS}/instance-generation"] = match.groups()
    return from_name


def _hardware_labels(description: Description) -> dict[str, str]:
    processor = description.processor_info
    return {
        f"{_AWS}/instance-cpu": str(description.v_cpu_info.default_v_cpus),
        f"{_AWS}/instance-cpu-manufacturer": _kebab(processor.manufacturer),
        f"{_AWS}/instance-cpu-sustained-clock-speed-mhz": str(round(processor.sustained_clock_speed_in_ghz * 1000)),
        f"{_AWS}/instance-memory": str(description.memory_info.size_in_mib),
        f"{_AWS}/instance-hypervisor": description.hypervisor,
    }


def _storage_and_network(description: Description) -> dict[str, str]:
    encrypted = description.network_info.encryption_in_transit_supported
    present = {f"{_AWS}/instance-encryption-in-transit-supported": "true" if encrypted else "false"}
    ebs = description.ebs_info
    if ebs.ebs_optimized_support == "default" and ebs.ebs_optimized_info:
        present[f"{_AWS}/instance-ebs-bandwidth"] = str(ebs.ebs_optimized_info.maximum_bandwidth_in_mbps)
    if (bandwidth := network_bandwidth(description.instance_type)) is not None:
        present[f"{_AWS}/instance-network-bandwidth"] = str(bandwidth)
    store = description.instance_storage_info
    if store and store.nvme_support != "unsupported":
        present[f"{_AWS}/instance-local-nvme"] = str(store.total_size_in_gb)
    return present


def _gpu_labels(description: Description) -> dict[str, str]:
    parts = {labels.GPU_FRACTIONAL: "true"} if any(gpu.is_part for gpu in description.gpus) else {}
    # A type with several models of GPU has no label that would be true of all of them.
    if len(description.gpus) != 1:
        return parts
    gpu = description.gpus[0]
    return parts | {
        f"{_AWS}/instance-gpu-name": _kebab(gpu.name),
        f"{_AWS}/instance-gpu-manufacturer": _kebab(gpu.manufacturer),
        f"{_AWS}/instance-gpu-count": str(0 if gpu.is_part else gpu.shown),
        f"{_AWS}/instance-gpu-memory": str(gpu.memory_info.size_in_mib),
    }


def _accelerator_labels(description: Description) -> dict[str, str]:
    if len(description.neurons) == 1:
        device = description.neurons[0]
        return _accelerator(device.name, "aws", device.count)
    inference = description.inference_accelerator_info
    if not description.neurons and inference and len(inference.accelerators) == 1:
        device_kind = inference.accelerators[0]
        return _accelerator(device_kind.name, device_kind.manufacturer, device_kind.count)
    return {}


def _accelerator(name: str, manufacturer: str, count: int) -> dict[str, str]:
    return {
        f"{_AWS}/instance-accelerator-name": _kebab(name),
        f"{_AWS}/instance-accelerator-manufacturer": _kebab(manufacturer),
        f"{_AWS}/instance-accelerator-count": str(count),
    }


def _kebab(name: str) -> str:
    return name.lower().replace(" ", "-")
