"""Custom resources that an API server stored under other rules than ours: an older version's, a newer one's, another
provider's.

A claim that has an instance is read as far as it can be read: left out of every decision it would neither be drained
nor expire nor be counted, and its instance would look like one that nobody knows. What a claim without an instance asks
for must be understood as a whole, and so must a NodePool or a node class.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.decoding import without_nulls

Document = dict[str, Any]

_ROUNDS = 10
#: Parts without which a claim is none.
_NEEDED = ((), ("metadata",), ("spec",), ("status",), ("status", "providerID"), ("spec", "nodeClassRef"))


def is_foreign(document: Mapping[str, Any], group: str) -> bool:
    """Whether a NodePool or NodeClaim names a node class of another provider than ours, whose API group is given: such
    as EKS Auto Mode's. A group with its version (``karpenter.k8s.aws/v1``) is nobody's: an API server refuses it.
    """
    spec = part(document, "spec")
    ref = part(spec, "nodeClassRef") or part(spec, "template", "spec", "nodeClassRef")
    named = ref.get("group", "")
    return named not in ("", group) and "/" not in str(named)


def salvage(document: Document, error: ValidationError) -> NodeClaim | None:
    """A claim that has an instance, without the parts that ``error`` is about; None where too little is left.

    ``document`` is changed.
    """
    if not part(document, "status").get("providerID"):
        return None
    for _ in range(_ROUNDS):
        for entry in error.errors(include_url=False, include_input=False, include_context=False):
            if not _dropped(document, entry["loc"]):
                return None
        document = without_nulls(document)
        try:
            return NodeClaim.model_validate(document)
        except ValidationError as still:
            error = still
    return None


def part(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The object inside an object, by its path; an empty one where there is none."""
    inner: Mapping[str, Any] = document
    for name in names:
        member = inner.get(name)
        inner = member if isinstance(member, dict) else {}
    return inner


def _dropped(document: Document, location: Sequence[str | int]) -> bool:
    """Whether the part at fault, or where it is missing the one around it, could be taken out."""
    path = [step for step in location if step != "[key]"]
    while path and tuple(path) not in _NEEDED:
        *outside, last = path
        parent: Any = document
        for step in outside:
            parent = _member(parent, step)
        if _member(parent, last) is not None:
            # Left as null, so that the places of a list's other members stay what the error says they are.
            parent[last] = None
            return True
        path = outside
    return False


def _member(parent: Any, step: str | int) -> Any:
    if isinstance(parent, dict):
        return parent.get(step)
    return parent[step] if isinstance(parent, list) and isinstance(step, int) and step < len(parent) else None
