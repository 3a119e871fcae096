"""Claims without a volume: which PersistentVolumes they bind, and where one can be made for them.

(The PV controller's ``syncUnboundClaim``; kube-scheduler VolumeBinding, ``FindMatchingVolume``.)
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from joinery.apis.core import LabelSelector, PersistentVolume, PersistentVolumeClaim, StorageClass
from joinery.apis.labels import HOSTNAME
from joinery.apis.quantity import amount
from joinery.state.snapshot import Snapshot
from joinery.verification.predicates import Labels, Rules, is_readable, term_matches

BOUND = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_CLASS = "volume.beta.kubernetes.io/storage-class"
_NOBODY = "kubernetes.io/no-provisioner"
_UNREADABLE = -1


def storage_class_of(thing: PersistentVolume | PersistentVolumeClaim) -> str:
    """The name of its class; the older annotation goes before the field."""
    return thing.metadata.annotations.get(_CLASS, thing.spec.storage_class_name or "")


def is_here(volume: PersistentVolume, labels: Labels, node: str) -> bool:
    """Whether its node affinity lets the node use it."""
    required = volume.spec.node_affinity and volume.spec.node_affinity.required
    return not required or any(term_matches(term, labels, node) for term in required.node_selector_terms)


@dataclass(frozen=True)
class FreeVolumes:
    """What claims without a volume find in a snapshot. Claims are named namespace/name."""

    snapshot: Snapshot

    @cached_property
    def _classes(self) -> Mapping[str, StorageClass]:
        return {one.metadata.name: one for one in self.snapshot.storage_classes}

    @cached_property
    def _publishing(self) -> frozenset[str]:
        return frozenset(one.metadata.name for one in self.snapshot.csi_drivers if one.spec.storage_capacity)

    @cached_property
    def given(self) -> Mapping[str, str]:
        """By claim, the volume that it gets whatever pod uses it: it asks for it, or the volume names it, or its class
        does not wait for a pod.
        """
        given: dict[str, str] = {}
        waiting = [(f"{c.metadata.namespace or 'default'}/{c.metadata.name}", c) for c in self.snapshot.volume_claims]
        waiting = [(key, claim) for key, claim in waiting if BOUND not in claim.metadata.annotations]
        waiting.sort(key=lambda pair: (str(pair[1].metadata.creation_timestamp or ""), pair[0]))
        for key, claim in (pair for pair in waiting if pair[1].spec.volume_name):
            own = [one.metadata.name for one in self._reserved.get(key, ()) if _names(one, key, claim)]
            free = [one.metadata.name for one in self._free.get(storage_class_of(claim), ()) if _satisfies(one, claim)]
            if claim.spec.volume_name in own or claim.spec.volume_name in set(free) - {*given.values()}:
                given[key] = claim.spec.volume_name
        gone = set(given.values())
        for key, claim in (pair for pair in waiting if not pair[1].spec.volume_name):
            matching = [] if self._waits(claim) else self._matching(claim)
            matching = [one for one in matching if one.metadata.name not in gone]
            matching.sort(key=lambda one: (len(one.spec.access_modes), _size(one), one.metadata.name))
            volume = self.own(key, claim) or next((one.metadata.name for one in matching), "")
            if volume:
                given[key] = volume
                gone.add(volume)
        return given

    def own(self, key: str, claim: PersistentVolumeClaim) -> str:
        """The volume that names the claim as its own, if it will do."""
        by_scheduler = self._waits(claim)
        for volume in self._reserved.get(key, ()):
            is_of_class = by_scheduler and storage_class_of(volume) == storage_class_of(claim)
            if _names(volume, key, claim) and _fits(volume, claim) and (is_of_class or _has_modes(volume, claim)):
                return volume.metadata.name
        return ""

    def here(self, claim: PersistentVolumeClaim, labels: Labels, node: str) -> frozenset[str]:
        """The names of free volumes that match the claim and that the node can use."""
        tied, others = self._left.get(storage_class_of(claim), ({}, ()))
        near = (*tied.get(labels.get(HOSTNAME, ""), ()), *others)
        return frozenset(one.metadata.name for one in near if _matches(one, claim) and is_here(one, labels, node))

    @cached_property
    def _left(self) -> Mapping[str, tuple[Mapping[str, list[PersistentVolume]], list[PersistentVolume]]]:
        """By class, the free volumes that no claim is given: those that are tied to hosts by host, and the others."""
        left: dict[str, tuple[dict[str, list[PersistentVolume]], list[PersistentVolume]]] = {}
        given = set(self.given.values())
        for kind, volumes in self._free.items():
            tied, others = left[kind] = defaultdict(list), []
            for volume in (one for one in volumes if one.metadata.name not in given):
                hosts = _hosts(volume)
                for host in hosts or ():
                    tied[host].append(volume)
                others += [volume] if hosts is None else []
        return left

    def is_made(self, claim: PersistentVolumeClaim, labels: Labels) -> bool:
        """Whether the claim's class makes a volume that such a node can use."""
        storage = self._classes.get(storage_class_of(claim))
        if storage is None or storage.provisioner in ("", _NOBODY):
            return False
        terms = [dict((e.key, e.values) for e in t.match_label_expressions) for t in storage.allowed_topologies]
        if terms and not any(all(labels.get(key) in values for key, values in term.items()) for term in terms):
            return False
        if storage.provisioner not in self._publishing or "storage" not in claim.spec.resources.requests:
            return True
        return any(
            one.storage_class_name == storage.metadata.name
            and _selects(one.node_topology, labels)
            and _asked(claim) <= _bytes(one.capacity if one.maximum_volume_size is None else one.maximum_volume_size)
            for one in self.snapshot.storage_capacities
        )

    @cached_property
    def _reserved(self) -> Mapping[str, list[PersistentVolume]]:
        """By claim, the volumes that name it."""
        reserved: dict[str, list[PersistentVolume]] = defaultdict(list)
        for volume in sorted(self.snapshot.volumes, key=lambda one: one.metadata.name):
            if (reference := volume.spec.claim_ref) is not None:
                reserved[f"{reference.namespace or 'default'}/{reference.name}"].append(volume)
        return reserved

    @cached_property
    def _free(self) -> Mapping[str, list[PersistentVolume]]:
        """By class, the volumes that no claim has."""
        bound = {c.spec.volume_name for c in self.snapshot.volume_claims if BOUND in c.metadata.annotations}
        free: dict[str, list[PersistentVolume]] = defaultdict(list)
        for volume in self.snapshot.volumes:
            if _is_free(volume) and volume.metadata.name not in bound:
                free[storage_class_of(volume)].append(volume)
        return free

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        storage = self._classes.get(storage_class_of(claim))
        return storage is not None and storage.volume_binding_mode == "WaitForFirstConsumer"

    def _matching(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        return [one for one in self._free.get(storage_class_of(claim), ()) if _matches(one, claim)]


def without_volume(wanted: Mapping[str, Collection[str]]) -> Iterable[str]:
    """The claims that get none, where each volume serves one: of the most that can be served together.

    ``wanted``: by claim, the volumes that it could bind.
    """
    holder: dict[str, str] = {}
    held: dict[str, str] = {}
    return [claim for claim in sorted(wanted) if not _serve(claim, wanted, holder, held)]


def _serve(claim: str, wanted: Mapping[str, Collection[str]], holder: dict[str, str], held: dict[str, str]) -> bool:
    """Find the claim a volume, though others change theirs for it: a shortest augmenting path."""
    asked_by: dict[str, str] = {}
    asking = [claim]
    for one in asking:
        for volume in sorted(wanted[one]):
            if volume in asked_by:
                continue
            asked_by[volume] = one
            if volume in holder:
                asking.append(holder[volume])
                continue
            while volume:
                owner = asked_by[volume]
                left = held.get(owner, "")
                holder[volume], held[owner] = owner, volume
                volume = left
            return True
    return False


def _hosts(volume: PersistentVolume) -> set[str] | None:
    """The hosts that its node affinity names; None if it is not tied to any."""
    required = volume.spec.node_affinity and volume.spec.node_affinity.required
    terms = required.node_selector_terms if required else []
    named = [[e for e in term.match_expressions if e.key == HOSTNAME and e.operator == "In"] for term in terms]
    return {host for listed in named for host in listed[0].values} if named and all(named) else None


def _is_free(volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is None and volume.status.phase in ("", "Available")


def _names(volume: PersistentVolume, key: str, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    if reference is None or f"{reference.namespace or 'default'}/{reference.name}" != key:
        return False
    return reference.uid in ("", claim.metadata.uid)


def _selects(selector: LabelSelector | None, labels: Labels) -> bool:
    if selector is None or not is_readable(selector):
        return False
    return selector.match_labels.items() <= labels.items() and Rules(selector.match_expressions).met_by(labels)


def _matches(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector = claim.spec.selector
    return _satisfies(volume, claim) and (selector is None or _selects(selector, volume.metadata.labels))


def _satisfies(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return _fits(volume, claim) and _has_modes(volume, claim)


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if volume.metadata.deletion_timestamp is not None or _size(volume) < _asked(claim):
        return False
    modes = {volume.spec.volume_mode or "Filesystem", claim.spec.volume_mode or "Filesystem"}
    return len(modes) == 1 and volume.spec.volume_attributes_class_name == claim.spec.volume_attributes_class_name


def _has_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)


def _size(volume: PersistentVolume) -> int:
    return _bytes(volume.spec.capacity.get("storage", 0))


def _asked(claim: PersistentVolumeClaim) -> float:
    asked = _bytes(claim.spec.resources.requests.get("storage", 0))
    return float("inf") if asked == _UNREADABLE else asked


def _bytes(said: str | float | None) -> int:
    try:
        return _UNREADABLE if said is None else amount("storage", said)
    except ValueError:
        return _UNREADABLE
