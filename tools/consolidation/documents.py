"""Kubernetes objects as JSON documents, and the few questions that every part of this tool asks of them."""

import gzip
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

Document = dict[str, Any]

_TERMINAL = ("Succeeded", "Failed")
_UNITS = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


def read(file: Path) -> list[Document]:
    """The objects of a ``kind: List`` in JSON, gzipped or not."""
    data = file.read_bytes()
    text = gzip.decompress(data) if file.suffix == ".gz" else data
    return list(json.loads(text)["items"])


def write(objects: Sequence[Document], file: Path) -> None:
    """The objects as a gzipped ``kind: List``. Equal objects give equal bytes."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def amount(text: str) -> float:
    """A Kubernetes quantity such as ``500m`` or ``2Gi``."""
    unit = next((unit for unit in _UNITS if text.endswith(unit)), "")
    return float(text.removesuffix(unit)) * _UNITS.get(unit, 1.0)


def of_kind(objects: Iterable[Document], kind: str) -> list[Document]:
    """The objects of one kind, in their order."""
    return [item for item in objects if item["kind"] == kind]


def name_of(item: Document) -> str:
    return str(item["metadata"]["name"])


def key_of(item: Document) -> str:
    """``namespace/name``, as plans name pods."""
    return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"


def node_name(pod: Document) -> str:
    """The node that the pod is bound to; empty for a pending one."""
    return str(pod.get("spec", {}).get("nodeName", ""))


def moment(text: str) -> datetime:
    """An RFC3339 time."""
    return datetime.fromisoformat(text)


def condition(item: Document, kind: str) -> Document | None:
    """The object's condition of that type."""
    conditions = item.get("status", {}).get("conditions") or ()
    return next((entry for entry in conditions if entry["type"] == kind), None)


def is_true(item: Document, kind: str) -> bool:
    """Whether the object's condition of that type is there and True."""
    entry = condition(item, kind)
    return entry is not None and entry["status"] == "True"


def is_owned_by(pod: Document, api_version: str, kind: str) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner["apiVersion"] == api_version and owner["kind"] == kind for owner in owners)


def is_active(pod: Document) -> bool:
    """Neither finished nor being deleted (specification 2.9)."""
    is_terminating = bool(pod["metadata"].get("deletionTimestamp"))
    return not is_terminating and pod.get("status", {}).get("phase") not in _TERMINAL


def is_reschedulable(pod: Document) -> bool:
    """Whether the pod needs another node once its own goes (Karpenter ``pod.IsReschedulable``)."""
    is_finished = pod.get("status", {}).get("phase") in _TERMINAL
    is_alive = is_active(pod) or (not is_finished and is_owned_by(pod, "apps/v1", "StatefulSet"))
    is_daemon = any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())
    return is_alive and not is_daemon and not is_owned_by(pod, "v1", "Node")
