"""Where a pod's volumes let it run, and how many of a node's attachments they take.

(kube-scheduler plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.)
"""

from collections import Counter
from collections.abc import Container, Iterable
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
from joinery.apis.labels import AUTO_MODE, AUTO_MODE_DRIVER, BIND_COMPLETED, COMPUTE_TYPE, REGION, ZONE, canonical
from joinery.scheduling.constraints.nodeterms import alternatives
from joinery.scheduling.constraints.requirements import NO_REQUIREMENTS, Requirements, UnknownOperatorError, one_of
from joinery.scheduling.reason import Reason, ReasonCode
from joinery.state.snapshot import Snapshot

_IN_TREE = {"kubernetes.io/aws-ebs": "ebs.csi.aws.com"}
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
#: Drivers of file systems, which nodes of all zones reach: whoever uses such a claim first decides nothing.
IN_ALL_ZONES = frozenset(
    {
        "efs.csi.aws.com", "fsx.csi.aws.com", "fsx.openzfs.csi.aws.com", "s3.csi.aws.com", "nfs.csi.k8s.io",
        "smb.csi.k8s.io",
    }
)  # fmt: skip
_ONE_POD_ONLY = "ReadWriteOncePod"
#: kube-scheduler binds elsewhere, too, and the pod then waits for its volume for ever.
_OF_AUTO_MODE = Requirements({COMPUTE_TYPE: one_of((AUTO_MODE,))})
_MAX_ALTERNATIVES = 64
"""How many combinations of volumes' places are gone on with: their number may grow exponentially with the volumes."""


@dataclass(frozen=True, kw_only=True)
class VolumeNeeds:
    """What a pod's volumes ask of its node. Claims are named namespace/name.

    alternatives   requirements on the node; any one of them will do
    drivers        by CSI driver: how many volumes the pod attaches
    unbound        claims whose zone the first pod that uses them decides
    claims         all claims that the pod uses
    exclusive      claims that only one pod may use (ReadWriteOncePod)
    shared         (claim, driver) of claims that other pods use too; pods on one node share the attachment. ``drivers``
                   counts them too
    problems       why the pod cannot be scheduled at all
    """

    alternatives: tuple[Requirements, ...] = (NO_REQUIREMENTS,)
    drivers: tuple[tuple[str, int], ...] = ()
    unbound: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    exclusive: tuple[str, ...] = ()
    shared: tuple[tuple[str, str], ...] = ()
    problems: tuple[Reason, ...] = ()

    def taken(self, drivers: Container[str], attached: Container[str]) -> dict[str, tuple[int, int]]:
        """What pods of the class take of a node's attachments, by limited driver, as (once, each).

        ``once`` is for the volumes that they share, however many pods there are; ``each`` is for every pod's own.
        ``drivers``: those that the node limits. ``attached``: the claims that the node has attached already.
        """
        attachments = {}
        for driver, count in self.drivers:
            if driver in drivers:
                common = [claim for claim, claim_driver in self.shared if claim_driver == driver]
                attachments[driver] = sum(claim not in attached for claim in common), count - len(common)
        return attachments


NO_VOLUMES = VolumeNeeds()


@dataclass(frozen=True)
class _Need:
    alternatives: tuple[Requirements, ...] = (NO_REQUIREMENTS,)
    driver: str = ""
    unbound: str = ""
    is_exclusive: bool = False
    problem: str = ""


