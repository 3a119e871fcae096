"""A cloud as a controller sees it: what it sells, what it says of node classes, and the instances that are launched and
terminated.

Every method may raise ``UnavailableError`` (throttled, timed out, server error) and ``ConfigurationError``
(credentials, permissions, a node class that names something that is not there).

The words are EC2's, which is the cloud that Joinery is made for. Another cloud brings a class with these methods and a
node class of its own (``objects.karpenter.nodeclass``), and leaves at their defaults the fields that mean nothing to
it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from joinery.gateways.ec2.catalog.document import Catalog
from joinery.objects.commitments import Bought
from joinery.objects.karpenter.labels import SHARED_TENANCY
from joinery.objects.karpenter.meta import Taint
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass, NodeClassStatus
from joinery.objects.snapshot.instances import AWS, InstanceStatus
from joinery.objects.snapshot.instances import Instance as Instance
from joinery.objects.snapshot.learned_memory import LearnedMemory
from joinery.objects.snapshot.offerings import (
    InstanceType,
    LikelyLaunch,
    OfferingKey,
    Reservation,
    group_scope,
    scopes_of,
    tenancy_scope,
)

#: Seconds after which a call has ended, with an answer or without. A run begins none that might take longer than it has
#: left.
LONGEST_CALL = 25.0
#: For how many instances EC2 promises all or none (EC2 API OnDemandOptionsRequest, MinTargetCapacity).
_MOST_TOGETHER = 1000


@dataclass(frozen=True, slots=True)
class Override:
    """One capacity pool that a launch may be served from.

    ``price``: in $/h. ``max_pods``: the kubelet's setting. ``reservation``: the capacity reservation to launch into,
    for a reserved launch. ``efa``: how many Elastic Fabric Adapters the instance gets. ``listed``: in $/h by AWS's
    list, where that is another price.
    """

    instance_type: str
    zone: str
    price: float
    max_pods: int
    reservation: Reservation | None = None
    efa: int = 0
    listed: float | None = None


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """Identical instances, wanted together.

    ``token``: a retry with the same token returns the same instances. ``count``: how many. ``overrides``: where they
    may come from, at least one. ``labels`` and ``taints``: of their nodes. ``tenancy``: EC2's word.
    ``min_values_relaxed``: the overrides are less varied than the NodePool's ``minValues`` demand. ``full_subnets``:
    the ids of those that had no free address lately. ``in_our_order``: the prices are not AWS's, so EC2 has to go by
    ours. ``partition``: of the class's placement group, by its number; empty for any. ``together``: they are of no use
    one by one, so where EC2 can promise it (``all_or_none_by``), all are launched or none.
    """

    token: str
    count: int
    node_pool: str
    node_class: NodeClass
    capacity_type: str
    overrides: tuple[Override, ...]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    tenancy: str = SHARED_TENANCY
    min_values_relaxed: bool = False
    full_subnets: frozenset[str] = frozenset()
    partition: str = ""
    in_our_order: bool = False
    together: bool = False

    @property
    def all_or_none_by(self) -> str:
        """The option by which EC2 launches all or none; empty where it is not asked for, or not possible: for pools of
        several types in several zones (EC2 API OnDemandOptionsRequest, SpotOptionsRequest: MinTargetCapacity).
        """
        if not self.together or not 1 < self.count <= _MOST_TOGETHER:
            return ""
        if len({pool.zone for pool in self.overrides}) == 1:
            return "SingleAvailabilityZone"
        return "SingleInstanceType" if len({pool.instance_type for pool in self.overrides}) == 1 else ""

    @property
    def pools(self) -> frozenset[OfferingKey]:
        """The capacity pools that it may be served from."""
        return frozenset(self.pool(override) for override in self.overrides)

    def pool(self, override: Override) -> OfferingKey:
        """The capacity pool that an override means."""
        reservation = override.reservation.id if override.reservation else ""
        return OfferingKey(override.instance_type, override.zone, self.capacity_type, reservation, self._scope)

    def served_by(self, result: "LaunchResult") -> frozenset[OfferingKey]:
        """The pools that gave all that was asked of them, in each scope in which they might have been out."""
        launched = {
            OfferingKey(each.instance_type, each.zone, each.capacity_type, each.reservation, self._scope)
            for each in result.instances
        }
        served = launched - {failure.pool for failure in result.failures}
        scopes = scopes_of(self.node_class, self.tenancy, self.partition)
        return frozenset(replace(pool, scope=scope) for pool in served for scope in scopes)

    @property
    def _scope(self) -> str:
        """What a shortage of one of its pools is confined to (``OfferingKey.scope``)."""
        return tenancy_scope(self.tenancy, group_scope(self.node_class.placement_group, self.partition))


@dataclass(frozen=True, slots=True)
class LaunchedInstance:
    """An instance that a launch got. Its fields are those of ``Instance``."""

    instance_id: str
    instance_type: str
    zone: str
    capacity_type: str
    image_id: str
    reservation: str = ""
    provider: str = AWS


@dataclass(frozen=True, slots=True)
class LaunchFailure:
    """Why a pool gave fewer instances than were asked for (one of CreateFleet's ``Errors``).

    ``is_capacity``: the cloud was out of that pool, so others should be tried. Otherwise a person has to act.
    ``shortage``: what it is out of, where that is more than the pool, or what this class alone cannot have of it.
    """

    pool: OfferingKey
    code: str
    message: str
    is_capacity: bool
    shortage: OfferingKey | None = None


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """What came of it. Failures are listed also when every instance was launched.

    ``was_asked``: False in observe mode, where EC2 is not asked at all and nothing can be said of the request.
    """

    instances: tuple[LaunchedInstance, ...]
    failures: tuple[LaunchFailure, ...] = ()
    was_asked: bool = True


#: What the NodePools of a class would launch, by the class with its status; None where nobody knows.
Likely = Callable[[NodeClass], LikelyLaunch | None]


def nobody_knows(node_class: NodeClass) -> None:
    """Of no class does anybody know what would be launched."""


class Cloud(Protocol):
    """A cloud, in our words."""

    def catalog(self, earlier: Catalog | None = None, *, in_full: bool = False) -> Catalog:
        """Every instance type of the region, where it is sold and for how much, read live. Slow: half a minute.

        With an ``earlier`` one only what changes by the hour is read, in seconds: spot prices and capacity
        reservations. Its instance types, zones and on-demand prices are taken over, and the moment that they are of.
        With ``in_full`` these are read too.

        What cannot be read is taken from the earlier one, and the catalogue says what it is ``missing``. Raises only
        where nothing could be sold.
        """
        ...

    def bought(self) -> Bought:
        """What the account has bought in advance for instances in the region, and who else uses it. Takes seconds.

        Raises nothing of its sources: each alone may be an error instead.
        """
        ...

    def status_of(self, node_class: NodeClass) -> NodeClassStatus:
        """The status that the class should have now: what its selectors select (subnets, security groups, AMIs,
        capacity reservations, instance profile), and conditions that say what is missing. It is only read.
        """
        ...

    def prepare(self, node_class: NodeClass, likely: Likely = nobody_knows) -> NodeClassStatus:
        """The status of the class, once what it lacks and we may make is made (on AWS, its instance profile).

        ``likely``: asked where a launch is tried. Repeating it is harmless.
        """
        ...

    def instance_types(
        self, node_classes: Sequence[NodeClass], catalog: Catalog, now: datetime, memory: LearnedMemory | None = None
    ) -> Mapping[str, tuple[InstanceType, ...]]:
        """By the class's name, the catalogue's types as its nodes may be of them.

        A class for which they cannot be worked out is left out. Raises ``ConfigurationError`` for a broken catalogue.
        What is left of capacity reservations changes with every launch. So it is asked of EC2 here, and not taken from
        the catalogue. ``now`` decides which of them are about to end. ``memory``: what nodes have said of theirs.
        """
        ...

    def launch(self, request: LaunchRequest) -> LaunchResult:
        """Launch the instances, by one call.

        Fewer of them than were asked for are a result; a call that is refused raises.

        Raises ``CapacityError``, with all pools of the request, where the call itself is refused for lack of capacity.
        """
        ...

    def shifted_zones(self) -> frozenset[str]:
        """The ids of the zones that traffic is shifted away from; empty where the user has not asked to look."""
        ...

    def instances(self) -> tuple[Instance, ...]:
        """All instances that this cluster owns, except those that are terminated.

        What is new or has changed is listed late, and a list may leave out anything (EC2 API "Eventual consistency").
        """
        ...

    def look_up(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        """Those of these instances that the cloud knows: terminated ones too, as long as it remembers them."""
        ...

    def impaired(self) -> tuple[InstanceStatus, ...]:
        """The running instances that something is wrong with. Some of them may be others': who asks knows its own."""
        ...

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Terminate them. Repeating it is harmless. Raises ``NotFoundError`` if none of them exists."""
        ...

    def reboot(self, instance_id: str) -> None:
        """Restart its operating system, soon. The instance keeps its addresses and disks. Raises ``NotFoundError``."""
        ...

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Add tags to an instance. Raises ``NotFoundError``."""
        ...

    def remove_unused(
        self, node_classes: Sequence[NodeClass], claims: Sequence[NodeClaim], instances: Sequence[Instance]
    ) -> None:
        """Remove what was made for launches and serves nobody any more (on AWS, launch templates and instance
        profiles). Repeating it is harmless. What is given is all that there is.
        """
        ...


def capacity_pools(failures: Iterable[LaunchFailure]) -> frozenset[OfferingKey]:
    """What the cloud was out of."""
    return frozenset(failure.shortage or failure.pool for failure in failures if failure.is_capacity)
