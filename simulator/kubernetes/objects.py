"""Objects as documents, in memory: implements ``Objects``, with server-side apply.

Who has set which field is remembered, as the API server does in ``managedFields``. A list counts as one field, which is
so for most lists of the kinds that are installed (``x-kubernetes-list-type: atomic``).
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from joinery.objects.errors import DeniedError
from joinery.objects.kubernetes.references import FIELD_MANAGER, Document, FieldConflict, Reference, reference

Path = tuple[str, ...]


class InMemoryObjects:
    """Implements ``Objects``. ``version``: Kubernetes'. ``unknown_for``: how often the cluster still does not know us.

    ``failures``: what the methods of these names raise. ``writes``: what was written, in order, as
    ``apply ClusterRole joinery``.
    """

    def __init__(self, *, version: tuple[int, int] = (1, 33)) -> None:
        self.version = version
        self.is_known = True
        self.unknown_for = 0
        self.failures: dict[str, Exception] = {}
        self.writes: list[str] = []
        self._stored: dict[Reference, Document] = {}
        self._managers: dict[Reference, dict[Path, str]] = {}

    def server_version(self) -> tuple[int, int]:
        self._check("server_version")
        return self.version

    def is_administrator(self) -> bool:
        self._fail("is_administrator")
        self.unknown_for -= 1
        return self.is_known and self.unknown_for < 0

    def read(self, reference: Reference) -> Document | None:
        self._check("read")
        return copy.deepcopy(self._stored.get(reference))

    def labelled(self, kind: str, label: str = "", value: str = "") -> Sequence[Document]:
        self._check("labelled")
        of_kind = [stored for where, stored in sorted(self._stored.items()) if where.kind == kind]
        labels = [(one, one["metadata"].get("labels", {})) for one in of_kind]
        return copy.deepcopy([one for one, those in labels if not label or those.get(label) == value])

    def apply(self, document: Document, *, force: bool = False, dry_run: bool = False) -> Sequence[FieldConflict]:
        self._check("apply")
        where, wanted = reference(document), dict(_fields(document))
        stored, managers = self._stored.get(where, {}), self._managers.get(where, {})
        conflicts = [
            FieldConflict(managers[path], "." + ".".join(path))
            for path, value in wanted.items()
            if managers.get(path, FIELD_MANAGER) != FIELD_MANAGER and _at(stored, path) != value
        ]
        if (conflicts and not force) or dry_run:
            return [] if force else conflicts
        self._write(where, wanted)
        return []

    def create(self, document: Document) -> bool:
        self._check("create")
        if reference(document) in self._stored:
            return False
        self._write(reference(document), dict(_fields(document)), verb="create")
        return True

    def remove(self, reference: Reference) -> bool:
        self._check("remove")
        self.writes.append(f"remove {reference}")
        self._managers.pop(reference, None)
        return self._stored.pop(reference, None) is not None

    # --- for tests: what others do ---

    def put(self, document: Document, manager: str = "kubectl-client-side-apply") -> None:
        """Store an object as somebody else has made it."""
        where = reference(document)
        self._stored[where] = copy.deepcopy(document)
        self._managers[where] = {path: manager for path, _ in _fields(document)}

    def edit(self, where: Reference, path: str, value: Any, manager: str = "kubectl-edit") -> None:
        """Change one field (``metadata.labels.team``) as somebody else."""
        keys = tuple(path.split("."))
        _set(self._stored[where], keys, value)
        self._managers[where][keys] = manager

    def patch(self, reference: Reference, document: Document) -> bool:
        self._check("patch")
        if reference not in self._stored:
            return False
        _merge(self._stored[reference], document)
        self.writes.append(f"patch {reference}")
        return True

    def names(self) -> list[str]:
        """What there is."""
        return [str(where) for where in sorted(self._stored)]

    def _fail(self, method: str) -> None:
        if method in self.failures:
            raise self.failures[method]

    def _check(self, method: str) -> None:
        self._fail(method)
        if not self.is_known:
            raise DeniedError("the cluster does not know us (401)")

    def _write(self, where: Reference, wanted: dict[Path, Any], verb: str = "apply") -> None:
        managers = self._managers.setdefault(where, {})
        stored = self._stored.setdefault(where, {})
        for path in [path for path, manager in managers.items() if manager == FIELD_MANAGER and path not in wanted]:
            _remove(stored, path)
            del managers[path]
        for path, value in wanted.items():
            _set(stored, path, copy.deepcopy(value))
            managers[path] = FIELD_MANAGER
        self.writes.append(f"{verb} {where}")


def _merge(stored: Document, patch: Document) -> None:
    """A merge patch: null removes (RFC 7386)."""
    for key, value in patch.items():
        if value is None:
            stored.pop(key, None)
        elif isinstance(value, dict):
            _merge(stored.setdefault(key, {}), value)
        else:
            stored[key] = value


def _fields(document: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, value in document.items():
        if isinstance(value, dict) and value:
            yield from _fields(value, (*path, key))
        else:
            yield (*path, key), value


def _at(document: Document, path: Path) -> Any:
    for key in path:
        document = document.get(key, {})
    return document


def _set(document: Document, path: Path, value: Any) -> None:
    for key in path[:-1]:
        document = document.setdefault(key, {})
    document[path[-1]] = value


def _remove(document: Document, path: Path) -> None:
    for key in path[:-1]:
        document = document.get(key, {})
    document.pop(path[-1], None)
