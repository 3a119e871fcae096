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
from joinery_cli.reading.fields import Unknown

_VARIABLE, _ACTION = re.compile(r"\$\{[^}]+\}"), re.compile(r"\{\{.*?\}\}", re.DOTALL)
_QUICK = re.compile(rb"\$\{|\{\{")
#: What no name and no tag of AWS has in it, so that in a node class it can only be a placeholder; Go writes ``<`` as an
#: escape.
_OF_CLASSES, _QUICK_OF_CLASSES = re.compile(r"\$\w|<.+>"), re.compile(rb"\$|\{\{|<|\\u003c")
#: Texts for whoever runs on the node, or reads about it.
_FREE = frozenset(
    {
        "annotations", "args", "command", "data", "env", "lifecycle", "livenessProbe", "managedFields",
        "readinessProbe", "startupProbe",
        "status", "stringData", "userData",
    }
)  # fmt: skip
#: What a Provisioner had before there were AWSNodeTemplates.
_INLINE_CLASS = "spec.provider."
_WITH_CLASS = CLASS_KINDS | {"Provisioner", "Machine"}


def unfilled(kind: str, raw: msgspec.Raw | bytes) -> list[Unknown]:
    """The placeholders of an object, all blamed on the first: an error, or where they do no harm a surprise.

    The others carry neither, so that whoever looks at their fields can leave them alone.
    """
    is_class, has_class = kind in CLASS_KINDS, kind in _WITH_CLASS
    if not (_QUICK_OF_CLASSES if has_class else _QUICK).search(bytes(raw)):
        return []
    listed = [
        (path, text)
        for path, text in _texts(msgspec.json.decode(raw), ())
        if _is_placeholder(text, of_class=is_class or (has_class and path.startswith(_INLINE_CLASS)))
    ]
    if not listed:
        return []
    path, text = listed[0]
    others = f", as in {len(listed) - 1} other field{'s' if len(listed) > 2 else ''}" if len(listed) > 1 else ""
    what = f"{shown(text)} is a placeholder that nobody has filled in{others}"
    # Of a node class a plan from files looks at hardly more than its disks.
    if is_class or path.startswith(_INLINE_CLASS):
        return [Unknown(path, "", f"{what}: planned as it stands")]
    tool = "helm template" if _ACTION.search(text) else "envsubst"
    return [
        Unknown(path, f"{what}: run {tool}, or what fills it in, first"),
        *(Unknown(at, "") for at, _ in listed[1:]),
    ]


def _is_placeholder(text: str, *, of_class: bool) -> bool:
    return bool(_VARIABLE.search(text) or _ACTION.search(text) or (of_class and _OF_CLASSES.search(text)))


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
