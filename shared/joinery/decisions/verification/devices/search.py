"""Whether some assignment of devices serves all claims of a node's pods.

The order in which a plan served them leads there, unless the plan is wrong or was cut. So claims are served in that
order first, each without a thought for the next, as kube-scheduler would. Where it leads nowhere, any assignment will
do. A search for one tells devices apart no further than the claims do, looks at claims that have no device in common
apart, and does not try twice what has failed. There are claims all the same for which nobody knows a good way, so what
it may take is bounded; one that ends before it is through says so (``is_cut``).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from joinery.decisions.verification.devices.inventory import CounterKey, Inventory, SearchedDevice, tolerated
from joinery.objects.kubernetes.dynamic_resources import (
    DeviceAlternative,
    DeviceConstraint,
    DeviceRequest,
    ResourceClaimSpec,
)

#: How many devices one search tries, and all of a plan; one more tries a few even then.
_MOST_TRIES, _MOST_OF_A_PLAN, _FEWEST_TRIES = 50_000, 500_000, 2_000
#: How deep a search for all claims at once may go, in calls: a part of Python's stack.
_DEEPEST = 500
_MOST_OF_A_CLAIM = 32


@dataclass(eq=False)
class Ask:
    """A claim that is still to be served, with what it asks for."""

    spec: ResourceClaimSpec
    given: list[tuple[str, SearchedDevice]] = field(default_factory=list)

    @property
    def requests(self) -> Sequence[DeviceRequest]:
        return self.spec.devices.requests

    @property
    def constraints(self) -> Sequence[DeviceConstraint]:
        return self.spec.devices.constraints


@dataclass
class Effort:
    """How many devices the searches of a plan have tried."""

    tries: int = 0


_Then = Callable[[], bool]


class Search:
    """Which devices the claims of a node's pods get."""

    def __init__(self, inventory: Inventory, effort: Effort) -> None:
        self._inventory, self._effort = inventory, effort
        self._left = 0
        self._gifts: list[tuple[Ask, SearchedDevice, Mapping[str, Decimal] | None]] = []
        self._roles: dict[SearchedDevice, int] = {}
        self._failed: set[Hashable] = set()

    @property
    def is_cut(self) -> bool:
        """Whether the last search ended before it was through."""
        return self._left < 0

    def serves(self, asked: Sequence[Ask]) -> bool:
        """Whether all of them get what they ask for. They have it from then on; if not, none of them has anything."""
        for ask in asked:
            ask.given.clear()  # of another instance type
        self._gifts.clear()
        most = _MOST_TRIES if self._effort.tries < _MOST_OF_A_PLAN else _FEWEST_TRIES
        self._left = most
        is_served = self._in_order(asked) or all(map(self._together, self._apart(asked)))
        self._effort.tries += most - self._left
        if not is_served:
            self._take_back(0)
        return is_served

    def _in_order(self, asked: Sequence[Ask]) -> bool:
        self._tell_apart(asked)
        if all(self._next(ask, ask.requests, lambda: True) for ask in asked):
            return True
        self._take_back(0)
        return False

    def _apart(self, asked: Sequence[Ask]) -> list[list[Ask]]:
        """Parts of the claims: no device or counter is of use to two parts."""
        parts: dict[Hashable, list[Ask]] = {}
        for ask in asked:
            devices = (device for way in _ways_of(ask) for device in self._inventory.selected(way))
            of_use: set[Hashable] = {one for device in devices for one in _parts_of(device)}
            joined = [ask]
            for part in {id(parts[one]): parts[one] for one in of_use if one in parts}.values():
                joined = [*part, *joined]
                of_use |= {one for one, other in parts.items() if other is part}
            parts |= dict.fromkeys(of_use or {ask}, joined)
        return list({id(part): part for part in parts.values()}.values())

    def _together(self, asked: Sequence[Ask]) -> bool:
        """Serve claims that may get in each other's way."""
        if sum(map(_depth, asked)) > _DEEPEST:
            self._left = -1
            return False
        self._tell_apart(asked)
        self._failed.clear()
        kinds: dict[str, int] = {}
        by_choice = sorted(asked, key=self._choice)
        return self._rest(tuple((kinds.setdefault(repr(ask.spec), len(kinds)), ask) for ask in by_choice))

    def _choice(self, ask: Ask) -> int:
        return min((sum(len(self._inventory.selected(it)) for _, it in _ways(one)) for one in ask.requests), default=0)

    def _rest(self, waiting: Sequence[tuple[int, Ask]]) -> bool:
        """Serve those that wait. Equal numbers ask for the same."""
        if not waiting:
            return True
        state = tuple(kind for kind, _ in waiting), self._state()
        if state in self._failed:
            return False
        (_, ask), *others = waiting
        if self._next(ask, ask.requests, lambda: self._rest(others)):
            return True
        self._failed.add(state)
        return False

    def _tell_apart(self, asked: Sequence[Ask]) -> None:
        """Number the devices that these claims may get: equal for those in which they see the same."""
        ways = list({id(way): way for ask in asked for way in _ways_of(ask)}.values())
        attributes = sorted({_attribute(constraint) for ask in asked for constraint in ask.constraints})
        seen: dict[SearchedDevice, list[int]] = {}
        for number, way in enumerate(ways):
            for device in self._inventory.selected(way):
                seen.setdefault(device, []).append(2 * number + tolerated(way, device))
        numbers: dict[Hashable, int] = {}
        self._roles = {}
        for device, roles in seen.items():
            texts = tuple(device.texts.get(name) for name in attributes)
            role = *roles, texts, device.is_shared, repr(device.capacity), tuple(device.counters)
            self._roles[device] = numbers.setdefault(role, len(numbers))

    def _state(self) -> Hashable:
        """What is left of everything. From equal states, the same can be served."""
        devices = sorted((role, _taken(device)) for device, role in self._roles.items())
        return tuple(devices), tuple(self._inventory.left.values())

    def _next(self, ask: Ask, requests: Sequence[DeviceRequest], then: _Then) -> bool:
        """Give the claim what these requests ask for, and go on; otherwise nothing."""
        if not requests:
            return then()
        request, *later = requests
        for name, way in _ways(request):
            fitting = self._inventory.fitting(way)
            count = len(fitting) if way.allocation_mode == "All" else way.count or 1  # the API server's default
            is_open = 0 < count <= min(len(fitting), _MOST_OF_A_CLAIM - len(ask.given))
            if is_open and self._fill(ask, (name, way), fitting, count, lambda: self._next(ask, later, then)):
                return True
        return False

    def _fill(
        self,
        ask: Ask,
        named: tuple[str, DeviceAlternative],
        fitting: Sequence[SearchedDevice],
        count: int,
        then: _Then,
    ) -> bool:
        """Give so many more devices of these, and go on."""
        if count == 0:
            return then()
        tried = set[Hashable]()
        for index in range(len(fitting) - count + 1):
            self._left -= 1
            if self._left < 0:
                return False
            device = fitting[index]
            likeness = self._roles[device], _taken(device)
            amounts = self._gets(ask, *named, device)
            if amounts is None or likeness in tried:
                continue
            tried.add(likeness)
            self._give(ask, named, device, amounts)
            if self._fill(ask, named, fitting[index + 1 :], count - 1, then):
                return True
            self._take_back(len(self._gifts) - 1)
        return False

    def _gets(
        self, ask: Ask, name: str, way: DeviceAlternative, device: SearchedDevice
    ) -> Mapping[str, Decimal] | None:
        """What the claim would take of the device's capacities; None where it may not have it."""
        if not device.is_shared and any(other is device for _, other in ask.given):
            return None
        amounts = self._inventory.amounts(way, device)
        return amounts if amounts is not None and _agree(ask, name, device) else None

    def _give(
        self, ask: Ask, named: tuple[str, DeviceAlternative], device: SearchedDevice, amounts: Mapping[str, Decimal]
    ) -> None:
        name, way = named
        ask.given.append((name, device))
        self._gifts.append((ask, device, None if way.admin_access else amounts))
        if not way.admin_access:
            self._inventory.move(device, amounts, 1)

    def _take_back(self, most: int) -> None:
        """Until no more than so many are given."""
        while len(self._gifts) > most:
            ask, device, amounts = self._gifts.pop()
            ask.given.pop()
            if amounts is not None:
                self._inventory.move(device, amounts, -1)


