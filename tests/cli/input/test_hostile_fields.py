"""Whatever stands in whichever field: a decision, or lines that name the object; never a traceback."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, outcome_of
from tests.properties import examples

EXAMPLES = Path(__file__).parents[3] / "examples"
DOCUMENTS = [
    one
    for name in ("cluster", "stateful", "spread")
    for document in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text())
    for one in document.get("items", [document])
]
TEXTS = (
    "", " ", "1 ", " 1Ki", "1Ki\n", "\u0661", "\u00b2", "1e", "0x1", "1_000", "nan", "inf", "1e999999999", "-1", "1.5",
    "101%", "\u0661%", "9" * 5000, "9" * 400 + "h", "9h9", "* * * *", "0 0 30 2 *", "*/" + "9" * 5000 + " * * * *",
    "\0", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "a" * 300, "Never",
)  # fmt: skip
VALUES: tuple[Any, ...] = (*TEXTS, None, True, 0, -1, 1.5, 10**30, -(2**63), [], {}, [None], {"a": "b"})


def _fields(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*way, key)
        yield from _fields(member, (*way, key))


FIELDS = [
    (number, way)
    for number, document in enumerate(DOCUMENTS)
    for way in _fields(document)
    if way[0] not in ("apiVersion", "kind") and way != ("metadata", "name")
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file for all examples."""
    return tmp_path_factory.mktemp("fields") / "objects.json"


@given(field=st.sampled_from(FIELDS), value=st.sampled_from(VALUES), command=st.sampled_from(("plan", "disrupt")))
@examples(12)
def test_a_field_is_read_or_refused_by_name(
    path: Path, field: tuple[int, tuple[Any, ...]], value: Any, command: str
) -> None:
    """Of each object of the examples."""
    number, (*outside, key) = field
    documents = copy.deepcopy(DOCUMENTS)
    parent = documents[number]
    for step in outside:
        parent = parent[step]
    parent[key] = value
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents}))
    outcome = outcome_of((command, "-f", str(path), "--now", NOW, "--catalog", str(SAMPLE)))
    assert outcome.status in (0, 2), outcome.err
    if outcome.status == 2:
        assert all(documents[number]["kind"] in line for line in outcome.err.splitlines() if line.startswith("joinery"))
