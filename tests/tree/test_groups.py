"""Tests that share something dear (a control plane, a browser, a build) run on one worker, so that it is made once."""

import pytest

from tests.distribution import LONG, longest, scope_of


@pytest.mark.xdist_group("groups")
def test_a_test_of_a_group_is_known_by_it_to_the_scheduler_of_tests(request: pytest.FixtureRequest) -> None:
    """A new pytest undid this without a word (pytest-xdist issue 1386), and so did marks that were set too late."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("all tests run on one worker")
    marked = [item.nodeid for item in request.session.items if item.get_closest_marker("xdist_group")]
    assert marked
    assert [node for node in marked if "@" not in node.rpartition("]")[2]] == []


@pytest.mark.parametrize(
    ("nodeid", "scope"),
    [
        ("tests/unit/gateways/test_a.py::test_b", "tests/unit/gateways/test_a.py"),
        ("tests/unit/gateways/test_a.py::test_b[al2023@latest]", "tests/unit/gateways/test_a.py"),
        ("tests/unit/gateways/test_a.py::test_b[al2023@latest]@api_server", "api_server"),
        ("tests/unit/gateways/test_a.py::test_b@api_server", "api_server"),
    ],
)
def test_what_stays_together_is_a_group_or_else_a_file(nodeid: str, scope: str) -> None:
    """Whatever its parameters are called."""
    assert scope_of(nodeid) == scope


def test_what_took_longest_in_the_last_run_begins_first() -> None:
    """Before it, what never ran: above all what is known to take long."""
    waiting = {"many": range(100), "long": range(2), "tests/new.py": range(3), LONG[1]: range(1), LONG[0]: range(1)}
    seconds = {"many": 0.1, "long": 30.0}
    order = []
    while waiting:
        order.append(longest(waiting, seconds))
        del waiting[order[-1]]
    assert order == [LONG[0], LONG[1], "tests/new.py", "long", "many"]


def test_what_is_said_to_take_long_is_there(request: pytest.FixtureRequest) -> None:
    """A file that was renamed would begin late in every fresh clone."""
    groups = {mark.args[0] for item in request.session.items for mark in item.iter_markers("xdist_group")}
    files = [scope for scope in LONG if "/" in scope]
    assert [file for file in files if not (request.config.rootpath / file).exists()] == []
    tests = request.config.rootpath / "tests"
    rooms = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")}
    if rooms <= {item.path.relative_to(tests).parts[0] for item in request.session.items}:  # all, and not some of them
        assert set(LONG) - set(files) <= groups
