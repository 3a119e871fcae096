"""Drift: a node is not what its NodePool or node class says today.

The rules are those of Karpenter (nodeclaim/disruption, Drift), in its order; the first that applies is the reason:

1. ``NodePoolDrifted``: the template has changed in a field that a running node cannot take over (``apis.hashing``).
2. ``RequirementsDrifted``: the claim's labels no longer satisfy the template's requirements. A label that is missing
   satisfies ``NotIn`` and ``DoesNotExist`` only. minValues are about launches and do not count.
3. ``NodeClassDrift``: the node class has changed in such a field.

Hashes are compared only if they are of our version: one of another version says nothing (``lifecycle.adoption``).
A claim that is not launched, or whose NodePool is gone, has not drifted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from joinery.apis.conditions import drop, put
from joinery.apis.hashing import HASH_VERSION, node_pool_hash
from joinery.apis.labels import NODE_POOL, NODE_POOL_HASH, NODE_POOL_HASH_VERSION
from joinery.apis.meta import Condition
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodeclass import NodeClass
from joinery.apis.nodepool import NodePool
from joinery.scheduling.constraints.requirements import UnknownOperatorError, read
from joinery.state.claims import DRIFTED, LAUNCHED, with_status
from joinery.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Drift:
    """Why a claim has drifted: ``reason`` is the condition's, ``message`` says it to a person."""

    reason: str
    message: str


class DriftDetector:
    """Compares claims with the NodePools and node classes of one snapshot. Hashes are worked out once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._now = snapshot.now
        self._pools, self._classes = snapshot.pools_by_name, snapshot.classes_by_name
        self._pool_hashes = {name: node_pool_hash(pool) for name, pool in self._pools.items()}
        self._class_hashes = {name: node_class.static_hash for name, node_class in self._classes.items()}

    def judged(self, claim: NodeClaim) -> NodeClaim:
        """The claim with the condition ``Drifted`` as it should be: True with the reason, or absent."""
        drift = self.drift_of(claim)
        conditions = claim.status.conditions
        if drift is None:
            return with_status(claim, conditions=drop(conditions, DRIFTED))
        return with_status(claim, conditions=put(conditions, _condition(drift, claim, self._now)))

    def drift_of(self, claim: NodeClaim) -> Drift | None:
        """Why the claim has drifted; None if it has not, as far as can be told."""
        pool = self._pools.get(claim.metadata.labels.get(NODE_POOL, ""))
        if pool is None or not claim.is_true(LAUNCHED):
            return None
        return next(self._drifts(claim, pool), None)

    def _drifts(self, claim: NodeClaim, pool: NodePool) -> Iterator[Drift]:
        name = pool.metadata.name
        if _differs(claim, NODE_POOL_HASH, NODE_POOL_HASH_VERSION, self._pool_hashes[name]):
            yield Drift("NodePoolDrifted", f"the template of NodePool {name} has changed")
        if key := _unmet_requirement(claim, pool):
            yield Drift("RequirementsDrifted", f"NodePool {name} requires another value of {key}")
        ref = claim.spec.node_class_ref
        if (node_class := self._classes.get(ref.name)) is not None and self._has_changed(claim, node_class):
            yield Drift("NodeClassDrift", f"{ref.kind} {ref.name} has changed")

    def _has_changed(self, claim: NodeClaim, node_class: NodeClass) -> bool:
        kind = node_class.identity()
        current = self._class_hashes[node_class.metadata.name]
        return _differs(claim, kind.hash_annotation, kind.hash_version_annotation, current)


def with_drift(claims: Iterable[NodeClaim], detector: DriftDetector) -> Sequence[tuple[NodeClaim, NodeClaim]]:
    """Each claim whose condition changes, as it was read and as it should be."""
    pairs = ((claim, detector.judged(claim)) for claim in claims)
    return [(before, after) for before, after in pairs if before != after]


def _differs(claim: NodeClaim, key: str, version_key: str, current: str) -> bool:
    annotations = claim.metadata.annotations
    is_ours = annotations.get(version_key) == HASH_VERSION and key in annotations
    return is_ours and annotations[key] != current


def _unmet_requirement(claim: NodeClaim, pool: NodePool) -> str | None:
    """The first label that the claim has otherwise than the template requires; None if there is none."""
    try:
        required = read(pool.spec.template.spec.requirements).canonical()
    except UnknownOperatorError:
        return None
    return required.first_unmet(claim.metadata.labels)


def _condition(drift: Drift, claim: NodeClaim, now: datetime) -> Condition:
    return Condition(
        type=DRIFTED,
        status="True",
        reason=drift.reason,
        message=drift.message,
        last_transition_time=now.replace(microsecond=0),
        observed_generation=claim.metadata.generation,
    )
