"""Where a pod's volumes let it run, and what they take of a node's attachments (kube-scheduler VolumeBinding,
NodeVolumeLimits).
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product

from joinery.apis.core import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    TopologySelectorTerm,
)
from joinery.apis.labels import BIND_COMPLETED, REGION, ZONE, canonical
from joinery.scheduling.constraints.nodeterms import alternatives
from joinery.scheduling.constraints.requirements import NO_REQUIREMENTS, Requirements, UnknownOperatorError, one_of
from joinery.scheduling.reason import Reason, ReasonCode
from joinery.state.snapshot import Snapshot

_IN_TREE = {"kubernetes.io/aws-ebs": "ebs.csi.aws.com"}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_ONE_POD_ONLY = "ReadWriteOncePod"
_ALTERNATIVES = 64  # combinations of several volumes' zones that are looked at


@dataclass(frozen=True, kw_only=True)
class VolumeNeeds:
    """``alternatives``: requirements on the node, any one of which will do. ``drivers``: attachments by CSI driver.

    ``unbound``: claims (namespace/name) whose zone is decided by the first pod that uses them. ``exclusive``: claims
    that one pod alone may use. ``shared``: claims, each with its driver, that other pods use too and that take one
    attachment for all of them on a node; of ``drivers`` they are a part.
    """

    alternatives: tuple[Requirements, ...] = (NO_REQUIREMENTS,)
    drivers: tuple[tuple[str, int], ...] = ()
    unbound: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    exclusive: tuple[str, ...] = ()
    shared: tuple[tuple[str, str], ...] = ()
    problems: tuple[Reason, ...] = ()

    def taken(self, drivers: Mapping[str, int], attached: Container[str]) -> dict[str, tuple[int, int]]:
        """What pods take of a node's attachments, by each limited driver:
        all of them together once, and each of them.
        """
        found = {}
        for driver, count in self.drivers:
            if driver in drivers:
                common = [name for name, its in self.shared if its == driver]
                found[driver] = sum(name not in attached for name in common), count - len(common)
        return found


NO_VOLUMES = VolumeNeeds()


@dataclass(frozen=True)
class _Need:
    alternatives: tuple[Requirements, ...] = (NO_REQUIREMENTS,)
    driver: str = ""
    unbound: str = ""
    is_exclusive: bool = False
    problem: str = ""


class Volumes:
    """The snapshot's volume objects, by name, and what a pod needs of them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._claims = {f"{c.metadata.namespace or 'default'}/{c.metadata.name}": c for c in snapshot.volume_claims}
        self._volumes = {v.metadata.name: v for v in snapshot.volumes}
        self._classes = {c.metadata.name: c for c in snapshot.storage_classes}

    def needs(self, pod: Pod) -> VolumeNeeds:
        """What the pod's volumes ask for; problems are reasons why it cannot be scheduled at all."""
        if not pod.spec.volumes:
            return NO_VOLUMES
        claims = list(dict(_claim_names(pod)).items())
        if not claims:
            return NO_VOLUMES
        found = [self._of_claim(name, template) for name, template in claims]
        problems = tuple(Reason(ReasonCode.VOLUME, need.problem) for need in found if need.problem)
        drivers = Counter(need.driver for need in found if need.driver)
        return VolumeNeeds(
            alternatives=_combined([need.alternatives for need in found]),
            drivers=tuple(sorted(drivers.items())),
            unbound=tuple(sorted(need.unbound for need in found if need.unbound)),
            claims=tuple(sorted({name for name, _ in claims})),
            exclusive=tuple(name for (name, _), need in zip(claims, found, strict=True) if need.is_exclusive),
            problems=problems,
        )

    def by_driver(self, pod: Pod) -> dict[str, set[str]]:
        """The claims (namespace/name) of a bound pod by CSI driver, each counted once a node."""
        found: dict[str, set[str]] = {}
        for name, template in _claim_names(pod) if pod.spec.volumes else ():
            driver = self._of_claim(name, template).driver
            if driver:
                found.setdefault(driver, set()).add(name)
        return found

    def _of_claim(self, name: str, template: PersistentVolumeClaim | None) -> _Need:
        claim = self._claims.get(name, template)
        if claim is None:
            return _Need(problem=f"its volume claim {name} does not exist")
        if claim.metadata.deletion_timestamp is not None:
            return _Need(problem=f"its volume claim {name} is being deleted")
        if claim.status.phase == "Lost":
            return _Need(problem=f"its volume claim {name} has lost its volume")
        need = self._bound(name, claim) if claim.spec.volume_name else self._unbound(name, claim)
        return replace(need, is_exclusive=_ONE_POD_ONLY in claim.spec.access_modes)

    def _bound(self, name: str, claim: PersistentVolumeClaim) -> _Need:
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is None:
            return _Need(problem=f"the volume {claim.spec.volume_name} of claim {name} does not exist")
        if volume.metadata.deletion_timestamp is not None:
            return _Need(problem=f"the volume {claim.spec.volume_name} of claim {name} is being deleted")
        if BIND_COMPLETED not in claim.metadata.annotations:
            return _Need(problem=f"its volume claim {name} is not bound yet")
        try:
            return _Need(_volume_terms(volume), driver=_driver(volume))
        except UnknownOperatorError as error:
            return _Need(problem=f"the volume {claim.spec.volume_name} of claim {name}: {error}")

    def _unbound(self, name: str, claim: PersistentVolumeClaim) -> _Need:
        wanted = claim.spec.storage_class_name
        # A claim that exists got its default when it was made; the one of an ephemeral volume is still to be made.
        found = (
            self._default_class() if wanted is None and name not in self._claims else self._classes.get(wanted or "")
        )
        if not wanted and found is None:
            return _Need(problem=f"its volume claim {name} is unbound and names no storage class")
        if found is None:
            return _Need(problem=f"the storage class {wanted} of claim {name} does not exist")
        if found.volume_binding_mode != "WaitForFirstConsumer":
            return _Need(problem=f"its volume claim {name} waits for a volume (binding mode Immediate)")
        try:
            zones = alternatives(map(_topology, found.allowed_topologies))
        except UnknownOperatorError as error:
            return _Need(problem=f"the storage class {wanted} of claim {name}: {error}")
        return _Need(zones or (NO_REQUIREMENTS,), _IN_TREE.get(found.provisioner, found.provisioner), name)

    def _default_class(self) -> StorageClass | None:
        """The newest class that says it is the default."""
        defaults = [c for c in self._classes.values() if c.metadata.annotations.get(_DEFAULT_CLASS) == "true"]
        return max(defaults, key=lambda c: (str(c.metadata.creation_timestamp or ""), c.metadata.name), default=None)


