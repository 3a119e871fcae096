"""Drift: a node is not what its NodePool or node class says today.

The rules are those of Karpenter (nodeclaim/disruption, Drift), in its order; the first that applies is the reason:

1. ``NodePoolDrifted``: the template has changed in a field that a running node cannot take over
(``objects.karpenter.hashing``).
2. ``RequirementsDrifted``: the claim's labels no longer satisfy the template's requirements. A label that is missing
   satisfies ``NotIn`` and ``DoesNotExist`` only. minValues are about launches and do not count.
3. ``InstanceTypeNotFound``: nobody sells the node's instance type there any more. It takes the catalogue to know that,
   which disruption reads anyway and lifecycle does not, so disruption writes this reason
   (``instance_type_drift``), and lifecycle leaves it as it is.
4. ``NodeClassDrift``: the node class has changed in such a field.
5. ``AMIDrift``, ``SecurityGroupDrift``, ``SubnetDrift``, ``CapacityReservationDrift``, ``PlacementGroupDrift``: what
   the node class selects now is not what the instance was made of (``NodeClass.drift_of``).

Hashes are compared only if they are of our version: one of another version says nothing
(``lifecycle.joining.adoption``). A claim that is not launched, or whose NodePool is gone, has not drifted. While nobody
can say what an instance is made of, a claim keeps the verdict that it has.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType

from joinery.decisions.scheduling.constraints.requirements import Requirements, UnknownOperatorError, read
from joinery.objects.karpenter.conditions import drop
from joinery.objects.karpenter.hashing import HASH_VERSION, node_pool_hash
from joinery.objects.karpenter.labels import INSTANCE_TYPE, NODE_POOL, NODE_POOL_HASH, NODE_POOL_HASH_VERSION, ZONE
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import Drift, MadeOf, NodeClass
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.claims import DRIFTED, is_launched, types_of, with_condition, with_status
from joinery.objects.snapshot.instances import Instance, instance_id
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot

NODE_POOL_DRIFTED, REQUIREMENTS_DRIFTED = "NodePoolDrifted", "RequirementsDrifted"
INSTANCE_TYPE_NOT_FOUND, NODE_CLASS_DRIFT = "InstanceTypeNotFound", "NodeClassDrift"
#: What can be said without looking at the instance. Of every other reason only a look at it can say that it is over.
_WITHOUT_INSTANCE = frozenset({NODE_POOL_DRIFTED, REQUIREMENTS_DRIFTED, INSTANCE_TYPE_NOT_FOUND, NODE_CLASS_DRIFT})
#: The age from which a claim counts (Karpenter nodeclaim/disruption, `instanceTypeNotFoundCheckDelay`).
_JUDGED_FROM = timedelta(hours=1)


class DriftDetector:
    """Compares claims with the NodePools and node classes of one snapshot. Hashes are worked out once.

    ``instances``: by id, as EC2 has them now. A claim whose instance is not among them keeps a verdict about that.
    """

    def __init__(self, snapshot: Snapshot, instances: Mapping[str, Instance] = MappingProxyType({})) -> None:
        self._now = snapshot.now
        self._instances = instances
        self._pools, self._classes = snapshot.pools_by_name, snapshot.classes_by_name
        self._pool_hashes = {name: node_pool_hash(pool) for name, pool in self._pools.items()}
        self._class_hashes = {name: node_class.static_hash for name, node_class in self._classes.items()}
        self._required = lru_cache(maxsize=None)(lambda name: _required_by(self._pools[name]))

    def judged(self, claim: NodeClaim) -> NodeClaim:
        """The claim with the condition ``Drifted`` as it should be: True with the reason, or absent."""
        drift = self.drift_of(claim)
        if drift is not None:
            return with_drift(claim, drift, self._now)
        return without_drift(claim) if claim.condition(DRIFTED) is not None else claim

    def drift_of(self, claim: NodeClaim) -> Drift | None:
        """Why the claim has drifted; None if it has not, as far as one can see."""
        pool = self._pools.get(claim.metadata.labels.get(NODE_POOL, ""))
        if pool is None or not is_launched(claim):
            return None
        return next(self._drifts(claim, pool), None)

    def _drifts(self, claim: NodeClaim, pool: NodePool) -> Iterator[Drift]:
        name, ref = pool.metadata.name, claim.spec.node_class_ref
        if _differs(claim, NODE_POOL_HASH, NODE_POOL_HASH_VERSION, self._pool_hashes[name]):
            yield Drift(NODE_POOL_DRIFTED, f"the template of NodePool {name} has changed")
        required = self._required(name)
        if required and (key := required.first_unmet(claim.metadata.labels)):
            yield Drift(REQUIREMENTS_DRIFTED, f"NodePool {name} requires another value of {key}")
        before = drift_noted(claim)
        if before is not None and before.reason == INSTANCE_TYPE_NOT_FOUND:
            yield before
        node_class = self._classes.get(ref.name)
        if node_class is not None:
            if self._has_changed(claim, node_class):
                yield Drift(NODE_CLASS_DRIFT, f"{ref.kind} {ref.name} has changed")
            instance = self._instances.get(instance_id(claim.status.provider_id))
            drift = node_class.drift_of(_made_of(claim, instance)) if instance else _kept(before)
            yield from (drift,) if drift else ()

    def _has_changed(self, claim: NodeClaim, node_class: NodeClass) -> bool:
        kind = node_class.identity()
        current = self._class_hashes[node_class.metadata.name]
        return _differs(claim, kind.hash_annotation, kind.hash_version_annotation, current)


def drift_noted(claim: NodeClaim) -> Drift | None:
    """The drift that the claim's condition speaks of."""
    condition = claim.condition(DRIFTED)
    is_noted = condition is not None and condition.status == "True"
    return Drift(condition.reason, condition.message) if condition is not None and is_noted else None


