"""Claims without a volume: which PersistentVolumes they bind, and where one can be made for them.

(The PV controller's ``syncUnboundClaim``; kube-scheduler VolumeBinding, ``FindMatchingVolume``.)
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import msgspec

from joinery.decisions.verification.labelled import ByLabel, LabelCondition, Labelled
from joinery.decisions.verification.predicates import Labels, Rules, is_readable, term_matches
from joinery.decisions.verification.storage.matching import Found, Left, Shelf, large_enough
from joinery.objects.kubernetes.core import (
    CSIStorageCapacity,
    LabelSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeNodeAffinity,
)
from joinery.objects.kubernetes.quantity import amount
from joinery.objects.snapshot.snapshot import Snapshot

BOUND = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_CLASS = "volume.beta.kubernetes.io/storage-class"
_NOBODY = "kubernetes.io/no-provisioner"
_UNREADABLE = -1
_ENCODE = msgspec.json.Encoder().encode


def storage_class_of(thing: PersistentVolume | PersistentVolumeClaim) -> str:
    """The name of its class; the older annotation goes before the field."""
    return thing.metadata.annotations.get(_CLASS, thing.spec.storage_class_name or "")


def is_here(affinity: VolumeNodeAffinity | None, labels: Labels, node: str) -> bool:
    """Whether the node affinity of a volume lets the node use it."""
    required = affinity and affinity.required
    return not required or any(term_matches(term, labels, node) for term in required.node_selector_terms)


class _VolumeKind(NamedTuple):
    """All that decides which claims of one size a volume suits."""

    storage_class: str
    volume_mode: str
    attributes: str
    access_modes: frozenset[str]


@dataclass(frozen=True, eq=False)
class _VolumeGroup:
    """Free volumes with the same node affinity, by kind."""

    affinity: VolumeNodeAffinity | None
    shelves: dict[_VolumeKind, list[tuple[int, str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class UnboundClaims:
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
        """By claim, the volume that it gets whatever pod uses it: one names the other, or its class does not wait for a
        pod.
        """
        given: dict[str, str] = {}
        gone: set[str] = set()
        left = Left(gone)
        waiting = [(f"{c.metadata.namespace or 'default'}/{c.metadata.name}", c) for c in self.snapshot.volume_claims]
        waiting = [(key, claim) for key, claim in waiting if BOUND not in claim.metadata.annotations]
        waiting.sort(
            key=lambda pair: (not pair[1].spec.volume_name, str(pair[1].metadata.creation_timestamp or ""), pair[0])
        )
        for key, claim in waiting:
            volume = self._named_by(key, claim, gone) if claim.spec.volume_name else self.own(key, claim)
            if not volume and not claim.spec.volume_name and not self._waits(claim):
                volume = self._smallest(claim, left)
            if volume:
                given[key] = volume
                gone.add(volume)
        return given

    def _named_by(self, key: str, claim: PersistentVolumeClaim, gone: Set[str]) -> str:
        """The volume that the claim names, if it gets it."""
        name, of_class = claim.spec.volume_name, storage_class_of(claim)
        if any(one.metadata.name == name and _names(one, key, claim) for one in self._reserved.get(key, ())):
            return name
        volume = self._free.get(of_class, {}).get(name)
        return name if volume and name not in gone and _fits(volume, claim) and _has_modes(volume, claim) else ""

    def _smallest(self, claim: PersistentVolumeClaim, left: Left) -> str:
        """The smallest of those with the fewest access modes."""
        found: list[tuple[int, tuple[int, str]]] = []
        selected = self._selected(claim) if claim.spec.selector is not None else None
        for kind, shelf in self._shelves.items():
            if not _serves(kind, claim):
                continue
            index = left.first(shelf, bisect_left(shelf, _requested(claim), key=itemgetter(0)))
            while selected is not None and index < len(shelf) and not self._is_in(selected, shelf[index][1]):
                index = left.first(shelf, index + 1)
            found += [(len(kind.access_modes), volume) for volume in shelf[index : index + 1]]
        return min(found)[1][1] if found else ""

    def own(self, key: str, claim: PersistentVolumeClaim) -> str:
        """The volume that names the claim as its own, if it will do."""
        by_scheduler = self._waits(claim)
        for volume in self._reserved.get(key, ()):
            is_of_class = by_scheduler and storage_class_of(volume) == storage_class_of(claim)
            if _names(volume, key, claim) and _fits(volume, claim) and (is_of_class or _has_modes(volume, claim)):
                return volume.metadata.name
        return ""

    def matching(self, claim: PersistentVolumeClaim, labels: Labels, node: str) -> Found:
        """The free volumes that match the claim and that the node can use."""
        places = (place for place in self._places.near(labels) if is_here(place.affinity, labels, node))
        shelves: list[Shelf] = [
            shelf for place in places for kind, shelf in place.shelves.items() if _serves(kind, claim)
        ]
        if claim.spec.selector is not None:
            shelves = [self._only_selected(claim, shelf) for shelf in shelves]
        return large_enough(shelves, _requested(claim))

    def can_provision(self, claim: PersistentVolumeClaim, labels: Labels) -> bool:
        """Whether the claim's class makes a volume that such a node can use."""
        storage = self._classes.get(storage_class_of(claim))
        if storage is None or storage.provisioner in ("", _NOBODY):
            return False
        terms = [dict((e.key, e.values) for e in t.match_label_expressions) for t in storage.allowed_topologies]
        if terms and not any(all(labels.get(key) in values for key, values in term.items()) for term in terms):
            return False
        if storage.provisioner not in self._publishing or "storage" not in claim.spec.resources.requests:
            return True
        return storage.metadata.name in self._rooms and any(
            _requested(claim) <= _room(one) and _selects(one.node_topology, labels)
            for one in self._rooms[storage.metadata.name].near(labels)
        )

    def provisioning_on(self, claim: PersistentVolumeClaim) -> str:
        """The node that a volume is being provisioned for; empty for none.

        If that node is gone, the class's provisioner forgets it; a claim that nobody provisions for goes on waiting.
        """
        node = claim.metadata.annotations.get(SELECTED_NODE, "")
        storage = self._classes.get(storage_class_of(claim))
        is_forgotten = node not in self._nodes and storage is not None and storage.provisioner not in ("", _NOBODY)
        return "" if is_forgotten else node

    @cached_property
    def _nodes(self) -> frozenset[str]:
        return frozenset(node.metadata.name for node in self.snapshot.nodes)

    @cached_property
    def _rooms(self) -> Mapping[str, ByLabel[CSIStorageCapacity]]:
        """By class, what drivers publish."""
        rooms: dict[str, list[CSIStorageCapacity]] = defaultdict(list)
        for one in self.snapshot.storage_capacities:
            if one.node_topology is not None:
                rooms[one.storage_class_name].append(one)
        return {
            name: ByLabel([(one, [_equalities(one.node_topology)]) for one in some]) for name, some in rooms.items()
        }

    @cached_property
    def _reserved(self) -> Mapping[str, list[PersistentVolume]]:
        """By claim, the volumes that name it."""
        reserved: dict[str, list[PersistentVolume]] = defaultdict(list)
        for volume in sorted(self.snapshot.volumes, key=lambda one: one.metadata.name):
            if (reference := volume.spec.claim_ref) is not None:
                reserved[f"{reference.namespace or 'default'}/{reference.name}"].append(volume)
        return reserved

    @cached_property
    def _free(self) -> Mapping[str, Mapping[str, PersistentVolume]]:
        """By class, the volumes that no claim has, by name."""
        bound = {c.spec.volume_name for c in self.snapshot.volume_claims if BOUND in c.metadata.annotations}
        free: dict[str, dict[str, PersistentVolume]] = defaultdict(dict)
        for volume in self.snapshot.volumes:
            if _is_free(volume) and volume.metadata.name not in bound:
                free[storage_class_of(volume)][volume.metadata.name] = volume
        return free

    @cached_property
    def _shelves(self) -> Mapping[_VolumeKind, Shelf]:
        """The volumes that no claim has, by kind."""
        shelves: dict[_VolumeKind, list[tuple[int, str]]] = defaultdict(list)
        for volume in (one for volumes in self._free.values() for one in volumes.values()):
            if volume.metadata.deletion_timestamp is None:
                shelves[_kind(volume)].append((_size(volume), volume.metadata.name))
        return {kind: sorted(shelf) for kind, shelf in shelves.items()}

    @cached_property
    def _places(self) -> ByLabel[_VolumeGroup]:
        """Where there are volumes that no claim is given."""
        places: dict[bytes, _VolumeGroup] = {}
        given = set(self.given.values())
        for kind, shelf in self._shelves.items():
            for size, name in shelf:
                affinity = self._free[kind.storage_class][name].spec.node_affinity
                if name not in given:
                    place = places.setdefault(_ENCODE(affinity), _VolumeGroup(affinity))
                    place.shelves.setdefault(kind, []).append((size, name))
        return ByLabel([(place, _conditions(place.affinity)) for place in places.values()])

    def _only_selected(self, claim: PersistentVolumeClaim, shelf: Shelf) -> Shelf:
        """What the claim's selector selects of a shelf."""
        key = id(shelf), self._selected(claim)
        if key not in self._chosen:
            self._chosen[key] = [volume for volume in shelf if self._is_in(key[1], volume[1])]
        return self._chosen[key]

    @cached_property
    def _chosen(self) -> dict[tuple[int, int], Shelf]:
        return {}

    def _selected(self, claim: PersistentVolumeClaim) -> int:
        """The volumes that the claim's selector selects: a bit for each by its index."""
        is_read = is_readable(claim.spec.selector)
        return self._labelled.matching(claim.spec.selector) if is_read else 0

    def _is_in(self, selected: int, name: str) -> bool:
        return bool(selected >> self._index[name] & 1)

    @cached_property
    def _index(self) -> Mapping[str, int]:
        return {volume.metadata.name: index for index, volume in enumerate(self.snapshot.volumes)}

    @cached_property
    def _labelled(self) -> Labelled:
        return Labelled([volume.metadata.labels for volume in self.snapshot.volumes])

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        storage = self._classes.get(storage_class_of(claim))
        return storage is not None and storage.volume_binding_mode == "WaitForFirstConsumer"


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


