"""The difference between an object as it was read and as it should be, as a JSON merge patch (RFC 7386).

Only what differs is sent, so fields that our structs do not know stay as they are. A key that went away becomes
``null``; a list is replaced as a whole, which is safe because every patch carries the resource version that was read:
if somebody wrote in between, the API server answers 409.
"""

from typing import Any

import msgspec
from pydantic import BaseModel

Document = dict[str, Any]

#: What the API server alone decides.
_SERVERS_OWN = ("resourceVersion", "uid", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")


def document(item: Any) -> Document:
    """The JSON form of a struct or model, absent values left out."""
    if isinstance(item, BaseModel):
        return item.model_dump(mode="json", by_alias=True, exclude_none=True)
    plain: Document = msgspec.to_builtins(item)
    return plain


def difference(before: Document, after: Document) -> Document:
    """The merge patch that turns one document into the other; empty if they are equal."""
    patch: Document = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict | None):
            # A part that is empty in our struct may hold fields that the struct does not know, so it is never deleted.
            if inner := difference(old, new or {}):
                patch[key] = inner
        elif old != new:
            patch[key] = new
    return patch


def changes(before: Any, after: Any) -> tuple[Document, Document]:
    """Two patches, without resource versions: for the object, and for its status subresource.

    Empty ones need no request.
    """
    patch = difference(_writable(before), _writable(after))
    status = patch.pop("status", None)
    return patch, {"status": status} if status else {}


def _writable(item: Any) -> Document:
    whole = document(item)
    metadata = {key: value for key, value in whole.get("metadata", {}).items() if key not in _SERVERS_OWN}
    return {**whole, "metadata": metadata}


def guarded(patch: Document, version: str) -> Document:
    """The patch with a resource version: the API server answers 409 unless the object still has it.

    An empty version guards nothing.
    """
    if not version:
        return patch
    return {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}


def may_still_be_sent(before: Any, after: Any, current: Any) -> bool:
    """Whether a write that met a conflict may be sent again as it is.

    Nobody has changed in between what it changes, and the object is neither another one nor being deleted since. A
    kubelet writes its Node's status every few seconds, which is no reason to decide anew about a taint. ``current`` is
    the object as it is now.
    """
    was, now = before.metadata, current.metadata
    if (was.uid, was.deletion_timestamp) != (now.uid, now.deletion_timestamp):
        return False
    return _is_unchanged(_writable(before), _writable(current), difference(_writable(before), _writable(after)))


def _is_unchanged(before: Document, current: Document, patch: Document) -> bool:
    """Whether two documents are the same in all that a patch of the first one touches."""
    for key, change in patch.items():
        old, new = before.get(key), current.get(key)
        if isinstance(change, dict) and isinstance(old, dict | None) and isinstance(new, dict | None):
            # A part that is empty is absent: its keys are what counts.
            if not _is_unchanged(old or {}, new or {}, change):
                return False
        elif old != new:
            return False
    return True
