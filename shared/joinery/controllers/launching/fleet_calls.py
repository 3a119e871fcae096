"""CreateFleet calls and their answers, as the claims see them that share a call."""

from collections.abc import Iterable
from datetime import datetime

from joinery.decisions.lifecycle.launching.fleet_groups import FleetGroup, FleetOutcome
from joinery.decisions.lifecycle.launching.instance_filters import FilteredTypes, is_relaxed, partition, tenancy
from joinery.gateways.ec2.gateway import LaunchedInstance, LaunchRequest, LaunchResult, Override, capacity_pools
from joinery.objects.codes import TRANSIENT
from joinery.objects.errors import ConfigurationError, JoineryError
from joinery.objects.karpenter.labels import GANGS, NO_EXECUTE, NODE_POOL, UNREGISTERED_TAINT
from joinery.objects.karpenter.meta import Taint
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.offerings import EFA, OfferingKey, full_subnets

_UNREGISTERED = Taint(key=UNREGISTERED_TAINT, effect=NO_EXECUTE)


def outcome_of_earlier_call(instances: tuple[Instance, ...]) -> FleetOutcome:
    """The outcome of a call that an earlier run made. Instances that EC2 stops or ends serve nobody."""
    ended = ", ".join(instance.instance_id for instance in instances if not instance.serves)
    return FleetOutcome(
        instances=tuple(instance for instance in instances if instance.serves),
        loss=f"EC2 ended {ended} before any claim knew of it" if ended else None,
    )


def request_of(
    group: FleetGroup, node_class: NodeClass, filtered_types: FilteredTypes, unavailable: Iterable[OfferingKey]
) -> LaunchRequest:
    """``unavailable``: what EC2 was out of lately."""
    claim = group.waiting[0]
    return LaunchRequest(
        token=group.token,
        count=group.count,
        node_pool=claim.metadata.labels.get(NODE_POOL, ""),
        node_class=node_class,
        capacity_type=filtered_types.capacity_type,
        overrides=_overrides(filtered_types, with_efa=group.wants_efa),
        full_subnets=full_subnets(unavailable),
        tenancy=tenancy(claim),
        partition=partition(claim),
        min_values_relaxed=is_relaxed(claim),
        in_our_order=any(kind.is_repriced for kind in filtered_types.types),
        together=GANGS in claim.metadata.annotations,
        labels=claim.metadata.labels,
        taints=(*claim.spec.taints, *claim.spec.startup_taints, _UNREGISTERED),
    )


def _overrides(filtered_types: FilteredTypes, *, with_efa: bool) -> tuple[Override, ...]:
    """``with_efa``: some pod asks for Elastic Fabric Adapters, so the instance gets all that its type has."""
    return tuple(
        Override(
            instance_type=instance_type.name,
            zone=offering.zone,
            price=offering.price,
            max_pods=instance_type.capacity.get("pods", 0),
            reservation=offering.reservation,
            efa=instance_type.capacity.get(EFA, 0) if with_efa else 0,
            listed=offering.listed,
        )
        for instance_type in filtered_types.types
        for offering in sorted(instance_type.offerings, key=lambda offering: (offering.price, offering.zone))
    )


def refusal_of(result: LaunchResult) -> JoineryError | None:
    """Why nothing was launched, where that is neither for a lack of capacity nor passes by itself."""
    found = [each for each in result.failures if not each.is_capacity and each.code not in TRANSIENT]
    if result.instances or not found:
        return None
    error = ConfigurationError(f"{found[0].code}: {found[0].message}")
    error.code = found[0].code
    return error


def outcome_of(result: LaunchResult, now: datetime) -> FleetOutcome:
    """EC2's answer as the group's claims see it. Failures may come with instances: then other pools served the call."""
    shortages, problems = {}, set()
    for failure in reversed(result.failures):
        if failure.is_capacity:
            # One message a code, the first: EC2 repeats it for every pool, and only the pool's name differs.
            shortages[failure.code] = failure.message
        else:
            problems.add(f"{failure.code}: {failure.message}")
    problem = "; ".join(sorted(problems)) or ("" if result.failures else "EC2 returned too few instances and no error")
    return FleetOutcome(
        instances=tuple(_instance(launched, now) for launched in result.instances),
        out_of=capacity_pools(result.failures),
        shortage="; ".join(f"{code}: {shortages[code]}" for code in sorted(shortages)),
        problem=problem,
    )


def _instance(launched: LaunchedInstance, now: datetime) -> Instance:
    return Instance(
        instance_id=launched.instance_id,
        instance_type=launched.instance_type,
        zone=launched.zone,
        capacity_type=launched.capacity_type,
        state="pending",
        launched_at=now,
        image_id=launched.image_id,
        reservation=launched.reservation,
        provider=launched.provider,
    )
