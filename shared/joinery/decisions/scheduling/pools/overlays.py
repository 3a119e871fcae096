"""NodeOverlays: what they make of the instance types of each NodePool, and which of them are in conflict.

An overlay is for the offerings that match it, of the NodePools that match it: by labels of instance types and
offerings, by the NodePool's name, and by the labels of its template. Of several for one offering the heaviest sets the
price; of several for one resource of a type the heaviest sets the amount, and of equal weights both times the last by
name. An overlay that meets one of its own weight there is in conflict, and counts nowhere (Karpenter
`nodeoverlay.Controller`, core 1.15.0). Prices are the whole of an offering's: reserved ones too.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as with_fields

from joinery.decisions.scheduling.constraints.requirements import Requirements, UnknownOperatorError, ValueSet, read
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, OfferingColumn
from joinery.objects.karpenter.labels import CAPACITY_TYPE, NODE_POOL, ZONE, ZONE_ID, canonical
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.validation import validate_overlay
from joinery.objects.kubernetes.dynamic_resources import ResourceSliceSpec
from joinery.objects.kubernetes.quantity import Resources, amount
from joinery.objects.snapshot.offerings import InstanceType, Offering, own_key
from joinery.objects.snapshot.snapshot import Snapshot

Types = Mapping[str, tuple[InstanceType, ...]]

_HUGE_PAGES = "hugepages-"
#: What is said of an overlay that is in no conflict and for nothing, of which Karpenter says nothing.
MATCHES_NOTHING = "it changes nothing: no NodePool has an offering that meets its requirements"


@dataclass(frozen=True)
class Overlaid:
    """What overlays make of instance types.

    types       by name of the node class, as they were, and those of each NodePool that an overlay changes by
                ``own_key``
    conflicts   the names of overlays that count nowhere, because another of their weight is for the same
    unmatched   the names of overlays that are for no offering of any NodePool, and so change nothing
    invalid     by name of an overlay that cannot be used, why
    """

    types: Types
    conflicts: frozenset[str] = frozenset()
    unmatched: frozenset[str] = frozenset()
    invalid: Mapping[str, str] = field(default_factory=dict)


def overlaid(types: Types, snapshot: Snapshot) -> Overlaid:
    """The types with the snapshot's overlays applied. ``types``: by name of the node class; without overlays they stay
    the same object.
    """
    if not snapshot.node_overlays:
        return Overlaid(types)
    pools = _pools(types, snapshot)
    conflicts, unmatched, invalid = set[str](), set[str](), dict[str, str]()
    by_name = sorted(snapshot.node_overlays, key=lambda overlay: overlay.metadata.name, reverse=True)
    for overlay in sorted(by_name, key=lambda overlay: -overlay.weight):
        name = overlay.metadata.name
        if reasons := validate_overlay(overlay):
            invalid[name] = "; ".join(reasons)
            continue
        try:
            wanted = read(overlay.spec.requirements).canonical()
        except UnknownOperatorError as error:
            invalid[name] = str(error)
            continue
        matched = [(pool, list(pool.matching(wanted))) for pool in pools]
        if not any(of_pool for _, of_pool in matched):
            unmatched.add(name)
        if any(pool.conflicts(overlay, of_pool) for pool, of_pool in matched):
            conflicts.add(name)
            continue
        for pool, of_pool in matched:
            pool.apply(overlay, of_pool)
    own = dict[str, tuple[InstanceType, ...]]()
    for pool in pools:
        if pool.is_changed:
            own |= dict.fromkeys(pool.keys, pool.types)
    return Overlaid({**types, **own}, frozenset(conflicts), frozenset(unmatched), invalid)


def _pools(types: Types, snapshot: Snapshot) -> Sequence["_PoolTypes"]:
    """The types of the NodePools; those that no overlay can tell apart are one, and get the same objects."""
    asked = {canonical(one.key) for overlay in snapshot.node_overlays for one in overlay.spec.requirements}
    alike: dict[Hashable, _PoolTypes] = {}
    for pool in filter(snapshot.serves, snapshot.node_pools):
        template = pool.spec.template
        name = template.spec.node_class_ref.name
        labels = {canonical(key): value for key, value in template.metadata.labels.items()}
        labels = {key: value for key, value in {**labels, NODE_POOL: pool.metadata.name}.items() if key in asked}
        likeness = name, frozenset(labels.items())
        if likeness not in alike:
            alike[likeness] = _PoolTypes(labels, types.get(name, ()))
        alike[likeness].keys.append(own_key(name, pool.metadata.name))
    return list(alike.values())


#: An instance type (index) and those of its offerings (indices) that an overlay is for.
_Matched = tuple[int, Sequence[int]]


class _PoolTypes:
    """The instance types of NodePools, while overlays are applied in the order of their weights.

    ``keys``: those of the NodePools' own types. ``labels``: those of the NodePools that some overlay asks for.
    ``_prices``: by type and offering (indices), the overlay that sets the price, and the weight of the last one that
    matched. ``_amounts``: by type (index) and resource, the amount, and the same weight. ``_previewed``: $/h by type
    (index) that AWS has no price for. ``_slices``: by type (index) the devices that nodes will have.
    """

    def __init__(self, labels: Mapping[str, str], kinds: tuple[InstanceType, ...]) -> None:
        self.keys: list[str] = []
        self._kinds, self._labels = kinds, labels
        self._prices: dict[tuple[int, int], tuple[NodeOverlay, int]] = {}
        self._amounts: dict[int, dict[str, tuple[int, int]]] = {}
        self._previewed: dict[int, float] = {}
        self._slices: dict[int, tuple[ResourceSliceSpec, ...]] = {}

    @property
    def is_changed(self) -> bool:
        return bool(self._prices or self._amounts or self._slices)

    @property
    def types(self) -> tuple[InstanceType, ...]:
        return tuple(self._changed(index, kind) for index, kind in enumerate(self._kinds))

    def matching(self, wanted: Requirements) -> Iterator[_Matched]:
        """The types and offerings that the requirements are for."""
        of_offerings = {key: allowed for key, allowed in wanted.sets.items() if key in OFFERING_KEYS}
        of_types = {key: allowed for key, allowed in wanted.sets.items() if key not in OFFERING_KEYS}
        # A few places sell thousands of offerings.
        are_sold: dict[Hashable, bool] = {}
        for index, kind in enumerate(self._kinds):
            if all(self._admits(kind, key, allowed) for key, allowed in of_types.items()):
                chosen = []
                for number, offering in enumerate(kind.offerings or kind.unpriced):
                    place = offering.zone, offering.capacity_type, offering.reservation
                    if place not in are_sold:
                        are_sold[place] = all(_sells(offering, *one) for one in of_offerings.items())
                    if are_sold[place]:
                        chosen.append(number)
                if chosen:
                    yield index, chosen

    def _admits(self, kind: InstanceType, key: str, allowed: ValueSet) -> bool:
        """Whether nodes of the type may have such a label. One that neither the type nor the template gives does not
        exist.
        """
        values = kind.labels.get(key)
        own = self._labels.get(key)
        if own is not None:
            return allowed.has(own) and (not values or own in values)
        return any(map(allowed.has, values)) if values else allowed.absent

    def conflicts(self, overlay: NodeOverlay, matched: Iterable[_Matched]) -> bool:
        """Whether another overlay of its weight is for one of these offerings too, or for a resource of these types."""
        return any(
            (overlay.prices and any(self._is_taken(overlay, index, number) for number in chosen))
            or any(
                name in overlay.spec.capacity and weight == overlay.weight
                for name, (_, weight) in self._amounts.get(index, {}).items()
            )
            for index, chosen in matched
        )

    def _is_taken(self, overlay: NodeOverlay, index: int, number: int) -> bool:
        known = self._prices.get((index, number))
        return known is not None and known[1] == overlay.weight

    def apply(self, overlay: NodeOverlay, matched: Iterable[_Matched]) -> None:
        """What heavier overlays have set stays. To be called in the order of weights, the heaviest first."""
        slices = overlay.slices
        for index, chosen in matched:
            for number in chosen if overlay.prices else ():
                heaviest, _ = self._prices.get((index, number), (overlay, 0))
                self._prices[index, number] = heaviest, overlay.weight
            for name, text in overlay.spec.capacity.items():
                added = self._amounts.setdefault(index, {})
                added[name] = added.get(name, (amount(name, text), 0))[0], overlay.weight
            if slices:
                self._slices.setdefault(index, slices)
            kind = self._kinds[index]
            if kind.name in overlay.previewed and not kind.offerings:
                self._previewed[index] = overlay.priced(0.0)

    def _changed(self, index: int, kind: InstanceType) -> InstanceType:
        sold = kind.offerings
        if index in self._previewed:
            price = self._previewed[index]
            sold = tuple(with_fields(offering, price=price, listed=price) for offering in kind.unpriced)
            kind = replace(kind, labels={**kind.labels, **_labels_of(sold)})
        priced = tuple(self._priced(index, number, offering) for number, offering in enumerate(sold))
        added = {name: value for name, (value, _) in self._amounts.get(index, {}).items()}
        # Most types are as they were, and so are the objects.
        if priced != kind.offerings:
            kind = replace(kind, offerings=priced)
        if index in self._slices:
            # Whoever says something of a driver says all of it.
            own = self._slices[index]
            said = {one.driver for one in own}
            kind = replace(kind, slices=(*(one for one in kind.slices if one.driver not in said), *own))
        return _with_resources(kind, added) if added else kind

    def _priced(self, index: int, number: int, offering: Offering) -> Offering:
        known = self._prices.get((index, number))
        price = offering.price if known is None else known[0].priced(offering.price)
        return offering if price == offering.price else with_fields(offering, price=price, listed=offering.list_price)


def _sells(offering: Offering, key: str, allowed: ValueSet) -> bool:
    column = OfferingColumn(offering.zone, offering.zone_id, offering.capacity_type, offering.reservation)
    value = column.value(key)
    return allowed.has(value) if value else allowed.absent


def _labels_of(offerings: Iterable[Offering]) -> Mapping[str, tuple[str, ...]]:
    """What offerings say of their type's labels."""
    values = {
        ZONE: dict.fromkeys(offering.zone for offering in offerings),
        ZONE_ID: dict.fromkeys(offering.zone_id for offering in offerings if offering.zone_id),
        CAPACITY_TYPE: dict.fromkeys(offering.capacity_type for offering in offerings),
    }
    return {key: tuple(listed) for key, listed in values.items() if listed}


def _with_resources(kind: InstanceType, added: Resources) -> InstanceType:
    """The type with more resources, all of them for pods. Huge pages are memory that nothing else has (Karpenter
    `computeAllocatable`).
    """
    pages = sum(value for name, value in added.items() if name.startswith(_HUGE_PAGES))
    left = max(0, kind.allocatable.get("memory", 0) - pages)
    allocatable = {**kind.allocatable, **added, **({"memory": left} if pages else {})}
    return replace(kind, capacity={**kind.capacity, **added}, allocatable=allocatable)
