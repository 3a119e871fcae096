"""Instance types and offerings: what can be bought, where, and for how much.

An **offering** is an instance type in a zone under a capacity type, at a price. A reserved offering draws on one
capacity reservation, which holds a fixed number of instances. An **instance type** here is what a node of one node
class would be: its labels, capacity and allocatable resources already depend on that class.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec
from msgspec.structs import replace as with_fields

from joinery.objects.karpenter.labels import (
    DEDICATED,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    SHARED_TENANCY,
    SPOT,
)
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.kubernetes.dynamic_resources import ResourceSliceSpec
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.snapshot.quotas import is_quota, quota_of

T = TypeVar("T")
CAPACITY_BLOCK = "capacity-block"
#: The kind of a stock of on-demand instances that a commitment pays for (``scheduling.ledger``). No label says it.
COMMITMENT = "commitment"
RESERVATION_KINDS = ("default", CAPACITY_BLOCK)


@dataclass(frozen=True, slots=True, order=True)
class OfferingKey:
    """A capacity pool of EC2, which may run out: the spot or on-demand capacity of a type in a zone, or a reservation.

    ``reservation``: the id of the capacity reservation. There may be several of a type in a zone, and what one of them
    lacks says nothing of the others.

    Of a shortage (``objects.snapshot.shortages``) an empty field means any. ``scope``: what it is confined to: a
    subnet, by its id, a placement group or a partition of it (``group_scope``), a node class (``class_scope``), a quota
    (``objects.snapshot.quotas``), each on hardware of the instances' own if it begins with ``DEDICATED_SCOPE``.
    """

    instance_type: str
    zone: str
    capacity_type: str
    reservation: str = ""
    scope: str = ""


#: The scope of what instances on hardware of their own cannot get: EC2 may have plenty for all others.
DEDICATED_SCOPE = "tenancy/dedicated"
_CLASS = "class/"

#: Every spot offering at once.
ALL_SPOT = OfferingKey("", "", SPOT)

#: Elastic Fabric Adapters, as pods ask for them. An instance has them only if it was launched with them.
EFA = "vpc.amazonaws.com/efa"
#: The driver (``resource.k8s.io``) that publishes them as devices.
EFA_DRIVER = "dra.net"


@dataclass(frozen=True, slots=True)
class Reservation:
    """The capacity reservation that a reserved offering draws on.

    ``kind``: ``default``, ``capacity-block``, or while a plan is made ``commitment``. ``is_interruptible``: EC2 may
    take its instances back. ``remaining``: how many more instances it takes.
    """

    id: str
    kind: str = "default"
    is_interruptible: bool = False
    remaining: int = 0

    @property
    def labels(self) -> Mapping[str, str]:
        """What a node that was launched in it says of it."""
        if self.kind == COMMITMENT:
            return {}
        interruptible = "true" if self.is_interruptible else "false"
        return {RESERVATION_ID: self.id, RESERVATION_TYPE: self.kind, RESERVATION_INTERRUPTIBLE: interruptible}


class Offering(msgspec.Struct, frozen=True, gc=False):
    """An instance type's offering in one zone. A region has more than ten thousand: as a struct of msgspec one is made
    in a tenth of the time, and the garbage collector passes it over.

    ``zone``: by its name, ``zone_id`` by its id, which is the same in all accounts. ``capacity_type``: reserved, spot
    or on-demand. ``price``: $/h. ``available``: False while EC2 is out of it. ``reservation``: set for a reserved
    offering only. ``listed``: $/h by AWS's list where a NodeOverlay has set another price, which EC2 does not know.
    """

    zone: str
    capacity_type: str
    price: float
    available: bool = True
    zone_id: str = ""
    reservation: Reservation | None = None
    listed: float | None = None

    @property
    def reservation_id(self) -> str:
        """Empty for spot and on-demand."""
        return self.reservation.id if self.reservation else ""

    @property
    def list_price(self) -> float:
        """$/h, whatever NodeOverlays say."""
        return self.price if self.listed is None else self.listed


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One type as a node of one node class has it.

    ``labels``: every well-known label that a node of this type will carry, with the values that it may take: one,
    except for zone, capacity type and tenancy. A node of this type has no other well-known label. ``capacity``: what
    the machine has. ``allocatable``: what is left of it for pods. ``offerings``: where it is sold. ``attachments``: how
    many volumes for pods a CSI driver attaches to it, by the driver's name; others attach as many as they like.
    ``slices``: the devices that drivers will publish of its nodes; types with the same devices have the same object.
    ``unpriced``: where it is sold at a price that AWS does not say, as types in preview are; the prices mean nothing.
    """

    name: str
    labels: Mapping[str, tuple[str, ...]]
    capacity: Resources
    allocatable: Resources
    offerings: tuple[Offering, ...]
    attachments: Mapping[str, int] = field(default_factory=dict)
    unpriced: tuple[Offering, ...] = ()
    slices: tuple[ResourceSliceSpec, ...] = ()

    def price(self, zone: str, capacity_type: str) -> float | None:
        """$/h of one offering, available or not; None where it is not sold.

        Reservations of one type all have one price.
        """
        return price_among(self.offerings, zone, capacity_type)

    @property
    def is_repriced(self) -> bool:
        """Whether some offering has another price than AWS's."""
        return any(offering.listed is not None for offering in self.offerings)

    @property
    def restocked(self) -> "InstanceType":
        """The type as if EC2 were out of none of it."""
        return replace(self, offerings=tuple(with_fields(offering, available=True) for offering in self.offerings))


@dataclass(frozen=True, slots=True)
class LikelyLaunch:
    """What the NodePools of a class would launch. ``tenancy``: default or dedicated."""

    instance_type: InstanceType
    tenancy: str = SHARED_TENANCY


