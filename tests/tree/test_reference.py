"""What an administrator meets by name is explained: settings, annotations, Events, metrics, alarms, outputs.

``docs/reference.md`` and ``docs/runbook.md`` have them. Where the code has the words the tables are generated, and the
code has words for each name and for no name that is gone.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from joinery.decisions.interruption.response import EVENTS as NOTICES
from joinery.objects import events
from joinery.objects import own_keys as keys
from joinery.objects.events import EVENTS
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.own_keys import FOR_PEOPLE, OF_JOINERY
from tools import metrics
from tools.reference import __main__ as reference
from tools.template import ROOT, load, of_type

TEMPLATE = load()
SOURCES = sorted((ROOT / "shared/joinery").rglob("*.py"))
#: Where an Event's reason is no literal: it is one of these tables.
ELSEWHERE = {reason for reason, _ in NOTICES.values()} | {DisruptionReason.EXPIRED.value}
#: Where names of ours are listed rather than defined.
TABLES = {Path(labels.__file__), Path(keys.__file__)}
KEY = re.compile(rf"{re.escape(labels.OWN_GROUP)}/[A-Za-z-]+")


def rows(document: str, heading: str) -> list[str]:
    """The names in the first column of the tables below a heading."""
    text = (ROOT / document).read_text()
    _, _, below = text.partition(f"\n## {heading}\n")
    section = below.partition("\n## ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def announced() -> Iterator[str]:
    """The reasons of Events that are called by name: what ``Announce`` is given as a literal."""
    for text in (path.read_text() for path in SOURCES):
        calls = (
            [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)] if "Announce(" in text else []
        )
        for call in calls:
            if (
                isinstance(call.func, ast.Name)
                and call.func.id == "Announce"
                and isinstance(call.args[0], ast.Constant)
            ):
                yield str(call.args[0].value)


def literals() -> set[str]:
    """Every text in the package's code, but for the table of Events itself."""
    trees = (ast.parse(path.read_text()) for path in SOURCES if path != Path(events.__file__))
    return {str(node.value) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def own_keys() -> set[str]:
    """Annotations, taints and labels below our group."""
    values = {value for value in vars(labels).values() if isinstance(value, str)}
    return {value for value in values if KEY.fullmatch(value)} - {labels.REPORTER}


def own_elsewhere() -> set[str]:
    """What other modules than the labels' name in our group: types of conditions above all."""
    texts = (path.read_text() for path in SOURCES if path not in TABLES)
    names = {name for text in texts for name in re.findall(r'f"\{(?:labels\.)?OWN_GROUP\}/([\w-]+)"', text)}
    return {f"{labels.OWN_GROUP}/{name}" for name in names}


def test_every_event_is_described() -> None:
    """A reason that is not in the table would have no type; one that nobody sends would mislead."""
    assert {*announced(), *ELSEWHERE} - EVENTS.keys() == set()
    assert EVENTS.keys() - literals() - ELSEWHERE == set()


def test_every_name_of_ours_is_described() -> None:
    """Annotations, taints and conditions: each once, set by people or by Joinery."""
    assert sorted([*FOR_PEOPLE, *OF_JOINERY]) == sorted(own_keys() | own_elsewhere())


def test_every_parameter_and_output_says_what_it_is() -> None:
    """CloudFormation's console shows it, and so does the reference. What is exported is for members' templates."""
    outputs = {name: one for name, one in TEMPLATE["Outputs"].items() if "Export" not in one}
    described = {**TEMPLATE["Parameters"], **outputs}
    assert [name for name, one in described.items() if not one.get("Description", "").endswith(".")] == []


@pytest.mark.parametrize("document", reference.TABLES, ids=lambda path: path.name)
def test_generated_tables_are_as_the_code_has_them(document: Path) -> None:
    """`python -m tools.reference` writes them."""
    assert document.read_text() == reference.written(document)


def test_every_alarm_has_one_row() -> None:
    """Neither more nor fewer alarms than there are."""
    assert sorted(rows("docs/runbook.md", "Alarms")) == sorted(of_type(TEMPLATE, "AWS::CloudWatch::Alarm"))


def test_the_table_of_metrics_is_the_code_s() -> None:
    """It is written by `python -m tools.metrics`."""
    document = metrics.DOCUMENT.read_text()
    assert document == metrics.written(document)
