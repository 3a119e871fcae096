"""What Joinery writes on objects of the older APIs, and how it is read again.

The older definitions have no room for what v1 keeps in a status: an AWSNodeTemplate has no conditions, and those of a
Provisioner have no ``observedGeneration``. An API server drops what a definition does not know. So the status of the v1
object is kept whole in an annotation of the stored one, ``joinery.dev/written-as.<kind>``: a JSON object of
``annotations`` (ours, of the v1 object) and ``status``. One stored object may be several of v1 (a Provisioner with a
``provider`` block, a template whose Provisioners differ in their kubelets), and each has an annotation of its own.

The status of the older kind is written as far as that kind has it, because people and ``kubectl`` read it there. A
claim (Machine, NodeClaim of v1beta1) goes back to its older controller as it is: its labels, annotations and finalizers
are the stored ones, and its own status comes first when it is read. The annotation only completes it.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from joinery.objects.karpenter.labels import WRITTEN_AS
from joinery.objects.karpenter.meta import Model
from joinery.objects.karpenter.nodeclaim import NodeClaimStatus
from joinery.objects.karpenter.nodeclass import NodeClassStatus
from joinery.objects.karpenter.nodepool import NodePoolStatus

Document = dict[str, Any]

_CLAIM = "NodeClaim"
_STATUSES: Mapping[str, type[Model]] = {
    "NodePool": NodePoolStatus,
    "EC2NodeClass": NodeClassStatus,
    _CLAIM: NodeClaimStatus,
}
#: Conditions that a Machine calls ``MachineLaunched`` and so on.
MACHINE_CONDITIONS = frozenset({"Launched", "Registered", "Initialized", "Drifted"})
#: The kind of v1 whose status an older kind can show as its own.
_SHOWN: Mapping[str, str] = {"Provisioner": "NodePool", "AWSNodeTemplate": "EC2NodeClass", "Machine": _CLAIM}


def with_record(document: Document, stored: Document) -> Document:
    """The v1 object with what was written on the stored one for it."""
    kind, metadata = document["kind"], document["metadata"]
    record = _record(stored, kind, metadata["name"])
    given = metadata.get("annotations") or {}
    annotations = {key: value for key, value in given.items() if not key.startswith(f"{WRITTEN_AS}.")}
    status = document.get("status") or {}
    if kind == _CLAIM:
        status = _completed(status, record["status"])
    else:
        annotations |= record["annotations"]
        status = record["status"] or status
    metadata = {key: value for key, value in metadata.items() if key != "annotations"}
    metadata |= {"annotations": annotations} if annotations else {}
    whole = {key: value for key, value in document.items() if key not in ("metadata", "status")}
    return {**whole, "metadata": metadata, **({"status": status} if status else {})}


def rewritten(
    stored: Document, kind: str, name: str, *, metadata: Document, status: Document | None
) -> tuple[Document, Document]:
    """Two merge patches of the stored object: for itself, and for its status subresource; empty ones say nothing.

    ``kind``, ``name``: which v1 object was changed. ``metadata``: a merge patch of its metadata. ``status``: its whole
    status as it should be; None if that has not changed.
    """
    record = _record(stored, kind, name)
    metadata = dict(metadata)
    if kind != _CLAIM:
        changed = metadata.pop("annotations", None) or {}
        merged = {**record["annotations"], **changed}
        record["annotations"] = {key: value for key, value in merged.items() if value is not None}
    if status is not None:
        record["status"] = status
    if record != _record(stored, kind, name):
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _key(stored, kind, name): text}
    shown = _shown(stored, kind, name, status) if status is not None else {}
    return ({"metadata": metadata} if metadata else {}), ({"status": shown} if shown else {})


def recorded_status(stored: Document, kind: str, name: str) -> Document:
    """The status that was last written for that v1 object."""
    status: Document = _record(stored, kind, name)["status"]
    return status


def _key(stored: Document, kind: str, name: str) -> str:
    """The annotation for that object. The name of an annotation takes 63 characters, that of an object 253."""
    key = f"{WRITTEN_AS}.{kind.lower()}"
    return key if name == stored["metadata"]["name"] else f"{key}.{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _record(stored: Document, kind: str, name: str) -> Document:
    """The annotation, as far as it can be read: anybody may edit it, and what is lost is worked out again."""
    annotations = (stored.get("metadata") or {}).get("annotations") or {}
    try:
        record = json.loads(annotations.get(_key(stored, kind, name), "{}"))
    except (ValueError, RecursionError):
        record = {}
    parts = record if isinstance(record, dict) else {}
    given = parts.get("annotations")
    texts = {key: text for key, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}
    return {"annotations": texts, "status": _readable(parts.get("status"), kind)}


def _readable(status: Any, kind: str) -> Document:
    """The status, if its kind can have it; else none.

    A class has texts and lists of objects, whatever its cloud.
    """
    try:
        _STATUSES[kind].model_validate(status)
    except ValidationError:
        return {}
    parts: Document = status if isinstance(status, dict) else {}
    is_right = kind in ("NodePool", _CLAIM) or all(map(_is_part_of_class, parts.values()))
    return parts if is_right else {}


def _is_part_of_class(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, dict) for one in value))


def _completed(status: Document, recorded: Document) -> Document:
    """A claim's status with what its definition has no room for.

    A condition is the recorded one while the stored one still says the same: an older Karpenter may have gone on.
    """
    ours = {condition.get("type"): condition for condition in recorded.get("conditions") or ()}
    conditions = status.get("conditions") or []
    of_both = [
        ours[condition["type"]] if _agree(ours.get(condition.get("type")), condition) else condition
        for condition in conditions
    ]
    whole = {**recorded, **status}
    return {**whole, "conditions": of_both} if conditions else whole


def _agree(recorded: Document | None, stored: Document) -> bool:
    return recorded is not None and recorded.get("status") == stored.get("status")


def _shown(stored: Document, kind: str, name: str, status: Document) -> Document:
    """The status in the older kind's words. What its definition does not know, the API server drops."""
    older = stored["kind"]
    if _SHOWN.get(older, older) != kind or name != stored["metadata"]["name"]:
        return {}
    shown = {key: value for key, value in status.items() if key != "conditions"}
    if older == "Provisioner":
        shown = {"resources": {key: value for key, value in status.get("resources", {}).items() if key != "nodes"}}
    conditions = [_older_condition(condition, older) for condition in status.get("conditions") or ()]
    return {**shown, **({"conditions": conditions} if conditions else {})}


def _older_condition(condition: Document, older: str) -> Document:
    name = condition["type"]
    renamed = f"Machine{name}" if older == "Machine" and name in MACHINE_CONDITIONS else name
    return {key: value for key, value in {**condition, "type": renamed}.items() if key != "observedGeneration"}
