"""What the status of a CapacityBuffer says (Karpenter capacitybuffer and provisioning, cluster autoscaler's quotas)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from joinery.decisions.headroom.resolve import ResolvedBuffer
from joinery.decisions.scheduling.packing import Packing
from joinery.objects.actions import Announce, Command, UpdateBuffer
from joinery.objects.autoscaling.capacitybuffer import (
    ACTIVE_CAPACITY,
    LIMITED_BY_QUOTAS,
    PROVISIONING,
    READY_FOR_PROVISIONING,
    CapacityBufferStatus,
)
from joinery.objects.karpenter.conditions import Observation, drop, false, find, put, true
from joinery.objects.karpenter.labels import BUFFER_SCHEDULE
from joinery.objects.karpenter.meta import Condition
from joinery.objects.snapshot.pods import buffer_of
from joinery.objects.snapshot.snapshot import Snapshot

#: Of ``LimitedByQuotas``, whatever its status (cluster autoscaler).
QUOTAS_ALLOCATED = "ResourceQuotasAllocated"
FITS, NEEDS_NEW, NOT_READY = "FitsExistingCapacity", "RequiresNewCapacity", "NotReadyForProvisioning"
EMPTY, OUTSIDE_SCHEDULE = "BufferEmpty", "OutsideSchedule"


@dataclass(frozen=True)
class Placed:
    """How many of a buffer's chunks have room on nodes that there are, for how many nodes are bought, and why the
    others have none.
    """

    existing: int = 0
    bought: int = 0
    failed: int = 0
    why: str = ""


def placed(snapshot: Snapshot, packing: Packing) -> Mapping[str, Placed]:
    """By buffer (namespace/name), what the plan has for it."""
    pods = snapshot.pods_by_key
    ready = {view.name for view in snapshot.views if view.is_initialized}

    def counted(names: Iterable[str]) -> Counter[str]:
        return Counter(key for name in names if name in pods and (key := buffer_of(pods[name])))

    there = counted(pod for one in packing.existing if one.node in ready for pod in one.pods)
    coming = counted(pod for one in packing.existing if one.node not in ready for pod in one.pods)
    coming += counted(pod for launch in packing.launches for pod in launch.pods)
    failed = counted(one.pod for one in packing.unplaced)
    reasons: dict[str, str] = {}
    for one in packing.unplaced:
        if one.pod in pods and (key := buffer_of(pods[one.pod])):
            reasons.setdefault(key, "; ".join(map(str, one.reasons)))
    keys = there.keys() | coming.keys() | failed.keys()
    return {key: Placed(there[key], coming[key], failed[key], reasons.get(key, "")) for key in keys}


def buffer_statuses(
    snapshot: Snapshot, resolved: Sequence[ResolvedBuffer], packing: Packing
) -> Iterator[tuple[Command, ...]]:
    """A chain for each buffer whose status changes, with an Event where room is lacking.

    ``packing``: the plan of the snapshot with its virtual pods.
    """
    found = placed(snapshot, packing) if resolved else {}
    for one in resolved:
        before, here = one.buffer, found.get(one.buffer.key, Placed())
        after = _status(one, here, snapshot)
        if after != before.status:
            provisioning = find(after.conditions, PROVISIONING)
            why = provisioning.message if one.is_ready and provisioning else one.message
            update = UpdateBuffer(before, before.model_copy(update={"status": after}), why)
            lacking = f"no node for {here.failed} of {len(one.pods)}: {here.why}"
            yield (update, Announce("HeadroomLacking", lacking, before)) if here.failed else (update,)


def _status(one: ResolvedBuffer, found: Placed, snapshot: Snapshot) -> CapacityBufferStatus:
    before, at = one.buffer, Observation(now=snapshot.now, generation=one.buffer.metadata.generation)
    conditions = put(before.status.conditions, _ready(one, at))
    conditions = put(conditions, _provisioning(one, found, at))
    conditions = put(conditions, _limited(one, at)) if one.is_ready else drop(conditions, LIMITED_BY_QUOTAS)
    is_template = one.is_ready and before.spec.pod_template_ref is not None
    return before.status.model_copy(
        update={
            "conditions": conditions,
            "provisioning_strategy": before.spec.provisioning_strategy or ACTIVE_CAPACITY,
            **(
                {
                    "replicas": len(one.pods),
                    "pod_template_ref": before.spec.pod_template_ref if is_template else None,
                    "pod_template_generation": one.shape.generation if is_template else None,
                }
                if one.is_ready
                else {}
            ),
        }
    )


def _ready(one: ResolvedBuffer, at: Observation) -> Condition:
    if one.is_ready:
        return true(READY_FOR_PROVISIONING, at, one.message, reason=one.reason)
    return false(READY_FOR_PROVISIONING, one.reason, one.message, at)


def _provisioning(one: ResolvedBuffer, found: Placed, at: Observation) -> Condition:
    wanted = len(one.pods)
    if not one.is_ready:
        return false(PROVISIONING, NOT_READY, "Buffer is not ReadyForProvisioning", at)
    if not one.is_open:
        text = one.paused or f"it counts {one.buffer.metadata.annotations.get(BUFFER_SCHEDULE, '')}, and not now"
        return false(PROVISIONING, OUTSIDE_SCHEDULE, text, at)
    if not wanted:
        return false(PROVISIONING, EMPTY, "Buffer has zero desired replicas", at)
    if found.existing == wanted:
        return true(PROVISIONING, at, f"All {wanted} virtual pods fit on existing capacity", reason=FITS)
    text = f"{found.bought}/{wanted} virtual pods required new capacity, {found.failed} failed"
    return false(PROVISIONING, NEEDS_NEW, f"{text}: {found.why}" if found.why else text, at)


def _limited(one: ResolvedBuffer, at: Observation) -> Condition:
    if not one.quotas:
        return false(LIMITED_BY_QUOTAS, QUOTAS_ALLOCATED, "", at)
    named = ", ".join(one.quotas)
    text = f"Buffer replicas limited from {one.size} to {len(one.pods)} due to quotas: {named}"
    return true(LIMITED_BY_QUOTAS, at, text, reason=QUOTAS_ALLOCATED)
