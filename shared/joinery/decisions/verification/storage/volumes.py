"""Volumes: a bound claim ties its pods to where its volume is, an unbound one to where a volume can be made
(VolumeBinding, VolumeZone).

Attach limits are those of the CSINode. A node that has none yet gets what its instance type attaches: then the CSI
driver says so, and kube-scheduler keeps the others away. There a claim that several pods use is not counted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode
from joinery.decisions.verification.predicates import Labels
from joinery.decisions.verification.storage.claims import Claims, PodClaim
from joinery.decisions.verification.storage.matching import Found, in_all, without_volume
from joinery.decisions.verification.storage.unbound_claims import BOUND, UnboundClaims, is_here, storage_class_of
from joinery.decisions.verification.violation import Violation, ViolationCode, misplaced
from joinery.objects.karpenter.labels import AUTO_MODE, AUTO_MODE_DRIVER, COMPUTE_TYPE, INSTANCE_TYPE, ZONE
from joinery.objects.kubernetes.core import PersistentVolume, PersistentVolumeClaim, StorageClass

_EBS = "ebs.csi.aws.com"
_IN_TREE = {"kubernetes.io/aws-ebs": _EBS}
_ONE_POD_ONLY = "ReadWriteOncePod"


def check_volumes(state: FinalState) -> Iterator[Violation]:
    """The claims of every planned pod can be used where the plan puts it."""
    volumes = PodVolumes(state)
    planned = list(filter(volumes.claims_of, state.planned))
    for pod_class in planned:
        for node in pod_class.planned_on:
            problem = volumes.problem(pod_class, node.labels, node.name)
            if problem:
                yield misplaced(ViolationCode.VOLUMES, pod_class, node, problem)
    if planned:
        yield from _check_sharing(volumes, list(filter(volumes.claims_of, state.classes.values())))
        yield from _check_limits(state, volumes, planned)
        yield from _check_free_volumes(volumes, planned)


@dataclass(frozen=True)
class PodVolumes:
    """Claims, volumes and classes of the snapshot, by name."""

    state: FinalState

    @cached_property
    def _claims(self) -> Claims:
        return Claims(self.state.problem.snapshot)

    @cached_property
    def _volumes(self) -> dict[str, PersistentVolume]:
        return {volume.metadata.name: volume for volume in self.state.problem.snapshot.volumes}

    @cached_property
    def _classes(self) -> dict[str, StorageClass]:
        return {storage.metadata.name: storage for storage in self.state.problem.snapshot.storage_classes}

    @cached_property
    def unbound(self) -> UnboundClaims:
        """What claims without a volume find."""
        return UnboundClaims(self.state.problem.snapshot)

    def claims_of(self, pod_class: EquivalenceClass) -> Collection[str]:
        """The claims (namespace/name) that the class's pods mount."""
        return self._claims.of(pod_class)

    def _claim(self, pod_class: EquivalenceClass, name: str) -> PersistentVolumeClaim | None:
        return self._claims.of(pod_class)[name].claim

    def problem(self, pod_class: EquivalenceClass, labels: Labels, node: str) -> str:
        """Why a claim of the pod cannot be used on a node with these labels, or the empty string."""
        problems = (self._problem(pod_class, name, labels, node) for name in self.claims_of(pod_class))
        return next((problem for problem in problems if problem), "")

    def _problem(self, pod_class: EquivalenceClass, name: str, labels: Labels, node: str) -> str:
        mounted = self._claims.of(pod_class)[name]
        claim = mounted.claim
        if claim is None:
            return f"claim {name} does not exist"
        if mounted.is_foreign:
            return f"claim {name} is in the place of an ephemeral volume and belongs to somebody else"
        if claim.metadata.deletion_timestamp is not None or claim.status.phase == "Lost":
            return f"claim {name} is lost or being deleted"
        if self.driver(pod_class, name) == AUTO_MODE_DRIVER and labels.get(COMPUTE_TYPE) != AUTO_MODE:
            return f"the volume of claim {name} is attached to nodes of EKS Auto Mode alone"
        if claim.spec.volume_name:
            return self._bound_problem(claim, name, labels, node)
        own = self._given(mounted, name)
        if own:
            return self._volume_problem(own, name, labels, node)
        return self._unbound_problem(mounted, claim, name, labels, node)

    def _unbound_problem(
        self, mounted: PodClaim, claim: PersistentVolumeClaim, name: str, labels: Labels, node: str
    ) -> str:
        storage = self._classes.get(storage_class_of(claim))
        if storage is None and not mounted.is_to_come:
            return f"claim {name} is not bound and has no storage class"
        if storage is not None and storage.volume_binding_mode != "WaitForFirstConsumer" and not mounted.is_to_come:
            return f"claim {name} is not bound yet, and its class binds at once"
        if self.unbound.provisioning_on(claim) not in ("", node):
            return f"the volume of claim {name} is being made for another node"
        if not self.unbound.can_provision(claim, labels) and not self._found(claim, labels, node):
            return f"the storage class of claim {name} has no volumes here"
        return ""

    def _given(self, mounted: PodClaim, name: str) -> str:
        """The volume that the claim gets whatever pod uses it, or the empty string."""
        if mounted.claim is None or not mounted.is_to_come:
            return self.unbound.given.get(name, "")
        return "" if self._claims.is_there(name) else self.unbound.own(name, mounted.claim)

    def _found(self, claim: PersistentVolumeClaim, labels: Labels, node: str) -> Found:
        """The free volumes that it may bind there; none once one is being made."""
        return Found() if self.unbound.provisioning_on(claim) else self.unbound.matching(claim, labels, node)

    def wanted(self, pod_class: EquivalenceClass) -> Iterator[tuple[str, list[Found]]]:
        """The claims of the class's planned pods that must bind a free volume, with those that will do, by node."""
        for name, mounted in self._claims.of(pod_class).items():
            claim = mounted.claim
            if claim is None or claim.spec.volume_name or self._given(mounted, name):
                continue
            nodes = [node for node in pod_class.planned_on if not self.unbound.can_provision(claim, node.labels)]
            if nodes:
                yield name, [self._found(claim, node.labels, node.name) for node in nodes]

    def _bound_problem(self, claim: PersistentVolumeClaim, name: str, labels: Labels, node: str) -> str:
        if BOUND not in claim.metadata.annotations and name not in self.unbound.given:
            return f"claim {name} is not completely bound yet"
        return self._volume_problem(claim.spec.volume_name, name, labels, node)

    def _volume_problem(self, volume_name: str, name: str, labels: Labels, node: str) -> str:
        volume = self._volumes.get(volume_name)
        if volume is None or volume.metadata.deletion_timestamp is not None:
            return f"claim {name} is bound to a volume that does not exist"
        zones = volume.metadata.labels.get(ZONE, "")
        if zones and labels.get(ZONE) not in zones.split("__"):
            return f"the volume of claim {name} is in {zones}"
        return "" if is_here(volume.spec.node_affinity, labels, node) else f"the volume of claim {name} is not here"

    def binds_zone(self, pod_class: EquivalenceClass, name: str) -> bool:
        """Whether the first pod that uses the claim will decide the zone of all of them."""
        claim = self._claim(pod_class, name)
        if claim is None or claim.spec.volume_name:
            return False
        storage = self._classes.get(storage_class_of(claim))
        return storage is not None and _IN_TREE.get(storage.provisioner, storage.provisioner) == _EBS

    def is_exclusive(self, pod_class: EquivalenceClass, name: str) -> bool:
        """Whether one pod alone may use it."""
        claim = self._claim(pod_class, name)
        return claim is not None and _ONE_POD_ONLY in claim.spec.access_modes

    def driver(self, pod_class: EquivalenceClass, name: str) -> str:
        """The CSI driver that attaches the claim's volume, or the empty string."""
        claim = self._claim(pod_class, name)
        if claim is None:
            return ""
        if not claim.spec.volume_name:
            storage = self._classes.get(storage_class_of(claim))
            return _IN_TREE.get(storage.provisioner, storage.provisioner) if storage else ""
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is None:
            return ""
        return volume.spec.csi.driver if volume.spec.csi else _EBS if volume.spec.aws_elastic_block_store else ""


