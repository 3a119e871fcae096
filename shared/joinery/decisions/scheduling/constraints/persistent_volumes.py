"""Which PersistentVolume a claim without one may bind.

A volume whose ``claimRef`` names a claim is that claim's. Of those that nobody has claimed, the PV controller binds one
to a claim whose class does not wait for a pod, wherever it is; kube-scheduler one on the node of the first pod
otherwise. Both ask ``FindMatchingVolume`` (component-helpers ``storage/volume``), and take the smallest that will do.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from joinery.decisions.scheduling.constraints import selectors
from joinery.decisions.scheduling.constraints.nodeterms import alternatives
from joinery.decisions.scheduling.constraints.requirements import Requirements, UnknownOperatorError, one_of
from joinery.decisions.scheduling.constraints.selectors import Selector
from joinery.decisions.scheduling.constraints.volume_stocks import Sized, Stock, Taken, VolumePlaces
from joinery.objects.karpenter.labels import BETA_STORAGE_CLASS, BIND_COMPLETED, REGION, ZONE, canonical
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import PersistentVolume, PersistentVolumeClaim, StorageClass
from joinery.objects.kubernetes.quantity import LARGEST, amount

#: The provisioner of a class whose volumes people make.
NO_PROVISIONER = "kubernetes.io/no-provisioner"
#: The binding mode of a class whose volumes are chosen, or made, on the node of the first pod that uses them.
WITH_POD = "WaitForFirstConsumer"

#: How many volumes the selectors of all claims look at: two hundred thousand take half a second.
MOST_LOOKS = 200_000
#: Domains of labels that nodes to come may have; others they have where a NodePool says so.
_OF_ANY_NODE = ("kubernetes.io", "k8s.io", "k8s.aws", "karpenter.sh", "amazonaws.com", "ebs.csi.aws.com")
_FILE_SYSTEM = "Filesystem"

#: By namespace/name.
Claims = Mapping[str, PersistentVolumeClaim]


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


class _ClaimKind(NamedTuple):
    """What claims that choose from the same volumes ask for, but for their size."""

    storage_class: str
    volume_mode: str
    attributes_class: str
    access_modes: frozenset[str]
    selector: Selector | None


class PersistentVolumes:
    """The volumes that claims may still bind.

    ``claims``: all there are. ``classes``: storage classes by name. ``pools``: what nodes to come are made from.
    ``bound``: the volumes that the PV controller is about to bind, by claim: there is nothing left to choose.
    """

    def __init__(
        self,
        volumes: Iterable[PersistentVolume],
        claims: Claims,
        classes: Mapping[str, StorageClass],
        pools: Iterable[NodePool] = (),
    ) -> None:
        self._classes = classes
        self._named: dict[str, list[PersistentVolume]] = {}
        self._by_name: dict[str, PersistentVolume] = {}
        self._free: dict[str, dict[str, PersistentVolume]] = {}
        self._looks_left = MOST_LOOKS
        self._selected: dict[tuple[str, Selector], frozenset[str] | None] = {}
        self._shelves: dict[_ClaimKind, tuple[tuple[int, Stock], ...]] = {}
        self._stocks: dict[_ClaimKind, tuple[tuple[Requirements, Stock], ...]] = {}
        self._pools = tuple(pools)
        in_use = {claim.spec.volume_name for claim in claims.values() if _is_bound(claim)}
        for volume in sorted(volumes, key=lambda volume: volume.metadata.name):
            reference = volume.spec.claim_ref
            self._by_name[volume.metadata.name] = volume
            if reference is not None:
                self._named.setdefault(f"{reference.namespace or 'default'}/{reference.name}", []).append(volume)
            elif volume.status.phase in ("", "Available") and volume.metadata.name not in in_use:
                self._free.setdefault(class_of(volume), {})[volume.metadata.name] = volume
        self._taken = Taken()
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
                volume = self._smallest(claim)
            if volume is not None:
                self._taken.add(volume.metadata.name)
                yield key, volume

    def _asked_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume that the claim asks for by name, if it gets it (``checkVolumeSatisfyClaim``)."""
        volume = self._by_name.get(claim.spec.volume_name)
        if volume is None or _is_reserved(volume, claim):
            return volume
        name = volume.metadata.name
        is_free = name in self._free.get(class_of(claim), {}) and name not in self._taken
        return volume if is_free and _fits(volume, claim) and _has_modes(volume, claim) else None

    def reserved_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume whose ``claimRef`` names the claim, if it will do. kube-scheduler does not ask for its modes."""
        for volume in self._named.get(key_of(claim), ()):
            is_scheduled = waits_for_pod(claim, self._classes) and class_of(volume) == class_of(claim)
            if _is_reserved(volume, claim) and _fits(volume, claim) and (is_scheduled or _has_modes(volume, claim)):
                return volume
        return None

    def _smallest(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """What the PV controller binds: it looks among volumes with few access modes first (``findByClaim``)."""
        left: list[tuple[int, Sized]] = []
        for modes, shelf in self._matching(_kind_of(claim)):
            index = self._taken.first_left(shelf, shelf.first(size_of(claim)))
            left += [(modes, volume) for volume in shelf.volumes[index : index + 1]]
        return self._by_name[min(left)[1].name] if left else None

    def stocks_for(self, claim: PersistentVolumeClaim) -> Iterator[tuple[Requirements, Stock, int]]:
        """Where there are free volumes that match the claim, with the size of the smallest; its place comes first."""
        kind = _kind_of(claim)
        if kind not in self._stocks:
            left = (volume for _, shelf in self._matching(kind) for volume in shelf.volumes)
            free = sorted(volume for volume in left if volume.name not in self._taken)
            self._stocks[kind] = tuple(self._places.stocks(free))
        fitting: list[tuple[Sized, Requirements, Stock]] = []
        for place, stock in self._stocks[kind]:
            index = stock.first(size_of(claim))
            fitting += [(volume, place, stock) for volume in stock.volumes[index : index + 1]]
        for volume, place, stock in sorted(fitting, key=itemgetter(0)):
            yield place, stock, volume.size

    def asks_too_much(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim's selector is left out, because those of all claims would look at too many volumes."""
        kind = _kind_of(claim)
        return kind.selector is not None and self._selects(kind.storage_class, kind.selector) is None

    def _matching(self, kind: _ClaimKind) -> tuple[tuple[int, Stock], ...]:
        """The free volumes that match claims of the kind, with the number of their access modes."""
        if kind not in self._shelves:
            shelves = self._all_shelves.get((kind.storage_class, kind.volume_mode, kind.attributes_class), {})
            names = None if kind.selector is None else self._selects(kind.storage_class, kind.selector) or frozenset()
            self._shelves[kind] = tuple(
                (
                    len(modes),
                    shelf if names is None else Stock(tuple(one for one in shelf.volumes if one.name in names)),
                )
                for modes, shelf in shelves.items()
                if kind.access_modes <= modes
            )
        return self._shelves[kind]

    @cached_property
    def _all_shelves(self) -> Mapping[tuple[str, str, str], Mapping[frozenset[str], Stock]]:
        """By class, volume mode and attributes class, the volumes that are nobody's by their access modes."""
        listed: dict[tuple[str, str, str], dict[frozenset[str], list[Sized]]] = {}
        for kind, volumes in self._free.items():
            for name, volume in volumes.items():
                own = volume.spec
                alike = kind, own.volume_mode or _FILE_SYSTEM, own.volume_attributes_class_name
                if volume.metadata.deletion_timestamp is None:
                    shelf = listed.setdefault(alike, {}).setdefault(frozenset(own.access_modes), [])
                    shelf.append(Sized(_capacity(volume), name))
        return {
            alike: {modes: Stock(tuple(sorted(some))) for modes, some in shelves.items()}
            for alike, shelves in listed.items()
        }

    def _selects(self, storage_class: str, selector: Selector) -> frozenset[str] | None:
        """The names of the free volumes that it selects; None where that would be one look too many."""
        key = storage_class, selector
        if key not in self._selected:
            near = self._near(storage_class, selector)
            is_within = len(near) <= self._looks_left
            self._looks_left -= len(near) if is_within else 0
            chosen = (one.metadata.name for one in near if selector.matches(one.metadata.labels))
            self._selected[key] = frozenset(chosen) if is_within else None
        return self._selected[key]

    def _near(self, storage_class: str, selector: Selector) -> Collection[PersistentVolume]:
        """The free volumes that have a label that it asks for, the rarest one; all where it asks for none."""
        labelled = self._labelled.get(storage_class, {})
        asked = [
            [one for value in clause.values for one in labelled.get((clause.key, value), ())]
            for clause in selector.clauses or ()
            if clause.operator == "In"
        ]
        return min(asked, key=len) if asked else self._free.get(storage_class, {}).values()

    @cached_property
    def _labelled(self) -> Mapping[str, Mapping[tuple[str, str], list[PersistentVolume]]]:
        """By class, the volumes that are nobody's by each of their labels."""
        labelled: dict[str, dict[tuple[str, str], list[PersistentVolume]]] = {}
        for kind, volumes in self._free.items():
            of_class = labelled[kind] = {}
            for volume in volumes.values():
                for label in volume.metadata.labels.items():
                    of_class.setdefault(label, []).append(volume)
        return labelled

    @cached_property
    def _places(self) -> VolumePlaces:
        """Where volumes are that nobody has. Those that demand what no node has are nowhere."""
        demands: dict[str, tuple[Requirements, ...]] = {}
        for volume in (one for volumes in self._free.values() for one in volumes.values()):
            with suppress(UnknownOperatorError):
                demands[volume.metadata.name] = places_of(volume)
        return VolumePlaces(demands, self._may_be_new)

    def _may_be_new(self, label: str) -> bool:
        """Whether a node that is yet to be bought may have the label: one that Kubernetes, AWS or a NodePool knows."""
        return label.partition("/")[0].endswith(_OF_ANY_NODE) or canonical(label) in self._of_pools

    @cached_property
    def _of_pools(self) -> frozenset[str]:
        templates = [pool.spec.template for pool in self._pools]
        keys = (rule.key for template in templates for rule in template.spec.requirements)
        return frozenset(map(canonical, (*keys, *(key for one in templates for key in one.metadata.labels))))


def _kind_of(claim: PersistentVolumeClaim) -> _ClaimKind:
    spec = claim.spec
    return _ClaimKind(
        class_of(claim),
        spec.volume_mode or _FILE_SYSTEM,
        spec.volume_attributes_class_name,
        frozenset(spec.access_modes),
        selectors.read(spec.selector) if spec.selector is not None else None,
    )


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
        and (own.volume_mode or _FILE_SYSTEM) == (wanted.volume_mode or _FILE_SYSTEM)
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
