"""What a Kubernetes API server does to every object, whatever its kind.

It gives out UIDs, generations and ever-growing resource versions; it refuses a write that was made from an old version
(compare-and-swap); a deletion of an object with finalizers only marks it, and it goes when its last finalizer does.
Every change goes to watchers, old and new, in order: this is also what calls an admission webhook.
"""

import random
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, TypeVar

from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.kubernetes.core import PodSpec
from simulator.clock import Clock
from simulator.kubernetes.resources import is_namespaced, key_of, kind_of, with_fields, with_metadata

T = TypeVar("T")
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # what Kubernetes makes generated names of


@dataclass(frozen=True, slots=True)
class Change:
    """One write. ``before`` is None for a creation, ``after`` is None for a removal."""

    kind: str
    before: Any
    after: Any


class ApiServer:
    """Objects by kind and key, with the rules of the API server. Deterministic for a seed."""

    def __init__(self, clock: Clock, seed: int = 0) -> None:
        self.clock = clock
        self._rng = random.Random(f"api-server/{seed}")
        self._version = 0
        self._objects: dict[str, dict[str, Any]] = defaultdict(dict)
        self._watchers: list[Callable[[Change], None]] = []

    def watch(self, watcher: Callable[[Change], None]) -> None:
        """Call the watcher for every change from here on."""
        self._watchers.append(watcher)

    @property
    def resource_version(self) -> str:
        """The version of the newest write: a list is consistent with it."""
        return str(self._version)

    def advance(self) -> int:
        """A version for a change that is no write: what is worked out when somebody asks has become something else."""
        self._version += 1
        return self._version

    def objects(self, kind: str) -> Mapping[str, Any]:
        """All objects of a kind by key, a live view."""
        return MappingProxyType(self._objects[kind])

    def get(self, kind: str, key: str) -> Any:
        """Raises ``NotFoundError``."""
        stored = self._objects[kind].get(key)
        if stored is None:
            raise NotFoundError(f"{kind} {key} not found")
        return stored

    def current(self, item: T) -> T:
        """The stored object of the same name and UID. ``NotFoundError``, or ``ConflictError`` if the UIDs differ."""
        stored: T = self.get(kind_of(item), key_of(item))
        uid = item.metadata.uid  # type: ignore[attr-defined]
        if uid and uid != stored.metadata.uid:  # type: ignore[attr-defined]
            raise ConflictError(
                f"{kind_of(item)} {key_of(item)} is another object: the UID in the precondition differs"
            )
        return stored

    def add(self, item: T) -> T:
        """Put an object there as it is: a given UID, timestamps and finalizers stay. What has no UID gets one."""
        meta = item.metadata  # type: ignore[attr-defined]
        before = self._objects[kind_of(item)].get(key_of(item))
        return self._store(
            with_metadata(
                item,
                namespace=_namespace(item),
                uid=meta.uid or self.new_uid(),
                generation=meta.generation or 1,
                creation_timestamp=meta.creation_timestamp or self._second(),
            ),
            before,
        )

    def create(self, item: T) -> T:
        """A POST: name generated if asked for. Raises ``ConflictError`` (already exists)."""
        meta = item.metadata  # type: ignore[attr-defined]
        name = meta.name or meta.generate_name + self._suffix()
        fresh = with_metadata(
            item,
            name=name,
            namespace=_namespace(item),
            uid=self.new_uid(),
            generation=1,
            creation_timestamp=self._second(),
            deletion_timestamp=None,
        )
        if key_of(fresh) in self._objects[kind_of(fresh)]:
            raise ConflictError(f"{kind_of(fresh)} {name} already exists")
        return self._store(fresh, None)

    def apply(self, item: T) -> T:
        """What ``kubectl apply`` makes of a whole manifest: the object anew, or the one that is there with the
        manifest's spec, and with what others have written of annotations, labels, finalizers and status.
        """
        stored: Any = self._objects[kind_of(item)].get(key_of(item))
        if stored is None:
            return self.add(item)
        meta = item.metadata  # type: ignore[attr-defined]
        merged = with_metadata(
            item,
            uid="",
            annotations={**stored.metadata.annotations, **meta.annotations},
            labels={**stored.metadata.labels, **meta.labels},
            finalizers=_finalizers(stored),
        )
        return self.update(with_fields(merged, status=stored.status) if hasattr(stored, "status") else merged)

    def update(self, item: T, *, version: str = "") -> T:
        """A PUT of the whole object. ``version``: the resource version it was made from, or the write is unconditional.

        Raises ``ConflictError`` for an old version, ``NotFoundError``. A write that changes nothing is none.
        """
        stored = self.current(item)
        meta = stored.metadata  # type: ignore[attr-defined]
        if version and version != meta.resource_version:
            raise ConflictError(
                f"{kind_of(item)} {key_of(item)} was modified: version {meta.resource_version}, not {version}"
            )
        kept = with_metadata(
            item,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
            generation=meta.generation + int(_spec(item) != _spec(stored)),
        )
        if kept == stored:
            return stored
        if meta.deletion_timestamp is not None and not _finalizers(kept) and _finalizers(stored):
            self.remove(stored)
            return kept
        return self._store(kept, stored)

    def delete(self, item: T, *, grace_seconds: int = 0) -> None:
        """A DELETE with the UID as precondition. With finalizers, or grace, the object is only marked.

        A second deletion may shorten the grace, never lengthen it. Raises ``NotFoundError``, ``ConflictError``.
        """
        stored = self.current(item)
        if not _finalizers(stored) and not grace_seconds:
            self.remove(stored)
            return
        due = self._second(grace_seconds)
        marked = stored.metadata.deletion_timestamp  # type: ignore[attr-defined]
        if marked is None or due < marked:
            generation = stored.metadata.generation + 1  # type: ignore[attr-defined]
            self._store(with_metadata(stored, deletion_timestamp=due, generation=generation), stored)

    def remove(self, item: Any) -> None:
        """Take it away at once, finalizers or not. ``NotFoundError``."""
        stored = self.get(kind_of(item), key_of(item))
        del self._objects[kind_of(item)][key_of(item)]
        self._version += 1
        self._tell(Change(kind_of(item), stored, None))

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def _store(self, item: T, before: Any) -> T:
        self._version += 1
        stored = with_metadata(item, resource_version=str(self._version))
        self._objects[kind_of(item)][key_of(item)] = stored
        self._tell(Change(kind_of(item), before, stored))
        return stored

    def _tell(self, change: Change) -> None:
        for watcher in self._watchers:
            watcher(change)

    def _suffix(self) -> str:
        return "".join(self._rng.choice(_SUFFIX_LETTERS) for _ in range(5))

    def _second(self, later: int = 0) -> datetime:
        return self.clock.now().replace(microsecond=0) + timedelta(seconds=later)


def _namespace(item: Any) -> str:
    return (item.metadata.namespace or "default") if is_namespaced(kind_of(item)) else ""


def _spec(item: Any) -> Any:
    """What a generation is of. Binding a pod makes no new one."""
    spec = getattr(item, "spec", None)
    return with_fields(spec, node_name="") if isinstance(spec, PodSpec) else spec


def _finalizers(item: Any) -> list[str]:
    return list(item.metadata.finalizers)
