"""The instance types and offerings of a node class as arrays.

Resources are columns of an integer matrix with one row per instance type. Offerings are columns of a price matrix:
one column per zone and capacity type. A requirement is a boolean mask over types or over offering columns. So what
fits a pod takes a few vector operations, however many types there are.

A capacity reservation is a column of its own, in which exactly one instance type has a price.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from joinery.decisions.scheduling.constraints.requirements import ValueSet, one_of
from joinery.decisions.scheduling.constraints.resources import NO_LIMIT, attachment, driver_of
from joinery.decisions.scheduling.devices.stock import Stock, stock_of
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    GPU_FRACTIONAL,
    RESERVATION_LABELS,
    ZONE,
    ZONE_ID,
)
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.snapshot.offerings import InstanceType, Reservation

Mask = NDArray[np.bool_]
Amounts = NDArray[np.int64]
Prices = NDArray[np.float64]

#: The labels that a node's offering decides. All other well-known labels are its instance type's.
OFFERING_KEYS = (ZONE, ZONE_ID, CAPACITY_TYPE, *RESERVATION_LABELS)

#: No amount in an array is larger, so that the sum of dozens of them stays within 63 bits. As memory: 128 PiB.
_MAX_AMOUNT = 2**57

#: $/h: what a free offering counts as. Prices are divided by, so none may be 0.
_MIN_PRICE = 1e-12

#: The column of all resources that nobody offers: no resource has an empty name.
UNOFFERED = ""

#: The first columns of all arrays: the optimizer weighs these most, because they run out first most often.
_SCARCEST = ("cpu", "memory")


@dataclass(frozen=True)
class Axis:
    """The resources of a problem, in the order in which they are columns of all its arrays.

    ``names``: as pods name them ("cpu", "memory", "nvidia.com/gpu"). Amounts are ``int64``, in the units of
    ``objects.kubernetes.quantity``: millicores of CPU, bytes of memory and storage, and pieces of everything else.

    All that is asked for and that nobody offers is one column, ``UNOFFERED``, of which nothing has any. So whoever
    makes up resources does not make the arrays larger.
    """

    names: tuple[str, ...]

    @classmethod
    def of(cls, requests: Iterable[Resources], offered: Iterable[Iterable[str]]) -> "Axis":
        """Every resource that some request names and someone offers. CPU, memory and pods are always there."""
        asked = {"pods"}.union(*requests) - set(_SCARCEST)
        known = asked & {"pods"}.union(*offered)
        return cls((*_SCARCEST, *sorted(known), *([UNOFFERED] if asked - known else ())))

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The column of each resource."""
        return {name: column for column, name in enumerate(self.names)}

    @cached_property
    def drivers(self) -> Mapping[str, int]:
        """The column of the attachments of each CSI driver that is counted."""
        return {driver: column for column, name in enumerate(self.names) if (driver := driver_of(name))}

    def vector(self, resources: Resources) -> Amounts:
        """int64[resources]: the amounts as a row.

        Resources that are not on the axis are left out: no pod asks for them.
        """
        row = np.zeros(len(self.names), dtype=np.int64)
        for name, value in resources.items():
            column = self.index.get(name)
            if column is not None:
                row[column] = max(-_MAX_AMOUNT, min(value, _MAX_AMOUNT))
        return row

    def asked(self, requests: Resources) -> Amounts:
        """int64[resources]: requests as a row, those for what nobody offers too."""
        row = self.vector(requests)
        if UNOFFERED in self.index and self.unoffered(requests):
            row[self.index[UNOFFERED]] = 1
        return row

    def unoffered(self, requests: Resources) -> list[str]:
        """What is asked for and nobody offers, in name order."""
        return sorted(name for name, value in requests.items() if value > 0 and name not in self.index)

    def matrix(self, rows: Sequence[Resources]) -> Amounts:
        """int64[rows, resources]: one ``vector`` after the other."""
        amounts = np.zeros((len(rows), len(self.names)), dtype=np.int64)
        for column, name in enumerate(self.names):
            values = [row.get(name, 0) for row in rows]
            if max(values, default=0) > _MAX_AMOUNT or min(values, default=0) < -_MAX_AMOUNT:
                values = [max(-_MAX_AMOUNT, min(value, _MAX_AMOUNT)) for value in values]
            amounts[:, column] = values
        return amounts


