"""Objects as documents over the Kubernetes API: implements ``Objects``."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from joinery.gateways.kubernetes.api_errors import Status, object_of
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.errors import NotFoundError
from joinery.objects.kubernetes.references import (
    FIELD_MANAGER,
    Document,
    FieldConflict,
    Reference,
    collection,
    reference,
)

#: JSON is YAML, and the API server takes an apply under this name only.
APPLY_PATCH = "application/apply-patch+yaml"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_EVERYTHING = {"spec": {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}}
_CONFLICT = "FieldManagerConflict"


class KubernetesObjects:
    """Implements ``Objects``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def server_version(self) -> tuple[int, int]:
        version = _decoded(self._transport.get("/version"))
        # EKS adds a plus to the minor version: "33+".
        return int(version["major"]), int("".join(digit for digit in version["minor"] if digit.isdigit()))

    def is_administrator(self) -> bool:
        answer = self._transport.ask("POST", _REVIEWS, _EVERYTHING)
        if answer.code in (401, 403):
            return False
        return bool(_decoded(object_of(f"POST {_REVIEWS}", answer)).get("status", {}).get("allowed"))

    def read(self, reference: Reference) -> Document | None:
        try:
            stored: Document = _decoded(self._transport.get(reference.path))
        except NotFoundError:
            return None
        return stored

    def labelled(self, kind: str, label: str = "", value: str = "") -> Sequence[Document]:
        selector = f"?labelSelector={quote(f'{label}={value}')}" if label else ""
        try:
            listed = _decoded(self._transport.get(f"{collection(kind)}{selector}"))
        except NotFoundError:
            return ()
        # A list's items need not repeat their kind, and do not know by which name we call it.
        return [{**item, "kind": kind} for item in listed.get("items", [])]

    def apply(self, document: Document, *, force: bool = False, dry_run: bool = False) -> Sequence[FieldConflict]:
        wanted = {"fieldManager": FIELD_MANAGER, "force": str(force).lower(), "fieldValidation": "Strict"}
        path = f"{reference(document).path}?{urlencode(wanted | ({'dryRun': 'All'} if dry_run else {}))}"
        answer = self._transport.ask("PATCH", path, document, content_type=APPLY_PATCH)
        conflicts = _conflicts(answer.status) if answer.code == 409 else ()
        if not conflicts:
            object_of(f"PATCH {reference(document)}", answer)
        return conflicts

    def create(self, document: Document) -> bool:
        where = reference(document)
        path = f"{collection(where.kind, where.namespace)}?{urlencode({'fieldManager': FIELD_MANAGER})}"
        answer = self._transport.ask("POST", path, document)
        if answer.code == 409:
            return False
        object_of(f"POST {where}", answer)
        return True

    def patch(self, reference: Reference, document: Document) -> bool:
        try:
            self._transport.request("PATCH", reference.path, document, content_type=MERGE_PATCH)
        except NotFoundError:
            return False
        return True

    def remove(self, reference: Reference) -> bool:
        try:
            self._transport.request("DELETE", reference.path)
        except NotFoundError:
            return False
        return True


def _conflicts(status: Status) -> Sequence[FieldConflict]:
    causes = status.details.causes if status.details else []
    return [FieldConflict(_manager(cause.message), cause.field) for cause in causes if cause.reason == _CONFLICT]


def _manager(message: str) -> str:
    """The name in ``conflict with "kubectl-edit" using rbac.authorization.k8s.io/v1``."""
    return message.partition('"')[2].partition('"')[0] or message


def _decoded(body: bytes) -> Any:
    return msgspec.json.decode(body)
