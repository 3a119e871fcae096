"""Fleet groups: which claims share a CreateFleet call, and what becomes of them when EC2 has answered.

Claims that were planned alike carry the same launch token, an annotation; all claims with one token are one call. The
``ClientToken`` that EC2 gets derives from that annotation and from the claims' UIDs. So whoever repeats the call after
a crash asks with the same token, and gets the same instances (EC2 API CreateFleet, "Ensuring idempotency"). EC2 repeats
the answer that a fleet was made without instances, too. Therefore its claims get a new annotation before the next try.

Instances are written to their claims before any claim is deleted, so that a repeated call finds them taken. And a claim
that somebody deletes stays until none of its call waits any more (``is_needed``): without it the others would ask with
another token, and get instances once more.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from joinery.decisions.lifecycle.launching.instance_filters import partition, tenancy
from joinery.objects.actions import Announce, Command, DeleteClaim, MarkUnavailable, UpdateClaim
from joinery.objects.karpenter.conditions import true, unknown
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    LAUNCH_TOKEN,
    PARTITION,
    RESERVATION_LABELS,
    TENANCY,
    ZONE,
    ZONE_ID,
)
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.kubernetes.quantity import Resources, amounts, texts
from joinery.objects.snapshot.claims import (
    LAUNCHED,
    annotated,
    awaits_launch,
    drivers_wanted,
    observed,
    with_condition,
    with_derived_ready,
    with_status,
)
from joinery.objects.snapshot.instances import Instance, instance_id
from joinery.objects.snapshot.offerings import EFA, EFA_DRIVER, InstanceType, OfferingKey
from joinery.objects.wording import MOST_QUOTED, shortened

_LONGEST_ATTEMPT = 10  # digits
#: The claims of one call are written within one run. A claim with their token that is so much younger is a copy that
#: somebody has made of one of them: it is launched alone.
_ONE_RUN = timedelta(minutes=10)


@dataclass(frozen=True)
class FleetGroup:
    """The claims of one CreateFleet call, launched or not, in the order of their names."""

    claims: tuple[NodeClaim, ...]

    @property
    def token(self) -> str:
        """The call's ``ClientToken``: at most 64 characters."""
        parts = (launch_token(self.claims[0]), *sorted(claim.metadata.uid for claim in self.claims))
        return f"joinery-{hashlib.sha256('/'.join(parts).encode()).hexdigest()[:40]}"

    @property
    def waiting(self) -> tuple[NodeClaim, ...]:
        """Those that have no instance yet."""
        return tuple(claim for claim in self.claims if not claim.status.provider_id and not claim.is_deleting)

    @property
    def count(self) -> int:
        """How many instances are asked for: one for each claim that has one or waits for it."""
        return sum(bool(claim.status.provider_id) for claim in self.claims) + len(self.waiting)

    @property
    def requests(self) -> Resources:
        """What an instance must hold to serve any of them: of each resource the largest request."""
        requests = [amounts(claim.spec.resources.requests) for claim in self.claims]
        resources = {resource for claimed in requests for resource in claimed}
        return {resource: max(claimed.get(resource, 0) for claimed in requests) for resource in sorted(resources)}

    @property
    def wants_efa(self) -> bool:
        """Whether some claim is for Elastic Fabric Adapters, as a resource or as devices: instances have them only on
        request.
        """
        drivers = {name for claim in self.claims for name in drivers_wanted(claim)}
        return self.requests.get(EFA, 0) > 0 or EFA_DRIVER in drivers

    def free(self, instances: Iterable[Instance]) -> tuple[Instance, ...]:
        """The call's instances that no claim has yet, in a fixed order."""
        taken = {instance_id(claim.status.provider_id) for claim in self.claims}
        # The order is fixed so that a repeated call gives each claim the same instance again.
        ordered = sorted(instances, key=lambda instance: instance.instance_id)
        return tuple(instance for instance in ordered if instance.instance_id not in taken)


@dataclass(frozen=True, kw_only=True)
class FleetOutcome:
    """What EC2 answered to a group's call.

    ``instances``: all that the call has launched, now or when it was made before. ``out_of``: the capacity pools that
    EC2 had nothing left in, and ``shortage`` its words for that. ``problem``: its words for anything else that kept it
    from launching. ``loss``: what became of instances that the call had launched and that are
    of no use any more.
    """

    instances: tuple[Instance, ...] = ()
    out_of: frozenset[OfferingKey] = frozenset()
    shortage: str | None = None
    problem: str | None = None
    loss: str | None = None


def launch_token(claim: NodeClaim) -> str:
    """What a claim shares with those of the same call.

    A claim that another controller wrote has no token, and is launched alone.
    """
    return claim.metadata.annotations.get(LAUNCH_TOKEN) or claim.metadata.name


