"""Tests that share something dear (a control plane, a browser, a build) run on one worker, so that it is made once."""

import pytest


@pytest.mark.xdist_group("groups")
def test_a_test_of_a_group_is_known_by_it_to_the_scheduler_of_tests(request: pytest.FixtureRequest) -> None:
    """A new pytest undid this without a word (pytest-xdist issue 1386), and so did marks that were set too late."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("all tests run on one worker")
    marked = [item.nodeid for item in request.session.items if item.get_closest_marker("xdist_group")]
    assert marked
    assert [node for node in marked if "@" not in node.rpartition("]")[2]] == []
