"""NodePools as arrays: the instance types and offerings that a new node of a pool may be.

Resources are columns of an integer matrix (one row per instance type), offerings are columns of a price matrix (one
column per zone and capacity type), and a requirement is a mask over the one or the other. What fits a pod is then a few
vector operations, whatever the number of types. A capacity reservation is a column of its own, in which one type is
sold.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from joinery.apis.core import Pod
from joinery.apis.labels import (
    CAPACITY_TYPE,
    RESERVATION_ID,
    RESERVATION_LABELS,
    WELL_KNOWN,
    ZONE,
    ZONE_ID,
    is_restricted,
)
from joinery.apis.meta import Taint
from joinery.apis.nodepool import NodePool
from joinery.apis.quantity import Resources
from joinery.scheduling.constraints.requirements import Requirements, ValueSet
from joinery.state.offerings import InstanceType, Reservation

Mask = NDArray[np.bool_]
Amounts = NDArray[np.int64]
Prices = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """The resources of the problem, in column order."""

    names: tuple[str, ...]

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def vector(self, resources: Resources) -> Amounts:
        """Amounts as a row; resources that no pod asks for are left out."""
        row = np.zeros(len(self.names), dtype=np.int64)
        for name, value in resources.items():
            column = self.index.get(name)
            if column is not None:
                row[column] = max(-_MOST, min(value, _MOST))
        return row

    def matrix(self, rows: Sequence[Resources]) -> Amounts:
        return np.array([self.vector(row) for row in rows], dtype=np.int64).reshape(len(rows), len(self.names))


@dataclass(frozen=True, slots=True)
class OfferingColumn:
    zone: str
    zone_id: str
    capacity_type: str
    reservation: Reservation | None = None

    def value(self, key: str) -> str | None:
        """Of a label that offerings decide; None where the node has no such label."""
        if key in RESERVATION_LABELS:
            return self.reservation.labels[key] if self.reservation else None
        return {ZONE: self.zone, ZONE_ID: self.zone_id, CAPACITY_TYPE: self.capacity_type}[key]


#: No amount in an array is larger, so that sums of some dozens fit 63 bits: 128 PiB, or cores without end.
_MOST = 2**57
OFFERING_KEYS = (ZONE, ZONE_ID, CAPACITY_TYPE, *RESERVATION_LABELS)
_FREE = 1e-12
"""What a price of nothing counts as, so that ratios stay numbers ($/h)."""


@dataclass(frozen=True, eq=False)
class Market:
    """The instance types of one node class as arrays.

    ``allocatable`` and ``capacity``: types x resources; ``prices``: types x offering columns in $/h, infinite where
    there is no available offering.
    """

    types: tuple[InstanceType, ...]
    columns: tuple[OfferingColumn, ...]
    allocatable: Amounts
    capacity: Amounts
    prices: Prices
    _masks: dict[tuple[str, ValueSet], Mask] = field(default_factory=dict)

    def type_mask(self, key: str, allowed: ValueSet) -> Mask:
        """The types whose label is, or may be, an allowed value; for a label that types decide."""
        known = self._masks.get((key, allowed))
        if known is None:
            values = (kind.labels.get(key) for kind in self.types)
            known = np.fromiter(
                (allowed.absent if v is None else any(allowed.has(x) for x in v) for v in values),
                dtype=np.bool_,
                count=len(self.types),
            )
            self._masks[key, allowed] = known
        return known

    def column_mask(self, key: str, allowed: ValueSet) -> Mask:
        """The offering columns that a requirement on zone, zone id, capacity type or reservation admits."""
        values = (column.value(key) for column in self.columns)
        admitted = (allowed.absent if value is None else allowed.has(value) for value in values)
        return np.fromiter(admitted, dtype=np.bool_, count=len(self.columns))

    @cached_property
    def reserved(self) -> Mask:
        """The columns that are capacity reservations."""
        return np.array([column.reservation is not None for column in self.columns], dtype=np.bool_)

    @cached_property
    def reserved_row(self) -> Amounts:
        """By column: the one type that a capacity reservation is for."""
        return np.asarray(np.isfinite(self.prices).argmax(axis=0))

    @cached_property
    def likeness(self) -> tuple[Hashable, ...]:
        """By column: equal for reservations that differ in nothing but their id and how much is left of them."""
        known = ((c.zone, c.capacity_type, c.reservation) for c in self.columns)
        return tuple(
            (zone, way, int(row), found.kind if found else "", bool(found and found.is_interruptible))
            for row, (zone, way, found) in zip(self.reserved_row, known, strict=True)
        )

    @cached_property
    def type_keys(self) -> frozenset[str]:
        """The label keys that some instance type has, apart from those of offerings."""
        return frozenset(key for kind in self.types for key in kind.labels) - set(OFFERING_KEYS)


def market(types: Sequence[InstanceType], axis: Axis) -> Market:
    listed = tuple(sorted(types, key=lambda kind: kind.name))
    columns = _columns(listed)
    where = {(c.zone, c.capacity_type, c.value(RESERVATION_ID) or ""): i for i, c in enumerate(columns)}
    prices = np.full((len(listed), len(columns)), np.inf)
    for row, kind in enumerate(listed):
        for o in kind.offerings:
            if o.available:
                prices[row, where[o.zone, o.capacity_type, o.reservation_id]] = max(o.price, _FREE)
    return Market(
        listed,
        columns,
        axis.matrix([kind.allocatable for kind in listed]),
        axis.matrix([kind.capacity for kind in listed]),
        prices,
    )


def _columns(types: Sequence[InstanceType]) -> tuple[OfferingColumn, ...]:
    """All places in which something is sold, reservations last."""
    offered = {(o.reservation_id, o.zone, o.zone_id, o.capacity_type): o for kind in types for o in kind.offerings}
    listed = (offered[key] for key in sorted(offered))
    return tuple(OfferingColumn(o.zone, o.zone_id, o.capacity_type, o.reservation) for o in listed)


@dataclass(frozen=True, eq=False, slots=True)
class Resident:
    """A DaemonSet's pod as nodes of a pool run it, if they are of these types;
    ``is_on_all``: whatever type they are and wherever.
    """

    pod: Pod
    is_on_all: bool
    types: Mask


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool:
    """A NodePool that may launch, with everything about its template worked out.

    ``requirements`` holds the template's, its labels', and the pool's own name. ``room`` (types x resources) is what is
    left for pods on an empty node of each type after its DaemonSets' pods; ``overhead`` is what those take. ``ports``:
    the host ports that daemons take, by type. ``types`` and ``columns``: what the template itself admits; ``crowded``:
    the types that it would admit too, but on which the DaemonSets' pods do not fit, in whatever resource. ``limits``:
    what the pool may still add, by resource (and ``nodes``). ``launch_types``: so many types does a launch carry at
    most. ``choices``: those found so far (``choice``);
    ``residents``: the DaemonSets' pods that its nodes run.
    """

    node_pool: NodePool
    market: Market
    requirements: Requirements
    min_values: Mapping[str, int]
    overhead: Amounts
    room: Amounts
    ports: tuple[frozenset[tuple[str, str, int]], ...]
    types: Mask
    crowded: Mask
    columns: Mask
    limits: Mapping[str, int]
    launch_types: int
    choices: dict[Hashable, tuple[int, ...]] = field(default_factory=dict)
    _fits: "dict[Hashable, Fit]" = field(default_factory=dict, init=False)
    residents: tuple[Resident, ...] = ()

    @property
    def name(self) -> str:
        return self.node_pool.metadata.name

    @cached_property
    def taints(self) -> tuple[Taint, ...]:
        """The taints that its nodes keep."""
        return tuple(self.node_pool.spec.template.spec.taints)

    @property
    def startup_taints(self) -> tuple[Taint, ...]:
        """The taints that its nodes begin with, until something in the cluster takes them away."""
        return tuple(self.node_pool.spec.template.spec.startup_taints)

    def fit(self, wanted: Requirements) -> "Fit":
        """Meet a pod's requirements with the pool's template. Remembered, because most classes want the same.

        A label that neither the template nor the instance type defines does not exist on the node: ``In`` and
        ``Exists`` fail, ``NotIn`` and ``DoesNotExist`` pass (Karpenter `Requirements.Compatible`).
        """
        wanted = wanted.canonical()
        asked = tuple(wanted.sets.items())
        fit = self._fits.get(asked)
        if fit is None:
            fit = self._fits[asked] = _fit(self, wanted)
        return fit

    @cached_property
    def bought(self) -> Mask:
        """The columns of spot and on-demand: all but reservations, of which there are only so many."""
        return self.columns & ~self.market.reserved if self.market.reserved.any() else self.columns

    @property
    def weight(self) -> int:
        return self.node_pool.spec.weight or 0

    def distinct(self, key: str, types: Mask, columns: Mask) -> int:
        """How many values of a label the types have between them (minValues; Karpenter
        `InstanceTypes.SatisfiesMinValues`).

        Zones and capacity types count where the types are sold: a NodeClaim may not ask for more values than it lists.
        """
        if key in OFFERING_KEYS:
            sold = np.isfinite(self.market.prices[types]).any(axis=0) & columns
            return len({self.market.columns[i].value(key) for i in np.flatnonzero(sold)} - {None})
        listed = (self.market.types[i].labels.get(key, ()) for i in np.flatnonzero(types))
        return len({value for values in listed for value in values})

    def values(self, key: str, row: int, columns: Mask) -> frozenset[str]:
        """Those that one type has, as ``distinct`` counts them."""
        if key not in OFFERING_KEYS:
            return frozenset(self.market.types[row].labels.get(key, ()))
        sold = np.flatnonzero(np.isfinite(self.market.prices[row]) & columns)
        return frozenset(value for i in sold if (value := self.market.columns[i].value(key)) is not None)

    def too_few(self, types: Mask, columns: Mask) -> tuple[str, int] | None:
        """The first label, in name order,
        of which the types have fewer values than minValues asks for, and how many.
        """
        counts = ((key, self.distinct(key, types, columns)) for key in sorted(self.min_values))
        return next(((key, count) for key, count in counts if count < self.min_values[key]), None)

    def within_limits(self, bought: int = 0, charged: Amounts | int = 0) -> Mask:
        """The types of which the limits leave room for one more node,
        after so many that a plan buys and what those are charged.
        """
        if self.limits.get("nodes", bought + 1) <= bought:
            return np.zeros_like(self.types)
        capacity, left = self.limited
        return np.asarray((capacity <= left - charged).all(axis=1), dtype=np.bool_)

    @cached_property
    def limited(self) -> tuple[Amounts, Amounts]:
        """Capacity of each type in the limited resources (types x limits), and the limits, in one order."""
        names = [name for name in sorted(self.limits) if name != "nodes"]
        rows = [[kind.capacity.get(name, 0) for name in names] for kind in self.market.types]
        capacity = np.array(rows, dtype=np.int64).reshape(len(self.market.types), len(names))
        return capacity, np.array([self.limits[name] for name in names], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Fit:
    """What a pod's requirements leave of a pool: joint requirements,
    types and columns; or the key that rules it out.
    """

    requirements: Requirements
    types: Mask
    columns: Mask
    market: Market
    conflict: str = ""

    @cached_property
    def sold(self) -> Mask:
        """The types that are to be had in some of the columns."""
        return self._sold(self.columns)

    @cached_property
    def bought(self) -> Mask:
        """The types that are to be had as spot or on-demand."""
        return self._sold(self.columns & ~self.market.reserved)

    @cached_property
    def least_prices(self) -> Prices:
        """$/h of those types' cheapest offerings, in their order."""
        found: Prices = self.market.prices[self.bought][:, self.columns & ~self.market.reserved].min(
            axis=1, initial=np.inf
        )
        return found

    def _sold(self, columns: Mask) -> Mask:
        return self.types & np.asarray(np.isfinite(self.market.prices[:, columns]).any(axis=1))