def drifted_since(claim: NodeClaim) -> datetime | None:
    """Since when the claim's condition speaks of drift; None where nobody says."""
    condition = claim.condition(DRIFTED)
    return condition.last_transition_time if condition else None


def by_drift(claim: NodeClaim) -> tuple[str, str]:
    """To sort by: the longest drifted first, then by name."""
    since = drifted_since(claim)
    return since.isoformat() if since else "", claim.metadata.name


def with_drift(claim: NodeClaim, drift: Drift, now: datetime) -> NodeClaim:
    """The claim with the condition that says so."""
    return with_condition(claim, _condition(drift, claim, now))


def without_drift(claim: NodeClaim) -> NodeClaim:
    """The claim without the condition."""
    return with_status(claim, conditions=drop(claim.status.conditions, DRIFTED))


def _required_by(pool: NodePool) -> Requirements | None:
    """What the template requires of a node's labels; None where an operator is unknown."""
    try:
        return read(pool.requirements).canonical()
    except UnknownOperatorError:
        return None


def _differs(claim: NodeClaim, key: str, version_key: str, current: str) -> bool:
    annotations = claim.metadata.annotations
    is_ours = annotations.get(version_key) == HASH_VERSION and key in annotations
    return is_ours and annotations[key] != current


def _made_of(claim: NodeClaim, instance: Instance) -> MadeOf:
    return MadeOf(
        labels=claim.metadata.labels,
        image_id=instance.image_id or claim.status.image_id,
        subnet_id=instance.subnet_id,
        security_groups=instance.security_groups,
        reservation=instance.reservation,
        placement_group_id=instance.placement_group_id,
        placement_group=instance.placement_group,
    )


def _kept(before: Drift | None) -> Drift | None:
    return before if before is not None and before.reason not in _WITHOUT_INSTANCE else None


def _condition(drift: Drift, claim: NodeClaim, now: datetime) -> Condition:
    return Condition(
        type=DRIFTED,
        status="True",
        reason=drift.reason,
        message=drift.message,
        last_transition_time=now.replace(microsecond=0),
        observed_generation=claim.metadata.generation,
    )


# --- InstanceTypeNotFound, which disruption judges ---


def instance_type_drift(
    snapshot: Snapshot, types: Mapping[str, Sequence[InstanceType]]
) -> Sequence[tuple[NodeClaim, NodeClaim]]:
    """Each claim whose condition ``Drifted`` changes for ``InstanceTypeNotFound``, as it was read and as it should be.

    A claim counts after an hour: what was just bought was just sold. Karpenter asks for an offering of the node's own
    capacity type. Here any in its zone will do: a reservation ends and leaves an on-demand node, and a type without a
    recent spot price is sold all the same.

    ``types``: by name of the node class. A class without any, because it is not ready for instance, says nothing.
    """
    sold = {name: {offered.name: offered for offered in listed} for name, listed in types.items() if listed}
    changes = []
    for claim in snapshot.managed_claims:
        offered = types_of(claim, sold)
        is_ours = claim.metadata.labels.get(NODE_POOL) in snapshot.pools_by_name and is_launched(claim)
        if is_ours and offered is not None and not claim.is_deleting:
            changes.append((claim, _judged_by_offerings(claim, offered, snapshot)))
    return [(before, after) for before, after in changes if before != after]


def _judged_by_offerings(claim: NodeClaim, offered: Mapping[str, InstanceType], snapshot: Snapshot) -> NodeClaim:
    noted, created = drift_noted(claim), claim.metadata.creation_timestamp
    is_old = created is not None and snapshot.now - created >= _JUDGED_FROM
    if not is_old or _is_sold(claim, offered):
        is_over = noted is not None and noted.reason == INSTANCE_TYPE_NOT_FOUND
        return without_drift(claim) if is_over else claim
    if noted is not None and noted.reason != INSTANCE_TYPE_NOT_FOUND:
        return claim
    name = claim.metadata.labels.get(INSTANCE_TYPE, "")
    return with_drift(claim, Drift(INSTANCE_TYPE_NOT_FOUND, f"nobody sells {name} like it any more"), snapshot.now)


def _is_sold(claim: NodeClaim, offered: Mapping[str, InstanceType]) -> bool:
    labels = claim.metadata.labels
    instance_type = offered.get(labels.get(INSTANCE_TYPE, ""))
    return instance_type is not None and any(it.zone == labels.get(ZONE) for it in instance_type.offerings)
