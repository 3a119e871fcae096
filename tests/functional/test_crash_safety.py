"""A crash between any two calls loses nothing, launches nothing twice, and leaks no instance.

One story (three pods that may not share a node, then a spot warning for one of the nodes) is told once for every write
that it makes to any gateway (in `make test` for one in five), and killed right after that write. What woke the killed
run is delivered again as its queue would: an interruption until it succeeded, bells by the schedule. `tests/fire` tells
a story of each kind with every fault at every call.
"""

from functools import cache

import pytest

from tests.functional.crashing import PODS, Story, assert_nothing_is_left_behind
from tests.functional.fuse import Fuse, crashes


@cache
def _undisturbed() -> Story:
    story = Story(Fuse())
    story.tell()
    return story


def test_undisturbed_the_story_launches_four_instances() -> None:
    """Three, and one to replace the first: what every disturbed telling is compared with."""
    story = _undisturbed()
    assert len(story.launched) == PODS + 1
    assert len(story.stand.alive) == len(story.stand.claims) == PODS


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_a_crash_after_any_write_costs_time_and_nothing_else(part: int, pytestconfig: pytest.Config) -> None:
    """Every pod runs in the end, no instance was launched twice, and each one that lives has its claim."""
    writes = _undisturbed().fuse.writes
    for number in crashes(writes, pytestconfig)[part::4]:
        story = Story(Fuse(after=number))
        story.tell()
        told = f"killed after write {number}: {writes[number - 1]}"
        assert len(story.launched) == PODS + 1, told
        assert_nothing_is_left_behind(story.stand, told)
