"""The devices that a node's pods may get, and what is taken of them while a search tries."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from typing import Any

from joinery.objects.kubernetes.cel_tokens import ExpressionError
from joinery.objects.kubernetes.device_expressions import compiled, device_of, qualified
from joinery.objects.kubernetes.device_functions import Version
from joinery.objects.kubernetes.dynamic_resources import (
    Device,
    DeviceAlternative,
    DeviceClass,
    DeviceTaint,
    RequestPolicy,
    ResourceSliceSpec,
    expressions,
)
from joinery.objects.kubernetes.quantity import parse

#: Driver, pool and name.
Key = tuple[str, str, str]
CounterKey = tuple[str, str, str, str]
_KEEPING = ("NoSchedule", "NoExecute")


@dataclass(eq=False)
class SearchedDevice:
    key: Key
    said: Device
    attributes: Mapping[str, Any]
    texts: Mapping[str, tuple[str, str]]
    capacity: Mapping[str, tuple[Decimal, RequestPolicy | None]]
    counters: Sequence[tuple[CounterKey, Decimal]]
    is_elsewhere: bool
    is_used: bool = False
    sharing: int = 0
    taken: dict[str, Decimal] = field(default_factory=dict)

    @cached_property
    def view(self) -> Mapping[str, Any]:
        amounts = {name: value for name, (value, _) in self.capacity.items()}
        return device_of(self.key[0], self.attributes, amounts, is_shared=self.is_shared)

    @property
    def is_shared(self) -> bool:
        """Whether several claims may have it."""
        return bool(self.said.allow_multiple_allocations)

    @property
    def is_whole(self) -> bool:
        """Whether one claim has all of it, or would."""
        return self.is_used or not self.is_shared


class Inventory:
    """What there is. ``used``: by device that claims have, how much of its capacities; ``whole``: those that no other
    claim may have. ``slices``: the node's own; ``elsewhere``: devices of several nodes that it can use. ``is_there``:
    whether its own are published: those that a type promises are nobody's yet, whatever they are called.
    """

    def __init__(
        self,
        classes: Mapping[str, DeviceClass],
        used: Mapping[Key, Mapping[str, Decimal]],
        whole: Container[Key],
        slices: Sequence[ResourceSliceSpec],
        elsewhere: Iterable[tuple[ResourceSliceSpec, Device]],
        *,
        is_there: bool = True,
    ) -> None:
        self._classes = classes
        own = [(spec, device, False) for spec in slices for device in spec.devices]
        others = [(spec, device, True) for spec, device in elsewhere]
        self.left = {
            (spec.driver, spec.pool.name, counters.name, name): _amount(counter.value)
            for spec in (*slices, *(spec for spec, _, _ in others))
            for counters in spec.shared_counters
            for name, counter in counters.counters.items()
        }
        self.devices = list(_readable((*own, *others)))
        self._of_ways: dict[int, list[SearchedDevice]] = {}
        for device in self.devices:
            if device.key in used and (is_there or device.is_elsewhere):
                device.taken = dict(used[device.key])
                device.is_used = device.key in whole or not device.is_shared
                device.sharing = 1 if device.is_shared else 0
                for counter, amount in device.counters:
                    self.left[counter] = self.left.get(counter, Decimal(0)) - amount

    def selected(self, way: DeviceAlternative) -> list[SearchedDevice]:
        """The devices that are what is asked for, taken or not. Read once: the search comes back to a request often."""
        if id(way) not in self._of_ways:
            self._of_ways[id(way)] = [device for device in self.devices if self._selects(way, device)]
        return self._of_ways[id(way)]

    def _selects(self, way: DeviceAlternative, device: SearchedDevice) -> bool:
        device_class = self._classes.get(way.device_class_name)
        if device_class is None:
            return False
        try:
            selectors = (*expressions(device_class.spec.selectors), *expressions(way.selectors))
            is_selected = all(compiled(text)(device.view) for text in selectors)
        except ExpressionError:
            return False
        wanted = way.capacity.requests if way.capacity else {}
        has = {name: value for name, (value, _) in device.capacity.items()}
        return bool(is_selected) and all(has.get(name, Decimal(-1)) >= parse(text) for name, text in wanted.items())

    def fitting(self, way: DeviceAlternative) -> Sequence[SearchedDevice]:
        """Of these, those that it tolerates; of all that there are, none if it does not tolerate one."""
        chosen = self.selected(way)
        if way.allocation_mode == "All":  # of what claims share, those that have room
            chosen = [it for it in chosen if it.is_whole or self.amounts(way, it) is not None]
            return chosen if all(tolerated(way, device) for device in chosen) else ()
        return [device for device in chosen if tolerated(way, device)]

    def amounts(self, way: DeviceAlternative, device: SearchedDevice) -> Mapping[str, Decimal] | None:
        """What the device would give of its capacities; None where it may not be given."""
        if way.admin_access:
            return {}
        if device.is_used:
            return None
        # Whatever claims share takes of counters once.
        needed = device.counters if not device.sharing else ()
        if any(amount > self.left.get(counter, Decimal(-1)) for counter, amount in needed):
            return None
        if not device.is_shared:
            return {}
        asked = {name: parse(text) for name, text in (way.capacity.requests if way.capacity else {}).items()}
        amounts = {}
        for name, (value, policy) in device.capacity.items():
            amount = _granted(asked.get(name), value, policy)
            if amount is None or device.taken.get(name, Decimal(0)) + amount > value:
                return None
            amounts[name] = amount
        return amounts

    def move(self, device: SearchedDevice, amounts: Mapping[str, Decimal], sign: int) -> None:
        """Give the device to a claim (1), or take it back (-1)."""
        was_shared = device.sharing > 0
        if not device.is_shared:
            device.is_used = sign > 0
        else:
            device.sharing += sign
        for name, amount in amounts.items():
            device.taken[name] = device.taken.get(name, Decimal(0)) + sign * amount
        if not device.is_shared or was_shared != (device.sharing > 0):
            for counter, amount in device.counters:
                self.left[counter] -= sign * amount


def _readable(listed: Iterable[tuple[ResourceSliceSpec, Device, bool]]) -> Iterator[SearchedDevice]:
    """The devices without those that have an amount which is none."""
    for spec, said, is_elsewhere in listed:
        with suppress(ValueError):
            yield _read(spec, said, is_elsewhere)


def _read(spec: ResourceSliceSpec, said: Device, is_elsewhere: bool) -> SearchedDevice:
    attributes, texts = dict[str, Any](), dict[str, tuple[str, str]]()
    for name, value in said.attributes.items():
        kind, member = next(iter(value.items()), ("", None))
        full = qualified(spec.driver, name)
        if kind:
            texts[full] = kind, str(member)
            attributes[full] = Version.of(str(member)) if kind == "version" else (full,) if kind == "onNode" else member
    for one in said.capacity.values():
        for amount in one.request_policy.amounts if one.request_policy else ():
            parse(amount)  # the device is left out if it is none
    return SearchedDevice(
        key=(spec.driver, spec.pool.name, said.name),
        said=said,
        attributes=attributes,
        texts=texts,
        capacity={name: (parse(one.value), one.request_policy) for name, one in said.capacity.items()},
        counters=[
            ((spec.driver, spec.pool.name, taken.counter_set, name), parse(counter.value))
            for taken in said.consumes_counters
            for name, counter in taken.counters.items()
        ],
        is_elsewhere=is_elsewhere,
    )


def _amount(text: str | int | float) -> Decimal:
    try:
        return parse(text)
    except ValueError:
        return Decimal(0)


def _granted(asked: Decimal | None, value: Decimal, policy: RequestPolicy | None) -> Decimal | None:
    """The amount that a request gets (``CapacityRequestPolicy``); None where no valid one is enough."""
    if asked is None:
        return value if policy is None or policy.default is None else parse(policy.default)
    if policy is None:
        return asked
    if policy.valid_values:
        return min((parse(one) for one in policy.valid_values if parse(one) >= asked), default=None)
    if policy.valid_range is None:
        return asked
    lowest, step = parse(policy.valid_range.min or 0), parse(policy.valid_range.step or 0)
    granted = max(asked, lowest)
    if step:
        steps = (granted - lowest) / step
        granted = lowest + step * steps.to_integral_value(ROUND_CEILING)
    return granted if policy.valid_range.max is None or granted <= parse(policy.valid_range.max) else None


def tolerated(way: DeviceAlternative, device: SearchedDevice) -> bool:
    """Whether what is asked for tolerates all of the device's taints."""
    return all(_tolerates(way, taint) for taint in device.said.taints if taint.effect in _KEEPING)


def _tolerates(way: DeviceAlternative, taint: DeviceTaint) -> bool:
    return any(
        one.key in ("", taint.key)
        and one.effect in ("", taint.effect)
        and (one.operator == "Exists" or one.value == taint.value)
        for one in way.tolerations
    )
