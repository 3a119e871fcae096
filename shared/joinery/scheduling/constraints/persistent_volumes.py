"""Which PersistentVolume a claim without one may bind.

A volume whose ``claimRef`` names a claim is that claim's. Of those that nobody has claimed, the PV controller binds one
to a claim whose class does not wait for a pod, wherever it is; kube-scheduler one on the node of the first pod
otherwise. Both ask ``FindMatchingVolume`` (component-helpers ``storage/volume``), and take the smallest that will do.
"""

from collections.abc import Iterable, Iterator, Mapping

from joinery.apis.core import PersistentVolume, PersistentVolumeClaim, StorageClass
from joinery.apis.labels import BETA_STORAGE_CLASS, BIND_COMPLETED, HOSTNAME, REGION, ZONE, canonical
from joinery.apis.quantity import LARGEST, amount
from joinery.scheduling.constraints import selectors
from joinery.scheduling.constraints.nodeterms import alternatives
from joinery.scheduling.constraints.requirements import Requirements, UnknownOperatorError, one_of
from joinery.scheduling.constraints.volume_needs import FreeVolume

#: The provisioner of a class whose volumes people make.
NO_PROVISIONER = "kubernetes.io/no-provisioner"
#: The binding mode of a class whose volumes are chosen, or made, on the node of the first pod that uses them.
WITH_POD = "WaitForFirstConsumer"

Claims = Mapping[str, PersistentVolumeClaim]
"""By namespace/name."""


def class_of(thing: PersistentVolume | PersistentVolumeClaim) -> str:
    """The name of its storage class; empty for none."""
    return thing.metadata.annotations.get(BETA_STORAGE_CLASS, thing.spec.storage_class_name or "")


def key_of(claim: PersistentVolumeClaim) -> str:
    """The claim's namespace/name."""
    return f"{claim.metadata.namespace or 'default'}/{claim.metadata.name}"


def size_of(claim: PersistentVolumeClaim) -> int:
    """How many bytes the claim asks for; more than there is where it cannot be read."""
    try:
        return amount("storage", claim.spec.resources.requests.get("storage", 0))
    except ValueError:
        return LARGEST


class PersistentVolumes:
    """The volumes that claims may still bind.

    ``claims``: all there are. ``classes``: storage classes by name.
    ``bound``: the volumes that the PV controller is about to bind, by claim: there is nothing left to choose.
    """

    def __init__(
        self, volumes: Iterable[PersistentVolume], claims: Claims, classes: Mapping[str, StorageClass]
    ) -> None:
        self._classes = classes
        self._named: dict[str, list[PersistentVolume]] = {}
        self._free: dict[str, dict[str, PersistentVolume]] = {}
        self._by_name: dict[str, PersistentVolume] = {}
        self._usable: dict[str, FreeVolume | None] = {}
        in_use = {claim.spec.volume_name for claim in claims.values() if _is_bound(claim)}
        for volume in sorted(volumes, key=lambda volume: volume.metadata.name):
            reference = volume.spec.claim_ref
            self._by_name[volume.metadata.name] = volume
            if reference is not None:
                self._named.setdefault(f"{reference.namespace or 'default'}/{reference.name}", []).append(volume)
            elif volume.status.phase in ("", "Available") and volume.metadata.name not in in_use:
                self._free.setdefault(class_of(volume), {})[volume.metadata.name] = volume
        self.bound: Mapping[str, PersistentVolume] = dict(self._bindings(claims))

    def _bindings(self, claims: Claims) -> Iterator[tuple[str, PersistentVolume]]:
        """Those that ask for a certain volume first: others must not take it. Then the oldest first."""
        waiting = {key: claim for key, claim in claims.items() if not _is_bound(claim)}
        in_order = sorted(
            waiting.items(),
            key=lambda item: (not item[1].spec.volume_name, str(item[1].metadata.creation_timestamp or ""), item[0]),
        )
        for key, claim in in_order:
            volume = self._asked_for(claim) if claim.spec.volume_name else self.reserved_for(claim)
            if volume is None and not claim.spec.volume_name and not waits_for_pod(claim, self._classes):
                # The PV controller looks among volumes with few access modes first (``findByClaim``).
                volume = min(self.free_for(claim), key=lambda one: len(one.spec.access_modes), default=None)
            if volume is not None:
                self._free.get(class_of(volume), {}).pop(volume.metadata.name, None)
                yield key, volume

    def _asked_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume that the claim asks for by name, if it gets it (``checkVolumeSatisfyClaim``)."""
        volume = self._by_name.get(claim.spec.volume_name)
        if volume is None or _is_reserved(volume, claim):
            return volume
        is_free = volume.metadata.name in self._free.get(class_of(claim), {})
        return volume if is_free and _fits(volume, claim) and _has_modes(volume, claim) else None

    def reserved_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume whose ``claimRef`` names the claim, if it will do. kube-scheduler does not ask for its modes."""
        for volume in self._named.get(key_of(claim), ()):
            is_scheduled = waits_for_pod(claim, self._classes) and class_of(volume) == class_of(claim)
            if _is_reserved(volume, claim) and _fits(volume, claim) and (is_scheduled or _has_modes(volume, claim)):
                return volume
        return None

    def free_for(self, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, ...]:
        """The volumes that are nobody's and that match the claim, the smallest first."""
        selector = selectors.read(claim.spec.selector) if claim.spec.selector is not None else None
        matching = (
            volume
            for volume in self._free.get(class_of(claim), {}).values()
            if (selector is None or selector.matches(volume.metadata.labels))
            and _has_modes(volume, claim)
            and _fits(volume, claim)
        )
        return tuple(sorted(matching, key=_capacity))

    def usable_for(self, claim: PersistentVolumeClaim) -> Iterator[FreeVolume]:
        """``free_for``, without those that demand what no node has. Where a volume is does not depend on the claim."""
        for volume in self.free_for(claim):
            name = volume.metadata.name
            if name not in self._usable:
                self._usable[name] = _as_free(volume)
            free = self._usable[name]
            if free is not None:
                yield free


