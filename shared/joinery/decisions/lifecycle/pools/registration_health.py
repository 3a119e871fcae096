"""NodeRegistrationHealthy: whether the nodes that a NodePool launches join the cluster (Karpenter
nodepool/registrationhealth).

The condition goes by the last four outcomes: two failures among them make it False. It warns that new nodes
of the pool may never join (a wrong AMI, user data, a subnet without a route). It is no part of ``Ready``, and pods
still get nodes of the pool. Only drifted nodes of a static pool are not replaced meanwhile
(``disruption.static_drift``). An instance that EC2 ends before it has joined, though nobody wanted that, is a failure
at once; then launches are postponed as well (``scheduling.pools.deaths``).

Nothing is kept in a function's memory. A success can be read from its claim for as long as that lives. A failure
cannot, because its claim goes; so while there is a failure among the last four, these four are an annotation on the
pool (``joinery.dev/registrations``). It is written before the claim is deleted, and reading the same claim again
changes nothing: a run that was stopped anywhere is simply repeated.

A new generation of the pool or of its class begins anew, with Unknown: what failed may have been mended.

Drift goes by the same outcomes (``drift_objection``): a replacement that never joins is an instance that is paid for
fifteen minutes, and one more in the next run, for as long as nobody looks. So after a launch that failed, drifted nodes
with pods are not replaced for a while, and with each further one for twice as long. One that becomes ready, whoever
asked for it, ends that. A node that joins and never becomes ready is one that failed for drift, but not for the
condition, which is about joining.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import takewhile
from types import MappingProxyType

import msgspec

from joinery.decisions.lifecycle.joining.liveness import overdue
from joinery.objects.actions import Announce
from joinery.objects.annotations.marks import is_believable
from joinery.objects.karpenter.conditions import Observation, drop, false, find, put, true, unknown
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import NODE_POOL, REGISTRATIONS, RETIRED_FOR
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.decoding import decode_each, with_entries
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import INITIALIZED, LAUNCHED, REGISTERED, has_joined
from joinery.objects.snapshot.instances import Instance
from joinery.objects.wording import MOST_QUOTED, rfc3339, shortened

REGISTRATION_HEALTHY = "NodeRegistrationHealthy"
_REMEMBERED, _TOO_MANY = 4, 2
#: A command waits ten minutes at least, from its own start, for what it has bought
#: (``lifecycle.state.command_outlook``); writing the claims takes a part of that. One that gives up sooner has another
#: reason.
_LEAST_WAIT = timedelta(minutes=9)
#: How long drifted nodes stay after one launch that failed: as long as it took to fail. After four it is two hours.
_FIRST_WAIT = timedelta(minutes=15)
#: The reason of a launch whose instance ended before it had joined, though nobody wanted that.
_DIED = "InstanceDied"
#: The reason of a launch whose node joined, and was not ready when a disruption command gave up waiting for it.
_UNREADY = "NodeNotInitialized"


class RegistrationOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one launch.

    ``claim``: the claim's name. ``at``: when that was known. ``reason``, ``message``: why it failed; empty for a node
    that joined. ``is_booting``: whether that was not initialised yet.
    """

    claim: str
    at: datetime
    reason: str = ""
    message: str = ""
    is_booting: bool = False

    @property
    def has_joined(self) -> bool:
        return self.reason in ("", _UNREADY)


def with_registration_health(
    pool: NodePool,
    claims: Iterable[NodeClaim],
    node_class: NodeClass | None,
    now: datetime,
    deaths: Mapping[str, Instance] = MappingProxyType({}),
) -> NodePool:
    """The pool with the condition as it is now, and with the annotation as far as it is needed.

    ``claims``: ours, of whatever pool. ``node_class``: the pool's, None if it does not exist. ``deaths``: by the names
    of claims that have not joined, their instances that EC2 has ended (``lifecycle.state.cluster``).
    """
    at = Observation(now=now, generation=pool.metadata.generation)
    before = find(pool.status.conditions, REGISTRATION_HEALTHY)
    known = pool.status.node_class_observed_generation
    generation = node_class.metadata.generation if node_class is not None else known
    if before is None or before.observed_generation != at.generation or generation != known:
        anew = unknown(REGISTRATION_HEALTHY, "AwaitingReconciliation", "no node was launched since it was changed", at)
        return _written(pool, put(drop(pool.status.conditions, REGISTRATION_HEALTHY), anew), (), generation)
    since = before.last_transition_time if before.status == "Unknown" else None
    outcomes = _last(pool, claims, now, since, deaths)
    failed = [outcome for outcome in outcomes if not outcome.has_joined]
    conditions = pool.status.conditions
    if len(failed) >= _TOO_MANY:
        if (before.status, before.message) != ("False", failed[-1].message):
            conditions = put(conditions, false(REGISTRATION_HEALTHY, failed[-1].reason, failed[-1].message, at))
    elif len(failed) < len(outcomes):
        conditions = put(conditions, true(REGISTRATION_HEALTHY, at))
    return _written(pool, conditions, outcomes if any(one.reason for one in outcomes) else (), generation)


