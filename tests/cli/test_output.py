"""A packing in print: the JSON byte for byte, the table line for line."""

from dataclasses import replace
from pathlib import Path

import pytest

from joinery.cli.output_json import plan_document, write
from joinery.cli.output_table import print_plan
from joinery.cli.plan_groups import view
from joinery.scheduling.packing import Packing
from simulator.builders import EPOCH
from tests.cli.packings import LAUNCH, PACKING, PROBLEM

GOLDEN = Path(__file__).parent / "golden"


def _golden(name: str, printed: str) -> None:
    assert printed == (GOLDEN / name).read_text()


def test_the_document_is_stable_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    """Keys in the contract's order, labels sorted, quantities as Kubernetes writes them, prices to the millionth."""
    write(plan_document(PACKING, now=EPOCH, seconds=0.31234))
    _golden("plan.json", capsys.readouterr().out)


def test_the_table_groups_what_is_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """Launches of one kind are one line, pods with the same reasons one entry with a count."""
    print_plan(view(PROBLEM, PACKING, seconds=0.31))
    _golden("plan.txt", capsys.readouterr().out)


def test_nothing_pending_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty table would look like a failure."""
    print_plan(view(PROBLEM, Packing(), seconds=0.01))
    assert capsys.readouterr().out == "Nothing is pending.\n"


def test_a_bound_is_never_rounded_above_the_cost() -> None:
    """Rounding to the millionth goes down for the bound, so that it stays one."""
    cost = plan_document(Packing(launches=(LAUNCH,), lower_bound=0.05655), now=EPOCH, seconds=0)["cost"]
    assert cost == {"hourly": 0.05655, "lowerBound": pytest.approx(0.05655, abs=1e-6), "gap": 0.0, "resilience": 0.0}
    assert cost["lowerBound"] <= cost["hourly"]


def test_a_bound_of_next_to_nothing_is_no_measure(capsys: pytest.CaptureFixture[str]) -> None:
    """Where all might have been reserved, how far a plan is above that tells nobody anything."""
    print_plan(view(PROBLEM, replace(PACKING, lower_bound=1e-8), seconds=0.31))
    assert "proven bound $0.0000/h\n" in capsys.readouterr().out