def offered_by(kind: InstanceType) -> Iterator[str]:
    """The resources that a node of the type has, attachments among them."""
    return chain(kind.allocatable, map(attachment, kind.attachments))


@dataclass(frozen=True, slots=True)
class OfferingColumn:
    """What all offerings of one column have in common.

    zone            by its name; ``zone_id``: by its id
    capacity_type   reserved, spot or on-demand
    reservation     the capacity reservation; None for spot and on-demand
    """

    zone: str
    zone_id: str
    capacity_type: str
    reservation: Reservation | None = None

    def value(self, key: str) -> str | None:
        """The node's value of a label in ``OFFERING_KEYS``; None where the node does not carry the label."""
        if key in RESERVATION_LABELS:
            return self.reservation.labels.get(key) if self.reservation else None
        return {ZONE: self.zone, ZONE_ID: self.zone_id, CAPACITY_TYPE: self.capacity_type}[key]


@dataclass(frozen=True, eq=False)
class Market:
    """The instance types of one node class as arrays. All NodePools with that node class share one.

    types         in name order; their index is the row in all arrays
    columns       where and how types are sold; reservations come last
    allocatable   int64[types, resources]: what a node has for pods, DaemonSets' pods among them
    capacity      int64[types, resources]: what the machine has
    prices        float64[types, columns], $/h; infinite where there is no available offering
    """

    types: tuple[InstanceType, ...]
    columns: tuple[OfferingColumn, ...]
    allocatable: Amounts
    capacity: Amounts
    prices: Prices
    # Few label values are asked for by very many pods; where each asks for others, most types have none of them.
    _masks: dict[tuple[str, ValueSet], Mask] = field(default_factory=dict)
    _rows: dict[str, tuple[Mapping[str, Sequence[int]], Mask]] = field(default_factory=dict)
    _least_prices: dict[bytes, Prices] = field(default_factory=dict)

    def type_mask(self, key: str, allowed: ValueSet) -> Mask:
        """bool[types]: whose label has, or may have, an allowed value. For labels that instance types decide."""
        mask = self._masks.get((key, allowed))
        if mask is None:
            having, lacking = self._having(key)
            values = having.keys() if allowed.complement else having.keys() & allowed.values
            mask = lacking.copy() if allowed.absent else np.zeros_like(lacking)
            mask[[row for value in values if allowed.has(value) for row in having[value]]] = True
            self._masks[key, allowed] = mask
        return mask

    def _having(self, key: str) -> tuple[Mapping[str, Sequence[int]], Mask]:
        """The rows of the types by their values of a label, and bool[types]: those without the label."""
        if key not in self._rows:
            rows, lacking = defaultdict[str, list[int]](list), np.zeros(len(self.types), dtype=np.bool_)
            for row, instance_type in enumerate(self.types):
                values = instance_type.labels.get(key)
                lacking[row] = values is None
                for value in values or ():
                    rows[value].append(row)
            self._rows[key] = rows, lacking
        return self._rows[key]

    def column_mask(self, key: str, allowed: ValueSet) -> Mask:
        """bool[columns]: whose label has an allowed value. For the labels in ``OFFERING_KEYS``."""
        mask = self._masks.get((key, allowed))
        if mask is None:
            values = (column.value(key) for column in self.columns)
            admitted = (allowed.absent if value is None else allowed.has(value) for value in values)
            mask = self._masks[key, allowed] = np.fromiter(admitted, dtype=np.bool_, count=len(self.columns))
        return mask

    def least_prices(self, columns: Mask) -> Prices:
        """float64[types], $/h: the cheapest offering of each in these columns; infinite where there is none.

        Thousands of nodes are asked for, in a few combinations of zones and capacity types.
        """
        key = columns.tobytes()
        prices = self._least_prices.get(key)
        if prices is None:
            prices = self._least_prices[key] = self.prices[:, columns].min(axis=1, initial=np.inf)
        return prices

    def at_prices(self, prices: Prices) -> "Market":
        """The same types sold for other prices: float64[types, columns], $/h."""
        return replace(self, prices=prices, _least_prices={})

    @cached_property
    def stocks(self) -> tuple[Stock, ...]:
        """By type, the devices that its nodes will have; types with the same devices have the same object."""
        slices = {id(kind.slices): kind.slices for kind in self.types}
        stocks = {key: stock_of(one) for key, one in slices.items()}
        return tuple(stocks[id(kind.slices)] for kind in self.types)

    @cached_property
    def parts_of_gpus(self) -> Mask:
        """bool[types]: whose GPUs are parts of GPUs."""
        return self.type_mask(GPU_FRACTIONAL, one_of(("true",)))

    @cached_property
    def reserved(self) -> Mask:
        """bool[columns]: which are capacity reservations."""
        return np.array([column.reservation is not None for column in self.columns], dtype=np.bool_)

    @cached_property
    def reserved_row(self) -> Amounts:
        """int64[columns]: the row of the one type that a capacity reservation is for. Meaningless in other columns."""
        return np.asarray(np.isfinite(self.prices).argmax(axis=0))

    @cached_property
    def likeness(self) -> tuple[Hashable, ...]:
        """One key per column. It is equal for reservations that differ only in their id and in how much is left."""
        return tuple(
            (
                column.zone,
                column.capacity_type,
                int(row),
                column.reservation.kind if column.reservation else "",
                bool(column.reservation and column.reservation.is_interruptible),
            )
            for row, column in zip(self.reserved_row, self.columns, strict=True)
        )

    @cached_property
    def type_keys(self) -> frozenset[str]:
        """The label keys that some instance type has, except those that offerings decide."""
        return frozenset(key for instance_type in self.types for key in instance_type.labels) - set(OFFERING_KEYS)


