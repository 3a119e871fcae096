"""Placeholders of templates (``${CLUSTER_NAME}``, ``{{ .Values.cpu }}``) that nobody has filled in.

They are no values: what would be planned is something else. Shells and programs have placeholders of their own in what
runs on a node, and those are left alone.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from joinery.gateways.ec2.offline import CLASS_KINDS
from joinery.objects.karpenter.validation import path as path_of
from joinery.objects.wording import shown
from joinery_cli.reading.fields import FieldFinding

_PLACEHOLDER = re.compile(r"\$\{[^}]+\}|\{\{.*?\}\}", re.DOTALL)
#: What no name and no tag of AWS has in it (``<your AWS role here>`` of Karpenter's converter).
_OF_CLASSES = re.compile(rf"{_PLACEHOLDER.pattern}|\$\w|<.+>", re.DOTALL)
#: Go writes ``<`` as an escape.
_QUICK = re.compile(rb"\$|\{\{|<|\\u003c")
#: Texts for whoever runs on the node, or reads about it.
_FREE = frozenset(
    {
        "annotations", "args", "command", "data", "env", "lifecycle", "livenessProbe", "managedFields",
        "readinessProbe", "startupProbe", "status", "stringData", "userData",
    }
)  # fmt: skip


def unfilled(kind: str, raw: msgspec.Raw | bytes) -> FieldFinding | None:
    """The placeholders of an object, all blamed on the first.

    Those of a node class do no harm: a plan from files looks at hardly more than its disks.
    """
    if not _QUICK.search(bytes(raw)):
        return None
    is_class = kind in CLASS_KINDS
    pattern = _OF_CLASSES if is_class else _PLACEHOLDER
    found = [(path, text) for path, text in _texts(msgspec.json.decode(raw), ()) if pattern.search(text)]
    if not found:
        return None
    path, text = found[0]
    others = f", as in {len(found) - 1} other field{'s' if len(found) > 2 else ''}" if len(found) > 1 else ""
    what = f"{shown(text)} is a placeholder that nobody has filled in{others}"
    if is_class:
        return FieldFinding(path, f"{what}: planned as it stands", is_error=False)
    tool = "helm template" if "{{" in text else "envsubst"
    return FieldFinding(path, f"{what}: run {tool}, or what fills it in, first")


def _texts(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path_of(at), value
    elif isinstance(value, dict):
        for key, member in value.items():
            if key not in _FREE:
                yield from _texts(member, (*at, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _texts(member, (*at, index))
