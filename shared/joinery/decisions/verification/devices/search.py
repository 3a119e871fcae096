"""Whether some assignment of devices serves all claims of a node's pods."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from typing import Any

from msgspec.structs import replace as with_fields

from joinery.objects.kubernetes.cel_tokens import ExpressionError
from joinery.objects.kubernetes.device_expressions import compiled, device_of, qualified
from joinery.objects.kubernetes.device_functions import Version
from joinery.objects.kubernetes.dynamic_resources import (
    Device,
    DeviceAlternative,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceTaint,
    RequestPolicy,
    ResourceClaimSpec,
    ResourceSliceSpec,
    expressions,
)
from joinery.objects.kubernetes.quantity import parse

#: Driver, pool and name.
Key = tuple[str, str, str]
CounterKey = tuple[str, str, str, str]
_MOST_STEPS = 100_000
_MOST_OF_A_CLAIM = 32
_KEEPING = ("NoSchedule", "NoExecute")


@dataclass(eq=False)
class Ask:
    """A claim that is still to be served, with what it asks for."""

    spec: ResourceClaimSpec
    given: list[tuple[str, "SearchedDevice"]] = field(default_factory=list)


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
        return device_of(self.key[0], self.attributes, amounts, is_shared=bool(self.said.allow_multiple_allocations))

    @property
    def is_whole(self) -> bool:
        """Whether one claim has all of it, or would."""
        return self.is_used or not self.said.allow_multiple_allocations

    @cached_property
    def likeness(self) -> str:
        return repr((self.key[:2], _nameless(self.said)))


def _nameless(device: Device) -> Device:
    """The device without its name: what claims see of it."""
    return with_fields(device, name="")


class Search:
    """Which devices the claims of a node's pods get: any assignment will do.

    ``used``: by device that claims have, how much of its capacities; ``whole``: those that no other claim may have.
    ``slices``: the node's own; ``elsewhere``: devices of several nodes that it can use.
    """

    def __init__(
        self,
        classes: Mapping[str, DeviceClass],
        used: Mapping[Key, Mapping[str, Decimal]],
        whole: Container[Key],
        slices: Sequence[ResourceSliceSpec],
        elsewhere: Iterable[tuple[ResourceSliceSpec, Device]],
    ) -> None:
        self._classes = classes
        own = [(spec, device, False) for spec in slices for device in spec.devices]
        others = [(spec, device, True) for spec, device in elsewhere]
        self._left = {
            (spec.driver, spec.pool.name, counters.name, name): _amount(counter.value)
            for spec in (*slices, *(spec for spec, _, _ in others))
            for counters in spec.shared_counters
            for name, counter in counters.counters.items()
        }
        self.devices = list(self._readable((*own, *others)))
        self._of_ways: dict[int, list[SearchedDevice]] = {}
        self._steps = _MOST_STEPS
        for device in self.devices:
            if device.key in used:
                device.taken = dict(used[device.key])
                device.is_used = device.key in whole or not device.said.allow_multiple_allocations
                device.sharing = 1 if device.said.allow_multiple_allocations else 0
                for counter, amount in device.counters:
                    self._left[counter] = self._left.get(counter, Decimal(0)) - amount

    def _readable(self, listed: Iterable[tuple[ResourceSliceSpec, Device, bool]]) -> Iterator[SearchedDevice]:
        """The devices without those that have an amount which is none."""
        for spec, said, is_elsewhere in listed:
            with suppress(ValueError):
                yield self._device(spec, said, is_elsewhere)

    def _device(self, spec: ResourceSliceSpec, said: Device, is_elsewhere: bool) -> SearchedDevice:
        attributes, texts = dict[str, Any](), dict[str, tuple[str, str]]()
        for name, value in said.attributes.items():
            kind, member = next(iter(value.items()), ("", None))
            full = qualified(spec.driver, name)
            if kind:
                texts[full] = kind, str(member)
                attributes[full] = (
                    Version.of(str(member)) if kind == "version" else (full,) if kind == "onNode" else member
                )
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

    def serves(self, asked: Sequence[Ask]) -> bool:
        """Whether all of them get what they ask for. Who has the least choice comes first: it ends the search soon."""
        for ask in asked:
            ask.given.clear()  # of another instance type
        todo = [(ask, request) for ask in asked for request in ask.spec.devices.requests]
        return self._next(sorted(todo, key=lambda one: self._choice(one[1])), 0)

    def _choice(self, request: DeviceRequest) -> int:
        return sum(len(self._selected(way)) for _, way in _ways(request))

    def _next(self, todo: Sequence[tuple[Ask, DeviceRequest]], at: int) -> bool:
        if at == len(todo):
            return True
        ask, request = todo[at]
        for name, way in _ways(request):
            is_all = way.allocation_mode == "All"
            fitting = self._selected(way)
            if is_all:  # of what claims share, those that have room
                fitting = [it for it in fitting if it.is_whole or self._amounts(way, it) is not None]
            if is_all and not all(_tolerated(way, device) for device in fitting):
                continue
            fitting = [device for device in fitting if _tolerated(way, device)]
            count = len(fitting) if is_all else way.count or 1  # the API server's default
            if 0 < count <= _MOST_OF_A_CLAIM - len(ask.given):
                is_served = self._fill(ask, name, way, fitting, count, lambda: self._next(todo, at + 1))
                if is_served:
                    return True
        return False

    def _fill(
        self,
        ask: Ask,
        name: str,
        way: DeviceAlternative,
        fitting: Sequence[SearchedDevice],
        count: int,
        then: Callable[[], bool],
    ) -> bool:
        if count == 0:
            return then()
        tried = set[str]()
        for index in range(len(fitting) - count + 1):
            device = fitting[index]
            self._steps -= 1
            if self._steps < 0:
                return False
            amounts = self._amounts(way, device)
            is_given = any(other is device for _, other in ask.given)
            if is_given and not device.said.allow_multiple_allocations:
                continue
            if device.likeness in tried or amounts is None or not _agree(ask, name, device):
                continue
            if not device.is_used and not device.said.allow_multiple_allocations:
                tried.add(device.likeness)
            self._move(way, device, amounts, 1)
            ask.given.append((name, device))
            if self._fill(ask, name, way, fitting[index + 1 :], count - 1, then):
                return True
            ask.given.pop()
            self._move(way, device, amounts, -1)
        return False

    def _selected(self, way: DeviceAlternative) -> list[SearchedDevice]:
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

    def _amounts(self, way: DeviceAlternative, device: SearchedDevice) -> Mapping[str, Decimal] | None:
        """What the device would give of its capacities; None where it may not be given."""
        if way.admin_access:
            return {}
        if device.is_used:
            return None
        # Whatever claims share takes of counters once.
        needed = device.counters if not device.sharing else ()
        if any(amount > self._left.get(counter, Decimal(-1)) for counter, amount in needed):
            return None
        if not device.said.allow_multiple_allocations:
            return {}
        asked = {name: parse(text) for name, text in (way.capacity.requests if way.capacity else {}).items()}
        amounts = {}
        for name, (value, policy) in device.capacity.items():
            amount = _granted(asked.get(name), value, policy)
            if amount is None or device.taken.get(name, Decimal(0)) + amount > value:
                return None
            amounts[name] = amount
        return amounts

    def _move(self, way: DeviceAlternative, device: SearchedDevice, amounts: Mapping[str, Decimal], sign: int) -> None:
        if way.admin_access:
            return
        was_shared = device.sharing > 0
        if not device.said.allow_multiple_allocations:
            device.is_used = sign > 0
        else:
            device.sharing += sign
        for name, amount in amounts.items():
            device.taken[name] = device.taken.get(name, Decimal(0)) + sign * amount
        if not device.said.allow_multiple_allocations or was_shared != (device.sharing > 0):
            for counter, amount in device.counters:
                self._left[counter] -= sign * amount


def _ways(request: DeviceRequest) -> Iterator[tuple[str, DeviceAlternative]]:
    """What may serve it, each with the name that constraints know it by, the best first."""
    if request.exactly:
        yield request.name, request.exactly
    yield from ((f"{request.name}/{way.name}", way) for way in request.first_available)


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


def _agree(ask: Ask, name: str, device: SearchedDevice) -> bool:
    """Whether the device keeps the claim's constraints beside those that it was given."""
    return all(_keeps(ask, constraint, name, device) for constraint in ask.spec.devices.constraints)


def _keeps(ask: Ask, constraint: DeviceConstraint, name: str, device: SearchedDevice) -> bool:
    def is_meant(request: str) -> bool:
        return not constraint.requests or not {request, request.split("/")[0]}.isdisjoint(constraint.requests)

    if not is_meant(name):
        return True
    attribute = constraint.match_attribute or constraint.distinct_attribute
    if attribute not in device.texts:
        return False
    others = [other.texts.get(attribute) for request, other in ask.given if is_meant(request)]
    is_same = [other == device.texts[attribute] for other in others]
    return all(is_same) if constraint.match_attribute else not any(is_same)


def _tolerated(way: DeviceAlternative, device: SearchedDevice) -> bool:
    return all(_tolerates(way, taint) for taint in device.said.taints if taint.effect in _KEEPING)


def _tolerates(way: DeviceAlternative, taint: DeviceTaint) -> bool:
    return any(
        one.key in ("", taint.key)
        and one.effect in ("", taint.effect)
        and (one.operator == "Exists" or one.value == taint.value)
        for one in way.tolerations
    )
