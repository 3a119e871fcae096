"""Disruption budgets: how many nodes of a NodePool may be disrupted now."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.lifecycle.state.budgets import (
    UNLIMITED,
    Allowance,
    PoolNodes,
    allowed_by_budgets,
    budgets_open_at,
    pool_nodes,
)
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START
from tests.properties import examples

#: A Wednesday.
NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
DRIFTED = DisruptionReason.DRIFTED


def _budget(nodes: str, *reasons: str, schedule: str = "", duration: str = "", **more: Any) -> dict[str, Any]:
    window = {"schedule": schedule, "duration": duration} if schedule else {}
    return {"nodes": nodes, **({"reasons": list(reasons)} if reasons else {}), **window, **more}


def _allowance(
    *budgets: dict[str, Any],
    total: int = 20,
    disrupted: int = 0,
    reason: DisruptionReason = DRIFTED,
    now: datetime = NOON,
) -> Allowance:
    return allowed_by_budgets(builders.node_pool(budgets=budgets), reason, PoolNodes(total, disrupted), now)


def _allowed(*budgets: dict[str, Any], **given: Any) -> int:
    return _allowance(*budgets, **given).allowed


@pytest.mark.parametrize(
    ("nodes", "total", "disrupted", "left"),
    [
        ("20%", 19, 2, 2),
        ("10%", 1, 0, 1),
        ("10%", 10, 0, 1),
        ("10%", 11, 0, 2),
        ("29%", 100, 0, 29),
        ("100%", 7, 0, 7),
        ("0%", 50, 0, 0),
        ("0", 50, 0, 0),
        ("5", 3, 0, 5),
        ("5", 50, 3, 2),
        ("5", 50, 9, 0),
        ("10%", 0, 0, 0),
    ],
)
def test_a_budget_is_a_number_or_a_share_rounded_up_less_what_is_disrupted(
    nodes: str, total: int, disrupted: int, left: int
) -> None:
    """The first is the example of Karpenter's documentation: 19 nodes, one not ready, one being deleted."""
    assert _allowed(_budget(nodes), total=total, disrupted=disrupted) == left


def test_without_budgets_a_tenth_may_go_and_an_empty_list_sets_no_limit() -> None:
    """The default of the API, and how to be rid of it."""
    default = allowed_by_budgets(builders.node_pool(), DRIFTED, PoolNodes(20), NOON)
    assert default.allowed == 2
    assert _allowed() == UNLIMITED


@pytest.mark.parametrize(
    ("reasons", "reason", "left"),
    [
        (("Drifted",), DisruptionReason.DRIFTED, 1),
        (("Drifted",), DisruptionReason.EMPTY, UNLIMITED),
        (("Empty", "Underutilized"), DisruptionReason.UNDERUTILIZED, 1),
        ((), DisruptionReason.EMPTY, 1),
    ],
)
def test_a_budget_limits_the_reasons_that_it_names_or_all(
    reasons: tuple[str, ...], reason: DisruptionReason, left: int
) -> None:
    """A pool may let empty nodes go freely and drifted ones slowly."""
    assert _allowed(_budget("1", *reasons), reason=reason) == left


def test_an_empty_list_of_reasons_limits_nothing() -> None:
    """It is not the same as no list (Karpenter)."""
    assert _allowed(_budget("0", reasons=[])) == UNLIMITED


def test_the_strictest_budget_counts() -> None:
    """Whatever their order."""
    budgets = [_budget("50%"), _budget("3", "Drifted"), _budget("1", "Empty")]
    assert _allowed(*budgets) == _allowed(*reversed(budgets)) == 3


@pytest.mark.parametrize(
    ("schedule", "duration", "now", "is_open"),
    [
        ("0 12 * * *", "1h", "2026-03-04T12:00:00", True),
        ("0 12 * * *", "1h", "2026-03-04T12:59:59", True),
        ("0 12 * * *", "1h", "2026-03-04T13:00:00", False),
        ("0 12 * * *", "1h", "2026-03-04T11:59:59", False),
        ("0 9 * * MON-FRI", "8h", "2026-03-04T12:00:00", True),
        ("0 9 * * MON-FRI", "8h", "2026-03-07T12:00:00", False),
        ("@daily", "10m", "2026-03-04T00:05:00", True),
        ("@daily", "10m", "2026-03-04T00:10:00", False),
        ("0 23 * * *", "2h", "2026-03-04T00:30:00", True),
        ("@daily", "48h", "2026-03-04T12:00:00", True),
        ("*/30 * * * *", "31m", "2026-03-04T12:00:30", True),
        ("0 0 30 2 *", "1h", "2026-03-04T12:00:00", True),
        ("0 12 * * *", "1h30m0s", "2026-03-04T13:29:00", True),
    ],
)
def test_a_window_is_open_from_its_time_until_its_duration_is_over(
    schedule: str, duration: str, now: str, is_open: bool
) -> None:
    """In UTC. Windows that overlap are one; a time that never comes counts as always."""
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    left = _allowed(_budget("0", schedule=schedule, duration=duration), now=moment)
    assert left == (0 if is_open else UNLIMITED)


