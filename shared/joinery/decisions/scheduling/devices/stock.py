"""The devices of a node: as its drivers publish them, or as its instance type says that they will."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from msgspec.structs import replace as replace_fields

from joinery.decisions.scheduling.devices.needs import ALL, Needs, Wanted
from joinery.objects.kubernetes import quantity
from joinery.objects.kubernetes.cel_tokens import ExpressionError
from joinery.objects.kubernetes.core import NodeSelector
from joinery.objects.kubernetes.device_expressions import compiled, device_of, qualified
from joinery.objects.kubernetes.device_functions import Version
from joinery.objects.kubernetes.dynamic_resources import Device as DeviceSpec
from joinery.objects.kubernetes.dynamic_resources import DeviceTaint, RequestPolicy, ResourceSlice, ResourceSliceSpec


class DeviceKey(NamedTuple):
    """Which device it is."""

    driver: str
    pool: str
    name: str


#: Driver, pool, counter set and counter.
CounterKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class FailedSelector:
    """A selector that has no value for a device. ``number``: which one of the request's; ``device``: None where it was
    read for none; ``why``: for people.

    kube-scheduler does not bind the pod then, wherever it was about to (`DynamicResources.Filter`, an error).
    """

    number: int
    device: DeviceKey | None
    why: str


@dataclass(frozen=True, slots=True)
class OnNode:
    """A value of an attribute that is not known before the node is there, and then is one for all of its devices."""

    attribute: str

    @property
    def name(self) -> str:
        """Without its domain."""
        return self.attribute.rpartition("/")[2]


@dataclass(frozen=True, eq=False, slots=True)
class Capacity:
    """How much of something a device has, and which part of it may be asked for."""

    value: Decimal
    policy: RequestPolicy | None

    def taken_by(self, asked: Decimal | None) -> Decimal | None:
        """What who asks for so much takes; None where that may not be asked for (Kubernetes
        `calculateConsumedCapacity`).
        """
        policy = self.policy
        default = None if policy is None or policy.default is None else quantity.parse(policy.default)
        if asked is None:
            return self.value if default is None else default
        if policy is not None and policy.valid_values:
            return min((one for one in map(quantity.parse, policy.valid_values) if one >= asked), default=None)
        if policy is not None and policy.valid_range is not None:
            valid = policy.valid_range
            least = quantity.parse(valid.min or 0)
            step = quantity.parse(valid.step or 0)
            taken = max(asked, least)
            over = (taken - least) % step if step > 0 else Decimal(0)
            taken += step - over if over else Decimal(0)
            return None if valid.max is not None and taken > quantity.parse(valid.max) else taken
        return asked


@dataclass(frozen=True, eq=False)
class Device:
    """One device.

    attributes   by name with its domain
    texts        the same as the driver says them, with their kind: by these, constraints tell values apart
    capacity     by name, as the driver says it: requests must say the same
    is_shared    whether several claims may have it (allowMultipleAllocations)
    consumes     what it takes of counters that its pool's devices share
    where        the nodes that can use it, unless it is one node's; None for all
    """

    key: DeviceKey
    attributes: Mapping[str, Any]
    texts: Mapping[str, tuple[str, str]]
    capacity: Mapping[str, Capacity]
    is_shared: bool
    consumes: tuple[tuple[CounterKey, Decimal], ...]
    taints: tuple[DeviceTaint, ...]
    where: NodeSelector | None = None

    @cached_property
    def view(self) -> Mapping[str, Any]:
        """As expressions know it."""
        amounts = {name: capacity.value for name, capacity in self.capacity.items()}
        return device_of(self.key.driver, self.attributes, amounts, is_shared=self.is_shared)

    @cached_property
    def kind(self) -> str:
        """Equal for devices that no claim tells apart."""
        said = {name: (one.value, one.policy) for name, one in self.capacity.items()}
        return repr((self.key.driver, self.key.pool, self.texts, said, self.consumes, self.taints))

    def amounts_for(self, wanted: Wanted) -> Mapping[str, Decimal] | None:
        """What a request takes of the capacities, where several claims may have the device; None where it asks for an
        amount that it may not have.
        """
        if not self.is_shared:
            return {}
        asked = dict(wanted.capacity)
        amounts = {name: capacity.taken_by(asked.get(name)) for name, capacity in self.capacity.items()}
        allowed = {name: amount for name, amount in amounts.items() if amount is not None}
        return allowed if len(allowed) == len(amounts) else None

    def suits(self, wanted: Wanted) -> bool | FailedSelector:
        """Whether it is what is wanted, taken or not; or the first selector that has no value for it."""
        for number, text in enumerate(wanted.selectors):
            try:
                if not compiled(text)(self.view):
                    return False
            except ExpressionError as error:
                if any(isinstance(one, OnNode) and one.name in text for one in self.attributes.values()):
                    return False  # what only the node knows is missing here alone
                return FailedSelector(number, self.key, str(error))
        for name, amount in wanted.capacity:
            has = self.capacity.get(name)
            if has is None or has.value < amount:
                return False
        # Who wants all devices wants the tainted ones too, and gets none where it does not tolerate them.
        return wanted.count == ALL or self.is_tolerated(wanted)

    def is_tolerated(self, wanted: Wanted) -> bool:
        return all(_is_tolerated(taint, wanted) for taint in self.taints)


#: The number of claims that share a device, in place of a capacity's name.
SHARES = ""


@dataclass(frozen=True)
class Taken:
    """What is taken of a stock.

    used       devices (indices) that one claim has
    consumed   by device (index) and capacity: how much is taken of a device that several claims may have; under
               ``SHARES`` how many of them have it
    counters   how much is taken of what devices share
    claims     the claims of several pods (namespace/name) that have their devices here
    """

    used: frozenset[int] = frozenset()
    consumed: Mapping[tuple[int, str], Decimal] = field(default_factory=dict)
    counters: Mapping[CounterKey, Decimal] = field(default_factory=dict)
    claims: frozenset[str] = frozenset()


#: Characters of expressions, each read for one device, that all nodes of a plan are looked through for; and those that
#: one node always is.
_MOST_READ, _ALWAYS_READ = 40_000_000, 50_000


@dataclass
class Effort:
    """What the nodes of one plan have cost so far that had nothing to give, so that no claim takes the time of others.

    tries   devices that were tried where there were too few
    read    characters of expressions, times devices
    """

    tries: int = 0
    read: int = 0


#: Needs that were served one after another, and of how many pods.
History = tuple[tuple[Needs, int], ...]


@dataclass(frozen=True, eq=False)
class Stock:
    """The devices that a node has, or that several nodes have together. Compared by identity.

    devices      in the order in which they are given away
    counters     what there is of what they share
    incomplete   drivers of which not all slices are there yet: who wants all of their devices waits
    taken        what claims have of it already
    effort       what it shares with other nodes; None for a stock that stands for itself
    after        what is taken after each history that was asked for; None where there was too little
    beside       what pods of DaemonSets leave of it, by what they need, as far as it was asked for
    """

    devices: tuple[Device, ...] = ()
    counters: Mapping[CounterKey, Decimal] = field(default_factory=dict)
    incomplete: frozenset[str] = frozenset()
    taken: Taken = Taken()
    effort: Effort | None = None
    after: dict[History, Taken | None] = field(default_factory=dict, init=False)
    beside: "dict[tuple[Needs, ...], Stock]" = field(default_factory=dict, init=False)
    _looked: dict[Wanted, tuple[tuple[int, ...], Mapping[int, FailedSelector]]] = field(
        default_factory=dict, init=False
    )

    def selected(self, wanted: Wanted) -> tuple[int, ...]:
        """The devices (indices) that are what is wanted, taken or not."""
        return self._looked_for(wanted)[0]

    def failing(self, wanted: Wanted) -> Mapping[int, FailedSelector]:
        """The devices (indices) on which a selector fails."""
        return self._looked_for(wanted)[1]

    def _looked_for(self, wanted: Wanted) -> tuple[tuple[int, ...], Mapping[int, FailedSelector]]:
        if wanted not in self._looked:
            self._looked[wanted] = self._look(wanted)
        return self._looked[wanted]

    def _look(self, wanted: Wanted) -> tuple[tuple[int, ...], Mapping[int, FailedSelector]]:
        if not self._may_read(wanted):
            longest = max(range(len(wanted.selectors)), key=lambda number: len(wanted.selectors[number]))
            return (), {0: FailedSelector(longest, None, "it costs too much to be read for all devices of a plan")}
        answers = {index: device.suits(wanted) for index, device in enumerate(self.devices)}
        failing = {index: answer for index, answer in answers.items() if isinstance(answer, FailedSelector)}
        return tuple(index for index, answer in answers.items() if answer is True), failing

    def _may_read(self, wanted: Wanted) -> bool:
        """Whether what is wanted may still be looked for here: long selectors over many devices are, up to a sum."""
        cost = len(self.devices) * sum(map(len, wanted.selectors))
        if self.effort is None or cost <= _ALWAYS_READ:
            return True
        self.effort.read += cost
        return self.effort.read <= _MOST_READ


NOTHING = Stock()


@dataclass(frozen=True)
class Published:
    """What drivers have published: the stock of each node, by its name, and what several nodes can use."""

    by_node: Mapping[str, Stock]
    shared: Stock

    def afresh(self) -> "Published":
        """The same for one more plan, which has cost nothing so far."""
        effort = Effort()
        by_node = {name: replace(stock, effort=effort) for name, stock in self.by_node.items()}
        return Published(by_node, replace(self.shared, effort=effort))


def published(slices: Iterable[ResourceSlice]) -> Published:
    """Of each pool the newest generation; of one that is not complete, or wrong, nothing, as the scheduler has it
    (Kubernetes `GatherPools`). Drivers may choose by names which devices are given first.
    """
    of_node: dict[str, list[ResourceSliceSpec]] = defaultdict(list)
    incomplete: dict[str, set[str]] = defaultdict(set)
    for current, is_whole in _pools(slices):
        parts = [part for one in sorted(current, key=lambda one: one.metadata.name) for part in _parts(one)]
        counters = [one.spec for one in current if one.spec.shared_counters]
        is_usable = is_whole and not _is_wrong(parts, counters)
        consuming = {owner for owner, spec in parts if any(device.consumes_counters for device in spec.devices)}
        for owner, spec in parts:
            if is_usable:
                of_node[owner].append(replace_fields(spec, shared_counters=[]))
            else:
                incomplete[owner].add(spec.driver)
        # What devices of several nodes share is not known of one of them: such devices are left out.
        if is_usable and len(consuming) == 1:
            of_node[consuming.pop()] += [replace_fields(spec, devices=[]) for spec in counters]
    shared = stock_of(of_node.pop("", ()), frozenset(incomplete.pop("", ())))
    names = sorted(of_node.keys() | incomplete.keys())
    stocks = {name: stock_of(of_node[name], frozenset(incomplete[name])) for name in names}
    return Published(stocks, shared).afresh()


def _parts(one: ResourceSlice) -> Iterator[tuple[str, ResourceSliceSpec]]:
    """What a slice lists by the node whose devices they are; an empty name for those that several nodes can use."""
    if not one.spec.per_device_node_selection:
        yield _node_of(one), one.spec
        return
    by_owner: dict[str, list[DeviceSpec]] = defaultdict(list)
    for device in one.spec.devices:
        by_owner[device.node_name].append(device)
    for owner, devices in by_owner.items():
        yield owner, replace_fields(one.spec, devices=devices)


def _is_wrong(parts: Sequence[tuple[str, ResourceSliceSpec]], counters: Iterable[ResourceSliceSpec]) -> bool:
    """Whether a pool contradicts itself: two devices of a node, or two sets of counters, of one name; or a device that
    takes of counters that there are not.
    """
    names = [(owner, device.name) for owner, spec in parts for device in spec.devices]
    sets = [(one.name, frozenset(one.counters)) for spec in counters for one in spec.shared_counters]
    by_name = dict(sets)
    taken = (one for _, spec in parts for device in spec.devices for one in device.consumes_counters)
    return (
        len(set(names)) < len(names)
        or len(by_name) < len(sets)
        or any(not by_name.get(one.counter_set, frozenset()) >= one.counters.keys() for one in taken)
    )


def drivers_on(slices: Iterable[ResourceSlice], node: str) -> frozenset[str]:
    """The drivers that have published all of a pool of the node (Karpenter `DRADriversPublished`)."""
    of_node = (one for one in slices if any(owner == node for owner, _ in _parts(one)))
    return frozenset(current[0].spec.driver for current, is_whole in _pools(of_node) if is_whole)


def _pools(slices: Iterable[ResourceSlice]) -> Iterator[tuple[list[ResourceSlice], bool]]:
    """The slices of each pool's newest generation, and whether all of them are there; in the order of their names, but
    pools with devices that are prepared once they are given (``bindingConditions``) last.
    """
    pools: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for one in slices:
        pools[one.spec.driver, one.spec.pool.name].append(one)
    newest = {name: max(one.spec.pool.generation for one in members) for name, members in pools.items()}
    current = {name: [one for one in pools[name] if one.spec.pool.generation == newest[name]] for name in sorted(pools)}
    for members in sorted(current.values(), key=lambda members: any(map(_is_prepared, members))):
        yield members, len(members) == members[0].spec.pool.resource_slice_count


def _is_prepared(one: ResourceSlice) -> bool:
    return any(device.binding_conditions for device in one.spec.devices)


def _node_of(one: ResourceSlice) -> str:
    """The node whose devices these are. A driver that selects its node by a label owns the slice to it all the same."""
    owners = (owner.name for owner in one.metadata.owner_references if owner.kind == "Node")
    return one.spec.node_name or next(owners, "")


def stock_of(slices: Sequence[ResourceSliceSpec], incomplete: frozenset[str] = frozenset()) -> Stock:
    """The devices of these slices. One that takes of a counter that its pool has not is left out, and so is one that
    has an amount which is none: a file may say anything.
    """
    counters = {
        (one.driver, one.pool.name, counter_set.name, name): _readable(counter.value)
        for one in slices
        for counter_set in one.shared_counters
        for name, counter in counter_set.counters.items()
    }
    devices = (_device(one, device) for one in slices for device in one.devices)
    usable = tuple(one for one in devices if one is not None and all(key in counters for key, _ in one.consumes))
    return Stock(usable, counters, incomplete)


def _readable(amount: str | int | float) -> Decimal:
    try:
        return quantity.parse(amount)
    except ValueError:
        return Decimal(0)


def _device(one: ResourceSliceSpec, device: DeviceSpec) -> Device | None:
    try:
        return _read(one, device)
    except ValueError:
        return None


def _read(one: ResourceSliceSpec, device: DeviceSpec) -> Device:
    """Raises ``ValueError`` for an amount that is none."""
    for said in device.capacity.values():
        for amount in said.request_policy.amounts if said.request_policy else ():
            quantity.parse(amount)
    attributes = {
        qualified(one.driver, name): next(iter(said.items())) for name, said in device.attributes.items() if said
    }
    return Device(
        key=DeviceKey(one.driver, one.pool.name, device.name),
        attributes=dict(_values(attributes)),
        texts={name: (kind, str(value)) for name, (kind, value) in attributes.items()},
        capacity={
            name: Capacity(quantity.parse(said.value), said.request_policy) for name, said in device.capacity.items()
        },
        is_shared=bool(device.allow_multiple_allocations),
        consumes=tuple(
            ((one.driver, one.pool.name, taken.counter_set, name), quantity.parse(counter.value))
            for taken in device.consumes_counters
            for name, counter in taken.counters.items()
        ),
        taints=tuple(taint for taint in device.taints if taint.effect in ("NoSchedule", "NoExecute")),
        where=device.node_selector or one.node_selector,
    )


def _values(attributes: Mapping[str, tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """As expressions know them. ``attributes``: by name with its domain, the kind of a value and what is said of it."""
    for name, (kind, value) in attributes.items():
        if kind == "version":
            with suppress(ExpressionError):  # the API server lets no other in
                yield name, Version.of(str(value))
        elif kind:
            yield name, OnNode(name) if kind == "onNode" else value


def _is_tolerated(taint: DeviceTaint, wanted: Wanted) -> bool:
    return any(
        (not key or key == taint.key)
        and effect in ("", taint.effect)
        and (operator == "Exists" or value == taint.value)
        for key, operator, value, effect in wanted.tolerations
    )
