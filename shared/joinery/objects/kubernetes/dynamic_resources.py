"""Dynamic resource allocation (``resource.k8s.io/v1``): what drivers publish, and what pods claim of it.

Structs as in ``core``. A **ResourceSlice** lists devices of a node, or of several. A **ResourceClaim** asks for some,
by **DeviceClasses** and expressions over what devices say of themselves; its status says which ones it got.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from joinery.objects.kubernetes.core import NodeSelector, ObjectMeta, Toleration, _Object

Quantity = str | int | float


class ValidRange(_Object, frozen=True):
    """Which amounts of a capacity may be asked for: from ``min``, in steps, to ``max``."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class RequestPolicy(_Object, frozen=True):
    """``default``: what who asks for no amount takes. Amounts are rounded up to a valid one."""

    default: Quantity | None = None
    valid_values: list[Quantity] = []
    valid_range: ValidRange | None = None

    @property
    def amounts(self) -> list[Quantity]:
        """All that it names. A file may say anything, so who reads it has to read each of them."""
        ends = self.valid_range or ValidRange()
        return [one for one in (self.default, *self.valid_values, ends.min, ends.max, ends.step) if one is not None]


class DeviceCapacity(_Object, frozen=True):
    """How much of something a device has."""

    value: Quantity = 0
    request_policy: RequestPolicy | None = None


class Counter(_Object, frozen=True):
    """An amount of what devices of a pool share."""

    value: Quantity = 0


class CounterConsumption(_Object, frozen=True):
    """What a device takes of counters that its pool's devices share."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class CounterSet(_Object, frozen=True):
    """Counters that devices of a pool share, such as the memory of a GPU that is cut into parts."""

    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceTaint(_Object, frozen=True):
    """What keeps claims without a toleration from a device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Device(_Object, frozen=True):
    """One device. ``attributes``: by name a map with one member, the value's kind: ``string``, ``int``, ``bool`` or
    ``version``, a list of such, or in templates ``onNode``: a value that all devices of a node share once it is there.
    """

    name: str = ""
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[CounterConsumption] = []
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    allow_multiple_allocations: bool | None = None
    binding_conditions: list[str] = []
    taints: list[DeviceTaint] = []


class ResourcePool(_Object, frozen=True):
    """Whose devices a slice lists. Of a pool only the newest generation counts, and that once all of it is there."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(_Object, frozen=True):
    """Where its devices can be used: on one node, on those that a selector matches, or on all."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(_Object, frozen=True):
    """Devices that a driver has published."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class CELSelector(_Object, frozen=True):
    """An expression over ``device`` (``device_expressions``)."""

    expression: str = ""


class DeviceSelector(_Object, frozen=True):
    """What a device must be like."""

    cel: CELSelector | None = None


class CapacityRequirements(_Object, frozen=True):
    """How much of a device's capacities is asked for."""

    requests: dict[str, Quantity] = {}


class DeviceAlternative(_Object, frozen=True):
    """So many devices of a class, or all that there are."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool | None = None
    tolerations: list[Toleration] = []
    capacity: CapacityRequirements | None = None


class DeviceRequest(_Object, frozen=True):
    """``exactly`` what is asked for, or the first of several that there is."""

    name: str = ""
    exactly: DeviceAlternative | None = None
    first_available: list[DeviceAlternative] = []


class DeviceConstraint(_Object, frozen=True):
    """What the devices of some requests, or of all, must have in common, or must not."""

    requests: list[str] = []
    match_attribute: str = ""
    distinct_attribute: str = ""


class DeviceClaim(_Object, frozen=True):
    """The devices that are asked for."""

    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []


class ResourceClaimSpec(_Object, frozen=True):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(_Object, frozen=True):
    """A device that a claim has. ``share_id``: which of several shares of it; empty for all of it."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str = msgspec.field(default="", name="shareID")
    consumed_capacity: dict[str, Quantity] = {}

    @property
    def is_share(self) -> bool:
        """Whether other claims may have it too: as it was when the claim got it, whatever its driver says now."""
        return bool(self.share_id or self.consumed_capacity)


class AllocatedDevices(_Object, frozen=True):
    """The devices that a claim has."""

    results: list[AllocatedDevice] = []


class Allocation(_Object, frozen=True):
    """``node_selector``: where the devices can be used; None for everywhere."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class Consumer(_Object, frozen=True):
    """Who may use a claim's devices; ``resource`` is ``pods``."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(_Object, frozen=True):
    """What a claim has, and who uses it."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] = []


class ResourceClaim(_Object, frozen=True):
    """A claim for devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"


class ResourceClaimTemplateSpec(_Object, frozen=True):
    """What the claims made from a template are like."""

    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(_Object, frozen=True):
    """What each pod that names it gets a claim of its own from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"


class DeviceClassSpec(_Object, frozen=True):
    """``extended_resource_name``: a resource that pods may ask for in place of a claim for one device of the class."""

    selectors: list[DeviceSelector] = []
    extended_resource_name: str = ""


class DeviceClass(_Object, frozen=True):
    """What devices of a class are like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


def expressions(selectors: list[DeviceSelector]) -> Iterator[str]:
    """Those of the selectors."""
    return (selector.cel.expression for selector in selectors if selector.cel is not None)
