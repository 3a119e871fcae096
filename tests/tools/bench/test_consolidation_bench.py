"""The table of what decisions take as clusters grow."""

import pytest

from tools.bench.consolidation import run


def test_each_size_has_a_row_for_each_seed_and_one_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    """With what was decided, and from the least to the most of what it took."""
    run(["--nodes", "6", "--seeds", "1", "2", "--kinds", "tight"])
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[:4] for row in rows] == [["tight,", "6", "nodes", seed] for seed in ("1", "2", "all")]
    assert rows[0].split()[5:8] == ["3.67", "3.67", "0.00%"]
