"""Expired nodes that wait for budgets."""

from datetime import timedelta
from typing import Any

from joinery.decisions.disruption.expiration import Waiting, obeys_budgets, waiting
from joinery.objects.karpenter.labels import DISRUPTION, EXPIRATION_OBEYS_BUDGETS
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import DAY, Cluster, annotated


def _waiting(ages: dict[str, timedelta], *budgets: Any, annotations: Any = None, **claim: Any) -> Waiting | None:
    """What waits of nodes that expire after a day. ``ages``: of each, by name."""
    cluster = Cluster(pools=[annotated(builders.node_pool(budgets=list(budgets)), annotations or {})])
    for name, age in ages.items():
        cluster.machine(name, created=START - age, expire_after="24h", **claim)
    return next(iter(waiting(cluster.problem().packing.snapshot, ["default"])), None)


def _names(found: Waiting | None) -> tuple[str, ...]:
    return tuple(name.removeprefix("claim-") for name in found.claims) if found else ()


OLD = {"a": 1.1 * DAY, "b": 1.3 * DAY, "c": 1.2 * DAY, "young": 0.5 * DAY}


def test_the_oldest_go_as_far_as_the_budget_allows() -> None:
    """The others wait, and the sentence about the pool says for what."""
    found = _waiting(OLD, {"nodes": "1"})
    assert _names(found) == ("c", "a")
    assert found is not None
    assert "allows 1 of 4 nodes" in found.why
    assert _names(_waiting(OLD, {"nodes": "3"})) == ()


def test_budgets_for_other_reasons_do_not_bind_expiry() -> None:
    """``reasons`` has no word for it."""
    assert _names(_waiting(OLD, {"nodes": "0", "reasons": ["Drifted", "Empty", "Underutilized"]})) == ()
    assert _names(_waiting(OLD, {"nodes": "0"})) == ("b", "c", "a")


def test_what_is_past_its_deadline_goes_and_uses_the_budget_up() -> None:
    """The grace period of its claim is five hours: b is past that, c and a are not."""
    found = _waiting(OLD, {"nodes": "1"}, termination_grace_period="18000s")
    assert _names(found) == ("c", "a")
    assert found is not None
    assert found.until == START + timedelta(minutes=12)
    assert _names(_waiting({"b": 1.3 * DAY}, {"nodes": "0"}, termination_grace_period="18000s")) == ()


def test_a_stop_holds_them() -> None:
    """Whatever the budgets allow."""
    found = _waiting(OLD, {"nodes": "100%"}, annotations={DISRUPTION: "stop"})
    assert _names(found) == ("b", "c", "a")
    assert found is not None
    assert "stops disruption" in found.why


def test_a_word_that_cannot_be_read_asks_for_care() -> None:
    """Somebody meant something."""
    assert obeys_budgets(annotated(builders.node_pool(), {EXPIRATION_OBEYS_BUDGETS: "yes"}), default=False)
    assert not obeys_budgets(builders.node_pool(), default=False)