def is_needed(claim: NodeClaim, claims: Iterable[NodeClaim]) -> bool:
    """Whether others of its call still wait for their instances, and need its UID for their token. ``claims``: all."""
    token = claim.metadata.annotations.get(LAUNCH_TOKEN)
    return bool(token) and any(awaits_launch(other) and launch_token(other) == token for other in claims)


def fleet_groups(wanted: Iterable[NodeClaim], claims: Iterable[NodeClaim]) -> tuple[FleetGroup, ...]:
    """The calls that the wanted claims need; ``claims`` are all there are."""
    asked = {claim.metadata.name: launch_token(claim) for claim in wanted}
    members: dict[str, list[NodeClaim]] = defaultdict(list)
    for claim in claims:
        if launch_token(claim) in asked.values():
            members[launch_token(claim)].append(claim)
    groups = (group for token in sorted(members) for group in _without_copies(members[token]))
    return tuple(group for group in groups if any(claim.metadata.name in asked for claim in group.claims))


def _without_copies(claims: Iterable[NodeClaim]) -> Iterator[FleetGroup]:
    """The claims of one token that were written together, and each of the others by itself."""
    ordered = sorted(claims, key=_name)
    created = [claim.metadata.creation_timestamp for claim in ordered if claim.metadata.creation_timestamp]
    latest = min(created) + _ONE_RUN if created else None
    late = [c for c in ordered if latest and c.metadata.creation_timestamp and c.metadata.creation_timestamp > latest]
    yield FleetGroup(tuple(claim for claim in ordered if claim not in late))
    yield from (FleetGroup((claim,)) for claim in late)


def launched_unwritten(claims: Iterable[NodeClaim], instances: Iterable[Instance]) -> frozenset[str]:
    """The names of claims that have an instance which nobody could write to them yet. ``claims``: all there are."""
    by_token: dict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        if instance.serves:
            by_token[instance.launch_token].append(instance)
    all_claims = tuple(claims)
    groups = fleet_groups(filter(awaits_launch, all_claims), all_claims)
    served = (zip(group.waiting, group.free(by_token.get(group.token, ())), strict=False) for group in groups)
    return frozenset(claim.metadata.name for pairs in served for claim, _ in pairs)


def _name(claim: NodeClaim) -> str:
    return claim.metadata.name


def after_launch(
    group: FleetGroup, outcome: FleetOutcome, node_class: NodeClass, types: Mapping[str, InstanceType], now: datetime
) -> tuple[tuple[tuple[Command, ...], ...], tuple[tuple[Command, ...], ...]]:
    """What to do about EC2's answer, one chain of commands for each claim and pool.

    The first chains are about the claims that are served and the pools that EC2 is out of. The second are about the
    claims that got nothing, and are carried out after the first. ``types``: the instance types of the node class, by
    name.
    """
    free = group.free(outcome.instances)
    served = list(zip(group.waiting, free, strict=False))
    unserved = group.waiting[len(served) :]
    if not _has_efa(group, node_class):
        types = {name: _without_efa(instance_type) for name, instance_type in types.items()}
    gains = (
        *(_served(claim, instance, node_class, types.get(instance.instance_type), now) for claim, instance in served),
        *((MarkUnavailable(pool, "EC2 is out of it"),) for pool in sorted(outcome.out_of)),
    )
    return gains, tuple(_unserved(claim, outcome, now) for claim in unserved)


def _has_efa(group: FleetGroup, node_class: NodeClass) -> bool:
    """Whether the instances were launched with the adapters that their type may have."""
    return node_class.declares_interfaces or group.wants_efa


def _without_efa(instance_type: InstanceType) -> InstanceType:
    if EFA not in instance_type.capacity:
        return instance_type
    capacity = {resource: amount for resource, amount in instance_type.capacity.items() if resource != EFA}
    allocatable = {resource: amount for resource, amount in instance_type.allocatable.items() if resource != EFA}
    return replace(instance_type, capacity=capacity, allocatable=allocatable)


def _unserved(claim: NodeClaim, outcome: FleetOutcome, now: datetime) -> tuple[Command, ...]:
    if outcome.loss:
        # Given up, and not launched again: EC2 would answer a repeated call with the same instances. The pods are
        # planned anew, and their next claim has a token of its own.
        return Announce("InstanceGone", outcome.loss, claim), DeleteClaim(claim, outcome.loss)
    if outcome.problem:
        return postponed(claim, "LaunchFailed", outcome.problem, now, renew=True)
    ec2s_words = f": {outcome.shortage}" if outcome.shortage else ""
    return insufficient(claim, shortened(f"EC2 is out of every instance type that it may use{ec2s_words}", MOST_QUOTED))


