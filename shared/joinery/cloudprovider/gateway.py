"""EC2 as a controller sees it.

Every method may raise ``UnavailableError`` (throttled, timed out, server error) and ``ConfigurationError`` (credentials,
permissions, a NodeClass that names something that is not there).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from joinery.apis.labels import SHARED_TENANCY
from joinery.apis.meta import Taint
from joinery.apis.nodeclass import NodeClass, NodeClassStatus
from joinery.cloudprovider.catalog.document import Catalog
from joinery.state.instances import AWS
from joinery.state.instances import Instance as Instance
from joinery.state.offerings import InstanceType, OfferingKey, Reservation


@dataclass(frozen=True, slots=True)
class Override:
    """One capacity pool that a launch may be served from. ``reservation``: the one it is in, for a reserved launch.

    ``efa``: how many Elastic Fabric Adapters the instance gets in place of its ordinary network interface.
    """

    instance_type: str
    zone: str
    price: float
    max_pods: int
    reservation: Reservation | None = None
    efa: int = 0


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """``count`` identical instances. The token makes a retry return the same instances. ``tenancy`` as EC2 calls it."""

    token: str
    count: int
    node_pool: str
    node_class: NodeClass
    capacity_type: str
    overrides: tuple[Override, ...]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    tenancy: str = SHARED_TENANCY

    @property
    def pools(self) -> frozenset[OfferingKey]:
        """The capacity pools that it may be served from."""
        return frozenset(OfferingKey(each.instance_type, each.zone, self.capacity_type) for each in self.overrides)


@dataclass(frozen=True, slots=True)
class LaunchedInstance:
    """``reservation``: the id of the capacity reservation that it is in. ``provider``: as for ``Instance``."""

    instance_id: str
    instance_type: str
    zone: str
    capacity_type: str
    image_id: str
    reservation: str = ""
    provider: str = AWS


@dataclass(frozen=True, slots=True)
class LaunchFailure:
    """One of CreateFleet's ``Errors``. ``is_capacity``: EC2 was out of that pool, so others should be tried."""

    pool: OfferingKey
    code: str
    message: str
    is_capacity: bool


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """What came of it. Failures are listed also when every instance was launched.

    ``was_asked``: False in observe mode, where EC2 is not asked at all and nothing can be said of the request.
    """

    instances: tuple[LaunchedInstance, ...]
    failures: tuple[LaunchFailure, ...] = ()
    was_asked: bool = True


class Cloud(Protocol):
    """EC2, in our words."""

    def catalog(self) -> Catalog:
        """Every instance type of the region, where it is sold and for how much, read live. Slow: seconds."""
        ...

    def status_of(self, node_class: NodeClass) -> NodeClassStatus:
        """What the class's selectors select now: subnets, security groups, AMIs, reservations, instance profile; conditions say
        what is missing.
        """
        ...

    def instance_types(
        self, node_classes: Sequence[NodeClass], catalog: Catalog, now: datetime
    ) -> Mapping[str, tuple[InstanceType, ...]]:
        """By the class's name, the catalogue's types as its nodes may be of them, and what is left of its capacity reservations.

        What is left changes with every launch, so that is asked of EC2, and not of the catalogue. ``now`` decides which
        reservations are about to end.
        """
        ...

    def launch(self, request: LaunchRequest) -> LaunchResult:
        """One CreateFleet, instant. Fewer instances than asked for are a result; a refused call raises.

        ``CapacityError``, with every pool of the request, where EC2 refuses the call itself for want of capacity.
        """
        ...

    def instances(self) -> tuple[Instance, ...]:
        """All instances that this cluster owns, terminated ones excepted."""
        ...

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Terminate; repeating it is harmless. ``NotFoundError`` if none of them exists."""
        ...

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Add tags. ``NotFoundError``."""
        ...


def capacity_pools(failures: Iterable[LaunchFailure]) -> frozenset[OfferingKey]:
    """The pools that EC2 was out of."""
    return frozenset(failure.pool for failure in failures if failure.is_capacity)
