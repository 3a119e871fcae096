"""A NodePool that may launch nodes: its template as masks and matrices over the market of its node class."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import NO_REQUIREMENTS, Requirements
from joinery.decisions.scheduling.constraints.resources import names_types
from joinery.decisions.scheduling.devices.allocation import beside_daemons, room
from joinery.decisions.scheduling.devices.needs import Needs
from joinery.decisions.scheduling.devices.stock import History, Stock
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, Amounts, Market, Mask, Prices
from joinery.decisions.scheduling.pools.ordinary import names_kinds
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    NODE_POOL,
    PROVISIONER_NAME,
    WELL_KNOWN,
    ZONE,
    ZONE_ID,
    canonical,
    is_restricted,
)
from joinery.objects.karpenter.meta import Taint
from joinery.objects.karpenter.nodepool import CHOSEN_BY, NodePool
from joinery.objects.kubernetes.core import Pod

#: (protocol, host IP, port) of each host port that is taken.
HostPorts = frozenset[tuple[str, str, int]]


@dataclass(frozen=True, eq=False, slots=True)
class Resident:
    """A DaemonSet's pod as the new nodes of a pool run it.

    pod         made from the DaemonSet's template
    is_on_all   whether every node of the pool runs it, whatever its instance type, zone and capacity type
    types       bool[types]: the instance types whose nodes run it
    devices     what its claims take of a node's devices
    """

    pod: Pod
    is_on_all: bool
    types: Mask
    devices: Needs = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool:
    """A NodePool that may launch, with everything about its template worked out.

    All arrays have the rows (types) and columns (offerings) of ``market``, and the resources of the problem's ``Axis``.

    node_pool      as the user wrote it
    market         the instance types of its node class
    requirements   what every node satisfies: the template's requirements and labels, and the names of pool and class
    defaults       what holds for pods that choose nothing else (``NodePool.defaults``)
    min_values     by label: how many values a launch must leave possible (minValues)
    overhead       int64[types, resources]: what DaemonSets' pods take on an empty node
    room           int64[types, resources]: what an empty node has for pods beside them
    ports          by type: the host ports that DaemonSets' pods take
    types          bool[types]: admitted by the template, sold somewhere, and large enough for the DaemonSets' pods
    crowded        bool[types]: like ``types``, but too small for the DaemonSets' pods in some resource
    columns        bool[columns]: the offerings that the template admits
    limits         by limited resource: how much the pool may still add; "nodes" is how many nodes
    launch_types   how many instance types a launch carries at most
    type_choices   answers of ``type_choice.choose_types``, remembered because they are costly with minValues
    residents      the DaemonSets' pods that its nodes run
    peculiar       bool[types]: bought only for pods that ask for them (``pools.ordinary``), or where nothing else will
                   do. None where it has no such types
    """

    node_pool: NodePool
    market: Market
    requirements: Requirements
    min_values: Mapping[str, int]
    overhead: Amounts
    room: Amounts
    ports: tuple[HostPorts, ...]
    types: Mask
    crowded: Mask
    columns: Mask
    limits: Mapping[str, int]
    launch_types: int
    type_choices: dict[Hashable, tuple[int, ...]] = field(default_factory=dict)
    _fits: "dict[Hashable, Fit]" = field(default_factory=dict, init=False)
    residents: tuple[Resident, ...] = ()
    peculiar: Mask | None = None
    defaults: Requirements = NO_REQUIREMENTS

    @property
    def name(self) -> str:
        return self.node_pool.metadata.name

    @property
    def weight(self) -> int:
        """The NodePool's weight: pools with a larger one are tried first."""
        return self.node_pool.spec.weight or 0

    @cached_property
    def naming_labels(self) -> frozenset[str]:
        """Labels of Karpenter's domains that a template does define: those that name the pool and its node class."""
        return frozenset({NODE_POOL, PROVISIONER_NAME, self.node_pool.spec.template.spec.node_class_ref.of_kind.label})

    @cached_property
    def _given_labels(self) -> frozenset[str]:
        """Labels that every node has because the template says so, whatever its instance type is."""
        return self.naming_labels | {canonical(key) for key in self.node_pool.spec.template.metadata.labels}

    def is_by_type(self, key: str) -> bool:
        """Whether instance types say which values of the label a node may have.

        No node has a well-known label that no type has, unless the template gives it.
        """
        return key in self.market.type_keys or (key in WELL_KNOWN and key not in self._given_labels)

    @cached_property
    def taints(self) -> tuple[Taint, ...]:
        """The taints that its nodes keep."""
        return tuple(self.node_pool.spec.template.spec.taints)

    @property
    def startup_taints(self) -> tuple[Taint, ...]:
        """The taints that its nodes begin with, until something in the cluster removes them."""
        return tuple(self.node_pool.spec.template.spec.startup_taints)

    @cached_property
    def whole(self) -> "Pool":
        """The pool with those of its types that DaemonSets fill alone; itself where there are none."""
        return replace(self, types=self.types | self.crowded) if self.crowded.any() else self

    @cached_property
    def unreserved(self) -> Mask:
        """bool[columns]: spot and on-demand. A capacity reservation takes only so many nodes, these take any number."""
        return self.columns & ~self.market.reserved if self.market.reserved.any() else self.columns

    @cached_property
    def room_by_resource(self) -> Amounts:
        """int64[resources, types]: ``room``, resource by resource.

        Whoever asks all types at once gets the answer several times as soon: numpy is slow along short rows.
        """
        return np.ascontiguousarray(self.room.T)

    @cached_property
    def stocks(self) -> tuple[Stock, ...]:
        """By type, the devices that an empty node has for pods beside those of DaemonSets."""
        claiming = [one for one in self.residents if one.devices]
        if not claiming:
            return self.market.stocks
        return tuple(
            beside_daemons(stock, tuple(one.devices for one in claiming if one.types[row]))
            for row, stock in enumerate(self.market.stocks)
        )

    def device_room(self, rows: Sequence[int], history: History, needs: Needs, most: int) -> Amounts:
        """int64[rows]: for how many more pods nodes of each type have devices, ``most`` at the most."""
        counts: dict[Stock, int] = {}
        for stock in dict.fromkeys(self.stocks[row] for row in rows):
            counts[stock] = room(stock, history, needs, most)
        return np.array([counts[self.stocks[row]] for row in rows], dtype=np.int64)

    def has_room(self, request: Amounts) -> Mask:
        """bool[types]: whose empty node has room for so much (int64[resources])."""
        return np.asarray((self.room_by_resource >= request[:, None]).all(axis=0), dtype=np.bool_)

    def asked(self, wanted: Requirements) -> Requirements:
        """What pods ask of the pool's nodes that want this: with the pool's defaults for what they do not choose."""
        if not self.defaults:
            return wanted
        wanted = wanted.canonical()
        chosen = {key for key in wanted if not wanted.sets[key].complement}
        sets = {key: allowed for key, allowed in self.defaults.sets.items() if CHOSEN_BY[key] not in chosen}
        return wanted.intersect(Requirements(sets))

    def fit(self, wanted: Requirements) -> "Fit":
        """Which types and offerings satisfy a pod's requirements and the template's. Remembered: many classes want the
        same.

        A label that neither the template nor the instance type defines does not exist on the node: ``In`` and
        ``Exists`` fail, ``NotIn`` and ``DoesNotExist`` pass (Karpenter `Requirements.Compatible`).
        """
        wanted = wanted.canonical()
        key = (wanted.whole_gpus, wanted.devices, *wanted.sets.items())
        fit = self._fits.get(key)
        if fit is None:
            fit = self._fits[key] = _fit(self, wanted)
        return fit

    def distinct(self, key: str, types: Mask, columns: Mask) -> int:
        """How many values of a label the types have between them (Karpenter `InstanceTypes.SatisfiesMinValues`).

        Zones and capacity types count only where the types are sold: a NodeClaim's requirement lists just those values,
        and the API server refuses a minValues larger than the list.
        """
        if key in OFFERING_KEYS:
            sold = np.isfinite(self.market.prices[types]).any(axis=0) & columns
            return len({self.market.columns[column].value(key) for column in np.flatnonzero(sold)} - {None})
        labels = (self.market.types[row].labels.get(key, ()) for row in np.flatnonzero(types))
        return len({value for values in labels for value in values})

    def values(self, key: str, row: int, columns: Mask) -> frozenset[str]:
        """The values of a label that one type has, as ``distinct`` counts them."""
        if key not in OFFERING_KEYS:
            return frozenset(self.market.types[row].labels.get(key, ()))
        sold = np.flatnonzero(np.isfinite(self.market.prices[row]) & columns)
        values = (self.market.columns[column].value(key) for column in sold)
        return frozenset(value for value in values if value is not None)

    def too_few(self, types: Mask, columns: Mask) -> tuple[str, int] | None:
        """The first label, in name order, of which the types have fewer values than minValues,
        and how many they have.
        """
        counts = ((key, self.distinct(key, types, columns)) for key in sorted(self.min_values))
        return next(((key, count) for key, count in counts if count < self.min_values[key]), None)

    def within_limits(self, bought: int = 0, charged: Amounts | int = 0) -> Mask:
        """bool[types]: of which one more node is within the limits.

        ``bought``: how many nodes of the pool the plan buys already. ``charged``: int64[limited resources], what those
        are charged, in the order of ``limited``.
        """
        if self.limits.get("nodes", bought + 1) <= bought:
            return np.zeros_like(self.types)
        capacity, left = self.limited
        return np.asarray((capacity <= left - charged).all(axis=1), dtype=np.bool_)

    @cached_property
    def limited_names(self) -> tuple[str, ...]:
        """The limited resources in name order, without "nodes"."""
        return tuple(name for name in sorted(self.limits) if name != "nodes")

    @cached_property
    def limited(self) -> tuple[Amounts, Amounts]:
        """int64[types, limited resources], the types' capacity, and int64[limited resources], the limits.

        A NodePool may limit resources that no pod asks for. They are not on the axis, so these arrays have their own
        columns, ``limited_names``.
        """
        names = self.limited_names
        rows = [[instance_type.capacity.get(name, 0) for name in names] for instance_type in self.market.types]
        capacity = np.array(rows, dtype=np.int64).reshape(len(self.market.types), len(names))
        return capacity, np.array([self.limits[name] for name in names], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Fit:
    """What a pod's requirements leave of a pool.

    requirements   the pod's and the template's together
    types          bool[types]: those that satisfy them, sold or not
    columns        bool[columns]: the offerings that satisfy them
    market         that of the pool
    conflict       the first label for which nothing is left; then the masks are meaningless. Empty if all goes well
    """

    requirements: Requirements
    types: Mask
    columns: Mask
    market: Market
    conflict: str = ""

    @cached_property
    def sold(self) -> Mask:
        """bool[types]: with an available offering in some of the columns."""
        return self._sold(self.columns)

    @cached_property
    def unreserved(self) -> Mask:
        """bool[types]: with an available offering as spot or on-demand."""
        return self._sold(self.columns & ~self.market.reserved)

    @cached_property
    def least_prices(self) -> Prices:
        """float64[types], $/h: the cheapest spot or on-demand offering of each; infinite where there is none."""
        prices: Prices = self.market.prices[:, self.columns & ~self.market.reserved]
        cheapest: Prices = np.where(self.types, prices.min(axis=1, initial=np.inf), np.inf)
        return cheapest

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
            is_left = bool(columns.any())
        elif pool.is_by_type(key):
            types = types & pool.market.type_mask(key, allowed)
            is_left = bool(types.any())
        else:
            is_left = _is_defined(key, pool) or allowed.absent
        if not is_left:
            return Fit(joint, types, columns, pool.market, key)
    if wanted.whole_gpus and not names_types(joint):
        types = types & ~pool.market.parts_of_gpus
    if wanted.devices:
        rows = np.flatnonzero(types)
        types = np.zeros_like(types)
        types[rows] = pool.device_room(rows.tolist(), (), wanted.devices, 1) > 0
    fit = Fit(joint, types, columns, pool.market)
    if pool.peculiar is None or names_kinds(wanted):
        return fit
    ordinary = replace(fit, types=types & ~pool.peculiar)
    return ordinary if ordinary.sold.any() else fit


def _is_defined(key: str, pool: Pool) -> bool:
    """Whether a node of the pool will carry the label at all."""
    defined = pool.requirements.sets.get(key)
    return defined is not None and not defined.is_empty and not (is_restricted(key) and key not in pool.naming_labels)


def there_are(pool: Pool, key: str) -> str:
    """The end of a reason about zones or capacity types: "; there is" and those that the pool's offerings have.

    Empty for any other label.
    """
    if key not in (ZONE, ZONE_ID, CAPACITY_TYPE):
        return ""
    columns = (column for column, is_allowed in zip(pool.market.columns, pool.columns, strict=True) if is_allowed)
    values = sorted({value for column in columns if (value := column.value(key))})
    return f"; there is {', '.join(values)}" if values else ""