def _last(
    pool: NodePool,
    claims: Iterable[NodeClaim],
    now: datetime,
    since: datetime | None,
    deaths: Mapping[str, Instance],
) -> tuple[RegistrationOutcome, ...]:
    """The last outcomes, the oldest first. ``since``: those before it do not count any more, nor those of launches
    before it.
    """
    own = [claim for claim in claims if _is_of(claim, pool)]
    # What was launched before a change fails, or not, by what it was then.
    fresh = (claim for claim in own if since is None or _created(claim, now) >= since)
    read = [outcome for claim in fresh if (outcome := _outcome(claim, now, deaths))]
    # What is remembered of a claim stands: a failure that is read again would seem younger with every run.
    remembered = _remembered(pool, now)
    booting = (outcome for outcome in remembered if outcome.is_booting)
    final = (outcome for outcome in remembered if not outcome.is_booting)
    by_claim = {outcome.claim: outcome for outcome in (*booting, *read, *final)}
    counting = (outcome for outcome in by_claim.values() if since is None or outcome.at >= since)
    return tuple(sorted(counting, key=lambda outcome: (outcome.at, outcome.claim))[-_REMEMBERED:])


def _is_of(claim: NodeClaim, pool: NodePool) -> bool:
    """Whether it is of this very pool, and not of one that had the same name."""
    if claim.metadata.labels.get(NODE_POOL) != pool.metadata.name:
        return False
    return any(owner.uid == pool.metadata.uid for owner in claim.metadata.owner_references)


def _created(claim: NodeClaim, now: datetime) -> datetime:
    return claim.metadata.creation_timestamp or now


def _outcome(claim: NodeClaim, now: datetime, deaths: Mapping[str, Instance]) -> RegistrationOutcome | None:
    """What became of the claim's launch; None while nobody knows."""
    name, registered, launched = claim.metadata.name, claim.condition(REGISTERED), claim.condition(LAUNCHED)
    at = claim.metadata.deletion_timestamp or now
    if has_joined(claim):
        is_booting = not claim.is_true(INITIALIZED)
        if is_booting and _was_abandoned(claim, at):
            initialized = claim.condition(INITIALIZED)
            why = initialized.message if initialized else ""
            return RegistrationOutcome(name, at, _UNREADY, shortened(why, MOST_QUOTED))
        since = registered.last_transition_time if registered is not None and registered.status == "True" else None
        return RegistrationOutcome(name, since, is_booting=is_booting) if since is not None else None
    if name in deaths:
        return RegistrationOutcome(name, at, _DIED, shortened(deaths[name].why, MOST_QUOTED))
    if overdue(claim, at) is None and not _was_abandoned(claim, at):
        return None
    if launched is None or launched.status == "True":
        return RegistrationOutcome(name, at, "RegistrationFailed", "Failed to register node")
    return RegistrationOutcome(name, at, launched.reason, shortened(launched.message, MOST_QUOTED))


def _was_abandoned(claim: NodeClaim, at: datetime) -> bool:
    """Whether a disruption command has given up waiting for the claim's node, which comes before its own time is up."""
    created, is_retired = claim.metadata.creation_timestamp, claim.metadata.deletion_timestamp is not None
    is_abandoned = claim.metadata.annotations.get(RETIRED_FOR) == DisruptionReason.ABANDONED.value
    return is_retired and is_abandoned and created is not None and at - created >= _LEAST_WAIT


def _remembered(pool: NodePool, now: datetime) -> tuple[RegistrationOutcome, ...]:
    """The outcomes in the annotation, as far as they can be read: anybody may edit it, and one of the time to come
    would be among the last for ever.
    """
    outcomes = decode_each(pool.metadata.annotations.get(REGISTRATIONS, "[]"), RegistrationOutcome)
    return tuple(outcome for outcome in outcomes if is_believable(outcome.at, now))


def _written(
    pool: NodePool, conditions: list[Condition], outcomes: tuple[RegistrationOutcome, ...], generation: int | None
) -> NodePool:
    annotations = with_entries(pool.metadata.annotations, REGISTRATIONS, outcomes)
    status = {"conditions": conditions, "node_class_observed_generation": generation}
    return pool.model_copy(
        update={
            "metadata": pool.metadata.model_copy(update={"annotations": annotations}),
            "status": pool.status.model_copy(update=status),
        }
    )


def drift_objection(pool: NodePool, now: datetime) -> Objection | None:
    """Why no drifted node of the pool is replaced now: nodes like those that would come did not join, or not become
    ready. Of one that is about to, nobody knows yet.
    """
    final = (outcome for outcome in _remembered(pool, now) if not outcome.is_booting)
    outcomes = sorted(final, key=lambda outcome: (outcome.at, outcome.claim))
    failed = list(takewhile(lambda outcome: outcome.reason, reversed(outcomes)))
    if not failed:
        return None
    until = failed[0].at + _FIRST_WAIT * 2 ** (min(len(failed), _REMEMBERED) - 1)
    if until <= now:
        return None
    last = "its last launch" if len(failed) == 1 else f"its last {len(failed)} launches"
    what = "did not become ready" if failed[0].has_joined else "did not join the cluster"
    why = f" ({failed[0].message})" if failed[0].message else ""
    text = f"drift of NodePool {pool.metadata.name} waits until {rfc3339(until)}: {last} {what}{why}"
    return Objection(ObjectionCode.LAUNCHES_FAIL, text, until)


def health_events(before: NodePool, after: NodePool) -> Iterable[Announce]:
    """Events where nodes of the pool do not join any more."""
    was, now = (find(pool.status.conditions, REGISTRATION_HEALTHY) for pool in (before, after))
    if now is not None and now.status == "False" and (was is None or was.status != "False"):
        text = f"{_TOO_MANY} of its last {_REMEMBERED} nodes did not join the cluster, the last: {now.message}"
        yield Announce("NodeRegistrationUnhealthy", text, after)