class Volumes:
    """Tells what a pod's volumes need, from the snapshot's claims, volumes and storage classes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._claims = {f"{c.metadata.namespace or 'default'}/{c.metadata.name}": c for c in snapshot.volume_claims}
        self._volumes = {v.metadata.name: v for v in snapshot.volumes}
        self._classes = {c.metadata.name: c for c in snapshot.storage_classes}

    def needs(self, pod: Pod) -> VolumeNeeds:
        """What the pod's volumes ask of its node."""
        if not pod.spec.volumes:
            return NO_VOLUMES
        claims = list(dict(_claim_names(pod)).items())
        if not claims:
            return NO_VOLUMES
        needs = [self._of_claim(name, template) for name, template in claims]
        drivers = Counter(need.driver for need in needs if need.driver)
        return VolumeNeeds(
            alternatives=_combined([need.alternatives for need in needs]),
            drivers=tuple(sorted(drivers.items())),
            unbound=tuple(sorted(need.unbound for need in needs if need.unbound)),
            claims=tuple(sorted({name for name, _ in claims})),
            exclusive=tuple(name for (name, _), need in zip(claims, needs, strict=True) if need.is_exclusive),
            problems=tuple(Reason(ReasonCode.VOLUME, need.problem) for need in needs if need.problem),
        )

    def by_driver(self, pod: Pod) -> dict[str, set[str]]:
        """The claims (namespace/name) of a pod by CSI driver. A node attaches each of them once."""
        claims: dict[str, set[str]] = {}
        for name, template in _claim_names(pod) if pod.spec.volumes else ():
            driver = self._of_claim(name, template).driver
            if driver:
                claims.setdefault(driver, set()).add(name)
        return claims

    def _of_claim(self, name: str, template: PersistentVolumeClaim | None) -> _Need:
        claim = self._claims.get(name, template)
        if claim is None:
            return _Need(problem=f"its volume claim {name} does not exist")
        if claim.metadata.deletion_timestamp is not None:
            return _Need(problem=f"its volume claim {name} is being deleted")
        if claim.status.phase == "Lost":
            return _Need(problem=f"its volume claim {name} has lost its volume")
        need = self._bound(name, claim) if claim.spec.volume_name else self._unbound(name, claim)
        if need.driver == AUTO_MODE_DRIVER:
            need = replace(need, alternatives=tuple(one.intersect(_OF_AUTO_MODE) for one in need.alternatives))
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
        storage_class = self._storage_class(name, wanted)
        if not wanted and storage_class is None:
            return _Need(problem=f"its volume claim {name} is unbound and names no storage class")
        if storage_class is None:
            return _Need(problem=f"the storage class {wanted} of claim {name} does not exist")
        if storage_class.volume_binding_mode != "WaitForFirstConsumer":
            return _Need(problem=f"its volume claim {name} waits for a volume (binding mode Immediate)")
        try:
            zones = alternatives(map(_topology, storage_class.allowed_topologies))
        except UnknownOperatorError as error:
            return _Need(problem=f"the storage class {wanted} of claim {name}: {error}")
        driver = _IN_TREE.get(storage_class.provisioner, storage_class.provisioner)
        return _Need(zones or (NO_REQUIREMENTS,), driver, name if driver not in IN_ALL_ZONES else "")

    def _storage_class(self, claim: str, wanted: str | None) -> StorageClass | None:
        # The API server gave claims that exist their default class. The claim of an ephemeral volume is yet to be made.
        if wanted is None and claim not in self._claims:
            return default_class(self._classes.values())
        return self._classes.get(wanted or "")


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The newest class that says it is the default (DefaultStorageClass)."""
    defaults = [one for one in classes if one.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    return max(defaults, key=_age_and_name, default=None)


def _age_and_name(storage_class: StorageClass) -> tuple[str, str]:
    return str(storage_class.metadata.creation_timestamp or ""), storage_class.metadata.name


def _claim_names(pod: Pod) -> Iterable[tuple[str, PersistentVolumeClaim | None]]:
    namespace = pod.metadata.namespace or "default"
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"{namespace}/{volume.persistent_volume_claim.claim_name}", None
        elif volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
            template = PersistentVolumeClaim(spec=volume.ephemeral.volume_claim_template.spec)
            yield f"{namespace}/{pod.metadata.name}-{volume.name}", template


def _volume_terms(volume: PersistentVolume) -> tuple[Requirements, ...]:
    """Where the volume can be used: its node affinity, and its labels for zone and region, which older volumes have.

    Karpenter ignores the hostname in a local volume's node affinity. kube-scheduler does not, so the pod would stay
    pending on a new node; here the hostname counts.
    """
    labelled = Requirements(
        {
            canonical(key): one_of(value.split("__"))  # a regional volume has several zones in one value
            for key, value in volume.metadata.labels.items()
            if canonical(key) in (ZONE, REGION)
        }
    )
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return (labelled,)
    terms = [labelled.intersect(term) for term in alternatives(affinity.required.node_selector_terms)]
    return tuple(terms) or (labelled,)


def _topology(term: TopologySelectorTerm) -> NodeSelectorTerm:
    """As kube-scheduler reads it (component-helpers ``MatchTopologySelectorTerms``)."""
    expressions = [
        NodeSelectorRequirement(key=expression.key, operator="In", values=expression.values)
        for expression in term.match_label_expressions
    ]
    return NodeSelectorTerm(match_expressions=expressions)


def _driver(volume: PersistentVolume) -> str:
    if volume.spec.csi is not None:
        return volume.spec.csi.driver
    return "ebs.csi.aws.com" if volume.spec.aws_elastic_block_store is not None else ""


def _combined(needs: list[tuple[Requirements, ...]]) -> tuple[Requirements, ...]:
    """One alternative of each volume, in every combination: volume after volume, because many combinations are alike.

    Combinations that contradict themselves are left out. If all do, they are kept: then they say why there is no place.
    """
    merged: list[Requirements] = [NO_REQUIREMENTS]
    for alternatives_of_volume in needs:
        grown: list[Requirements] = []
        for one, other in product(merged, alternatives_of_volume):
            if (joint := one.intersect(other)) not in grown:
                grown.append(joint)
        possible = [joint for joint in grown if not any(allowed.is_impossible for allowed in joint.sets.values())]
        merged = (possible or grown)[:_MAX_ALTERNATIVES]
    return tuple(merged)
