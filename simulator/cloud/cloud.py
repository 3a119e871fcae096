"""EC2 in memory: pools that run out, spot instances that are taken back, instances that boot and go by the clock.

The domain's own fault model is the capacity pool: an instance type in a zone, bought one way, with so many left. A
launch takes the cheapest pools that still have stock and reports those that had none, as CreateFleet does.
"""

import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from joinery.gateways.aws import error
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.ec2.gateway import (
    Instance,
    LaunchedInstance,
    LaunchFailure,
    LaunchRequest,
    LaunchResult,
    Override,
)
from joinery.gateways.ec2.instancetypes.remembered import types_of
from joinery.gateways.ec2.nodeclass.readiness import status
from joinery.gateways.ec2.nodeclass.reservations import selected
from joinery.gateways.ec2.nodeclass.tags import instance_tags
from joinery.objects.commitments import Bought
from joinery.objects.errors import ConfigurationError, NotFoundError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus, of_ec2
from joinery.objects.karpenter.labels import SPOT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.snapshot.instances import GOING, InstanceStatus
from joinery.objects.snapshot.learned_memory import LearnedMemory
from joinery.objects.snapshot.offerings import InstanceType, OfferingKey
from simulator.clock import Clock
from simulator.cloud.network import Network
from simulator.cloud.refusals import out_of, protected, subnet_full
from simulator.cloud.spot_prices import SpotPrices
from simulator.cloud.throttling import ASKED_BY, CODE, MESSAGE, Throttle

#: How long EC2 takes: to run a new instance, to stop a terminated one, to forget it, to take a spot instance back.
STARTS_IN = timedelta(seconds=8)
STOPS_IN = timedelta(seconds=30)
FORGOTTEN_IN = timedelta(hours=1)
SPOT_NOTICE = timedelta(minutes=2)
#: EC2's codes and words for why an instance ends (EC2 API `StateReason`).
_ASKED_FOR = ("Client.UserInitiatedShutdown", "User initiated shutdown")
_TAKEN_BACK = ("Server.SpotInstanceTermination", "Instance terminated due to Spot interruption")


@dataclass(kw_only=True)
class _Machine:
    """One instance; its state follows from the clock."""

    instance: Instance
    price: float
    ends_at: datetime | None = None
    why: tuple[str, str] = ("", "")
    noticed_at: datetime | None = None
    stopped_at: datetime | None = None

    def state(self, now: datetime) -> str:
        if self.ends_at is not None and now >= self.ends_at:
            return "terminated" if now >= self.ends_at + STOPS_IN else "shutting-down"
        if self.stopped_at is not None and now >= self.stopped_at:
            return "stopped" if now >= self.stopped_at + STOPS_IN else "stopping"
        return "running" if now >= self.instance.launched_at + STARTS_IN else "pending"

    def is_remembered(self, now: datetime) -> bool:
        return self.ends_at is None or now < self.ends_at + STOPS_IN + FORGOTTEN_IN