def _check_free_volumes(volumes: PodVolumes, planned: Sequence[EquivalenceClass]) -> Iterator[Violation]:
    """Each free volume serves one claim."""
    users: dict[str, EquivalenceClass] = {}
    wanted: dict[str, list[Found]] = defaultdict(list)
    for pod_class in planned:
        for name, found in volumes.wanted(pod_class):
            users[name] = pod_class
            wanted[name] += found
    for name in without_volume({name: in_all(found) for name, found in wanted.items()}):
        message = f"claim {name} finds no free volume that no other claim takes"
        yield from _first_misplaced(ViolationCode.VOLUMES, users[name], message)


def _check_sharing(volumes: PodVolumes, mounting: Sequence[EquivalenceClass]) -> Iterator[Violation]:
    zone_of: dict[str, str] = {}
    users: dict[str, int] = defaultdict(int)
    for pod_class in mounting:
        for name in volumes.claims_of(pod_class):
            users[name] += sum(volumes.state.places(pod_class).values())
            if users[name] > 1 and volumes.is_exclusive(pod_class, name):
                yield from _first_misplaced(
                    ViolationCode.VOLUMES, pod_class, f"claim {name} lets one pod use it, and several would"
                )
            if volumes.binds_zone(pod_class, name):
                for node in pod_class.planned_on:
                    zone = node.labels.get(ZONE, "")
                    if zone_of.setdefault(name, zone) != zone:
                        yield misplaced(
                            ViolationCode.SHARED_VOLUME,
                            pod_class,
                            node,
                            f"claim {name} is used in {zone_of[name]} and in {zone}",
                        )


