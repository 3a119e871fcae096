"""The CreateFleet call as data: one request for identical instances from any of many capacity pools, and what its
answer means.

Nothing here talks to EC2 (EC2 API CreateFleet). EC2 repeats the override that an instance came from, and in each error
the override that it is about. The zone is written in each override so that it can be read there again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from joinery.gateways.answers import at, entries
from joinery.gateways.ec2.gateway import LaunchedInstance, LaunchFailure, LaunchRequest, LaunchResult, Override
from joinery.gateways.ec2.launch.templates import tag_specifications
from joinery.objects.codes import (
    NO_VOLUMES_IN_ZONE,
    QUOTA_OF_TYPE,
    SPOT_ROLE_LACKING,
    SUBNET_FULL,
    UNFULFILLED,
    VCPU_QUOTAS,
    is_capacity,
    is_group_full,
    is_of_options,
)
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, of_ec2
from joinery.objects.snapshot.offerings import (
    ALL_SPOT,
    CAPACITY_BLOCK,
    OfferingKey,
    class_scope,
    group_scope,
    tenancy_scope,
)
from joinery.objects.snapshot.quotas import quota_of

_INTERRUPTIBLE = "reserved-capacity"
_CALL = "EC2 CreateFleet"
#: What part of AWS's price a priority has beside ours.
_TIE = 1e-6


def subnets_by_zone(node_class: EC2NodeClass, full: Collection[str] = ()) -> dict[str, str]:
    """Zone to the id of one subnet in it: the one with the most free addresses, which the status lists first.

    ``full``: ids of those that are passed over. Raises ``ConfigurationError`` for a class whose status has none.
    """
    if not node_class.status.subnets:
        raise ConfigurationError(f"EC2NodeClass {node_class.metadata.name}: status.subnets is empty")
    subnets: dict[str, str] = {}
    for subnet in node_class.status.subnets:
        if subnet.id not in full:
            subnets.setdefault(subnet.zone, subnet.id)
    return subnets


def full_subnets(request: LaunchRequest, answered: LaunchResult, subnets: Mapping[str, str]) -> frozenset[str]:
    """The request's full subnets, which the call has passed over, with those that turned out to have no free address.

    Only where their zones have another: the same ones again mean that there is nothing more to try.
    ``subnets``: by zone, the subnet of the call.
    """
    node_class, known = of_ec2(request.node_class), request.full_subnets
    zones = {failure.pool.zone for failure in answered.failures if failure.code == SUBNET_FULL} & set(subnets)
    full = known | {subnets[zone] for zone in zones}
    return full if zones & set(subnets_by_zone(node_class, full)) else known


def fleet(
    request: LaunchRequest,
    configs: Iterable[tuple[str, Sequence[Override]]],
    tags: Mapping[str, str],
    subnets: Mapping[str, str],
) -> dict[str, Any]:
    """The call.

    ``configs``: names of launch templates, each with the pools that it may be launched from; ``tags``: of the
    instances; ``subnets``: by zone, the id of the one to launch into.
    """
    spec = of_ec2(request.node_class).spec
    call: dict[str, Any] = {
        "Type": "instant",
        "ClientToken": request.token,
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": request.count,
            "DefaultTargetCapacityType": target_type(request),
        },
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
                "Overrides": [_override(pool, subnets[pool.zone]) for pool in pools if pool.zone in subnets],
            }
            for name, pools in configs
            if any(pool.zone in subnets for pool in pools)
        ],
        "TagSpecifications": tag_specifications(("instance", "volume", "fleet"), tags),
    }
    # The context is agreed upon with EC2 for fleets that are as varied as they are meant to be.
    context = {"Context": spec.context} if spec.context and not request.min_values_relaxed else {}
    return call | _options(request) | context


def target_type(request: LaunchRequest) -> str:
    """What EC2 calls the capacity type. To EC2 an instance in an ordinary capacity reservation is on-demand."""
    if request.capacity_type != labels.RESERVED:
        return request.capacity_type
    reservation = request.overrides[0].reservation
    if reservation is not None and reservation.kind == CAPACITY_BLOCK:
        return CAPACITY_BLOCK
    return _INTERRUPTIBLE if reservation is not None and reservation.is_interruptible else labels.ON_DEMAND


def _options(request: LaunchRequest) -> dict[str, Any]:
    """How EC2 chooses among the pools (EC2 API SpotOptionsRequest, OnDemandOptionsRequest). In a capacity block it has
    nothing to choose.

    In our order it goes by the priorities of the overrides, which are our prices.
    """
    target = target_type(request)
    spot = "capacity-optimized-prioritized" if request.in_our_order else "price-capacity-optimized"
    on_demand = "prioritized" if request.in_our_order else "lowest-price"
    by = request.all_or_none_by
    together = {by: True, "MinTargetCapacity": request.count} if by else {}
    options: dict[str, dict[str, Any]] = {
        labels.SPOT: {"SpotOptions": {"AllocationStrategy": spot, **together}},
        labels.ON_DEMAND: {"OnDemandOptions": {"AllocationStrategy": on_demand, **together}},
        _INTERRUPTIBLE: {"ReservedCapacityOptions": {"ReservationTypes": ["interruptible-capacity-reservation"]}},
    }
    return options.get(target, {})


def _override(pool: Override, subnet: str) -> dict[str, Any]:
    return {
        "InstanceType": pool.instance_type,
        "SubnetId": subnet,
        "AvailabilityZone": pool.zone,
        # Of those to which a NodeOverlay gives one price the cheaper one by AWS's list goes first.
        "Priority": pool.price if pool.listed is None else pool.price + pool.listed * _TIE,
    }


def result(
    request: LaunchRequest, answer: Mapping[str, Any], images: Mapping[str, str], subnets: Mapping[str, str]
) -> LaunchResult:
    """What came of the call.

    ``images``: by instance type, the id of its image. ``subnets``: by zone, the one that was asked for. EC2 may list
    several instances in one entry, or not.
    """
    known = _Request(request, subnets)
    launched = [
        _launched(instance_id, entry, known, images)
        for entry in entries(answer, "Instances", "InstanceIds", call=_CALL)
        for instance_id in entry["InstanceIds"]
    ]
    failures = [failure for entry in _told(answer) for failure in _failures(entry, known)]
    return LaunchResult(tuple(launched), tuple(dict.fromkeys(failures)))


def _told(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The entries of ``Errors`` that say why.

    Beside what is no lack of capacity, as a call that was throttled, one that names no pool only says that the fleet
    got less: nothing is out of stock for it.
    """
    said = list(entries(answer, "Errors", call=_CALL))
    is_refused = any(not is_capacity(at(each, "ErrorCode") or "", at(each, "ErrorMessage") or "") for each in said)
    return [each for each in said if not (is_refused and at(each, "ErrorCode") == UNFULFILLED and _names_nothing(each))]


