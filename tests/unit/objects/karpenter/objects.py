"""Good and bad custom resources as data (``objects.yaml``), for whoever judges them: our models, the real API server.

A case is a good object of its kind with one field set (``set``) or left out (``drop``).
"""

import copy
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.meta import CustomResource
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool

MODELS: dict[str, type[CustomResource]] = {model.kind: model for model in (NodePool, NodeClaim, EC2NodeClass)}

_DOCUMENT = yaml.load((Path(__file__).parent / "objects.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


@dataclass(frozen=True)
class Case:
    """One object. ``field`` is what a judge has to name when it refuses it."""

    claim: str
    kind: str
    document: dict[str, Any]
    field: str = ""

    def __str__(self) -> str:
        return re.sub(r"[^A-Za-z0-9]+", "-", f"{self.kind} {self.claim}").strip("-")


def good(kind: str) -> dict[str, Any]:
    """The smallest useful object of that kind."""
    return copy.deepcopy(_DOCUMENT["good"][kind])


def changed(document: dict[str, Any], at: str, value: Any = None) -> dict[str, Any]:
    """The document with another value in one field; without the field, if the value is None."""
    document = copy.deepcopy(document)
    *parents, last = at.split(".")
    holder = document
    for part in parents:
        holder = holder.setdefault(part, {})
    holder.pop(last, None)
    if value is not None:
        holder[last] = value
    return document


def _cases(section: str) -> list[Case]:
    return [_case(kind, entry) for kind, entries in _DOCUMENT[section].items() for entry in entries]


def _case(kind: str, entry: dict[str, Any]) -> Case:
    document = good(kind)
    changes = dict(entry.get("set", {})) | ({entry["drop"]: None} if "drop" in entry else {})
    for at, value in changes.items():
        document = changed(document, at, value)
    return Case(entry["says"], kind, document, entry.get("names") or next(iter(changes)))


ACCEPTED = [Case("the smallest object", kind, good(kind)) for kind in MODELS] + _cases("accepted")
REFUSED = _cases("refused")
