"""How much memory a function has taken of what it may take."""

import os
from pathlib import Path

import pytest

from joinery.gateways.process import is_full

LIMIT = {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024"}


@pytest.mark.parametrize(("megabytes", "full"), [(100, False), (511, False), (513, True)])
def test_half_of_the_functions_memory_is_enough(tmp_path: Path, megabytes: int, full: bool) -> None:
    """A plan of a large cluster takes the rest."""
    statm = tmp_path / "statm"
    statm.write_text(f"999999 {(megabytes << 20) // os.sysconf('SC_PAGE_SIZE')} 1 1 0 1 0\n")
    assert is_full(LIMIT, statm=statm) is full


def test_where_nobody_tells_there_is_enough(tmp_path: Path) -> None:
    """Outside of Lambda, or on another system."""
    (tmp_path / "odd").write_text("?")
    assert not is_full({}, statm=tmp_path / "odd")
    assert not is_full(LIMIT, statm=tmp_path / "odd")
    assert not is_full(LIMIT, statm=tmp_path / "absent")
