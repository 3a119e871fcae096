"""Where a pod's volumes let it run, and how many of a node's attachments they take.

(kube-scheduler plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.)
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from joinery.decisions.scheduling.constraints.mounted_claims import MountedClaim, MountedClaims, claims_of
from joinery.decisions.scheduling.constraints.nodeterms import alternatives
from joinery.decisions.scheduling.constraints.persistent_volumes import (
    NO_PROVISIONER,
    PersistentVolumes,
    by_name,
    class_of,
    csi_driver,
    places_of,
    size_of,
    waits_for_pod,
)
from joinery.decisions.scheduling.constraints.requirements import (
    NO_REQUIREMENTS,
    Requirements,
    UnknownOperatorError,
    one_of,
)
from joinery.decisions.scheduling.constraints.storage_capacity import StorageCapacity
from joinery.decisions.scheduling.constraints.volume_needs import (
    ANYWHERE,
    NO_VOLUMES,
    VolumeChoice,
    VolumeNeeds,
    VolumeWay,
    combined,
)
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.karpenter.labels import (
    AUTO_MODE,
    AUTO_MODE_DRIVER,
    BIND_COMPLETED,
    COMPUTE_TYPE,
    HOSTNAME,
    SELECTED_NODE,
)
from joinery.objects.kubernetes.core import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    TopologySelectorTerm,
)
from joinery.objects.snapshot.snapshot import Snapshot

_IN_TREE = {"kubernetes.io/aws-ebs": "ebs.csi.aws.com"}
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
    ways: tuple[VolumeWay, ...] = ANYWHERE
    driver: str = ""
    unbound: str = ""
    made_for: str = ""
    size: int = 0
    is_exclusive: bool = False
    problem: str | None = None
    code: ReasonCode = ReasonCode.VOLUME


class Volumes:
    """Tells what a pod's volumes need, from the snapshot's claims, volumes and storage classes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._claims = by_name(snapshot.volume_claims)
        self._volumes = {v.metadata.name: v for v in snapshot.volumes}
        self._classes = {c.metadata.name: c for c in snapshot.storage_classes}
        self._mounted = MountedClaims(self._claims, snapshot.storage_classes)
        self._capacity = StorageCapacity(snapshot.csi_drivers, snapshot.storage_capacities)

    @cached_property
    def _persistent(self) -> PersistentVolumes:
        return PersistentVolumes(self._snapshot.volumes, self._claims, self._classes, self._snapshot.node_pools)

    def needs(self, pod: Pod, *, is_anew: bool = False) -> VolumeNeeds:
        """What the pod's volumes ask of its node.

        ``is_anew``: it is made anew elsewhere. Its ephemeral volumes end with the pod that is there, and the claims of
        the next one are yet to be made.
        """
        claims = {one.name: one for one in self._mounted.of(pod, is_anew=is_anew)} if pod.spec.volumes else {}
        if not claims:
            return NO_VOLUMES
        needs = [self._of_claim(claim) for claim in claims.values()]
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
            problems=tuple(Reason(need.code, need.problem) for need in needs if need.problem),
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
        for claim in self._mounted.of(pod) if pod.spec.volumes else ():
            driver = self._of_claim(claim).driver
            if driver:
                claims.setdefault(driver, set()).add(claim.name)
        return claims

    def _of_claim(self, used: MountedClaim) -> _Need:
        name, template, is_foreign = used
        claim = self._claims.get(name) if template is None else template
        if claim is None:
            return _Need(problem=f"its volume claim {name} does not exist")
        if is_foreign:
            return _Need(problem=f"the claim {name} of its ephemeral volume is there already, and is not its own")
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
        storage_class = self._classes.get(class_of(claim))
        node = self._being_made_for(claim, storage_class)
        awaits_pod = is_to_come or waits_for_pod(claim, self._classes)
        made = self._made(claim, storage_class) if storage_class is not None and awaits_pod else ()
        if made is None:
            return _too_many(name, "segments with room")
        if made != ANYWHERE and persistent.asks_too_much(claim):
            return _too_many(name, "free volumes")
        # Where one is free, one could be made as well.
        chosen = tuple(self._chosen(name, claim)) if awaits_pod and not node and made != ANYWHERE else ()
        if storage_class is None or not awaits_pod:
            return _Need(chosen) if chosen else _Need(problem=_why_unbound(name, claim, storage_class))
        if not (chosen or made):
            return _Need(problem=_nowhere(name, storage_class, node))
        driver = _IN_TREE.get(storage_class.provisioner, storage_class.provisioner)
        unbound = name if made and driver not in IN_ALL_ZONES else ""
        need = _Need((*chosen, *made), driver, unbound)
        return self._tied(node, need) if node else need

    def _being_made_for(self, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> str:
        """The node that the claim's volume is being made for; empty for none.

        If the node is gone, the provisioner takes the mark away, and kube-scheduler chooses again (external-provisioner
        ``ProvisioningReschedule``). A class that makes none has no provisioner that would.
        """
        node = claim.metadata.annotations.get(SELECTED_NODE, "")
        return node if node in self._host_of or (storage_class and _makes_none(storage_class)) else ""

    @cached_property
    def _host_of(self) -> Mapping[str, str]:
        """The host names of the nodes, by name."""
        return {
            node.metadata.name: node.metadata.labels.get(HOSTNAME, node.metadata.name) for node in self._snapshot.nodes
        }

    def _tied(self, node: str, need: _Need) -> _Need:
        """What is left if the volume is being made for that node: kube-scheduler refuses all others."""
        there = Requirements({HOSTNAME: one_of((self._host_of[node],))})
        return replace(need, ways=tuple(_restricted(way, there) for way in need.ways), unbound="", made_for=node)

    def _chosen(self, name: str, claim: PersistentVolumeClaim) -> Iterator[VolumeWay]:
        """The free volumes that the claim may bind, place by place; the place of the smallest first."""
        for place, stock, size in self._persistent.stocks_for(claim):
            yield VolumeWay(place, (VolumeChoice(name, stock, size),))

    def _made(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> tuple[VolumeWay, ...] | None:
        """Where a volume can be made for the claim (`checkVolumeProvisions`); None where to find that takes too long.
        Raises ``UnknownOperatorError``.
        """
        driver, kind = storage_class.provisioner, storage_class.metadata.name
        if _makes_none(storage_class):
            return ()
        segments: tuple[Requirements, ...] | None = (NO_REQUIREMENTS,)
        if self._capacity.is_published(driver) and "storage" in claim.spec.resources.requests:
            segments = self._capacity.segments(kind, size_of(claim))
        if not segments:
            return () if segments is not None else None
        zones = alternatives(map(_topology, storage_class.allowed_topologies)) or (NO_REQUIREMENTS,)
        return combined((tuple(map(VolumeWay, zones)), tuple(map(VolumeWay, segments))))


def _too_many(name: str, things: str) -> _Need:
    problem = f"there are too many {things} to look through all of them for its claim {name}: others have come first"
    return _Need(problem=problem, code=ReasonCode.TOO_MUCH)


def _why_unbound(name: str, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> str:
    wanted = class_of(claim)
    if not wanted:
        return f"its volume claim {name} is unbound and names no storage class"
    if storage_class is None:
        return f"the storage class {wanted} of claim {name} does not exist"
    return f"its volume claim {name} waits for a volume (binding mode Immediate)"


def _nowhere(name: str, storage_class: StorageClass, node: str) -> str:
    wanted = storage_class.metadata.name
    if _makes_none(storage_class) and node:
        return f"its claim {name} waits for a volume to be made on node {node}, and storage class {wanted} makes none"
    if _makes_none(storage_class):
        return f"no free volume matches its claim {name}, and none is made for storage class {wanted}"
    return f"{storage_class.provisioner} has no room for its claim {name} anywhere (CSIStorageCapacity of {wanted})"


def _makes_none(storage_class: StorageClass) -> bool:
    """Whether people make its volumes."""
    return storage_class.provisioner in ("", NO_PROVISIONER)


def _restricted(way: VolumeWay, requirements: Requirements) -> VolumeWay:
    return way._replace(requirements=way.requirements.intersect(requirements))


def _of_volume(volume: PersistentVolume) -> _Need:
    return _Need(tuple(map(VolumeWay, places_of(volume))), driver=csi_driver(volume))


def _topology(term: TopologySelectorTerm) -> NodeSelectorTerm:
    """As kube-scheduler reads it (component-helpers ``MatchTopologySelectorTerms``)."""
    expressions = [
        NodeSelectorRequirement(key=expression.key, operator="In", values=expression.values)
        for expression in term.match_label_expressions
    ]
    return NodeSelectorTerm(match_expressions=expressions)
