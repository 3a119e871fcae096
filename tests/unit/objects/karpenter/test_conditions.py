"""Conditions: since when something is so, and what follows for Ready."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from joinery.objects.karpenter.conditions import (
    NODE_CLAIM_DEPENDENTS,
    Observation,
    awaiting,
    drop,
    false,
    find,
    is_true,
    put,
    true,
    unknown,
    with_ready,
)
from joinery.objects.karpenter.meta import Condition

NOW = datetime(2026, 8, 24, 8, tzinfo=UTC)
FIRST = Observation(NOW, generation=1)
LATER = Observation(NOW + timedelta(minutes=1), generation=1)
CHANGED = Observation(NOW + timedelta(minutes=1), generation=2)


def ready(*conditions: Condition, at: Observation = FIRST) -> Condition:
    """The root condition of a claim with these."""
    found = find(with_ready(conditions, NODE_CLAIM_DEPENDENTS, at), "Ready")
    assert found is not None
    return found


def all_true(at: Observation = FIRST) -> list[Condition]:
    """Every dependent of a claim."""
    return [true(kind, at) for kind in NODE_CLAIM_DEPENDENTS]


def test_a_true_condition_needs_no_explanation() -> None:
    """Its reason is its name."""
    assert true("Launched", FIRST).reason == "Launched"
    assert true("Launched", FIRST).message == ""


def test_a_condition_keeps_its_moment_while_its_status_stays() -> None:
    """A new message is not a transition; the generation moves along."""
    conditions = put([], unknown("Registered", "NodeNotFound", "no node", FIRST))
    again = find(put(conditions, unknown("Registered", "NodeNotFound", "still none", CHANGED)), "Registered")
    assert again is not None
    assert again.message == "still none"
    assert again.last_transition_time == NOW
    assert again.observed_generation == 2


def test_a_changed_status_is_a_transition() -> None:
    """The moment is that of the change."""
    conditions = put([], false("Launched", "x", "y", FIRST))
    assert put(conditions, true("Launched", LATER))[0].last_transition_time == LATER.now


def test_a_condition_that_is_dropped_is_gone() -> None:
    """Drift that is over leaves no trace."""
    assert drop(put([], true("Drifted", FIRST)), "Drifted") == []


def test_ready_needs_every_dependent() -> None:
    """All True at the current generation."""
    assert ready(*all_true()).status == "True"
    assert ready(*all_true()[:2]).status == "Unknown"


def test_what_nobody_looked_at_yet_is_awaited() -> None:
    """Dependents appear before the controller that sets them has run."""
    conditions = with_ready([], NODE_CLAIM_DEPENDENTS, FIRST)
    assert [condition.type for condition in conditions] == [*NODE_CLAIM_DEPENDENTS, "Ready"]
    assert conditions[0] == awaiting("Launched", FIRST)
    assert ready().message == "Launched=Unknown, Registered=Unknown, Initialized=Unknown"


def test_one_false_dependent_is_unhealthy() -> None:
    """The message lists who is not true."""
    root = ready(true("Launched", FIRST), false("Registered", "MultipleNodesFound", "two", FIRST))
    assert (root.status, root.reason) == ("False", "UnhealthyDependents")
    assert root.message == "Registered=False, Initialized=Unknown"


def test_an_observation_of_an_older_generation_does_not_count() -> None:
    """Neither as True nor as False: the object changed since."""
    assert ready(*all_true(FIRST), at=CHANGED).status == "Unknown"
    stale = [false("Launched", "x", "y", FIRST), *all_true(CHANGED)[1:]]
    assert ready(*stale, at=CHANGED).reason == "ReconcilingDependents"


def test_is_true_asks_for_a_generation_if_told() -> None:
    """A reader that must not trust an old answer says so."""
    conditions = [true("Ready", FIRST)]
    assert is_true(conditions, "Ready")
    assert is_true(conditions, "Ready", generation=1)
    assert not is_true(conditions, "Ready", generation=2)
    assert not is_true(conditions, "Launched")


def test_conditions_are_ordered_by_transition_and_ready_is_last() -> None:
    """As Karpenter stores them, so that nothing flaps when both write."""
    conditions = put(with_ready(all_true(LATER), NODE_CLAIM_DEPENDENTS, FIRST), true("Drifted", FIRST))
    assert [condition.type for condition in conditions] == ["Drifted", *NODE_CLAIM_DEPENDENTS, "Ready"]


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(["True", "False", "Unknown"]))))
def test_there_is_one_condition_of_a_type_whatever_is_put(changes: list[tuple[str, str]]) -> None:
    """And it is the last one that was put."""
    conditions: list[Condition] = []
    for kind, status in changes:
        condition = {"True": true(kind, FIRST), "False": false(kind, "r", "m", FIRST)}.get(status)
        conditions = put(conditions, condition or unknown(kind, "r", "m", FIRST))
    assert {it.type: it.status for it in conditions} == dict(changes)
    assert len(conditions) == len(dict(changes))
