"""The devices that drivers will publish of a node (``resource.k8s.io``), as far as they are known before there is one.

NVIDIA's driver for GPUs and dranet, for Elastic Fabric Adapters, publish the same of every instance of a type
(Karpenter's provider for AWS 1.15.1, gates DRANVIDIAGPU and DRAEFA). Whether a driver is installed need not be said:
who asks for its devices names a DeviceClass, which comes with it.
"""

from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec
from msgspec.structs import replace

from joinery.objects.karpenter.gpu_sharing import SHARINGS, is_sharing
from joinery.objects.kubernetes.decoding import convert
from joinery.objects.kubernetes.dynamic_resources import (
    Device,
    DeviceCapacity,
    RequestPolicy,
    ResourcePool,
    ResourceSliceSpec,
    ValidRange,
)

_NVIDIA, _DRANET = "gpu.nvidia.com", "dra.net"
#: Names of devices, as the drivers number them. dranet names them by their address, which only the node knows.
_PREFIXES = {_NVIDIA: "gpu", _DRANET: "efa"}
#: What all GPUs of a node have in common once it is there.
_ON_NODE = {name: {"onNode": ""} for name in ("driverVersion", "cudaDriverVersion")}

#: Which of a driver's devices (index), and how many of each.
_Counted = tuple[tuple[int, int], ...]


class _Devices(msgspec.Struct, frozen=True):
    """``devices``: each that differs from others; ``types``: by instance type which of them, and how many of each."""

    devices: list[dict[str, Any]]
    types: dict[str, _Counted]


def slices_of(instance_type: str, sharing: str = "") -> tuple[ResourceSliceSpec, ...]:
    """What will be published of a node of the type. ``sharing``: the value of ``labels.GPU_SHARING``.

    The object is the same for all types with the same devices.
    """
    numbers = {driver: devices.types.get(instance_type) for driver, devices in _table().items()}
    return _slices(tuple((driver, counted) for driver, counted in numbers.items() if counted), sharing)


@lru_cache(maxsize=1)
def _table() -> dict[str, _Devices]:
    data = resources.files("joinery.gateways.ec2.instancetypes").joinpath("data", "devices.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, _Devices])


@lru_cache(maxsize=256)
def _slices(numbers: tuple[tuple[str, _Counted], ...], sharing: str) -> tuple[ResourceSliceSpec, ...]:
    return tuple(_slice(driver, counted, sharing) for driver, counted in numbers)


def _slice(driver: str, counted: _Counted, sharing: str) -> ResourceSliceSpec:
    kinds = _table()[driver].devices
    said = [kinds[number] for number, count in counted for _ in range(count)]
    devices = [replace(convert(one, Device), name=f"{_PREFIXES[driver]}-{number}") for number, one in enumerate(said)]
    if driver == _NVIDIA:
        devices = [_shared(replace(one, attributes={**one.attributes, **_ON_NODE}), sharing) for one in devices]
    return ResourceSliceSpec(driver=driver, pool=ResourcePool(name=_PREFIXES[driver]), devices=devices)


def _shared(device: Device, sharing: str) -> Device:
    """A GPU as the driver publishes it where claims may share it: by its memory, and by a number of shares.

    With ``memory`` who asks for no amount gets all, with ``unlimited`` or a number of shares none of the memory.
    """
    memory = device.capacity.get("memory")
    if memory is None or not is_sharing(sharing):
        return device
    least, default = ("1Mi", memory.value) if sharing == "memory" else ("0", "0")
    capacity = {**device.capacity, "memory": _capacity(memory.value, default, least, "1Mi")}
    if sharing not in SHARINGS:
        capacity["shares"] = _capacity(sharing, "1", "1", "1")
    return replace(device, allow_multiple_allocations=True, capacity=capacity)


def _capacity(value: str | float, default: str | float, least: str, step: str) -> DeviceCapacity:
    policy = RequestPolicy(default=default, valid_range=ValidRange(min=least, max=value, step=step))
    return DeviceCapacity(value=value, request_policy=policy)
