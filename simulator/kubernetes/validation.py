"""What the simulated API server refuses: a NodeClaim that its definition does not allow, and metadata of any object."""

from typing import Any

import msgspec
from pydantic import ValidationError

from joinery.gateways.kubernetes.lists import unreadable
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.meta import is_label_key
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.validation import explain
from joinery.objects.snapshot.snapshot import Invalid
from joinery_cli.reading.names import wrong_metadata
from simulator.kubernetes.resources import from_document

#: Bytes of all annotations of an object together, keys and values.
MOST_ANNOTATED = 256 << 10


def validated(claim: NodeClaim) -> NodeClaim:
    """The claim as its definition reads it. Raises ``ConfigurationError`` for one that the definition refuses."""
    try:
        return NodeClaim.model_validate(claim.model_dump(by_alias=True))
    except ValidationError as error:
        raise ConfigurationError(f"NodeClaim {claim.metadata.name}: {explain(error)}") from error


def metadata_problem(claim: NodeClaim) -> str:
    """What is wrong with the claim's metadata, as with any object's (apimachinery ``ValidateObjectMeta``); or empty."""
    annotations = claim.metadata.annotations
    if bad := next((key for key in annotations if not is_label_key(key.lower())), None):
        return f"metadata.annotations: {bad!r} is no qualified name"
    if sum(len(key) + len(value) for key, value in annotations.items()) > MOST_ANNOTATED:
        return f"metadata.annotations: must have at most {MOST_ANNOTATED} bytes"
    return next(wrong_metadata(claim.metadata, claim.kind), "")


def invalid(kind: str, name: str, document: dict[str, Any]) -> Invalid:
    """A stored document that does not fit our models, with the reason."""
    try:
        from_document(kind, document)
    except ValidationError as error:
        return unreadable(document, kind, explain(error))
    except msgspec.ValidationError as error:
        return unreadable(document, kind, str(error))
    return Invalid(kind, name, "")
