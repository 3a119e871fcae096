"""What may be said of a NodeClaim by itself, and how a changed one is made.

A claim is frozen: each function returns a new one, to be handed to the cluster gateway with the one that was read.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from joinery.objects.annotations.disruption import is_postponed
from joinery.objects.karpenter.conditions import (
    NODE_CLAIM_DEPENDENTS,
    READY,
    Observation,
    awaiting,
    find,
    is_true,
    put,
    with_ready,
)
from joinery.objects.karpenter.labels import (
    DEVICE_DRIVERS,
    INTERRUPTED_AT,
    NODE_POOL,
    RESERVATION_ID,
    TERMINATION_FINALIZER,
)
from joinery.objects.karpenter.meta import Condition, with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.offerings import types_for

T = TypeVar("T")
LAUNCHED, REGISTERED, INITIALIZED = NODE_CLAIM_DEPENDENTS
#: The condition of a claim whose instance EC2 was asked to end.
INSTANCE_TERMINATING = "InstanceTerminating"
#: The condition of a claim whose instance EC2 does not know.
INSTANCE_MISSING = "InstanceMissing"
#: The condition of a claim whose node is not what its NodePool or node class says now (``lifecycle.state.drift``).
DRIFTED = "Drifted"
#: For how long after a launch EC2 may not know the instance yet (EC2 API "Eventual consistency"): as long as it may
#: take to join. EC2 knows an instance that has ended for an hour.
UNLISTED = timedelta(minutes=15)
#: How long EC2 must know nothing of an older instance: any one of its answers may leave it out.
MISSING = timedelta(minutes=5)
#: How long after its registration a Node may be missing from a snapshot although it is there. The lists of a snapshot
#: are read one after another, and an API server may answer from a cache that lags.
UNLISTED_NODE = timedelta(minutes=1)
#: The years that an annotation can speak of: from Unix' first one, and for longer than Go's durations last.
_MEANT = range(1970, 3000)


def awaits_launch(claim: NodeClaim) -> bool:
    """Whether the claim still waits for its instance, and may get it."""
    return not claim.status.provider_id and not claim.is_deleting and not is_postponed(claim)


def is_launched(claim: NodeClaim) -> bool:
    """Whether it got an instance. Karpenter leaves claims with a provider ID whose condition says otherwise."""
    return bool(claim.status.provider_id) or claim.is_true(LAUNCHED)


def may_be_unlisted(claim: NodeClaim, now: datetime) -> bool:
    """Whether the launch is so recent that EC2 may not list the claim's instance yet."""
    launched = claim.condition(LAUNCHED)
    since = (launched and launched.last_transition_time) or claim.metadata.creation_timestamp
    return since is not None and now - since < UNLISTED


def is_missed(claim: NodeClaim, now: datetime) -> bool:
    """Whether EC2 has not known the claim's instance for so long that this is no gap in its answers."""
    missing = claim.condition(INSTANCE_MISSING)
    since = missing.last_transition_time if missing else None
    return since is not None and now - since >= MISSING


def has_joined(claim: NodeClaim) -> bool:
    """Whether the claim has, or once had, a Node."""
    return claim.is_true(REGISTERED) or bool(claim.status.node_name)


def has_lost_node(claim: NodeClaim, now: datetime) -> bool:
    """Of a claim for which a snapshot holds no Node: whether it had one that is gone.

    If not, its Node is on its way, or has joined too short a while ago to be in every list.
    """
    registered = claim.condition(REGISTERED)
    if registered is None or registered.status != "True":
        return has_joined(claim)
    since = registered.last_transition_time
    return since is None or now - since >= UNLISTED_NODE


def awaited_reservations(claim: NodeClaim) -> tuple[str, ...]:
    """The ids of the capacity reservations in which the claim may still be launched.

    EC2 does not count its instance in any of them yet, so whoever asks how much is left has to.
    """
    if not awaits_launch(claim):
        return ()
    rules = [rule for rule in claim.spec.requirements if (rule.key, rule.operator) == (RESERVATION_ID, "In")]
    return tuple(value for rule in rules for value in rule.values)


