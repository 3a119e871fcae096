"""Objects of the older APIs in a cluster: which of these APIs it serves, how they are read, and how they are written.

A cluster that serves none of them has none. Which versions the group ``karpenter.sh`` has is asked once in ten minutes,
and so is a kind that was not there. v1beta1 and v1 are versions of the same objects: v1beta1 is read only where v1 is
not served, and NodeClaims are then created in v1beta1. Provisioners and v1 live side by side.

Decisions see objects of v1 alone (``joinery.objects.snapshot.equivalents``). A write to one of them is turned into one
to the object that is stored (``joinery.objects.karpenter.legacy.rewritten``): that is read, and the patch is refused if
it has changed since.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from joinery.gateways.kubernetes.api_errors import object_of
from joinery.gateways.kubernetes.lists import NotInstalledError, read
from joinery.gateways.kubernetes.mirrors import Entry, entries_of
from joinery.gateways.kubernetes.patches import Document, changes, document, guarded
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.gateways.kubernetes.watches import Head
from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.karpenter.legacy import (
    ALPHA_KINDS,
    BETA_KINDS,
    EARLIEST_KINDS,
    Version,
    called_now,
    recorded_status,
    rewritten,
    written_claim,
)
from joinery.objects.karpenter.meta import CustomResource, Origin, with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.decoding import decoder
from joinery.objects.snapshot.equivalents import LegacyReader
from joinery.objects.snapshot.snapshot import ClaimsSnapshot

R = TypeVar("R", bound=CustomResource)
S = TypeVar("S", bound=ClaimsSnapshot)

#: How long the answer that something is not there is believed, in seconds.
ABSENT_SECONDS = 600.0
_GROUP = "/apis/karpenter.sh"
#: There is no such group; or we may not ask, as in clusters that keep discovery (``system:discovery``) to themselves.
_NO_GROUP = (403, 404)
_ALPHA, _BETA, _NOW = "v1alpha5", "v1beta1", "v1"
_KINDS: Mapping[Version, str] = {**ALPHA_KINDS, **EARLIEST_KINDS, **BETA_KINDS}
_CLAIMS = frozenset(version for version in _KINDS if called_now(version[1]) == NodeClaim.kind)


def _path(version: Version) -> str:
    return f"/apis/{version[0]}/{_KINDS[version]}"


def path_of(origin: Origin) -> str:
    """Where a stored legacy object lives."""
    return f"{_path((origin.api_version, origin.kind))}/{origin.name}"


#: Paths of the kinds that are listed on every read, as NodeClaims are (``joinery.gateways.kubernetes.mirrors``).
CLAIM_PATHS = frozenset(_path(version) for version in _CLAIMS)


class _Versions(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    versions: list[_Versions] = []


class DocumentKind:
    """A legacy kind, object by object as it is stored. Its path stands for its field: a snapshot has none for it."""

    def __init__(self, version: Version, clock: Callable[[], float]) -> None:
        self.field = self.path = _path(version)
        self._version, self._clock = version, clock
        self._absent_until = 0.0

    def list_all(self, transport: Transport, known: Mapping[str, Entry]) -> tuple[str, dict[str, Entry]]:
        if self._clock() < self._absent_until:
            return "", {}
        try:
            listed = read(transport, self.path, msgspec.Raw)
        except NotInstalledError:
            self._absent_until = self._clock() + ABSENT_SECONDS
            return "", {}
        return listed.version, entries_of(listed.objects, known, self.entry)

    def entry(self, raw: msgspec.Raw, head: Head) -> Entry:
        api_version, kind = self._version
        return Entry(head.version, {**msgspec.json.decode(raw), "apiVersion": api_version, "kind": kind})


@dataclass(frozen=True)
class Served:
    """What a cluster served when it was asked. A read asks once: between two answers an API may come or go.

    ``fields``: the legacy kinds, by their fields. ``is_beta``: whether NodePools, NodeClaims and node classes are those
    of v1beta1. ``serves_v1``: whether the kinds of v1 are to be read.
    """

    fields: tuple[str, ...]
    is_beta: bool
    serves_v1: bool


class LegacyApis:
    """The older APIs of one cluster.

    ``default_profile``: see ``objects.karpenter.legacy.equivalents``. ``needs_v1``: whether a cluster that serves
    nothing but Provisioners is an error, because NodeClaims are written in v1. A plan needs none.
    """

    def __init__(
        self,
        transport: Transport,
        node_class: type[NodeClass],
        *,
        default_profile: str | None = None,
        needs_v1: bool = True,
    ) -> None:
        self._transport = transport
        self._reader = LegacyReader(node_class, default_profile=default_profile)
        self._needs_v1 = needs_v1
        self.kinds = {version: DocumentKind(version, transport.clock) for version in _KINDS}
        self._versions: frozenset[str] = frozenset()
        self._asked_at: float | None = None

    def served(self) -> Served:
        """What the cluster serves at this moment. Raises ``UnavailableError`` where the API server does not say."""
        versions = self._group_versions()
        is_beta = _BETA in versions and _NOW not in versions
        # Versions of one definition are the same objects: the last that there is has all that they say.
        earliest = next(((one,) for one in EARLIEST_KINDS if one[0].rpartition("/")[2] in versions), ())
        alpha = tuple(ALPHA_KINDS) if _ALPHA in versions else earliest
        kinds = [*alpha, *(BETA_KINDS if is_beta else ())]
        is_alpha_alone = bool(alpha) and not versions & {_BETA, _NOW}
        return Served(
            fields=tuple(self.kinds[version].field for version in kinds),
            is_beta=is_beta,
            serves_v1=not is_beta and (self._needs_v1 or not is_alpha_alone),
        )

    def adopted(self, snapshot: S, listed: Mapping[str, tuple[Document, ...]]) -> S:
        """The snapshot with what legacy objects are in v1. ``listed``: these, by the fields of ``Served``."""
        return self._reader.adopted(snapshot, [document for documents in listed.values() for document in documents])

    def node_pool(self, name: str) -> NodePool:
        """One NodePool as it is now. Raises ``NotFoundError``."""
        documents = [entry.item for field in self.served().fields for entry in self._list(field)]
        for _, equivalent, _ in self._reader.made(documents):
            if isinstance(equivalent, NodePool) and equivalent.metadata.name == name:
                return equivalent
        raise NotFoundError(f"NodePool {name} not found")

    def _list(self, field: str) -> list[Entry]:
        kind = next(kind for kind in self.kinds.values() if kind.field == field)
        return list(kind.list_all(self._transport, {})[1].values())

    def _group_versions(self) -> frozenset[str]:
        now = self._transport.clock()
        if self._asked_at is None or now - self._asked_at > ABSENT_SECONDS:
            answer = self._transport.ask("GET", _GROUP)
            # A server that is busy has not said that there is no such group: that would hide all of its objects.
            is_there = answer.code not in _NO_GROUP
            versions = decoder(_Group).decode(object_of(f"GET {_GROUP}", answer)).versions if is_there else []
            self._versions, self._asked_at = frozenset(one.version for one in versions), now
        return self._versions

    # --- writes ---

    def create(self, claim: NodeClaim, body: Document, *, dry_run: bool) -> NodeClaim:
        """The claim as stored in v1beta1. ``body``: as v1 would create it."""
        version = next(version for version in BETA_KINDS if version in _CLAIMS)
        path = f"{_path(version)}?dryRun=All" if dry_run else _path(version)
        given = msgspec.json.decode(self._transport.request("POST", path, written_claim(body)))["metadata"]
        # Of its spec the answer lacks what v1beta1 does not know; the rest is as it was sent.
        metadata = claim.metadata.model_validate({**document(claim.metadata), **given})
        return claim.model_copy(update={"metadata": metadata}).made_from(Origin(*version, metadata.name))

    def update(self, origin: Origin, before: R, after: R) -> R:
        """Write what has changed on the stored object. ``ConflictError`` if a claim has changed since it was read."""
        patch, status = changes(before, after)
        if not patch and not status:
            return with_metadata(after, resource_version=before.metadata.resource_version)
        stored = self._stored(origin)
        if stored["metadata"].get("uid", "") != before.metadata.uid:
            raise ConflictError(f"{origin.kind} {origin.name} is another object: its UID differs")
        version = stored["metadata"]["resourceVersion"]
        # Pools and classes are written by lifecycle alone, and two of them may be one stored object.
        if before.kind == NodeClaim.kind and version != before.metadata.resource_version:
            raise ConflictError(f"{origin.kind} {origin.name} was modified since it was read")
        whole = document(after).get("status", {}) if status else None
        metadata = patch.get("metadata", {})
        version = self._send(origin, stored, before.kind, before.metadata.name, metadata=metadata, status=whole)
        return with_metadata(after, resource_version=version)

    def reject(self, kind: str, name: str, judged: Callable[[list[Any], int], list[Any]]) -> None:
        """Write the conditions of an object that cannot be read. ``judged`` makes them of those before and the
        generation. ``NotFoundError`` if no legacy object has that kind, as it is called in v1, and name.
        """
        fields = self.served().fields
        for version in (version for version in _KINDS if called_now(version[1]) == kind):
            if self.kinds[version].field not in fields:
                continue
            origin = Origin(*version, name)
            try:
                stored = self._stored(origin)
            except NotFoundError:
                continue
            self._reject(origin, stored, kind, judged)
            return
        raise NotFoundError(f"{kind} {name} not found")

    def _reject(
        self, origin: Origin, stored: Document, kind: str, judged: Callable[[list[Any], int], list[Any]]
    ) -> None:
        status = recorded_status(stored, kind, origin.name)
        before = status.get("conditions") or []
        conditions = judged(before, stored["metadata"].get("generation", 0))
        if conditions != before:
            whole = {**status, "conditions": conditions}
            self._send(origin, stored, kind, origin.name, metadata={}, status=whole)

    def _send(
        self, origin: Origin, stored: Document, kind: str, name: str, *, metadata: Document, status: Document | None
    ) -> str:
        """Both patches of the stored object. Returns its resource version afterwards."""
        patch, shown = rewritten(stored, kind, name, metadata=metadata, status=status)
        path = path_of(origin)
        version: str = stored["metadata"].get("resourceVersion", "")
        # The annotation first: it has all of the status, and finalizers may take the object away.
        for part, change in ((path, patch), (f"{path}/status", shown)):
            # Without the finalizer the object is gone, and a definition may lack the subresource.
            with contextlib.suppress(NotFoundError) if part != path else contextlib.nullcontext():
                if change:
                    body = self._transport.request("PATCH", part, guarded(change, version), content_type=MERGE_PATCH)
                    version = msgspec.json.decode(body)["metadata"].get("resourceVersion", "")
        return version

    def _stored(self, origin: Origin) -> Document:
        stored: Document = msgspec.json.decode(self._transport.get(path_of(origin)))
        return {**stored, "apiVersion": origin.api_version, "kind": origin.kind}
