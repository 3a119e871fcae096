"""What an administrator meets by name is explained: settings, annotations, Events, metrics, alarms, outputs.

``docs/reference.md`` has the settings and everything below ``joinery.dev``, ``docs/operations.md`` the Events, metrics
and alarms. Each name has a row in a table, and no row is about a name that is gone.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from joinery.apis import labels
from joinery.apis.disruption import DisruptionReason
from joinery.interruption.response import EVENTS
from joinery.observability import Count
from tools.template import ROOT, load, of_type

TEMPLATE = load()
SOURCES = sorted((ROOT / "shared/joinery").rglob("*.py"))
#: Where an Event's reason is no literal: it is one of these tables.
ELSEWHERE = {reason for reason, _ in EVENTS.values()} | {DisruptionReason.EXPIRED.value}
KEY = re.compile(rf"{re.escape(labels.OWN_GROUP)}/[A-Za-z-]+")


def rows(document: str, heading: str) -> list[str]:
    """The names in the first column of the tables below a heading."""
    text = (ROOT / document).read_text()
    _, _, below = text.partition(f"\n## {heading}\n")
    section = below.partition("\n## ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def announced() -> Iterator[str]:
    """The reasons of Events, as they stand in the source: what ``Announce`` is called with."""
    texts = [text for text in (path.read_text() for path in SOURCES) if "Announce(" in text]
    for text in texts:
        for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)):
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _is_announce(node)]
            for call in calls:
                yield from _texts(call.args[0])
            if any(isinstance(call.args[0], ast.Name) for call in calls):
                named = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
                yield from (text for one in named if isinstance(one.value, ast.IfExp) for text in _texts(one.value))


def _is_announce(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "Announce"


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from (*_texts(node.body), *_texts(node.orelse))
    elif isinstance(node, ast.Constant):
        yield str(node.value)


def own_keys() -> set[str]:
    """Annotations, taints and labels below our group."""
    values = {value for value in vars(labels).values() if isinstance(value, str)}
    return {value for value in values if KEY.fullmatch(value)} - {labels.REPORTER}


def own_elsewhere() -> set[str]:
    """What other modules than the labels' name in our group: types of conditions above all."""
    texts = (path.read_text() for path in SOURCES if path != Path(labels.__file__))
    names = {name for text in texts for name in re.findall(r'f"\{(?:labels\.)?OWN_GROUP\}/([\w-]+)"', text)}
    return {f"{labels.OWN_GROUP}/{name}" for name in names}


@pytest.mark.parametrize(
    ("document", "heading", "known"),
    [
        ("docs/reference.md", "Settings", set(TEMPLATE["Parameters"])),
        ("docs/reference.md", "Outputs", set(TEMPLATE["Outputs"])),
        ("docs/reference.md", "Annotations, taints and conditions", own_keys() | own_elsewhere()),
        ("docs/operations.md", "Events", {*announced(), *ELSEWHERE}),
        ("docs/operations.md", "Metrics", {metric.value for metric in Count}),
        ("docs/operations.md", "Alarms", {*of_type(TEMPLATE, "AWS::CloudWatch::Alarm")}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_name_has_one_row(document: str, heading: str, known: set[str]) -> None:
    """Neither more nor fewer names than there are, and each once."""
    assert known
    assert sorted(rows(document, heading)) == sorted(known)
