"""What CloudFormation gets as an answer: that a request succeeded, or what failed, on which object, and what to do
about it.

Source: CloudFormation User Guide, "Custom resource response objects". An answer has 4,096 bytes at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from joinery.decisions.installation.requests import NOTHING_MADE, StackRequest

#: What a text may take of an answer, as JSON. Its other fields are ARNs and IDs, and have a kilobyte at most.
_MOST_TEXT_BYTES = 2400


@dataclass(frozen=True, kw_only=True)
class InstallerOutcome:
    """What came of a request.

    ``failure``: what failed, in plain words; empty for a success. ``made``: whether anything may have been made, so
    that a deletion has something to remove. ``data``: what ``Fn::GetAtt`` of the resource says in the template.
    """

    failure: str = ""
    made: bool = True
    data: Mapping[str, str] = field(default_factory=dict)


def answer(request: StackRequest, outcome: InstallerOutcome) -> bytes:
    """The answer as JSON."""
    body: dict[str, object] = {
        "Status": "FAILED" if outcome.failure else "SUCCESS",
        "PhysicalResourceId": _physical_id(request, outcome),
        "StackId": request.stack,
        "RequestId": request.id,
        "LogicalResourceId": request.name,
    }
    if outcome.failure:
        body["Reason"] = _shortened(outcome.failure)
    elif outcome.data:
        body["Data"] = {key: _shortened(value) for key, value in outcome.data.items()}
    return msgspec.json.encode(body)


def _physical_id(request: StackRequest, outcome: InstallerOutcome) -> str:
    if request.physical_id:
        return request.physical_id
    if not outcome.made or not request.properties.get("ClusterName"):
        return NOTHING_MADE
    return request.resource_id


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    kept = line
    while len(msgspec.json.encode(kept)) > _MOST_TEXT_BYTES:
        kept = kept[: len(kept) * 9 // 10]
    return kept if kept == line else f"{kept}…"
