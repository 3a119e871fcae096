"""A node to be bought that is still taking shape: which domains it may be in, and what it holds."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.constraints.resources import ports_clash
from joinery.decisions.scheduling.constraints.taints import first_untolerated
from joinery.decisions.scheduling.constraints.topology_rules import NodeFilter
from joinery.decisions.scheduling.devices.stock import History
from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, Amounts, Axis, Mask, Prices
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.pools.type_choice import can_meet, lowered
from joinery.decisions.scheduling.topology.groups import UNLIMITED
from joinery.decisions.scheduling.topology.topology import Record
from joinery.objects.karpenter.labels import canonical

#: No kubelet runs more pods, so that of more nobody asks whether there are devices.
MOST_PODS = 1024


@dataclass(frozen=True, eq=False, slots=True)
class PlacedPods:
    """Pods of one class that were put on a node together.

    demand    what they asked for on the try that placed them
    domains   the domains that they were dealt to
    pods      their names
    record    how they were counted, so that it can be taken back
    """

    demand: Demand
    domains: Domains
    pods: tuple[str, ...]
    record: Record


def names_of(placed: Iterable[tuple[PodClass, Sequence[str]]]) -> tuple[str, ...]:
    """The names of a node's pods: of those with claims in the order in which devices are given, then of the others,
    sorted.
    """
    claiming, others = list[str](), list[str]()
    for pod_class, names in placed:
        (claiming if pod_class.devices else others).extend(names)
    return (*claiming, *sorted(others))


@dataclass(eq=False)
class NewNode:
    """A node of a pool that is still taking shape: it may be any of its types in any of its offerings that holds its
    pods.

    It is bought as spot or on-demand, or launched in one capacity reservation, its only column.

    requirements   the pool's and its pods'
    types          mask over the pool's instance types (rows of its market)
    columns        mask over the offering columns of its market
    used           what its pods ask for, by resource; DaemonSets' pods apart, which ``Pool.room`` has taken off
    min_values     how many values of a label must stay possible; lower than the pool's where those were relaxed
    ports          host ports of its pods: (protocol, host IP, port)
    placed         its pods, in the order in which they were placed
    """

    name: str
    pool: Pool
    requirements: Requirements
    types: Mask
    columns: Mask
    used: Amounts
    min_values: Mapping[str, int]
    ports: set[tuple[str, str, int]] = field(default_factory=set)
    placed: list["PlacedPods"] = field(default_factory=list)

    @property
    def is_relaxed(self) -> bool:
        """Whether its minValues were lowered to what was possible (BestEffort)."""
        return self.min_values != self.pool.min_values

    @cached_property
    def reservation(self) -> str:
        """The capacity reservation that it is launched in; empty for one that is bought."""
        market = self.pool.market
        reservations = (market.columns[i].reservation for i in np.flatnonzero(self.columns & market.reserved))
        return next((reservation.id for reservation in reservations if reservation), "")

    @property
    def pods(self) -> tuple[str, ...]:
        """The names of its pods (``names_of``)."""
        return names_of((batch.demand.pod_class, batch.pods) for batch in self.placed)

    @property
    def claimed(self) -> History:
        """What its pods claim of its devices, in the order in which they came."""
        return tuple((b.demand.pod_class.devices, len(b.pods)) for b in self.placed if b.demand.pod_class.devices)

    @property
    def recipe(self) -> Hashable:
        """Equal for nodes whose launches differ in name and pods only."""
        batches = Counter((b.demand, frozenset(b.domains.items()), len(b.pods)) for b in self.placed)
        rest = frozenset(batches.items()), tuple(sorted(self.min_values.items())), self.reservation
        return self.pool.name, self.types.tobytes(), self.columns.tobytes(), *rest

    def narrowed(self, demand: Demand, domains: Domains) -> "NewNode | None":
        """The same node with the class's requirements and these domains on top; None where they contradict it."""
        wanted, fit = demand.fit(self.pool, domains)
        if fit.conflict:
            return None
        types, columns, joint = self.types & fit.types, self.columns, self.requirements
        if demand.pod_class.ports:
            types = types & self._port_mask(demand)
        if wanted:
            columns = columns & fit.columns
        # Most nodes have no offering or type left, and to see that costs least.
        if (wanted and not columns.any()) or not types.any():
            return None
        if wanted:
            joint = joint.intersect(wanted)
            if any(joint.sets[key].is_impossible for key in wanted):
                return None
        return replace(self, requirements=joint, types=types, columns=columns)

    @cached_property
    def least_prices(self) -> Prices:
        """$/h of each type's cheapest offering that the node may be; infinite where there is none."""
        return self.pool.market.least_prices(self.columns)

    def _port_mask(self, demand: Demand) -> Mask:
        if ports_clash(demand.pod_class.ports, self.ports):
            return np.zeros_like(self.types)
        clear = {taken: not ports_clash(demand.pod_class.ports, taken) for taken in set(self.pool.ports)}
        return np.array([clear[taken] for taken in self.pool.ports], dtype=np.bool_)

    def holds(self, demand: Demand, allowed: Mask) -> tuple[int, Amounts, Amounts]:
        """How many more pods of the class fit: the most, the types that the node may be (rows), and how many fit each
        of those.

        ``allowed``: mask of the types within the pool's limits. The most may be less than the largest count: minValues
        need types enough that hold it.
        """
        index = np.flatnonzero(self.types & allowed & np.isfinite(self.least_prices))
        if not len(index):
            return 0, index, index
        asked = demand.asked
        free = self.pool.room_by_resource.take(index, axis=1)[asked] - self.used[asked][:, None]
        counts = (free // demand.requests[asked][:, None]).min(axis=0, initial=UNLIMITED)
        if demand.pod_class.ports:
            counts = np.minimum(counts, 1)
        if demand.pod_class.devices:
            most = int(np.clip(counts.max(), 0, MOST_PODS))
            rooms = self.pool.device_room(index.tolist(), self.claimed, demand.pod_class.devices, most)
            counts = np.minimum(counts, rooms)
        return self._within_min_values(index, counts), index, counts

    def _within_min_values(self, index: Amounts, counts: Amounts) -> int:
        """The most pods that leave types enough for a launch that meets
        minValues (Karpenter `InstanceTypes.SatisfiesMinValues`).
        """
        most = int(counts.max())
        if not self.min_values:
            return max(most, 0)
        for count in sorted({int(c) for c in counts if c > 0}, reverse=True):
            left = self._holding(count, index, counts)
            if can_meet(self.pool, left, self.columns, self.min_values):
                return count
        return 0

    def _holding(self, count: int, index: Amounts, counts: Amounts) -> Mask:
        left = np.zeros_like(self.types)
        left[index[counts >= count]] = True
        return left

    def with_relaxed_min_values(self, index: Amounts, counts: Amounts) -> "NewNode":
        """The same node, its minValues lowered to what the types that hold at
        least one pod can meet (minValuesPolicy BestEffort).
        """
        left = self._holding(1, index, counts)
        return replace(self, min_values=lowered(self.pool, left, self.columns, self.min_values))

    def cheapest(self) -> int:
        """The row of the cheapest type that the node may be now."""
        return int(np.where(self.types, self.least_prices, np.inf).argmin())

    def needs_more_than(self, row: int) -> bool:
        """Whether minValues ask for more types than the one in that row."""
        if not self.min_values:
            return False
        alone = np.arange(len(self.types)) == row
        return not can_meet(self.pool, alone, self.columns, self.min_values)

    def counts(self, nodes: NodeFilter) -> bool:
        """Whether the node will count for a spread with that filter, as far as its labels are known."""
        if any(not self.values(key) for key in nodes.keys):
            return False
        if nodes.terms is not None and not any(self._may_match(term) for term in nodes.terms):
            return False
        if nodes.tolerations is None:
            return True
        hard = [t for t in self.pool.taints if t.effect != "PreferNoSchedule"]
        return first_untolerated(nodes.tolerations, hard) is None

    def fix_labels(self, nodes: NodeFilter) -> None:
        """Keep to what a spread's filter admits, if the node may count for it.

        Otherwise pods that the spread counts there would leave its count as the node takes another shape.
        """
        if not nodes.terms or not self.counts(nodes):
            return
        term = next(term for term in nodes.terms if self._may_match(term))
        fit = self.pool.fit(term)
        columns = self.columns & fit.columns
        types = self.types & fit.types & np.isfinite(self.pool.market.prices[:, columns]).any(axis=1)
        if types.any() and (not self.min_values or can_meet(self.pool, types, columns, self.min_values)):
            self.types, self.columns = types, columns
            self.requirements = self.requirements.intersect(term.canonical())
            self.__dict__.pop("least_prices", None)

    def become(self, other: "NewNode") -> None:
        """Keep to what another form of this node may be."""
        self.requirements, self.types, self.columns = other.requirements, other.types, other.columns
        self.__dict__.pop("least_prices", None)

    def fix_daemons(self, brought: Amounts | None) -> None:
        """Keep to types that bring as many DaemonSets' pods as the cheapest type does, because a spread counts them.

        ``brought``: how many, by type; None where the spread counts none.
        """
        if brought is None:
            return
        types = self.types & (brought == brought[self.cheapest()])
        if not self.min_values or can_meet(self.pool, types, self.columns, self.min_values):
            self.types = types

    def _may_match(self, term: Requirements) -> bool:
        fit = self.pool.fit(term)
        if fit.conflict or not (fit.types & self.types).any() or not (fit.columns & self.columns).any():
            return False
        joint = self.requirements.intersect(term.canonical())
        return not any(joint.sets[key].is_impossible for key in term.canonical())

    def values(self, key: str) -> tuple[str, ...]:
        """The domains that the node may still be in, in order."""
        market, key = self.pool.market, canonical(key)
        if key in OFFERING_KEYS:
            sold = np.isfinite(market.prices[self.types]).any(axis=0) & self.columns
            listed = {market.columns[i].value(key) for i in np.flatnonzero(sold)}
        elif key in market.type_keys:
            allowed = self.requirements.get(key)
            labels = (market.types[i].labels.get(key, ()) for i in np.flatnonzero(self.types))
            listed = {value for values in labels for value in values if allowed.has(value)}
        else:
            allowed = self.requirements.get(key)
            open_to_any = {allowed.pick()} if key in self.pool.requirements.sets else set()
            listed = open_to_any if allowed.complement else set(allowed.values)
        return tuple(sorted(listed - {""}))


def empty_node(pool: Pool, name: str, axis: Axis, *, reserved: Mask | None = None) -> NewNode:
    """A node of the pool before any pod. ``reserved``: the column of the reservation that it is launched in."""
    used = np.zeros(len(axis.names), dtype=np.int64)
    if reserved is None:
        return NewNode(name, pool, pool.requirements, pool.types, pool.unreserved, used, pool.min_values)
    types = pool.types & np.isfinite(pool.market.prices[:, reserved]).any(axis=1)
    return NewNode(name, pool, pool.requirements, types, reserved, used, pool.min_values)