def _as_free(volume: PersistentVolume) -> FreeVolume | None:
    """None where no node has what it demands."""
    try:
        return FreeVolume(volume.metadata.name, places_of(volume))
    except UnknownOperatorError:
        return None


def by_place(volumes: Iterable[FreeVolume]) -> Iterator[tuple[Requirements, tuple[FreeVolume, ...]]]:
    """Volumes by what they demand of a node. Where that differs in the host alone it is one place, on any of the hosts:
    which of them have volumes left is asked node by node.
    """
    places: dict[tuple[object, bool], tuple[Requirements, set[str], list[FreeVolume]]] = {}
    for free in volumes:
        for term in free.places:
            on_host = term.get(HOSTNAME)
            hosts = on_host.values if HOSTNAME in term.sets and on_host.operator == "In" else frozenset()
            beside = Requirements({key: one for key, one in term.sets.items() if not hosts or key != HOSTNAME})
            place = frozenset(beside.sets.items()), bool(hosts)
            _, all_hosts, listed = places.setdefault(place, (beside, set(), []))
            all_hosts.update(hosts)
            listed.append(free)
    for beside, all_hosts, listed in places.values():
        yield (beside.intersect(Requirements({HOSTNAME: one_of(all_hosts)})) if all_hosts else beside), tuple(listed)


def places_of(volume: PersistentVolume) -> tuple[Requirements, ...]:
    """Where the volume can be used, any one of them will do: its node affinity, and its labels for
    zone and region, which older volumes have. Raises ``UnknownOperatorError``.

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


def csi_driver(volume: PersistentVolume) -> str:
    """The CSI driver that attaches it, or the empty string."""
    if volume.spec.csi is not None:
        return volume.spec.csi.driver
    return "ebs.csi.aws.com" if volume.spec.aws_elastic_block_store is not None else ""


def by_name(claims: Iterable[PersistentVolumeClaim]) -> Claims:
    """The claims by namespace/name."""
    return {key_of(claim): claim for claim in claims}


def waits_for_pod(claim: PersistentVolumeClaim, classes: Mapping[str, StorageClass]) -> bool:
    """Whether the claim's class is there and waits for the first pod. One that is not there waits for nothing."""
    storage_class = classes.get(class_of(claim))
    return storage_class is not None and storage_class.volume_binding_mode == WITH_POD


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _is_reserved(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether it is for this very claim: one of the name that is gone had another UID (``IsVolumeBoundToClaim``)."""
    reference = volume.spec.claim_ref
    if reference is None or f"{reference.namespace or 'default'}/{reference.name}" != key_of(claim):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    own, wanted = volume.spec, claim.spec
    return (
        volume.metadata.deletion_timestamp is None
        and (own.volume_mode or "Filesystem") == (wanted.volume_mode or "Filesystem")
        and own.volume_attributes_class_name == wanted.volume_attributes_class_name
        and _capacity(volume) >= size_of(claim)
    )


def _has_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return set(claim.spec.access_modes) <= set(volume.spec.access_modes)


def _capacity(volume: PersistentVolume) -> int:
    """In bytes; less than any claim asks for where it cannot be read."""
    try:
        return amount("storage", volume.spec.capacity.get("storage", 0))
    except ValueError:
        return -1
