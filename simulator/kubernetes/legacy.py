"""Objects of Karpenter's older APIs in the simulated cluster: documents, kept and written as an API server would."""

from collections.abc import Callable
from typing import Any, TypeVar

from joinery.gateways.kubernetes.patches import changes, document
from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.karpenter.legacy import called_now, is_legacy, recorded_status, rewritten
from joinery.objects.karpenter.meta import CustomResource, Origin, with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.snapshot.equivalents import LegacyReader
from joinery.objects.snapshot.snapshot import ClaimsSnapshot
from simulator.kubernetes.apiserver import ApiServer

R = TypeVar("R", bound=CustomResource)
S = TypeVar("S", bound=ClaimsSnapshot)
Document = dict[str, Any]


def is_kept(given: Document) -> bool:
    """Whether the document is one of an older API."""
    return is_legacy((str(given.get("apiVersion")), str(given.get("kind"))))


class LegacyObjects:
    """By kind and name. ``api`` gives out UIDs and versions."""

    def __init__(self, api: ApiServer, node_class: type[NodeClass]) -> None:
        self._api = api
        self._stored: dict[Origin, Document] = {}
        self._reader = LegacyReader(node_class, default_profile="")

    def adopted(self, snapshot: S) -> S:
        """The snapshot with what these objects are in v1."""
        return self._reader.adopted(snapshot, self._stored.values())

    def get(self, kind: str, name: str) -> Document:
        """Raises ``NotFoundError``."""
        return self._stored[self._origin(kind, name)]

    def put(self, given: Document) -> None:
        """Store the document as it should be. One that is being deleted goes with its last finalizer."""
        origin = Origin(given["apiVersion"], given["kind"], given["metadata"]["name"])
        before = self._stored.get(origin, {})
        known = before.get("metadata") or {
            "uid": self._api.new_uid(),
            "creationTimestamp": self._now(),
            "generation": 1,
        }
        is_changed = bool(before) and before.get("spec") != given.get("spec")
        metadata = {
            "creationTimestamp": known["creationTimestamp"],
            **given["metadata"],
            "uid": known["uid"],
            "generation": known["generation"] + is_changed,
            "resourceVersion": str(self._api.advance()),
        }
        self._stored[origin] = {**given, "metadata": metadata}
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            del self._stored[origin]

    def delete(self, kind: str, name: str) -> None:
        """Ask for the deletion. Raises ``NotFoundError``."""
        stored = self.get(kind, name)
        self.put({**stored, "metadata": {"deletionTimestamp": self._now(), **stored["metadata"]}})

    def update(self, origin: Origin, before: R, after: R) -> R:
        """Write on the stored object what has changed of the one that was made from it."""
        stored = self.get(origin.kind, origin.name)
        patch, status = changes(before, after)
        if before.kind == NodeClaim.kind and before.metadata.resource_version != stored["metadata"]["resourceVersion"]:
            raise ConflictError(f"{origin.kind} {origin.name} was modified since it was read")
        whole = document(after).get("status", {}) if status else None
        self._write(stored, before.kind, before.metadata.name, patch.get("metadata", {}), whole)
        version = self._stored.get(origin, stored)["metadata"]["resourceVersion"]
        return with_metadata(after, resource_version=version)

    def reject(self, kind: str, name: str, judged: Callable[[list[Any], int], list[Any]]) -> None:
        """Write the conditions of an object that cannot be read; ``kind``: as v1 calls it. Raises ``NotFoundError``."""
        origin = next((one for one in self._stored if (called_now(one.kind), one.name) == (kind, name)), None)
        if origin is None:
            raise NotFoundError(f"{kind} {name} not found")
        stored = self._stored[origin]
        status = recorded_status(stored, kind, name)
        conditions = judged(status.get("conditions") or [], stored["metadata"]["generation"])
        self._write(stored, kind, name, {}, {**status, "conditions": conditions})

    def _write(self, stored: Document, kind: str, name: str, metadata: Document, status: Document | None) -> None:
        written = stored
        for patch in rewritten(stored, kind, name, metadata=metadata, status=status):
            written = _patched(written, patch)
        if written != stored:
            self.put(written)

    def _now(self) -> str:
        return self._api.clock.now().replace(microsecond=0).isoformat()

    def _origin(self, kind: str, name: str) -> Origin:
        for origin in self._stored:
            if (origin.kind, origin.name) == (kind, name):
                return origin
        raise NotFoundError(f"{kind} {name} not found")


def _patched(given: Any, patch: Any) -> Any:
    """The document after a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(given) if isinstance(given, dict) else {}
    merged = kept | {key: _patched(kept.get(key), change) for key, change in patch.items()}
    return {key: value for key, value in merged.items() if value is not None}