def drivers_wanted(claim: NodeClaim) -> tuple[str, ...]:
    """The drivers whose devices it was bought for."""
    names = claim.metadata.annotations.get(DEVICE_DRIVERS, "").split(",")
    return tuple(name.strip() for name in names if name.strip())


def leaving_since(claim: NodeClaim) -> datetime | None:
    """Since when its pods need another node: from EC2's warning or its deletion, whichever came first. None if it
    stays.

    A deletion is stamped by the API server's clock, a warning by ours.
    """
    deleted = claim.metadata.deletion_timestamp
    text = claim.metadata.annotations.get(INTERRUPTED_AT)
    warned = moment(text) if text else None
    return min((at for at in (deleted, warned) if at is not None), default=None)


def moment(text: str) -> datetime | None:
    """An RFC3339 moment with a time zone; None for anything else, and for one that nobody can have meant.

    Anybody may edit an annotation, and no other moment can be computed from the first or the last ones that there are.
    """
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo and parsed.year in _MEANT else None


def annotated(claim: NodeClaim, annotations: Mapping[str, str]) -> NodeClaim:
    """The claim with these annotations added or replaced."""
    return with_metadata(claim, annotations={**claim.metadata.annotations, **annotations})


def unannotated(claim: NodeClaim, *keys: str) -> NodeClaim:
    """The claim without these annotations."""
    kept = {key: value for key, value in claim.metadata.annotations.items() if key not in keys}
    return with_metadata(claim, annotations=kept)


def without_finalizer(claim: NodeClaim) -> NodeClaim:
    """The claim without our finalizer, so that the API server can remove it."""
    return with_metadata(claim, finalizers=[f for f in claim.metadata.finalizers if f != TERMINATION_FINALIZER])


def with_status(claim: NodeClaim, **changes: Any) -> NodeClaim:
    return claim.model_copy(update={"status": claim.status.model_copy(update=changes)})


def with_condition(claim: NodeClaim, condition: Condition) -> NodeClaim:
    """The claim with one condition added or replaced; ``with_derived_ready`` derives ``Ready`` from it."""
    return with_status(claim, conditions=put(claim.status.conditions, condition))


def observed(claim: NodeClaim, now: datetime) -> Observation:
    """What a condition set now is stamped with."""
    return Observation(now=now, generation=claim.metadata.generation)


def with_derived_ready(claim: NodeClaim, now: datetime) -> NodeClaim:
    """The claim with ``Ready`` derived from the three conditions that it depends on.

    Of these, any that is missing is added as Unknown since the claim's creation.
    """
    if _has_current_ready(claim):
        return claim
    born = Observation(now=claim.metadata.creation_timestamp or now, generation=claim.metadata.generation)
    conditions = list(claim.status.conditions)
    for kind in NODE_CLAIM_DEPENDENTS:
        if find(conditions, kind) is None:
            conditions = put(conditions, awaiting(kind, born))
    return with_status(claim, conditions=with_ready(conditions, NODE_CLAIM_DEPENDENTS, observed(claim, now)))


def _has_current_ready(claim: NodeClaim) -> bool:
    """Whether it is ready, and nothing is to be derived anew: so it is with nearly all claims in nearly every run."""
    generation = claim.metadata.generation
    ready = claim.condition(READY)
    return (
        ready is not None
        and (ready.reason, ready.message, ready.observed_generation) == (READY, "", generation)
        and all(
            is_true(claim.status.conditions, kind, generation=generation) for kind in (READY, *NODE_CLAIM_DEPENDENTS)
        )
    )


def types_of(claim: NodeClaim, types: Mapping[str, T]) -> T | None:
    """What the claim's node may be of, as its NodePool's nodes are; None where nothing is known of its node class.

    ``types``: by name of the node class, and by ``own_key``.
    """
    return types_for(types, claim.spec.node_class_ref.name, claim.metadata.labels.get(NODE_POOL, ""))