def _kind(volume: PersistentVolume) -> _VolumeKind:
    own = volume.spec
    mode, modes = own.volume_mode or "Filesystem", frozenset(own.access_modes)
    return _VolumeKind(storage_class_of(volume), mode, own.volume_attributes_class_name, modes)


def _serves(kind: _VolumeKind, claim: PersistentVolumeClaim) -> bool:
    wanted = claim.spec
    mode, modes = wanted.volume_mode or "Filesystem", frozenset(wanted.access_modes)
    own = _VolumeKind(storage_class_of(claim), mode, wanted.volume_attributes_class_name, kind.access_modes)
    return kind == own and modes <= kind.access_modes


def _conditions(affinity: VolumeNodeAffinity | None) -> list[list[LabelCondition]]:
    """For each of its terms the labels that it wants."""
    required = affinity and affinity.required
    terms = required.node_selector_terms if required else []
    return [[(e.key, e.values) for e in term.match_expressions if e.operator == "In"] for term in terms]


def _equalities(selector: LabelSelector | None) -> list[LabelCondition]:
    if selector is None:
        return []
    wanted = [(e.key, e.values) for e in selector.match_expressions if e.operator == "In"]
    return [*((key, [value]) for key, value in selector.match_labels.items()), *wanted]


def _room(capacity: CSIStorageCapacity) -> int:
    return _bytes(capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size)


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if volume.metadata.deletion_timestamp is not None or _size(volume) < _requested(claim):
        return False
    modes = {volume.spec.volume_mode or "Filesystem", claim.spec.volume_mode or "Filesystem"}
    return len(modes) == 1 and volume.spec.volume_attributes_class_name == claim.spec.volume_attributes_class_name


def _has_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)


def _size(volume: PersistentVolume) -> int:
    return _bytes(volume.spec.capacity.get("storage", 0))


def _requested(claim: PersistentVolumeClaim) -> float:
    size = _bytes(claim.spec.resources.requests.get("storage", 0))
    return float("inf") if size == _UNREADABLE else size


def _bytes(said: str | float | None) -> int:
    try:
        return _UNREADABLE if said is None else amount("storage", said)
    except ValueError:
        return _UNREADABLE
