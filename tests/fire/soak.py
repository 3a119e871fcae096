"""`make soak`: its options, and what it says at its end. In `make test` the same tests do a sample of their work."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Tally = Callable[[str, int], None]
_PREFIX = "soak: "


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `make soak` gives. Tests with the marker ``soak`` do more then, with other chances for every seed."""
    parser.addoption("--soak", type=int, default=0, metavar="STEPS", help="steps of each state machine; 0: few hundred")
    parser.addoption("--soak-seed", type=int, default=0, metavar="SEED", help="what random choices come from")


@pytest.fixture
def tally(record_property: Callable[[str, Any], None]) -> Tally:
    """Counts something for the summary of `make soak`."""
    return lambda what, number: record_property(f"{_PREFIX}{what}", number)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was done, added up over all tests and workers."""
    if not config.getoption("soak"):
        return
    counted: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for what, number in getattr(report, "user_properties", ()) if getattr(report, "when", "") == "call" else ():
                if what.startswith(_PREFIX):
                    counted[what.removeprefix(_PREFIX)] += number
    terminalreporter.section(f"soak, seed {config.getoption('soak_seed')}")
    for what, number in sorted(counted.items()):
        terminalreporter.line(f"{number:7,} {what}")
