"""Which volume claims a pod mounts: those that are there, and those that are made with it (ephemeral volumes)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from joinery.objects.kubernetes.core import ObjectMeta, OwnerReference, PersistentVolumeClaim, Pod, StorageClass, Volume

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class MountedClaim(NamedTuple):
    """A claim that a pod uses.

    name         namespace/name
    to_come      what it will be, for one that is yet to be made
    is_foreign   it is there in the place of the pod's ephemeral volume, and the pod does not own it
    """

    name: str
    to_come: PersistentVolumeClaim | None = None
    is_foreign: bool = False


class MountedClaims:
    """``claims``: all there are, by namespace/name. ``classes``: the storage classes."""

    def __init__(self, claims: Mapping[str, PersistentVolumeClaim], classes: Iterable[StorageClass]) -> None:
        self._claims = claims
        self._default = default_class(classes)

    def of(self, pod: Pod, *, is_anew: bool = False) -> Iterator[MountedClaim]:
        """The claims that the pod uses."""
        namespace = pod.metadata.namespace or "default"
        for volume in pod.spec.volumes:
            name = _claim_name(pod, volume)
            key = f"{namespace}/{name}"
            if name and volume.persistent_volume_claim is not None:
                yield MountedClaim(key)
            elif name:
                own = None if is_anew else self._claims.get(key)
                if own is None or _is_of_earlier(own, pod):
                    yield MountedClaim(key, self._claim_to_come(volume, name, namespace))
                else:
                    yield MountedClaim(key, is_foreign=not (pod.spec.node_name or _is_for(own, pod)))

    def _claim_to_come(self, volume: Volume, name: str, namespace: str) -> PersistentVolumeClaim | None:
        """What the controller of ephemeral volumes will make of the template, and the API server of its class."""
        template = volume.ephemeral.volume_claim_template if volume.ephemeral else None
        if template is None:
            return None
        spec = template.spec
        if spec.storage_class_name is None and self._default is not None:
            spec = msgspec.structs.replace(spec, storage_class_name=self._default.metadata.name)
        return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def claims_of(pod: Pod) -> set[str]:
    """All claims (namespace/name) that the pod uses."""
    return _named(pod, pod.spec.volumes)


def _named(pod: Pod, volumes: Iterable[Volume]) -> set[str]:
    namespace = pod.metadata.namespace or "default"
    return {f"{namespace}/{name}" for volume in volumes if (name := _claim_name(pod, volume))}


def made_with(pod: Pod) -> set[str]:
    """The claims (namespace/name) of the pod's generic ephemeral volumes."""
    ephemeral = (volume for volume in pod.spec.volumes if volume.persistent_volume_claim is None)
    return _named(pod, ephemeral)


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


def _is_of_earlier(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim of an ephemeral volume is that of an earlier pod of the name, and goes with it."""
    owner = _controller(claim)
    is_of_name = owner is not None and owner.kind == "Pod" and owner.name == pod.metadata.name
    return is_of_name and not _is_for(claim, pod)


def _is_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the pod owns the claim (``ephemeral.VolumeIsForPod``); a pod of files that has no UID, by its name."""
    owner, meta = _controller(claim), pod.metadata
    return owner is not None and (owner.uid == meta.uid if meta.uid else (owner.kind, owner.name) == ("Pod", meta.name))


def _controller(claim: PersistentVolumeClaim) -> OwnerReference | None:
    return next((owner for owner in claim.metadata.owner_references if owner.controller), None)
