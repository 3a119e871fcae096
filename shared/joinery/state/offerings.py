"""Instance types and offerings: what can be bought, where, and for how much.

An **offering** is an instance type in a zone under a capacity type, at a price; a reserved one draws on one capacity
reservation, which holds so many instances and no more. An **instance type** here is one as a
node of one node class would have it: its labels, capacity and allocatable resources already depend on that class.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from joinery.apis.labels import RESERVATION_ID, RESERVATION_INTERRUPTIBLE, RESERVATION_TYPE
from joinery.apis.quantity import Resources

CAPACITY_BLOCK = "capacity-block"
RESERVATION_KINDS = ("default", CAPACITY_BLOCK)


@dataclass(frozen=True, slots=True, order=True)
class OfferingKey:
    """The capacity pool that EC2 may be out of."""

    instance_type: str
    zone: str
    capacity_type: str


#: Elastic Fabric Adapters, as pods ask for them. An instance has them only if it was launched with them.
EFA = "vpc.amazonaws.com/efa"


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a reserved offering draws on. ``kind``: default or capacity-block; ``remaining``: how many more instances it takes."""

    id: str
    kind: str = "default"
    is_interruptible: bool = False
    remaining: int = 0

    @property
    def labels(self) -> Mapping[str, str]:
        """What a node that was launched in it says of it."""
        interruptible = "true" if self.is_interruptible else "false"
        return {RESERVATION_ID: self.id, RESERVATION_TYPE: self.kind, RESERVATION_INTERRUPTIBLE: interruptible}


@dataclass(frozen=True, slots=True)
class Offering:
    """Price in $/h. ``reservation``: of a reserved offering, and of no other."""

    zone: str
    capacity_type: str
    price: float
    available: bool = True
    zone_id: str = ""
    reservation: Reservation | None = None

    @property
    def reservation_id(self) -> str:
        """Empty for spot and on-demand."""
        return self.reservation.id if self.reservation else ""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One type as a node of one node class has it.

    ``labels`` holds every well-known label that a node of this type will carry, each with the values it may take (one,
    except for zone, capacity type and tenancy); a well-known label that is absent does not exist on such a node.
    """

    name: str
    labels: Mapping[str, tuple[str, ...]]
    capacity: Resources
    allocatable: Resources
    offerings: tuple[Offering, ...]

    def price(self, zone: str, capacity_type: str) -> float | None:
        """$/h of one offering, available or not; None where it is not sold. Reservations of one type all have one price."""
        return next((o.price for o in self.offerings if o.zone == zone and o.capacity_type == capacity_type), None)


def without(types: Iterable[InstanceType], unavailable: frozenset[OfferingKey]) -> tuple[InstanceType, ...]:
    """The same types, with the offerings that EC2 was out of lately marked unavailable."""
    if not unavailable:
        return tuple(types)
    return tuple(
        replace(
            kind,
            offerings=tuple(
                replace(o, available=False) if OfferingKey(kind.name, o.zone, o.capacity_type) in unavailable else o
                for o in kind.offerings
            ),
        )
        for kind in types
    )