def _first_misplaced(code: ViolationCode, pod_class: EquivalenceClass, message: str) -> Iterator[Violation]:
    node = next(iter(pod_class.planned_on), None)
    if node is not None:
        yield misplaced(code, pod_class, node, message)


def _check_limits(state: FinalState, volumes: PodVolumes, planned: Sequence[EquivalenceClass]) -> Iterator[Violation]:
    limits = _Limits(state)
    shared = _used_by_several(volumes, state.classes.values())
    for node in {node for pod_class in planned for node in pod_class.planned_on}:
        for driver, names in sorted(_attached(volumes, node).items()):
            is_said = driver in limits.said(node)
            limit = (limits.said(node) if is_said else limits.usual(node)).get(driver)
            if limit is not None and len(names if is_said else names - shared) > limit:
                users = [
                    f
                    for f in node.planned
                    if f in planned and any(volumes.driver(f, n) == driver for n in volumes.claims_of(f))
                ]
                for pod_class in users[:1]:
                    message = f"{len(names)} volumes of {driver} wanted, {limit} can be attached"
                    yield misplaced(ViolationCode.VOLUME_LIMITS, pod_class, node, message)


@dataclass(frozen=True)
class _Limits:
    """How many volumes nodes attach, by CSI driver."""

    state: FinalState

    @cached_property
    def _said(self) -> dict[str, dict[str, int | None]]:
        return {
            csi.metadata.name: {d.name: d.allocatable.count if d.allocatable else None for d in csi.spec.drivers}
            for csi in self.state.problem.snapshot.csi_nodes
        }

    @cached_property
    def _launches(self) -> dict[str, Launch]:
        return {launch.name: launch for launch in self.state.packing.launches}

    def said(self, node: FinalNode) -> Mapping[str, int | None]:
        """What the node's drivers say themselves; None for one that has no limit."""
        return self._said.get(node.name, {})

    def usual(self, node: FinalNode) -> Mapping[str, int]:
        """What the node's type attaches; the least of all types that a launch allows."""
        pool = self.state.pools.get(node.pool)
        types = self.state.types_of(pool) if pool else {}
        launch = self._launches.get(node.name)
        names = launch.instance_types if launch else (node.labels.get(INSTANCE_TYPE, ""),)
        limits: dict[str, int] = {}
        for kind in (types[name] for name in names if name in types):
            for driver, count in kind.attachments.items():
                limits[driver] = min(count, limits.get(driver, count))
        return limits


def _used_by_several(volumes: PodVolumes, classes: Iterable[EquivalenceClass]) -> frozenset[str]:
    users: dict[str, int] = defaultdict(int)
    for pod_class in classes:
        for name in volumes.claims_of(pod_class):
            users[name] += sum(volumes.state.places(pod_class).values())
    return frozenset(name for name, count in users.items() if count > 1)


def _attached(volumes: PodVolumes, node: FinalNode) -> dict[str, set[str]]:
    """Claims of all pods on the node, by driver; a claim that several pods share counts once."""
    attached: dict[str, set[str]] = defaultdict(set)
    for pod_class in node.pods:
        for name in volumes.claims_of(pod_class):
            attached[volumes.driver(pod_class, name)].add(name)
    return attached