def insufficient(claim: NodeClaim, text: str) -> tuple[Command, ...]:
    """No capacity: give the claim up, so that its pods are planned anew without these pools."""
    return Announce("InsufficientCapacityError", text, claim), DeleteClaim(claim, text)


def postponed(
    claim: NodeClaim, reason: str, message: str, now: datetime, *, renew: bool = False
) -> tuple[Command, ...]:
    """What to write on a claim whose launch is tried again, until the launch timeout (``lifecycle.joining.liveness``).

    ``renew``: EC2 has made the fleet and launched nothing for this claim. It would repeat that answer, so the next call
    gets a token of its own. In any other case the old token may still launch something, and two tokens would launch
    twice.
    """
    shown = shortened(message, MOST_QUOTED)
    after = with_condition(claim, unknown(LAUNCHED, reason, shown, observed(claim, now)))
    if renew:
        stem, _, said = launch_token(claim).partition("/")
        # Somebody may have edited it.
        attempt = int(said) if said.isdecimal() and len(said) < _LONGEST_ATTEMPT else 1
        after = annotated(after, {LAUNCH_TOKEN: f"{stem}/{attempt + 1}"})
    after = with_derived_ready(after, now)
    return (UpdateClaim(claim, after, shown),) if after != claim else ()


def unlaunchable(claim: NodeClaim, node_class: NodeClass | None, now: datetime) -> tuple[Command, ...]:
    """What to do about a claim whose node class does not allow a launch; empty if it does.

    The rules are those of Karpenter nodeclaim/lifecycle, Launch. Without the class the claim is given up as if EC2 were
    out of capacity. While it is not known to be ready the claim waits.
    """
    subject = f"{claim.spec.node_class_ref.kind} {claim.spec.node_class_ref.name}"
    if node_class is None or node_class.is_deleting:
        return insufficient(claim, f"{subject} does not exist or is being deleted")
    ready = node_class.ready
    if ready is None or ready.status == "Unknown":
        return postponed(claim, "NodeClassReadinessUnknown", f"{subject}: not known to be ready", now)
    if ready.status == "False" or ready.observed_generation not in (None, node_class.metadata.generation):
        return (DeleteClaim(claim, f"{subject} is not ready: {ready.message}"),)
    return ()


def _served(
    claim: NodeClaim, instance: Instance, node_class: NodeClass, instance_type: InstanceType | None, now: datetime
) -> tuple[Command, ...]:
    """The claim with what its instance is.

    ``instance_type`` is None for a type that the class does not give any more.
    """
    type_labels = _type_labels(instance_type, instance) if instance_type else {}
    # The claim's own labels win: they were promised to the pods when the claim was planned.
    has_tenancy = instance_type is None or TENANCY in instance_type.labels
    chosen = {PARTITION: partition(claim)} if partition(claim) else {}
    chosen |= {TENANCY: tenancy(claim)} if has_tenancy else {}
    labels = {**type_labels, **chosen, **claim.metadata.labels}
    annotations = {**claim.metadata.annotations, **node_class.claim_annotations}
    after = with_status(
        with_metadata(claim, labels=labels, annotations=annotations),
        provider_id=instance.provider_id,
        image_id=instance.image_id,
        capacity=_texts(instance_type.capacity) if instance_type else {},
        allocatable=_texts(instance_type.allocatable) if instance_type else {},
    )
    after = with_derived_ready(with_condition(after, true(LAUNCHED, observed(claim, now))), now)
    text = f"got {instance.instance_id}: {instance.instance_type} {instance.capacity_type} in {instance.zone}"
    return (UpdateClaim(claim, after, text),)


def _type_labels(instance_type: InstanceType, instance: Instance) -> dict[str, str]:
    """The labels that the instance decides: those of its type that have one value, and where and how it was bought."""
    labels = {
        key: values[0]
        for key, values in instance_type.labels.items()
        if len(values) == 1 and key not in RESERVATION_LABELS
    }
    for offering in instance_type.offerings:
        if offering.reservation and offering.reservation_id == instance.reservation:
            labels |= offering.reservation.labels
    zone_id = next((offering.zone_id for offering in instance_type.offerings if offering.zone == instance.zone), "")
    bought = {ZONE: instance.zone, ZONE_ID: zone_id, CAPACITY_TYPE: instance.capacity_type}
    return {**labels, **{key: value for key, value in bought.items() if value}}


def _texts(resources: Resources) -> dict[str, str]:
    return texts({name: value for name, value in resources.items() if value})