def _taken(device: SearchedDevice) -> tuple[bool, bool, tuple[tuple[str, Decimal], ...]]:
    """What claims have of it by now."""
    return device.is_used, device.sharing > 0, tuple(sorted(device.taken.items())) if device.is_shared else ()


def _parts_of(device: SearchedDevice) -> Iterator[SearchedDevice | CounterKey]:
    """What claims take with it."""
    yield device
    yield from (counter for counter, _ in device.counters)


def _attribute(constraint: DeviceConstraint) -> str:
    return constraint.match_attribute or constraint.distinct_attribute


def _depth(ask: Ask) -> int:
    most = sum(_MOST_OF_A_CLAIM if way.allocation_mode == "All" else way.count for way in _ways_of(ask))
    return 4 + 3 * len(ask.requests) + min(most, _MOST_OF_A_CLAIM)


def _ways_of(ask: Ask) -> Iterator[DeviceAlternative]:
    return (way for request in ask.requests for _, way in _ways(request))


def _ways(request: DeviceRequest) -> Iterator[tuple[str, DeviceAlternative]]:
    """What may serve it, each with the name that constraints know it by, the best first."""
    if request.exactly:
        yield request.name, request.exactly
    yield from ((f"{request.name}/{way.name}", way) for way in request.first_available)


def _agree(ask: Ask, name: str, device: SearchedDevice) -> bool:
    """Whether the device keeps the claim's constraints beside those that it was given."""
    return all(_keeps(ask, constraint, name, device) for constraint in ask.constraints)


def _keeps(ask: Ask, constraint: DeviceConstraint, name: str, device: SearchedDevice) -> bool:
    def is_meant(request: str) -> bool:
        return not constraint.requests or not {request, request.split("/")[0]}.isdisjoint(constraint.requests)

    if not is_meant(name):
        return True
    attribute = _attribute(constraint)
    if attribute not in device.texts:
        return False
    others = [other.texts.get(attribute) for request, other in ask.given if is_meant(request)]
    is_same = [other == device.texts[attribute] for other in others]
    return all(is_same) if constraint.match_attribute else not any(is_same)