def _claim_names(pod: Pod) -> Iterable[tuple[str, PersistentVolumeClaim | None]]:
    namespace = pod.metadata.namespace or "default"
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"{namespace}/{volume.persistent_volume_claim.claim_name}", None
        elif volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
            template = PersistentVolumeClaim(spec=volume.ephemeral.volume_claim_template.spec)
            yield f"{namespace}/{pod.metadata.name}-{volume.name}", template


def _volume_terms(volume: PersistentVolume) -> tuple[Requirements, ...]:
    """Where the volume can be used: its node affinity, and the zone and region that older volumes are labelled with.

    Karpenter looks past the host of a local volume; kube-scheduler does not, and the pod would stay pending on a new
    node.
    """
    labelled = Requirements(
        {
            canonical(k): one_of(v.split("__"))
            for k, v in volume.metadata.labels.items()
            if canonical(k) in (ZONE, REGION)
        }
    )
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return (labelled,)
    terms = [labelled.intersect(term) for term in alternatives(affinity.required.node_selector_terms)]
    return tuple(terms) or (labelled,)


def _topology(term: TopologySelectorTerm) -> NodeSelectorTerm:
    """As kube-scheduler reads it (component-helpers ``MatchTopologySelectorTerms``)."""
    listed = [NodeSelectorRequirement(key=e.key, operator="In", values=e.values) for e in term.match_label_expressions]
    return NodeSelectorTerm(match_expressions=listed)


def _driver(volume: PersistentVolume) -> str:
    if volume.spec.csi is not None:
        return volume.spec.csi.driver
    return "ebs.csi.aws.com" if volume.spec.aws_elastic_block_store is not None else ""


def _combined(needs: list[tuple[Requirements, ...]]) -> tuple[Requirements, ...]:
    """Every combination of one alternative a volume, without the contradictory ones unless all are."""
    merged: list[Requirements] = []
    for combination in product(*needs):
        joint = NO_REQUIREMENTS
        for requirements in combination:
            joint = joint.intersect(requirements)
        if joint not in merged:
            merged.append(joint)
        if len(merged) >= _ALTERNATIVES:
            break
    possible = [r for r in merged if not any(s.is_impossible for s in r.sets.values())]
    return tuple(possible or merged)