def _names_nothing(entry: Mapping[str, Any]) -> bool:
    override = at(entry, "LaunchTemplateAndOverrides.Overrides")
    return not any(at(override, field) for field in ("InstanceType", "AvailabilityZone", "SubnetId"))


def out_of(request: LaunchRequest, subnets: Mapping[str, str], code: str, message: str) -> frozenset[OfferingKey]:
    """What EC2 has nothing of where it refuses the whole request with that code. ``subnets`` as in ``result``."""
    known = _Request(request, subnets)
    return frozenset(known.shortage(pool, code, message) for pool in request.pools)


class _Request:
    """A request, by what an answer repeats of it."""

    def __init__(self, request: LaunchRequest, subnets: Mapping[str, str]) -> None:
        self.sent, self._subnets = request, subnets
        self._zones = {subnet.id: subnet.zone for subnet in of_ec2(request.node_class).status.subnets}
        # Of a type and zone a call names one reservation, so an entry of the answer need not say which it is.
        self._pools = {(pool.instance_type, pool.zone): pool for pool in request.pools}

    def pool(self, entry: Mapping[str, Any]) -> OfferingKey:
        """The pool that an entry is about. Its type and zone are empty where the entry does not say them."""
        override = at(entry, "LaunchTemplateAndOverrides.Overrides")
        instance_type = at(entry, "InstanceType") or at(override, "InstanceType") or ""
        zone = at(override, "AvailabilityZone") or self._zones.get(at(override, "SubnetId") or "", "")
        unknown = OfferingKey(instance_type, zone, self.sent.capacity_type)
        return self._pools.get((instance_type, zone), unknown)

    def shortage(self, pool: OfferingKey, code: str, message: str) -> OfferingKey:
        """What EC2 is out of where it says that code of a pool of the request: the pool, or more than that, or what
        only this class needs of it.
        """
        node_class = self.sent.node_class
        if code == SPOT_ROLE_LACKING:
            return ALL_SPOT
        if code in VCPU_QUOTAS and pool.instance_type:
            return OfferingKey("", "", pool.capacity_type, scope=quota_of(pool.instance_type))
        if code == QUOTA_OF_TYPE and pool.instance_type:
            return OfferingKey(pool.instance_type, "", pool.capacity_type)
        if code == SUBNET_FULL and pool.zone in self._subnets:
            return OfferingKey("", pool.zone, "", scope=self._subnets[pool.zone])
        if code in NO_VOLUMES_IN_ZONE and pool.zone:
            return OfferingKey("", pool.zone, "", scope=class_scope(node_class))
        if is_group_full(message) and node_class.placement_group and pool.zone:
            return OfferingKey("", pool.zone, "", scope=group_scope(node_class.placement_group))
        if is_of_options(code, message):
            return replace(pool, scope=tenancy_scope(self.sent.tenancy, class_scope(node_class)))
        return pool

    def pools_like(self, pool: OfferingKey) -> Sequence[OfferingKey]:
        """The pools of the request that may be meant by it: what it does not say may be any. Itself without one."""
        alike = (
            one
            for one in sorted(self.sent.pools)
            if pool.instance_type in ("", one.instance_type) and pool.zone in ("", one.zone)
        )
        return tuple(alike) or (pool,)


def _launched(
    instance_id: str, entry: Mapping[str, Any], request: _Request, images: Mapping[str, str]
) -> LaunchedInstance:
    pool = request.pool(entry)
    capacity_type = labels.SPOT if entry.get("Lifecycle") == "spot" else pool.capacity_type
    return LaunchedInstance(
        instance_id=instance_id,
        instance_type=pool.instance_type,
        zone=pool.zone,
        capacity_type=capacity_type,
        image_id=images.get(pool.instance_type, ""),
        reservation=pool.reservation,
    )


def _failures(entry: Mapping[str, Any], request: _Request) -> Iterable[LaunchFailure]:
    """What an entry of ``Errors`` says. A lack of capacity is about all pools that it may be meant for: one that names
    none of them would be met again by the next plan, a second later.
    """
    code, message = at(entry, "ErrorCode") or "", at(entry, "ErrorMessage") or ""
    pool, has_no_capacity = request.pool(entry), is_capacity(code, message)
    if not has_no_capacity:
        yield LaunchFailure(pool, code, message, has_no_capacity)
        return
    for one in request.pools_like(pool) if code != SPOT_ROLE_LACKING else (ALL_SPOT,):
        shortage = request.shortage(one, code, message)
        yield LaunchFailure(one, code, message, has_no_capacity, None if shortage == one else shortage)
