"""Devices that pods claim, as resources of an instance: columns of numbers beside those of requests.

A column counts what no node can give twice. So whatever a right plan puts on a node fits in every column, and a bound
may count on them; that all columns fit does not make a node right, and what is bought is asked device by device.

- **wanted devices**: those that a request selects, for it and for each request that selects none but those;
- **amounts** of a capacity that claims share, and of counters that devices share, whoever takes them;
- **groups**: how many claims for several devices with one value of an attribute a node's devices are enough for;
- **alone** (for packing, not for a bound): how many pods with the same claims the search serves on an empty node.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from itertools import islice

import numpy as np

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.scheduling.devices.allocation import room
from joinery.decisions.scheduling.devices.claims import Claims
from joinery.decisions.scheduling.devices.needs import ALL, ClaimNeeds, Needs, Wanted
from joinery.decisions.scheduling.devices.stock import CounterKey, Device, Stock, Taken
from joinery.decisions.scheduling.firstfit.new_node import MOST_PODS
from joinery.decisions.scheduling.pools.pool import Pool

#: Shares of a device that claims take nothing of.
_ENDLESS = MOST_PODS * 32
#: Amounts are counted in thousandths, up to a number that sums of them do not overflow at.
_PARTS, _MOST = 1000, 2**52
#: Each column makes the instance slower, and each kind of request is compared with each other one.
_MOST_COLUMNS, _MOST_KINDS = 24, 64

_Kind = Wanted
#: By stock the devices (indices) that a request could get, and what it takes of their capacities.
_Usable = dict[Stock, dict[int, Mapping[str, Decimal]]]


@dataclass(frozen=True, eq=False)
class _Column:
    """``takes``: what a pod with such needs takes at least. ``left``: what a stock has of it."""

    takes: Callable[[Needs], int]
    left: Callable[[Stock, Taken], int]


class DeviceColumns:
    """The columns for pods with these needs, on nodes with these stocks. ``is_proof``: for a bound."""

    def __init__(self, needs: Sequence[Needs], stocks: Iterable[Stock], *, is_proof: bool = False) -> None:
        claiming = list(dict.fromkeys(one for one in needs if one))
        stocks = [stock for stock in dict.fromkeys(stocks) if stock.devices] if claiming else []
        requests = _Requests(claiming, stocks) if stocks else None
        different = _different(requests.columns(), claiming, stocks) if requests else ()
        self._columns = list(islice(different, _MOST_COLUMNS))
        self._shared = len(self._columns)
        if requests and not is_proof:
            left = {stock: self.left(stock, stock.taken) for stock in stocks}
            examples: dict[Hashable, Needs] = {}
            for one in claiming:
                examples.setdefault(requests.asked(one), one)
            alone = (self._alone(requests, one, left) for one in islice(examples.values(), _MOST_KINDS))
            self._columns += islice((column for column in alone if column), _MOST_COLUMNS)
        self.count = len(self._columns)

    def sizes(self, needs: Sequence[Needs]) -> Ints:
        """int64[needs, columns]."""
        sizes = [[column.takes(one) if one else 0 for column in self._columns] for one in needs]
        return np.array(sizes, dtype=np.int64).reshape(len(needs), self.count)

    def rank(self, needs: Needs) -> int:
        """The lower, the earlier are they served on a node: who would take only some of the devices that others would,
        or more of them.
        """
        return -sum(column.takes(needs) > 0 for column in self._columns[: self._shared]) if needs else 0

    def left(self, stock: Stock, taken: Taken) -> Ints:
        """int64[columns]."""
        return np.array([column.left(stock, taken) for column in self._columns], dtype=np.int64)

    def widened(self, pools: Sequence[Pool]) -> Sequence[Pool]:
        """The pools, with the room of their types in these columns too."""
        if not self.count:
            return pools
        stocks = dict.fromkeys(stock for pool in pools for stock in pool.stocks)
        left = {stock: self.left(stock, stock.taken) for stock in stocks}
        return [
            replace(pool, room=np.hstack([pool.room, np.array([left[stock] for stock in pool.stocks])]))
            for pool in pools
        ]

    def _alone(self, requests: "_Requests", needs: Needs, left: Mapping[Stock, Ints]) -> _Column | None:
        """For how many pods with such needs alone; None where the other columns say as much. ``left``: of each stock,
        what they say.
        """
        asked = requests.asked(needs)
        takes = np.array([column.takes(needs) for column in self._columns[: self._shared]], dtype=np.int64)
        counted = np.flatnonzero(takes)
        served = {stock: room(stock, (), needs, MOST_PODS) for stock in left}
        most = {stock: int((row[counted] // takes[counted]).min(initial=MOST_PODS)) for stock, row in left.items()}
        if all(most[stock] <= count for stock, count in served.items()):
            return None
        return _Column(lambda other: int(requests.asked(other) == asked), lambda stock, _: served.get(stock, 0))


def columns_for_bound(
    claims: Claims, needs: Sequence[Needs], pools: Iterable[Pool], standing: Iterable[Stock]
) -> DeviceColumns:
    """The columns for pods with these needs, on new nodes of the pools and on those with the stocks ``standing``. None
    where claims may also have devices of several nodes, which they got before anything was packed.
    """
    if not any(needs) or claims.published.shared.devices:
        return DeviceColumns((), ())
    stocks = (stock for pool in pools for stock in pool.stocks)
    return DeviceColumns(needs, [*stocks, *standing], is_proof=True)


def _different(columns: Iterable[_Column], needs: Sequence[Needs], stocks: Sequence[Stock]) -> Iterator[_Column]:
    """The columns that say something, and each of them once."""
    seen = set[Hashable]()
    for column in columns:
        takes = tuple(column.takes(one) for one in needs)
        says = takes, tuple(column.left(stock, stock.taken) for stock in stocks)
        if any(takes) and says not in seen:
            seen.add(says)
            yield column


class _Requests:
    """What is wanted of the stocks: the requests that differ, and the devices that each of them could get."""

    def __init__(self, needs: Sequence[Needs], stocks: Sequence[Stock]) -> None:
        self._stocks = stocks
        self._claims = [claim for one in needs for claim in one if not claim.shared]
        wanted = (way for claim in self._claims for request in claim.requests for way in request if not way.is_admin)
        #: By kind of request the first that gets the same of these stocks; without those that are too many.
        self._like: dict[_Kind, _Kind] = {}
        self._amounts: dict[_Kind, _Usable] = {}
        firsts: dict[Hashable, _Kind] = {}
        for kind in dict.fromkeys(map(_kind, wanted)):
            usable = {stock: dict(_usable(stock, kind)) for stock in stocks}
            first = firsts.setdefault(repr([list(one.items()) for one in usable.values()]), kind)
            self._like[kind] = first
            if first is kind and len(self._amounts) < _MOST_KINDS:
                self._amounts[kind] = usable

    def asked(self, needs: Needs) -> Hashable:
        """Equal for needs that get the same of these stocks."""
        return tuple(self._asked(claim) for claim in needs)

    def _asked(self, claim: ClaimNeeds) -> Hashable:
        ways = tuple(tuple((self._kind(way), way.count) for way in request) for request in claim.requests)
        return (
            ways,
            frozenset((one.attribute, one.is_distinct, one.requests) for one in claim.constraints),
            claim.shared,
        )

    def _kind(self, way: Wanted) -> _Kind:
        kind = _kind(way)
        return self._like.get(kind, kind)

    def columns(self) -> Iterator[_Column]:
        """Those of most use first."""
        wanted = sorted(self._amounts, key=lambda kind: -sum(map(len, self._amounts[kind].values())))
        yield from (self._of_devices(kind) for kind in wanted)
        grouped = {self._asked(claim): claim for claim in self._claims if _is_grouped(claim)}
        yield from map(self._of_groups, list(grouped.values())[:_MOST_KINDS])
        yield from self._of_amounts()

    def _column(self, each: Mapping[_Kind, int], left: Callable[[Stock, Taken], int]) -> _Column:
        """``each``: what one device for such a request takes at least."""

        def of_way(way: Wanted) -> int:
            kind = self._kind(way)
            one = each.get(kind, 0)
            return one * (self._fewest(kind) if way.count == ALL else way.count) if one else 0

        def takes(needs: Needs) -> int:
            requests = (request for claim in needs if not claim.shared for request in claim.requests)
            return min(sum(min(map(of_way, request), default=0) for request in requests), _MOST)

        return _Column(takes, left)

    def _of_devices(self, kind: _Kind) -> _Column:
        inside = {other: 1 for other in self._amounts if self._is_inside(other, kind)}
        return self._column(inside, lambda stock, taken: _shares(stock, taken, self._usable_of(stock, kind)))

    def _usable_of(self, stock: Stock, kind: _Kind) -> Mapping[int, Mapping[str, Decimal]]:
        by_stock = self._amounts.get(kind, {})
        return by_stock[stock] if stock in by_stock else dict(_usable(stock, kind))

    def _is_inside(self, kind: _Kind, other: _Kind) -> bool:
        """Whether each device for the one could be for the other one, which takes no more of it."""
        mine, others = self._amounts[kind], self._amounts[other]
        return all(
            index in others[stock] and all(amounts[name] >= more for name, more in others[stock][index].items())
            for stock, usable in mine.items()
            for index, amounts in usable.items()
        )

    def _fewest(self, kind: _Kind) -> int:
        """The fewest devices that a request for all of them may get."""
        return min((len(usable) for usable in self._amounts[kind].values() if usable), default=1)

    def _of_groups(self, claim: ClaimNeeds) -> _Column:
        (way,) = claim.requests[0]
        attributes = _in_common(claim)

        def left(stock: Stock, taken: Taken) -> int:
            groups: dict[Hashable, int] = defaultdict(int)
            usable = self._usable_of(stock, self._kind(way))
            for index, amounts in usable.items():
                values = tuple(stock.devices[index].texts.get(name) for name in attributes)
                groups[values] += _shares_of(stock, taken, index, amounts)
            return sum(count // way.count for count in groups.values())

        asked = self._asked(claim)
        return _Column(lambda needs: sum(self._asked(other) == asked for other in needs), left)

    def _of_amounts(self) -> Iterator[_Column]:
        devices = [device for stock in self._stocks for device in stock.devices]
        for name in sorted({name for device in devices if device.is_shared for name in device.capacity}):
            yield self._column(self._least(partial(_given, name)), partial(_capacity, name))
        for counter in sorted({_counter(key) for device in devices for key, _ in device.consumes}):
            yield self._column(self._least(partial(_consumed, counter)), partial(_counted, counter))

    def _least(self, amount: Callable[[Device, Mapping[str, Decimal]], Decimal]) -> Mapping[_Kind, int]:
        """By kind of request, the least that a device for it takes of an amount."""
        return {
            kind: _parts(
                min(
                    (
                        amount(stock.devices[index], amounts)
                        for stock, usable in by_stock.items()
                        for index, amounts in usable.items()
                    ),
                    default=Decimal(0),
                )
            )
            for kind, by_stock in self._amounts.items()
        }


def _kind(wanted: Wanted) -> _Kind:
    """The same for all requests that select the same."""
    return replace(wanted, name="", of_class="", count=1)


def _is_grouped(claim: ClaimNeeds) -> bool:
    """Whether its devices are of one request, and must have something in common."""
    if len(claim.requests) != 1 or len(claim.requests[0]) != 1 or not _in_common(claim):
        return False
    (way,) = claim.requests[0]
    return way.count > 1 and not way.is_admin


def _in_common(claim: ClaimNeeds) -> tuple[str, ...]:
    """The attributes of which all devices of its one request have one value."""
    (way,) = claim.requests[0]
    alike = (one for one in claim.constraints if not one.is_distinct)
    return tuple(one.attribute for one in alike if not one.requests or way.name in one.requests)


def _usable(stock: Stock, kind: _Kind) -> Iterator[tuple[int, Mapping[str, Decimal]]]:
    """The devices (indices) that such a request may get, and what it takes of their capacities."""
    for index in stock.selected(kind):
        amounts = stock.devices[index].amounts_for(kind)
        if amounts is not None:
            yield index, amounts


def _shares(stock: Stock, taken: Taken, usable: Mapping[int, Mapping[str, Decimal]]) -> int:
    """How many requests the devices that are left serve, if each takes these amounts."""
    return sum(_shares_of(stock, taken, index, amounts) for index, amounts in usable.items())


def _shares_of(stock: Stock, taken: Taken, index: int, amounts: Mapping[str, Decimal]) -> int:
    device = stock.devices[index]
    if not device.is_shared:
        return int(index not in taken.used)
    left = (
        (device.capacity[name].value - taken.consumed.get((index, name), Decimal(0))) // amount
        for name, amount in amounts.items()
        if amount > 0
    )
    return int(max(min(left, default=Decimal(_ENDLESS)), Decimal(0)).min(Decimal(_ENDLESS)))


def _given(name: str, _: Device, amounts: Mapping[str, Decimal]) -> Decimal:
    return amounts.get(name, Decimal(0))


def _capacity(name: str, stock: Stock, taken: Taken) -> int:
    """What is left of a capacity of all devices that claims share."""
    left = (
        device.capacity[name].value - taken.consumed.get((index, name), Decimal(0))
        for index, device in enumerate(stock.devices)
        if device.is_shared and name in device.capacity
    )
    return _parts(sum(left, Decimal(0)), up=True)


#: A counter's driver and name: nodes call their pools as they like.
_Counter = tuple[str, str]


def _counter(key: CounterKey) -> _Counter:
    return key[0], key[3]


def _consumed(counter: _Counter, device: Device, _: Mapping[str, Decimal]) -> Decimal:
    """What it takes of a counter for each claim: a device that claims share takes it once for all of them."""
    taken = (amount for key, amount in device.consumes if _counter(key) == counter and not device.is_shared)
    return sum(taken, Decimal(0))


def _counted(counter: _Counter, stock: Stock, taken: Taken) -> int:
    """What is left of a counter in all pools."""
    left = (
        amount - taken.counters.get(key, Decimal(0))
        for key, amount in stock.counters.items()
        if _counter(key) == counter
    )
    return _parts(sum(left, Decimal(0)), up=True)


def _parts(amount: Decimal, *, up: bool = False) -> int:
    parts = min(max(amount * _PARTS, Decimal(0)), Decimal(_MOST))
    return int(parts.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))
