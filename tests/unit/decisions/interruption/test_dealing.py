"""Whose a notice is where there are several clusters, and what came of it."""

from typing import Any

import pytest

from joinery.decisions.interruption.dealing import Outcome, dealt, merged
from joinery.decisions.interruption.notice import Notice, NoticeKind

ONE = Notice(NoticeKind.SPOT_INTERRUPTED, ("i-green",))
TWO = Notice(NoticeKind.SCHEDULED_CHANGE, ("i-green", "i-own"))
BLOCK = Notice(NoticeKind.CAPACITY_BLOCK_EXPIRING, reservation="cr-1")
OWNERS = {"i-green": "green"}
OWN: Outcome = {"notice": "of its own", "claims": 0}
GREEN: Outcome = {"notice": "of green", "claims": 1}
FAILED = RuntimeError("down")


def test_members_are_shown_what_is_theirs_and_what_may_be_anybodys() -> None:
    """Nobody is shown what is of an instance that says nothing."""
    stranger = Notice(NoticeKind.INSTANCE_STOPPED, ("i-stranger",))
    shown = dealt([stranger, ONE, BLOCK, TWO], OWNERS, ["green", "red"])
    assert shown == {"green": (1, 2, 3), "red": (2,)}


@pytest.mark.parametrize(
    ("notice", "own", "members", "came"),
    [
        (ONE, OWN, [GREEN], GREEN),
        (ONE, FAILED, [GREEN], GREEN),
        (ONE, OWN, [FAILED], FAILED),
        (ONE, OWN, [], OWN),
        (TWO, FAILED, [GREEN], FAILED),
        (TWO, OWN, [GREEN], GREEN),
        (BLOCK, FAILED, [GREEN], FAILED),
        (BLOCK, OWN, [OWN, GREEN], GREEN),
    ],
)
def test_what_comes_of_a_notice_is_what_came_of_it_for_those_it_concerns(
    notice: Notice, own: Any, members: Any, came: Any
) -> None:
    """The stack's own cluster is asked of each, and is concerned where an instance may be its own."""
    assert merged(notice, own, members, OWNERS) is came
