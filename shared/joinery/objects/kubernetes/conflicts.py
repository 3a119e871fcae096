"""Fields of an object that somebody else has set: what an apply must not overwrite in silence.

Source: Kubernetes, "Server-Side Apply", conflicts. The installer is one field manager of several. Where a person has
edited what it wants to write, the API server refuses, and names field and manager.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from joinery.objects.kubernetes.references import Reference

#: How the installer names itself to the API server.
FIELD_MANAGER = "joinery-installer"


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """``manager``: who has set the field (``kubectl-edit``, ``argocd-controller``). ``field``: its path."""

    manager: str
    field: str


def conflict_message(conflicts: Mapping[Reference, Sequence[FieldConflict]]) -> str:
    """What is in the way, and what to do about it, in plain words."""
    edits = "; ".join(f"{name}: {_fields(conflicts[name])}" for name in sorted(conflicts))
    return (
        f"Somebody else has changed what this release wants to write. {edits}. Nothing was changed in the cluster. "
        "Either undo these edits, or deploy with the parameter ForceConflicts=true, which overwrites them."
    )


def _fields(conflicts: Sequence[FieldConflict]) -> str:
    by_manager: dict[str, list[str]] = {}
    for conflict in conflicts:
        by_manager.setdefault(conflict.manager, []).append(conflict.field)
    return ", ".join(f"{_some(fields)} by {manager}" for manager, fields in sorted(by_manager.items()))


def _some(fields: Sequence[str]) -> str:
    shown = sorted(fields)
    return shown[0] if len(shown) == 1 else f"{shown[0]} and {len(shown) - 1} more fields"
