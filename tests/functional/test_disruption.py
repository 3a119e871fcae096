"""The disruption door: nodes that do not earn their price go, and nothing else does."""

from collections.abc import Callable

from joinery.apis.labels import DISRUPTION_COMMAND, RETIRED_FOR
from joinery.doorbell.gateway import Bell
from joinery.state.claims import INSTANCE_TERMINATING
from simulator import builders
from tests.functional.disrupting import is_tainted, now, running
from tests.functional.stand import Stand


def _empty(stand: Stand, count: int = 1) -> None:
    """So many nodes, each initialised, whose pods have ended, longer ago than anybody waits."""
    running(stand, count)
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.api.delete(pod)
    stand.live()
    stand.wait(600)
    stand.live()
    stand.rung()


def _tick(stand: Stand, times: int = 1) -> None:
    for _ in range(times):
        stand.wait(10)
        stand.live()


def _disrupted(stand: Stand) -> int:
    """How many nodes are going and still there: one whose instance is being ended counts no more (Karpenter)."""
    leaving = (claim for claim in stand.claims if DISRUPTION_COMMAND in claim.metadata.annotations or claim.is_deleting)
    return sum(not claim.is_true(INSTANCE_TERMINATING) for claim in leaving)


def test_an_empty_node_is_given_up(stand: Stand) -> None:
    """The door marks it and rings, lifecycle ends it, and nothing is bought in its place."""
    _empty(stand)
    (claim,) = stand.claims
    outcome = stand.consolidate()
    assert (outcome["commands"], outcome["retired"], outcome["launches"], outcome["evictions"]) == (1, 1, 0, 0)
    assert stand.rung() == {Bell.LIFECYCLE}
    assert is_tainted(stand, claim)
    stand.live()
    assert now(stand, claim).metadata.annotations[RETIRED_FOR] == "Empty"
    _tick(stand, 5)
    assert stand.alive == []
    assert stand.claims == []


def test_a_node_with_pods_stays(stand: Stand) -> None:
    """It is not empty, and there is no cheaper one."""
    (claim,) = running(stand)
    stand.wait(600)
    stand.live()
    assert stand.consolidate()["commands"] == 0
    assert not is_tainted(stand, claim)


def test_nothing_is_decided_while_a_claim_waits_for_its_launch(stand: Stand) -> None:
    """Its node may be what makes another one superfluous, or the other way round."""
    _empty(stand)
    stand.world.cluster.add(builders.node_claim("waits", conditions=(), created=stand.world.clock.now()))
    assert stand.consolidate() == {"awaited": 1}
    assert not is_tainted(stand, next(claim for claim in stand.claims if claim.metadata.name != "waits"))


def test_a_decision_is_recorded(stand: Stand) -> None:
    """With what it was made from and under which policies, for ``joinery disrupt -f``."""
    _empty(stand)
    stand.consolidate()
    key = next(key for key in stand.world.store.documents if "-disruption-" in key)
    document = stand.world.store.read(key)
    assert document["joinery"]["disruption"]["move_price"] == 0.01
    assert [command["reason"] for command in document["joinery"]["result"]["commands"]] == ["Empty"]
    assert {"NodeClaim", "NodePool", "Node"} <= {item["kind"] for item in document["items"]}


def test_what_was_begun_is_counted(stand: Stand, counted: Callable[[], dict[str, float]]) -> None:
    """A dashboard shows how much is going on."""
    _empty(stand, 2)
    stand.consolidate()
    assert counted()["DisruptionsStarted"] == 1


def test_a_budget_is_obeyed_over_several_runs(stand: Stand) -> None:
    """One node of ten at a time, whoever looks and how often, until all are gone."""
    _empty(stand, 10)
    for _ in range(60):
        stand.consolidate()
        assert _disrupted(stand) <= 1
        _tick(stand)
        assert _disrupted(stand) <= 1
        if not stand.claims:
            break
    assert stand.claims == []


def test_observe_mode_tells_and_changes_nothing(stand: Stand) -> None:
    """Whoever tries Joinery sees which nodes would go, and why."""
    _empty(stand)
    (claim,) = stand.claims
    watching = stand.observing()
    assert watching.consolidate()["commands"] == 1
    assert stand.claims == [claim]
    assert not is_tainted(stand, claim)
    assert stand.rung() == set()
    assert "observe mode: would be retired (Empty)" in stand.messages("Observed")[claim.metadata.name]