def test_a_budget_that_cannot_be_read_closes_the_pool_for_every_reason() -> None:
    """Also for reasons that it does not name: somebody meant to limit something."""
    for reason in (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED):
        broken = _allowance(_budget("5", "Empty", schedule="0 25 * * *", duration="1h"), _budget("9"), reason=reason)
        assert broken.allowed == 0
        assert "hour '25' is not between 0 and 23" in broken.why


def test_an_allowance_says_why() -> None:
    """In the words of the object."""
    one = _allowance(_budget("10%"), disrupted=1)
    assert one.why == "the budget 10% allows 2 of 20 nodes, and 1 is leaving or not ready"
    windowed = _allowance(_budget("0", "Empty", "Drifted", schedule="0 12 * * *", duration="1h"))
    of = "0 for Empty, Drifted (from 0 12 * * * for 1h)"
    assert windowed.why == f"the budget {of} allows 0 of 20 nodes, and 0 are leaving or not ready"
    assert _allowance().why == "no budget limits disruption for Drifted now"


def test_initialised_nodes_count_and_those_that_go_or_are_not_ready_are_disrupted() -> None:
    """Nodes that start, whose instance is being ended, or that are not ours are not in the total."""
    names = ("ready", "broken", "deleted", "interrupted", "ended", "starting")
    nodes = [
        builders.node(name, ready=name != "broken", initialized=name != "starting") for name in (*names, "foreign")
    ]
    ended = (*("Launched", "Registered", "Initialized"), "InstanceTerminating")
    claims = [
        builders.node_claim("c-ready", node="ready"),
        builders.node_claim("c-broken", node="broken"),
        builders.node_claim("c-deleted", node="deleted", deleted=START),
        builders.node_claim("c-gone", node="interrupted", annotations={"joinery.dev/interrupted-at": str(START)}),
        builders.node_claim("c-ended", node="ended", deleted=START, conditions=ended),
        builders.node_claim("c-starting", node="starting", conditions=("Launched", "Registered")),
        builders.node_claim("c-bought", conditions=("Launched",)),
    ]
    snapshot = Snapshot(now=START, nodes=tuple(nodes), node_claims=tuple(claims))
    assert pool_nodes(snapshot.views) == {"default": PoolNodes(total=4, disrupted=3, leaving=2)}


BUDGETS = st.lists(
    st.builds(
        _budget,
        st.one_of(st.integers(0, 30).map(str), st.integers(0, 100).map("{}%".format)),
        schedule=st.sampled_from(["", "@hourly", "0 9-17 * * MON-FRI", "30 3 1 * *"]),
        duration=st.sampled_from(["10m", "1h", "9h30m"]),
    ),
    max_size=4,
)


@given(BUDGETS, BUDGETS, st.integers(0, 50), st.integers(0, 50), st.integers(0, 60 * 24 * 60))
@examples(100)
def test_more_budgets_and_more_disruption_never_allow_more(
    budgets: list[Any], others: list[Any], total: int, disrupted: int, minutes: int
) -> None:
    """And what is allowed is never negative."""
    now = NOON + timedelta(minutes=minutes)
    left = _allowed(*budgets, total=total, disrupted=disrupted, now=now)
    assert 0 <= _allowed(*budgets, *others, total=total, disrupted=disrupted, now=now) <= left
    less = _allowed(*budgets, total=total, disrupted=disrupted + 1, now=now)
    assert less == left == UNLIMITED or less == max(0, left - 1)


def _opens(*budgets: dict[str, Any], disrupted: int = 0) -> datetime | None:
    return budgets_open_at(builders.node_pool(budgets=budgets), DRIFTED, PoolNodes(20, disrupted), NOON)


def test_budgets_open_when_the_window_ends_that_lets_no_more_go() -> None:
    """Where one follows on the other, at the end of the last; where there is another limit beside it, at none."""
    morning = _budget("0", schedule="0 9 * * *", duration="4h")
    afternoon = _budget("0", schedule="0 13 * * *", duration="5h")
    assert _opens(morning) == NOON.replace(hour=13)
    assert _opens(morning, afternoon) == NOON.replace(hour=18)
    assert _opens(morning, _budget("0")) is None
    assert _opens(_budget("2"), disrupted=2) is None
    assert _opens(_budget("0", schedule="0 9 * * mon,nosuchday", duration="4h")) is None