class InMemoryCloud:
    """Implements ``joinery.gateways.ec2.gateway.Cloud``.

    ``requests`` are the launches asked for, in order, for tests to look at. ``stock`` holds the pools that are limited:
    how many instances are left in each. ``reserved`` holds the capacity reservations by id, as they were before any
    launch. ``rebooted`` are the ids of the instances that were rebooted, in order. ``statuses``: by id, what is wrong
    with instances, ours and others'. ``removals``: how often what nobody uses was removed. ``shifted``: the ids of the
    zones that traffic is shifted away from.

    ``owned``: what the account has bought in advance.

    ``lag``: how late EC2 knows what it has launched, and lists what has changed. ``omission``: the share of instances
    that any one answer leaves out. ``dooms``: of a new instance, EC2's code and words for why it ends at launch; None
    for one that runs. ``protected``: the ids of instances with termination protection.

    ``spot_prices``: how they move; None: they stay as recorded. ``throttle``: how often EC2 may be asked.
    ``addresses``: by subnet that is limited, how many instances it has addresses for; one that ends gives its back.
    """

    def __init__(
        self, clock: Clock, catalog: Catalog, *, cluster: str = "joinery", beside: "InMemoryCloud | None" = None
    ) -> None:
        """``beside``: what another cluster of the same account has."""
        self.clock = clock
        self.cluster = cluster
        self._of_account: list[InMemoryCloud] = beside._of_account if beside else []
        self._first_id = len(self._of_account) << 32
        self._of_account.append(self)
        self.network = Network.of(cluster, catalog)
        self.stock: dict[OfferingKey, int] = {}
        self.reserved: dict[str, CapacityReservation] = {}
        self.requests: list[LaunchRequest] = []
        self.rebooted: list[str] = []
        self.statuses: dict[str, InstanceStatus] = {}
        self.shifted: set[str] = set()
        self.removals = 0
        self.owned = Bought()
        self.lag = timedelta(0)
        self.omission = 0.0
        self._chance = random.Random(cluster)
        self.dooms: Callable[[Instance], tuple[str, str] | None] = lambda _: None
        self.dies_in = timedelta(seconds=2)
        self.protected: set[str] = set()
        self.spot_prices: SpotPrices | None = None
        self.throttle: Throttle | None = None
        self.addresses: dict[str, int] = {}
        self._back_at: dict[OfferingKey, datetime] = {}
        self._catalog = catalog
        self._machines: dict[str, _Machine] = {}
        self._launched: dict[str, LaunchResult] = {}
        self._failures: dict[str, deque[BaseException]] = {}
        self._watchers: list[Callable[[str], None]] = []

    # --- what a test or the engine does to it ---

    def run_out(self, *pools: OfferingKey, left: int = 0, until: datetime | None = None) -> None:
        """From now on the pools have that many instances to give. ``until``: when they have enough again by
        themselves.
        """
        self.stock.update(dict.fromkeys(pools, left))
        self._back_at |= dict.fromkeys(pools, until) if until else {}

    def restock(self, *pools: OfferingKey) -> None:
        """The pools have enough again."""
        for pool in pools:
            self.stock.pop(pool, None)
            self._back_at.pop(pool, None)

    def interrupt(self, instance_id: str) -> datetime:
        """Give a spot instance its two minutes' notice.

        Returns when EC2 will take it; the warning is the caller's to send.
        """
        machine = self._machine(instance_id)
        if machine.instance.capacity_type != labels.SPOT:
            raise ConfigurationError(f"{instance_id} is not a spot instance")
        now = self.clock.now()
        machine.noticed_at = machine.noticed_at or now
        deadline = machine.noticed_at + SPOT_NOTICE
        self._end(machine, deadline, _TAKEN_BACK)
        return deadline

    def stop(self, instance_id: str) -> None:
        """Somebody stops the instance, and the event about it is lost."""
        self._machine(instance_id).stopped_at = self.clock.now()

    def cancel(self, reservation: str) -> None:
        """End a capacity reservation: its instances run on, as on-demand ones."""
        self.reserved.pop(reservation)
        for machine in self._machines.values():
            if machine.instance.reservation == reservation:
                machine.instance = replace(machine.instance, capacity_type=labels.ON_DEMAND, reservation="")

    def place(self, instance_id: str, group_id: str, group: str) -> None:
        """Have the instance be in a placement group: what somebody else than Joinery has launched may be in one."""
        machine = self._machine(instance_id)
        machine.instance = replace(machine.instance, placement_group_id=group_id, placement_group=group)

    def watch(self, watcher: Callable[[str], None]) -> None:
        """Call the watcher with an instance's id when it is launched, and when its end is decided or moved."""
        self._watchers.append(watcher)

    def look(self, instance_id: str) -> tuple[Instance, datetime | None]:
        """An instance as it is, even one that is long gone, and the moment at which it begins to shut down."""
        machine = self._machines[instance_id]
        return self._seen(machine, self.clock.now()), machine.ends_at

    def request_of(self, instance_id: str) -> LaunchRequest:
        """The launch that an instance came from. ``NotFoundError``."""
        for request in self.requests:
            launched = self._launched.get(request.token, LaunchResult(()))
            if any(instance.instance_id == instance_id for instance in launched.instances):
                return request
        raise NotFoundError(f"instance {instance_id} was not launched here")

    def fail_next(self, operation: str, error: BaseException) -> None:
        """Let the next call of that method raise the error and do nothing. Several errors are raised in turn."""
        self._failures.setdefault(operation, deque()).append(error)

    @property
    def hourly(self) -> float:
        """What all instances that are not gone cost now, $/h."""
        now = self.clock.now()
        alive = (m for m in self._machines.values() if m.state(now) in ("pending", "running"))
        return sum(self.price(machine.instance.instance_id) for machine in alive)

    def price(self, instance_id: str) -> float:
        """What an instance costs now, $/h; also of one long gone. Of a spot instance at this hour's price."""
        machine = self._machines[instance_id]
        sold = machine.instance
        if self.spot_prices is None or sold.capacity_type != SPOT:
            return machine.price
        now, then = (
            self.spot_prices.factor(sold.instance_type, sold.zone, moment)
            for moment in (self.clock.now(), sold.launched_at)
        )
        return machine.price * now / then

    # --- Cloud ---

    def catalog(self, earlier: Catalog | None = None, *, in_full: bool = False) -> Catalog:
        self._fail("catalog")
        sold = self.spot_prices.of(self._catalog, self.clock.now()) if self.spot_prices else self._catalog
        current = sold if earlier is None or in_full else _repriced(earlier, sold)
        if not self.reserved:
            return current
        return msgspec.structs.replace(current, capacity_reservations=self._as_they_are(sorted(self.reserved)))

    def bought(self) -> Bought:
        self._fail("bought")
        return self.owned

    def status_of(self, node_class: NodeClass) -> EC2NodeClassStatus:
        self._fail("status_of")
        now, asked = self.clock.now(), of_ec2(node_class)
        reserved = selected(asked.spec, self.reserved.values(), now)
        return status(asked, replace(self.network.find(asked), capacity_reservations=reserved), now)

    def prepare(self, node_class: NodeClass, likely: object = None) -> EC2NodeClassStatus:
        return self.status_of(node_class)

    def instance_types(
        self, node_classes: Sequence[NodeClass], catalog: Catalog, now: datetime, memory: LearnedMemory | None = None
    ) -> Mapping[str, tuple[InstanceType, ...]]:
        self._fail("instance_types")
        reserved = self._as_they_are(sorted(self.reserved))
        return {
            (name := node_class.metadata.name): types_of(
                catalog,
                of_ec2(node_class),
                now=now,
                reservations=reserved,
                group=self.network.group(of_ec2(node_class)),
                memory=(memory or {}).get(name),
            )
            for node_class in node_classes
        }

    def _as_they_are(self, ids: Sequence[str]) -> tuple[CapacityReservation, ...]:
        """Those reservations, with what is left of each."""
        existing = [self.reserved[name] for name in ids if name in self.reserved]
        return tuple(
            msgspec.structs.replace(
                reservation, available_instance_count=self._left_in(reservation.capacity_reservation_id)
            )
            for reservation in existing
        )

    def launch(self, request: LaunchRequest) -> LaunchResult:
        self._fail("launch", request.count)
        self.requests.append(request)
        if request.token not in self._launched:
            self._launched[request.token] = self._launch(request)
        return self._launched[request.token]

    def shifted_zones(self) -> frozenset[str]:
        self._fail("shifted_zones")
        return frozenset(self.shifted)

    def instances(self) -> tuple[Instance, ...]:
        self._fail("instances")
        now = self.clock.now()
        return tuple(instance for instance in self._listed(now) if instance.state != "terminated")

    def remove_unused(
        self, node_classes: Sequence[NodeClass], claims: Sequence[NodeClaim], instances: Sequence[Instance]
    ) -> None:
        self._fail("remove_unused")
        self.removals += 1

    def look_up(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        self._fail("look_up")
        listed = (instance for cloud in self._of_account for instance in cloud._listed(self.clock.now()))
        return tuple(instance for instance in listed if instance.instance_id in instance_ids)

    def impaired(self) -> tuple[InstanceStatus, ...]:
        self._fail("impaired")
        now = self.clock.now()
        ended = {name for name, machine in self._machines.items() if machine.state(now) != "running"}
        return tuple(status for name, status in self.statuses.items() if name not in ended)

    def terminate(self, instance_ids: Sequence[str]) -> None:
        self._fail("terminate", len(instance_ids))
        now = self.clock.now()
        machines = [m for i in instance_ids if (m := self._machines.get(i)) and self._knows(m, now)]
        if instance_ids and not machines:
            raise NotFoundError(f"none of the instances exists: {', '.join(instance_ids)}")
        if guarded := self.protected.intersection(instance_ids):
            raise protected(min(guarded))
        for machine in machines:
            self._end(machine, now, _ASKED_FOR)

    def reboot(self, instance_id: str) -> None:
        self._fail("reboot")
        self._machine(instance_id)
        self.rebooted.append(instance_id)

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        self._fail("tag")
        machine = self._machine(instance_id)
        machine.instance = replace(machine.instance, tags={**(machine.instance.tags or {}), **tags})

    # --- how it does it ---

    def _end(self, machine: _Machine, moment: datetime, why: tuple[str, str]) -> None:
        """Let the instance end at that moment, unless it ends earlier already. ``why``: EC2's code and words."""
        if machine.ends_at is None or moment < machine.ends_at:
            machine.ends_at, machine.why = moment, why
            self._tell(machine.instance.instance_id)

    def _tell(self, instance_id: str) -> None:
        for watcher in self._watchers:
            watcher(instance_id)

    def _fail(self, operation: str, instances: int = 0) -> None:
        if waiting := self._failures.get(operation):
            raise waiting.popleft()
        if self.throttle and not self.throttle.lets(ASKED_BY[operation], instances):
            raise error(CODE, MESSAGE, doing=f"EC2 {ASKED_BY[operation]}", status=503)

    def _machine(self, instance_id: str) -> _Machine:
        machine = self._machines.get(instance_id)
        if machine is None or not self._knows(machine, self.clock.now()):
            raise NotFoundError(f"instance {instance_id} does not exist")
        return machine

    def _knows(self, machine: _Machine, now: datetime) -> bool:
        return machine.instance.launched_at <= now - self.lag and machine.is_remembered(now)

    def _listed(self, now: datetime) -> Iterator[Instance]:
        """What an answer to DescribeInstances holds: the instances as they were a while ago, without some of them."""
        for machine in self._machines.values():
            if self._knows(machine, now) and self._chance.random() >= self.omission:
                yield self._seen(machine, now - self.lag)

    def _seen(self, machine: _Machine, now: datetime) -> Instance:
        state = machine.state(now)
        code, reason = machine.why if state in GOING else ("", "")
        return replace(machine.instance, state=state, reason_code=code, reason=reason)

    def _launch(self, request: LaunchRequest) -> LaunchResult:
        node_class = of_ec2(request.node_class)
        tags = {**instance_tags(self.cluster, node_class, request.node_pool), labels.LAUNCH_TOKEN: request.token}
        images = self._images(node_class)
        if request.all_or_none_by and (short := self._short_of_all(request)):
            return LaunchResult((), short)
        launched: list[LaunchedInstance] = []
        failures: list[LaunchFailure] = []
        for override in sorted(request.overrides, key=lambda o: (o.price, o.instance_type, o.zone)):
            pool = request.pool(override)
            wanted = request.count - len(launched)
            within = override.reservation.id if override.reservation else ""
            subnet = self._subnet(node_class, pool.zone)
            if subnet is None:
                failures.append(subnet_full(pool))
                continue
            wanted_here = min(wanted, self._free_in(subnet))
            got = self._take(pool, min(wanted_here, self._left_in(within)) if within else wanted_here)
            launched += [
                self._start(request, override, subnet, images(override.instance_type), tags) for _ in range(got)
            ]
            if got == wanted:
                break
            failures.append(out_of(pool) if got < wanted_here else subnet_full(pool))
        return LaunchResult(tuple(launched), tuple(failures))

    def _short_of_all(self, request: LaunchRequest) -> tuple[LaunchFailure, ...]:
        """What a call that wants all or none finds too little of; nothing where all can be had."""
        pools = [request.pool(override) for override in request.overrides]
        there = [self.stock.get(pool) for pool in pools]
        has_all = any(left is None for left in there) or sum(left or 0 for left in there) >= request.count
        return () if has_all else tuple(map(out_of, pools))

    def _subnet(self, node_class: EC2NodeClass, zone: str) -> str | None:
        """The class's subnet in a zone that has addresses, None where none has; empty for a class without any."""
        ids = [subnet.id for subnet in node_class.status.subnets if subnet.zone == zone]
        return next((name for name in ids if self._free_in(name)), None) if ids else ""

    def _free_in(self, subnet: str) -> int:
        """For how many more instances a subnet has addresses."""
        if subnet not in self.addresses:
            return sys.maxsize
        now = self.clock.now()
        there = (m for m in self._machines.values() if m.instance.subnet_id == subnet)
        return max(self.addresses[subnet] - sum(machine.state(now) != "terminated" for machine in there), 0)

    def _take(self, pool: OfferingKey, wanted: int) -> int:
        if pool in self._back_at and self.clock.now() >= self._back_at[pool]:
            self.restock(pool)
        left = self.stock.get(pool)
        if left is None:
            return wanted
        self.stock[pool] = left - min(left, wanted)
        return min(left, wanted)

    def _left_in(self, reservation: str) -> int:
        """How many more instances a reservation takes: those that are going have given their place back."""
        known, now = self.reserved.get(reservation), self.clock.now()
        inside = [m for m in self._machines.values() if m.instance.reservation == reservation]
        running = sum(machine.state(now) in ("pending", "running") for machine in inside)
        return max(((known.available_instance_count or 0) if known else 0) - running, 0)

    def _start(
        self, request: LaunchRequest, override: Override, subnet: str, image: str, tags: Mapping[str, str]
    ) -> LaunchedInstance:
        pool, node_class = request.pool(override), of_ec2(request.node_class)
        group = self.network.group(node_class)
        numbers = group.partition_numbers if group else ()
        instance_id = f"i-{self._first_id + len(self._machines) + 1:017x}"
        instance = Instance(
            instance_id=instance_id,
            instance_type=pool.instance_type,
            zone=pool.zone,
            capacity_type=pool.capacity_type,
            state="pending",
            launched_at=self.clock.now(),
            image_id=image,
            tags=dict(tags),
            reservation=override.reservation.id if override.reservation else "",
            subnet_id=subnet,
            security_groups=frozenset(group.id for group in node_class.status.security_groups),
            instance_profile=node_class.status.instance_profile,
            placement_group_id=group.id if group else "",
            placement_group=group.name if group else "",
            # EC2 fills them evenly where the launch names none.
            partition=request.partition or (numbers[len(self._machines) % len(numbers)] if numbers else ""),
        )
        self._machines[instance_id] = _Machine(instance=instance, price=override.price)
        self._tell(instance_id)
        if doom := self.dooms(instance):
            self._end(self._machines[instance_id], self.clock.now() + self.dies_in, doom)
        return LaunchedInstance(
            instance_id, pool.instance_type, pool.zone, pool.capacity_type, image, instance.reservation
        )

    def _images(self, node_class: EC2NodeClass) -> Callable[[str], str]:
        status = node_class.status
        if not status.amis:
            raise ConfigurationError(f"EC2NodeClass {node_class.metadata.name}: status.amis is empty")
        kinds = {kind.name: kind for kind in types_of(self._catalog, node_class)}

        def image(instance_type: str) -> str:
            ami = status.image_for(kinds[instance_type].labels) if instance_type in kinds else None
            return ami.id if ami else ""

        return image


def _repriced(earlier: Catalog, current: Catalog) -> Catalog:
    """The earlier catalogue with the spot prices of this moment."""
    kept = (offering for offering in earlier.offerings if offering.capacity_type != SPOT)
    spot = (offering for offering in current.offerings if offering.capacity_type == SPOT)
    return msgspec.structs.replace(earlier, offerings=(*kept, *spot))
