"""The volume claims that pods mount: those that are there, and those that are made with a pod (ephemeral volumes)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec

from joinery.decisions.verification.nodes import EquivalenceClass
from joinery.objects.kubernetes.core import (
    OwnerReference,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    StorageClass,
)
from joinery.objects.snapshot.snapshot import Snapshot

_DEFAULT = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class PodClaim:
    """One claim of a pod.

    claim        None where there is none; one that is yet to be made is what its template will give
    is_to_come   it is made with the pod
    is_foreign   it is there in the place of an ephemeral volume of the pod, and belongs to somebody else
    """

    claim: PersistentVolumeClaim | None
    is_to_come: bool = False
    is_foreign: bool = False


class Claims:
    """The claims of equivalence classes. A pod with an ephemeral volume is in a class of its own."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._mounted: dict[EquivalenceClass, Mapping[str, PodClaim]] = {}

    def of(self, pod_class: EquivalenceClass) -> Mapping[str, PodClaim]:
        """The claims that the class's pods mount, by namespace/name."""
        if pod_class not in self._mounted:
            self._mounted[pod_class] = dict(self._read(pod_class))
        return self._mounted[pod_class]

    def _read(self, pod_class: EquivalenceClass) -> Iterator[tuple[str, PodClaim]]:
        pod = pod_class.pod
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim:
                key = f"{pod_class.namespace}/{volume.persistent_volume_claim.claim_name}"
                yield key, PodClaim(self._by_name.get(key))
            elif volume.ephemeral:
                key = f"{pod_class.namespace}/{pod.metadata.name}-{volume.name}"
                yield key, self._ephemeral(pod_class, key, volume.ephemeral.volume_claim_template)

    def _ephemeral(
        self, pod_class: EquivalenceClass, key: str, template: PersistentVolumeClaimTemplate | None
    ) -> PodClaim:
        """The claim that the pod controls (``VolumeIsForPod``), without a UID by its name; one to come where there is
        none, or where the pod that has it goes and takes it along.
        """
        pod, there = pod_class.pod.metadata, self._by_name.get(key)
        is_moved = pod_class.pod.spec.node_name and pod_class.planned_on
        owner = _controlling_pod(there) if there else None
        is_own = owner is not None and (owner.uid == pod.uid if pod.uid else owner.name == pod.name)
        if there is None or is_moved or (not is_own and owner is not None and owner.name == pod.name):
            made = PersistentVolumeClaim(spec=self._with_class(template.spec)) if template else None
            return PodClaim(made, is_to_come=True)
        return PodClaim(there, is_foreign=not (is_own or pod_class.pod.spec.node_name))

    def _with_class(self, spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
        """As the API server will fill it in: with the default class."""
        if spec.storage_class_name is not None or self._default is None:
            return spec
        return msgspec.structs.replace(spec, storage_class_name=self._default.metadata.name)

    @cached_property
    def _default(self) -> StorageClass | None:
        """The newest class that says it is the default."""
        usual = [c for c in self._snapshot.storage_classes if c.metadata.annotations.get(_DEFAULT) == "true"]
        return max(usual, key=lambda c: (str(c.metadata.creation_timestamp or ""), c.metadata.name), default=None)

    @cached_property
    def _by_name(self) -> Mapping[str, PersistentVolumeClaim]:
        claims = self._snapshot.volume_claims
        return {f"{claim.metadata.namespace or 'default'}/{claim.metadata.name}": claim for claim in claims}

    def is_there(self, key: str) -> bool:
        """Whether there is a claim of the name, whosever it is."""
        return key in self._by_name


def _controlling_pod(claim: PersistentVolumeClaim) -> OwnerReference | None:
    owners = claim.metadata.owner_references
    return next((owner for owner in owners if owner.controller and owner.kind == "Pod"), None)