class _Catalogue:
    """Instance types, equal if they are the same objects."""

    def __init__(self, types: Sequence[InstanceType]) -> None:
        self.types = tuple(types)
        self._ids = tuple(map(id, self.types))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Catalogue) and self._ids == other._ids

    def __hash__(self) -> int:
        return hash(self._ids)


def market_of(instance_types: Sequence[InstanceType], axis: Axis) -> Market:
    """The arrays of a node class's instance types.

    A decision asks for those of the same types many times, and so does the next run of a warm function, whose catalogue
    is the same objects. So a few markets are remembered.
    """
    return _market(_Catalogue(instance_types), axis)


@lru_cache(maxsize=8)
def _market(catalogue: _Catalogue, axis: Axis) -> Market:
    types = _ordered(catalogue.types)
    columns = _columns(types)
    index = {(c.zone, c.capacity_type, c.reservation and c.reservation.id): n for n, c in enumerate(columns)}
    sold = [offering for kind in types for offering in kind.offerings if offering.available]
    rows = [row for row, kind in enumerate(types) for offering in kind.offerings if offering.available]
    places = [index[one.zone, one.capacity_type, one.reservation and one.reservation.id] for one in sold]
    prices = np.full((len(types), len(columns)), np.inf)
    prices[rows, places] = np.maximum([offering.price for offering in sold], _MIN_PRICE)
    return Market(
        types,
        columns,
        _allocatable(types, axis),
        axis.matrix([instance_type.capacity for instance_type in types]),
        prices,
    )


def _ordered(types: Sequence[InstanceType]) -> tuple[InstanceType, ...]:
    """By name; where NodeOverlays have set prices, which may be one for many types, first what AWS's list has cheaper,
    and what is smaller. Of equal prices whatever chooses takes the first row.
    """
    if all(offering.listed is None for kind in types for offering in kind.offerings):
        return tuple(sorted(types, key=lambda kind: kind.name))
    return tuple(
        sorted(
            types,
            key=lambda kind: (
                min((offering.list_price for offering in kind.offerings), default=0.0),
                kind.capacity.get("cpu", 0),
                kind.name,
            ),
        )
    )


def _allocatable(types: Sequence[InstanceType], axis: Axis) -> Amounts:
    rows = axis.matrix([instance_type.allocatable for instance_type in types])
    for driver, column in axis.drivers.items():
        rows[:, column] = [instance_type.attachments.get(driver, NO_LIMIT) for instance_type in types]
    return rows


def _columns(types: Sequence[InstanceType]) -> tuple[OfferingColumn, ...]:
    """Every zone and capacity type in which something is sold, available or not. Reservations come last."""
    offerings = {
        (offering.reservation_id, offering.zone, offering.zone_id, offering.capacity_type): offering
        for instance_type in types
        for offering in instance_type.offerings
    }
    ordered = (offerings[key] for key in sorted(offerings))
    return tuple(OfferingColumn(o.zone, o.zone_id, o.capacity_type, o.reservation) for o in ordered)
