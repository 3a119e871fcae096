"""Status conditions, the way every Karpenter resource keeps them (operatorpkg `status.ConditionSet`).

A condition tells what was observed, at which generation of the object, and since when: ``lastTransitionTime`` moves
only when the *status* changes, so that "not ready for ten minutes" survives a changed message. The root condition
``Ready`` is never set by hand. It is derived from the kind's dependents, and only those observed at the current
generation count.

Everything here is pure. Lists are never changed in place: each function returns a new one, oldest transition first and
``Ready`` last.

    at = Observation(now=snapshot.now, generation=claim.metadata.generation)
    conditions = put(claim.status.conditions, true("Launched", at))
    conditions = with_ready(conditions, NODE_CLAIM_DEPENDENTS, at)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from joinery.objects.karpenter.meta import Condition
from joinery.objects.wording import shortened

READY, VALID = "Ready", "ValidationSucceeded"

NODE_POOL_DEPENDENTS = (VALID, "NodeClassReady")
NODE_OVERLAY_DEPENDENTS = (VALID,)
NODE_CLAIM_DEPENDENTS = ("Launched", "Registered", "Initialized")

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Observation:
    """When an object was looked at (UTC), and which generation of it."""

    now: datetime
    generation: int


def true(condition_type: str, at: Observation, message: str = "", *, reason: str = "") -> Condition:
    """The condition holds. Of Karpenter's the reason is their own name, and there is usually nothing to explain."""
    return _condition(condition_type, "True", reason or condition_type, message, at)


def false(condition_type: str, reason: str, message: str, at: Observation) -> Condition:
    """The condition does not hold."""
    return _condition(condition_type, "False", reason, message, at)


def unknown(condition_type: str, reason: str, message: str, at: Observation) -> Condition:
    """Nobody can tell yet."""
    return _condition(condition_type, "Unknown", reason, message, at)


def awaiting(condition_type: str, at: Observation) -> Condition:
    """Nobody has looked yet: how a dependent first appears."""
    return unknown(condition_type, "AwaitingReconciliation", "object is awaiting reconciliation", at)


def find(conditions: Iterable[Condition], condition_type: str) -> Condition | None:
    """The condition of that type."""
    # A loop, because a run asks some twenty times of every claim, and it takes half the time of ``next``.
    for condition in conditions:
        if condition.type == condition_type:
            return condition
    return None


def is_true(conditions: Iterable[Condition], condition_type: str, *, generation: int | None = None) -> bool:
    """Whether the condition is True; with a generation, also whether it was observed at that one."""
    condition = find(conditions, condition_type)
    if condition is None or condition.status != "True":
        return False
    return generation is None or condition.observed_generation == generation


def put(conditions: Iterable[Condition], condition: Condition) -> list[Condition]:
    """Add or replace. If the status is what it was, the moment it became so is kept."""
    conditions = list(conditions)
    before = find(conditions, condition.type)
    if before is not None and before.status == condition.status:
        since = before.last_transition_time or condition.last_transition_time
        condition = condition.model_copy(update={"last_transition_time": since})
    if before is None:
        return _ordered([*conditions, condition])
    # In its place, so that writing the same condition again changes nothing.
    return _ordered([condition if other.type == condition.type else other for other in conditions])


def drop(conditions: Iterable[Condition], condition_type: str) -> list[Condition]:
    """Without the condition of that type, if there is one."""
    return [condition for condition in conditions if condition.type != condition_type]


def with_ready(conditions: Iterable[Condition], dependents: Sequence[str], at: Observation) -> list[Condition]:
    """Derive ``Ready``; dependents that are missing appear as awaiting reconciliation."""
    conditions = list(conditions)
    for condition_type in dependents:
        if find(conditions, condition_type) is None:
            conditions = put(conditions, awaiting(condition_type, at))
    return put(conditions, _root(conditions, dependents, at))


def rejected(conditions: Iterable[Any], kind: str, reason: str, at: Observation) -> list[Condition]:
    """Of a resource of that kind that does not parse: not valid and so not ready; both say why.

    ``conditions`` are those of the document that was read, among which may be some that do not parse either.
    """
    readable = [read for condition in conditions if (read := _readable(condition)) is not None]
    failed = put(readable, false(VALID, f"{kind}ValidationFailed", reason, at))
    return put(failed, false(READY, "UnhealthyDependents", f"{VALID}=False: {reason}", at))


def _readable(condition: Any) -> Condition | None:
    try:
        return Condition.model_validate(condition)
    except ValidationError:
        return None


def _root(conditions: Sequence[Condition], dependents: Sequence[str], at: Observation) -> Condition:
    """``Ready``, as it follows from the dependents. One that was observed at an older generation counts as Unknown."""
    present = [condition for condition_type in dependents if (condition := find(conditions, condition_type))]
    current = [condition for condition in present if condition.observed_generation == at.generation]
    if len(current) == len(dependents) and all(condition.status == "True" for condition in current):
        return true(READY, at)
    stale = [condition for condition in present if condition not in current]
    message = ", ".join(
        f"{condition.type}={'Unknown' if condition in stale else condition.status}"
        for condition in present
        if condition in stale or condition.status != "True"
    )
    if any(condition.status == "False" for condition in current):
        return false(READY, "UnhealthyDependents", message, at)
    return unknown(READY, "ReconcilingDependents", message, at)


def _condition(condition_type: str, status: str, reason: str, message: str, at: Observation) -> Condition:
    # The API server refuses a status with a longer message than 32,768 characters (Kubernetes API, Condition), and
    # others may have written what is repeated here.
    return Condition.model_validate(
        {
            "type": condition_type,
            "status": status,
            "reason": reason,
            "message": shortened(message),
            "lastTransitionTime": at.now.replace(microsecond=0),
            "observedGeneration": at.generation,
        }
    )


def _ordered(conditions: list[Condition]) -> list[Condition]:
    return sorted(conditions, key=lambda it: (it.type == READY, it.last_transition_time or _BEGINNING))