def price_among(offerings: Iterable[Offering], zone: str, capacity_type: str) -> float | None:
    """$/h of the offering of that zone and capacity type; None where there is none."""
    return next((o.price for o in offerings if o.zone == zone and o.capacity_type == capacity_type), None)


def key_of(instance_type: InstanceType, offering: Offering) -> OfferingKey:
    """The capacity pool of one of the type's offerings."""
    return OfferingKey(instance_type.name, offering.zone, offering.capacity_type, offering.reservation_id)


def is_subnet(scope: str) -> bool:
    """Whether a scope is a subnet's id."""
    return scope.startswith("subnet-")


def full_subnets(unavailable: Iterable[OfferingKey]) -> frozenset[str]:
    """The ids of the subnets that have no free address."""
    return frozenset(pool.scope for pool in unavailable if is_subnet(pool.scope))


def group_scope(placement_group: str, partition: str = "") -> str:
    """The scope of what instances of one placement group lack, or of one partition of it; empty for no group.

    ``placement_group``: as node classes call it.
    """
    if not placement_group:
        return ""
    return f"partition/{partition}/{placement_group}" if partition else f"group/{placement_group}"


def class_scope(node_class: NodeClass) -> str:
    """The scope of what instances of one node class alone cannot get, as the class is written now."""
    return f"{_CLASS}{node_class.metadata.name}/{node_class.metadata.generation}"


def is_of_class(scope: str) -> bool:
    """Whether a scope is that of one node class, also on dedicated hardware."""
    return _CLASS in scope


def tenancy_scope(tenancy: str, scope: str) -> str:
    """The scope on hardware of that tenancy: what dedicated hardware lacks says nothing of shared hardware."""
    if tenancy != DEDICATED:
        return scope
    return f"{DEDICATED_SCOPE}/{scope}" if scope else DEDICATED_SCOPE


def scopes_of(node_class: NodeClass, tenancy: str = SHARED_TENANCY, partition: str = "") -> frozenset[str]:
    """The scopes of the shortages that keep a launch for the class from a pool; the empty one is everybody's."""
    group = node_class.placement_group
    wide_and_narrow = ("", class_scope(node_class), group_scope(group), group_scope(group, partition))
    return frozenset(tenancy_scope(tenancy, scope) for scope in wide_and_narrow)


def covers(shortage: OfferingKey, pool: OfferingKey) -> bool:
    """Whether a shortage is one of this pool, where an empty field of the shortage means any.

    Of scopes only quotas are compared: the caller has chosen the shortages whose scope the pool is in.
    """
    pairs = (
        (shortage.instance_type, pool.instance_type),
        (shortage.zone, pool.zone),
        (shortage.capacity_type, pool.capacity_type),
        (shortage.reservation, pool.reservation),
    )
    if is_quota(shortage.scope) and shortage.scope != quota_of(pool.instance_type):
        return False
    return all(said in ("", asked) for said, asked in pairs)


def own_key(node_class: str, node_pool: str) -> str:
    """The key of a NodePool's own types among those of node classes (names have no slash)."""
    return f"{node_class}/{node_pool}"


def types_for(types: Mapping[str, T], node_class: str, node_pool: str) -> T | None:
    """What nodes of the NodePool may be of, where ``types`` are by name of the node class: those that NodeOverlays make
    of them for this NodePool, if any do (``scheduling.pools.overlays``). None where nothing is known of the class.
    """
    own = types.get(own_key(node_class, node_pool))
    return types.get(node_class) if own is None else own


def changed_types(
    types: Mapping[str, tuple[InstanceType, ...]],
    change: Callable[[str, tuple[InstanceType, ...]], tuple[InstanceType, ...]],
) -> dict[str, tuple[InstanceType, ...]]:
    """What ``change`` makes of the name of each node class and its types, by the same keys.

    NodePools that NodeOverlays do not tell apart have the same objects. They are changed once, and stay the same.
    """
    made = dict[tuple[str, int], tuple[InstanceType, ...]]()
    result = {}
    for key, kinds in types.items():
        node_class = key.partition("/")[0]
        alike = node_class, id(kinds)
        if alike not in made:
            made[alike] = change(node_class, kinds)
        result[key] = made[alike]
    return result


def without(types: Iterable[InstanceType], unavailable: frozenset[OfferingKey]) -> tuple[InstanceType, ...]:
    """The same types, with the offerings that EC2 was out of lately marked unavailable.

    ``unavailable``: without scopes, except for quotas (``objects.snapshot.shortages.as_met_by``).
    """
    # Usually EC2 is out of a handful of types. Nothing is copied of the hundreds of others.
    wide = tuple(pool for pool in unavailable if not (pool.instance_type and pool.zone))
    lacking = {pool.instance_type for pool in unavailable}
    return tuple(
        _without(instance_type, unavailable, wide) if wide or instance_type.name in lacking else instance_type
        for instance_type in types
    )


def _without(
    instance_type: InstanceType, unavailable: frozenset[OfferingKey], wide: tuple[OfferingKey, ...]
) -> InstanceType:
    def is_out(offering: Offering) -> bool:
        key = key_of(instance_type, offering)
        return key in unavailable or any(covers(shortage, key) for shortage in wide)

    offerings = tuple(with_fields(each, available=False) if is_out(each) else each for each in instance_type.offerings)
    return instance_type if offerings == instance_type.offerings else replace(instance_type, offerings=offerings)


def offered_in(types: Iterable[InstanceType], zone_ids: frozenset[str]) -> frozenset[OfferingKey]:
    """What is sold in these zones."""
    return frozenset(
        key_of(instance_type, offering)
        for instance_type in types
        for offering in instance_type.offerings
        if offering.zone_id in zone_ids
    )