def _fit(pool: Pool, wanted: Requirements) -> Fit:
    joint = pool.requirements.intersect(wanted)
    types, columns = pool.types, pool.columns
    for key in wanted:
        allowed = joint.sets[key]
        if allowed.is_impossible:
            return Fit(joint, types, columns, pool.market, key)
        if key in OFFERING_KEYS:
            columns = columns & pool.market.column_mask(key, allowed)
            alive = bool(columns.any())
        elif key in pool.market.type_keys or (key in WELL_KNOWN and key not in pool.requirements.sets):
            types = types & pool.market.type_mask(key, allowed)
            alive = bool(types.any())
        else:
            alive = _is_defined(key, pool) or allowed.absent
        if not alive:
            return Fit(joint, types, columns, pool.market, key)
    return Fit(joint, types, columns, pool.market)


def there_are(pool: Pool, key: str) -> str:
    """To end a reason with: the zones or ways of buying that the pool's offerings have.

    Empty for a key of another kind.
    """
    if key not in (ZONE, ZONE_ID, CAPACITY_TYPE):
        return ""
    columns = (column for column, is_allowed in zip(pool.market.columns, pool.columns, strict=True) if is_allowed)
    values = sorted({value for column in columns if (value := column.value(key))})
    return f"; there is {', '.join(values)}" if values else ""


def _is_defined(key: str, pool: Pool) -> bool:
    """Whether a node of the pool will carry the label at all."""
    defined = pool.requirements.sets.get(key)
    return defined is not None and not defined.is_empty and not (is_restricted(key) and key not in _OWN)


_OWN = frozenset({"karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass"})
