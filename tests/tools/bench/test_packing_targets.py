"""What ``make bench`` says of a folder of scenarios: which figures count, and whether a target holds."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools.bench.frame import Target
from tools.bench.packing import SMALL, main
from tools.bench.packing_targets import Measured, targets


def _plan(*, hourly: float = 8.0, gap: float = 0.01, unschedulable: int = 0) -> dict[str, Any]:
    cost = {"hourly": hourly, "lowerBound": hourly / (1 + gap), "gap": gap}
    pending = [{"pod": f"default/{number}", "reasons": []} for number in range(unschedulable)]
    return {"cost": cost, "launch": [{}], "unschedulable": pending, "solver": {"method": "any"}}


REFERENCE = {"hourly": 10.0, "unschedulable": 0, "seconds": 10.0, "judge": {"preferences": 5}}
MEASURED = Measured(
    name="services-100",
    pods=100,
    classes=5,
    resource_only=True,
    plan=_plan(),
    seconds=(0.4, 0.2, 0.9),
    reference=REFERENCE,
)


def _of(figure: str, *results: Measured) -> Target:
    return next(one for one in targets(results) if one.figure.startswith(figure))


def test_time_is_the_median_of_the_runs() -> None:
    """One slow run decides nothing, and one fast run neither."""
    assert MEASURED.median == 0.4
    assert MEASURED.faster == pytest.approx(25.0)


def test_costs_compare_only_where_both_place_as_many_pods() -> None:
    """Leaving pods out is no way to be cheap, on either side."""
    assert MEASURED.ratio == pytest.approx(0.8)
    assert replace(MEASURED, plan=_plan(unschedulable=1)).ratio is None
    assert replace(MEASURED, reference={**REFERENCE, "unschedulable": 3}).ratio is None


def test_a_target_holds_or_is_missed() -> None:
    """The median counts for cost; the worst scenario has a target of its own."""
    cheap, dear = MEASURED, replace(MEASURED, name="b", plan=_plan(hourly=10.2))
    assert _of("cost against", cheap).holds is True
    assert _of("cost against", cheap, dear).holds is False
    assert _of("the same, worst", cheap, dear) == Target("the same, worst scenario", "at most +1%", "+2.0%", False)


def test_what_no_scenario_speaks_to_is_not_measured() -> None:
    """A folder without traces neither holds nor misses the traces' targets."""
    assert _of("the same, trace-gpu", MEASURED) == Target("the same, trace-gpu", "at most -25%", "not measured", None)
    assert _of("preferences", MEASURED).holds is None


def test_runs_that_differ_are_named() -> None:
    """One seed and one input must give one plan."""
    verdict = _of("scenarios whose runs", MEASURED, replace(MEASURED, name="moody", alike=False))
    assert (verdict.measured, verdict.holds) == ("differ: moody", False)


def test_preferences_are_the_judges_count() -> None:
    """Kept beyond the reference's: none fewer."""
    kept = replace(MEASURED, verdict={"ok": True, "errors": [], "preferences": {"satisfied": 4, "total": 6}})
    assert (_of("preferences", kept).measured, _of("preferences", kept).holds) == ("-1", False)


def test_a_folder_is_measured_and_written_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row a scenario with pending pods; other files are passed over; the same figures go to Markdown."""
    (tmp_path / "services-200.json.gz").symlink_to(SMALL / "services-200.json.gz")
    (tmp_path / "reference.json").symlink_to(SMALL / "reference.json")
    (tmp_path / "types.json.gz").write_bytes(gzip.compress(b"[]"))
    written = tmp_path / "table.md"
    assert main([str(tmp_path), "--runs", "1", "--markdown", str(written)]) == 0
    for text in (capsys.readouterr().out, written.read_text()):
        assert "services-200" in text
        assert "types" not in text
        assert "cost against the reference, median" in text
