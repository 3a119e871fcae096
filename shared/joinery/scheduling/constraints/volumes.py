"""Where a pod's volumes let it run, and how many of a node's attachments they take.

(kube-scheduler plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.)
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from joinery.apis.core import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    TopologySelectorTerm,
    Volume,
)
from joinery.apis.labels import (
    AUTO_MODE,
    AUTO_MODE_DRIVER,
    BIND_COMPLETED,
    COMPUTE_TYPE,
    HOSTNAME,
    SELECTED_NODE,
)
from joinery.scheduling.constraints.nodeterms import alternatives
from joinery.scheduling.constraints.persistent_volumes import (
    NO_PROVISIONER,
    PersistentVolumes,
    by_name,
    by_place,
    class_of,
    csi_driver,
    places_of,
    size_of,
    waits_for_pod,
)
from joinery.scheduling.constraints.requirements import NO_REQUIREMENTS, Requirements, UnknownOperatorError, one_of
from joinery.scheduling.constraints.storage_capacity import StorageCapacity
from joinery.scheduling.constraints.volume_needs import (
    ANYWHERE,
    NO_VOLUMES,
    Choice,
    FreeVolume,
    VolumeNeeds,
    Way,
    combined,
)
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


@dataclass(frozen=True)
class _Need:
    ways: tuple[Way, ...] = ANYWHERE
    driver: str = ""
    unbound: str = ""
    made_for: str = ""
    size: int = 0
    is_exclusive: bool = False
    problem: str = ""


class Volumes:
    """Tells what a pod's volumes need, from the snapshot's claims, volumes and storage classes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._claims = by_name(snapshot.volume_claims)
        self._volumes = {v.metadata.name: v for v in snapshot.volumes}
        self._classes = {c.metadata.name: c for c in snapshot.storage_classes}
        self._capacity = StorageCapacity(snapshot.csi_drivers, snapshot.storage_capacities)
        self._free: dict[bytes, tuple[tuple[Requirements, tuple[FreeVolume, ...]], ...]] = {}
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    @cached_property
    def _persistent(self) -> PersistentVolumes:
        return PersistentVolumes(self._snapshot.volumes, self._claims, self._classes)

    def needs(self, pod: Pod, *, is_anew: bool = False) -> VolumeNeeds:
        """What the pod's volumes ask of its node.

        ``is_anew``: it is made anew elsewhere. Its ephemeral volumes end with the pod that is there, and the claims of
        the next one are yet to be made.
        """
        claims = dict(self._claims_of(pod, is_anew=is_anew)) if pod.spec.volumes else {}
        if not claims:
            return NO_VOLUMES
        needs = [self._of_claim(name, template) for name, template in claims.items()]
        drivers = Counter(need.driver for need in needs if need.driver)
        # kube-scheduler chooses for the smallest claim first.
        ways = combined(need.ways for need in sorted(needs, key=lambda need: need.size))
        return VolumeNeeds(
            alternatives=tuple(way.requirements for way in ways),
            choices=tuple(way.choices for way in ways) if any(way.choices for way in ways) else (),
            drivers=tuple(sorted(drivers.items())),
            unbound=tuple(sorted(need.unbound for need in needs if need.unbound)),
            claims=tuple(sorted(claims)),
            exclusive=tuple(name for name, need in zip(claims, needs, strict=True) if need.is_exclusive),
            made_for=tuple((name, need.made_for) for name, need in zip(claims, needs, strict=True) if need.made_for),
            problems=tuple(Reason(ReasonCode.VOLUME, need.problem) for need in needs if need.problem),
        )

    def is_unbound(self, pod: Pod) -> bool:
        """Whether some claim of the pod has no volume yet."""
        return bool(pod.spec.volumes) and not claims_of(pod) <= self._bound_claims

    @cached_property
    def _bound_claims(self) -> frozenset[str]:
        return frozenset(name for name, claim in self._claims.items() if claim.spec.volume_name)

    def by_driver(self, pod: Pod) -> dict[str, set[str]]:
        """The claims (namespace/name) of a pod by CSI driver. A node attaches each of them once."""
        claims: dict[str, set[str]] = {}
        for name, template in self._claims_of(pod) if pod.spec.volumes else ():
            driver = self._of_claim(name, template).driver
            if driver:
                claims.setdefault(driver, set()).add(name)
        return claims

    def _claims_of(self, pod: Pod, *, is_anew: bool = False) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
        """The pod's claims by namespace/name; with each that is yet to be made what it will be."""
        namespace = pod.metadata.namespace or "default"
        for volume in pod.spec.volumes:
            name = _claim_name(pod, volume)
            key = f"{namespace}/{name}"
            if name and volume.persistent_volume_claim is not None:
                yield key, None
            elif name:
                own = self._claims.get(key)
                is_made = own is not None and not is_anew and not _is_of_another(own, pod)
                yield key, None if is_made else self._claim_to_come(volume, name, namespace)

    def _claim_to_come(self, volume: Volume, name: str, namespace: str) -> PersistentVolumeClaim | None:
        """What the controller of ephemeral volumes will make of the template, and the API server of its class."""
        template = volume.ephemeral.volume_claim_template if volume.ephemeral else None
        if template is None:
            return None
        spec, default = template.spec, default_class(self._classes.values())
        if spec.storage_class_name is None and default is not None:
            spec = msgspec.structs.replace(spec, storage_class_name=default.metadata.name)
        return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)

    def _of_claim(self, name: str, template: PersistentVolumeClaim | None) -> _Need:
        claim = self._claims.get(name) if template is None else template
        if claim is None:
            return _Need(problem=f"its volume claim {name} does not exist")
        if claim.metadata.deletion_timestamp is not None:
            return _Need(problem=f"its volume claim {name} is being deleted")
        if claim.status.phase == "Lost":
            return _Need(problem=f"its volume claim {name} has lost its volume")
        try:
            if claim.spec.volume_name:
                need = self._bound(name, claim)
            else:
                need = self._unbound(name, claim, is_to_come=template is not None)
        except UnknownOperatorError as error:
            whose = claim.spec.volume_name or class_of(claim)
            kind = "volume" if claim.spec.volume_name else "storage class"
            return _Need(problem=f"the {kind} {whose} of claim {name}: {error}")
        if need.driver == AUTO_MODE_DRIVER:
            need = replace(need, ways=tuple(_restricted(way, _OF_AUTO_MODE) for way in need.ways))
        return replace(need, is_exclusive=_ONE_POD_ONLY in claim.spec.access_modes)

    def _bound(self, name: str, claim: PersistentVolumeClaim) -> _Need:
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is None:
            return _Need(problem=f"the volume {claim.spec.volume_name} of claim {name} does not exist")
        if volume.metadata.deletion_timestamp is not None:
            return _Need(problem=f"the volume {claim.spec.volume_name} of claim {name} is being deleted")
        if BIND_COMPLETED not in claim.metadata.annotations and name not in self._persistent.bound:
            return _Need(problem=f"its volume claim {name} is not bound yet")
        return _of_volume(volume)

    def _unbound(self, name: str, claim: PersistentVolumeClaim, *, is_to_come: bool) -> _Need:
        """``is_to_come``: its volume is chosen or made with it, in whatever place that has one."""
        persistent = self._persistent
        own = persistent.bound.get(name)
        if is_to_come:
            # What is reserved for a claim that is there is not for the next one of its name.
            own = None if name in self._claims else persistent.reserved_for(claim)
        if own is not None:
            return _of_volume(own)
        node = claim.metadata.annotations.get(SELECTED_NODE, "")
        storage_class = self._classes.get(class_of(claim))
        awaits_pod = is_to_come or waits_for_pod(claim, self._classes)
        chosen = tuple(self._chosen(name, claim)) if awaits_pod and not node else ()
        if storage_class is None or not awaits_pod:
            return (
                _Need(chosen, size=size_of(claim))
                if chosen
                else _Need(problem=_why_unbound(name, claim, storage_class))
            )
        made = self._made(claim, storage_class)
        if made == ANYWHERE:
            chosen = ()  # where one is free, one could be made as well
        if not (chosen or made):
            return _Need(problem=_nowhere(name, storage_class))
        driver = _IN_TREE.get(storage_class.provisioner, storage_class.provisioner)
        unbound = name if made and driver not in IN_ALL_ZONES else ""
        need = _Need((*chosen, *made), driver, unbound, size=size_of(claim) if chosen else 0)
        return self._tied(name, node, need) if node else need

    def _tied(self, claim: str, node: str, need: _Need) -> _Need:
        """What is left if the volume is being made for that node: kube-scheduler refuses all others."""
        labels = next((one.metadata.labels for one in self._snapshot.nodes if one.metadata.name == node), None)
        if labels is None:
            return _Need(problem=f"the volume of its claim {claim} is being made for node {node}, which is not there")
        there = Requirements({HOSTNAME: one_of((labels.get(HOSTNAME, node),))})
        return replace(need, ways=tuple(_restricted(way, there) for way in need.ways), unbound="", made_for=node)

    def _chosen(self, name: str, claim: PersistentVolumeClaim) -> Iterator[Way]:
        """The free volumes that the claim may bind, place by place; the place of the smallest first."""
        key = self._encode((class_of(claim), claim.spec))
        if key not in self._free:
            self._free[key] = tuple(by_place(self._persistent.usable_for(claim)))
        for place, volumes in self._free[key]:
            yield Way(place, (Choice(name, volumes),))

    def _made(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> tuple[Way, ...]:
        """Where a volume can be made for the claim (`checkVolumeProvisions`). Raises ``UnknownOperatorError``."""
        driver = storage_class.provisioner
        if driver in ("", NO_PROVISIONER):
            return ()
        zones = alternatives(map(_topology, storage_class.allowed_topologies)) or (NO_REQUIREMENTS,)
        if not self._capacity.is_published(driver) or "storage" not in claim.spec.resources.requests:
            return tuple(map(Way, zones))
        segments = self._capacity.segments(storage_class.metadata.name, size_of(claim))
        return combined((tuple(map(Way, zones)), tuple(map(Way, segments)))) if segments else ()


def claims_of(pod: Pod) -> set[str]:
    """All claims (namespace/name) that the pod uses."""
    namespace = pod.metadata.namespace or "default"
    return {f"{namespace}/{name}" for volume in pod.spec.volumes if (name := _claim_name(pod, volume))}


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The newest class that says it is the default (DefaultStorageClass)."""
    defaults = [one for one in classes if one.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    return max(defaults, key=_age_and_name, default=None)


def _age_and_name(storage_class: StorageClass) -> tuple[str, str]:
    return str(storage_class.metadata.creation_timestamp or ""), storage_class.metadata.name


def _claim_name(pod: Pod, volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    has_template = volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None
    return f"{pod.metadata.name}-{volume.name}" if has_template else ""


def _is_of_another(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim of an ephemeral volume is that of an earlier pod of the name, and goes with it."""
    owners = (owner for owner in claim.metadata.owner_references if owner.controller and owner.kind == "Pod")
    return bool(pod.metadata.uid) and any(owner.uid != pod.metadata.uid for owner in owners)


def _why_unbound(name: str, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> str:
    wanted = class_of(claim)
    if not wanted:
        return f"its volume claim {name} is unbound and names no storage class"
    if storage_class is None:
        return f"the storage class {wanted} of claim {name} does not exist"
    return f"its volume claim {name} waits for a volume (binding mode Immediate)"


def _nowhere(name: str, storage_class: StorageClass) -> str:
    wanted = storage_class.metadata.name
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return f"no free volume matches its claim {name}, and none is made for storage class {wanted}"
    return f"{storage_class.provisioner} has no room for its claim {name} anywhere (CSIStorageCapacity of {wanted})"


def _restricted(way: Way, requirements: Requirements) -> Way:
    return way._replace(requirements=way.requirements.intersect(requirements))


def _of_volume(volume: PersistentVolume) -> _Need:
    return _Need(tuple(map(Way, places_of(volume))), driver=csi_driver(volume))


def _topology(term: TopologySelectorTerm) -> NodeSelectorTerm:
    """As kube-scheduler reads it (component-helpers ``MatchTopologySelectorTerms``)."""
    expressions = [
        NodeSelectorRequirement(key=expression.key, operator="In", values=expression.values)
        for expression in term.match_label_expressions
    ]
    return NodeSelectorTerm(match_expressions=expressions)
