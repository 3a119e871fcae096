"""What limits disruption beyond budgets, through the real doors: a rate, and a stop."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace as with_fields

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.budget_check import admit
from joinery.decisions.disruption.validation.validate import nodes_of
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import (
    DISRUPTED_LATELY,
    DISRUPTION,
    DISRUPTION_COMMAND,
    DISRUPTION_RATE,
    DO_NOT_DISRUPT,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from simulator.world import World
from tests.functional.deciding import Retiring
from tests.functional.disrupting import is_tainted, meanwhile, running
from tests.functional.stand import Stand
from tests.unit.decisions.disruption.clusters import annotated


@pytest.fixture
def stand(world: World) -> Stand:
    """A cluster with a NodePool whose budgets allow everything, and five nodes whose pods have ended."""
    stand = Stand(world).with_defaults()
    running(stand, 5)
    for pod in list(world.cluster.pods.values()):
        world.cluster.api.delete(pod)
    stand.live()
    stand.wait(600)
    stand.live()
    return stand


def _annotate(stand: Stand, key: str, value: str | None) -> None:
    """As a person does with kubectl; None removes it. Budgets of the pool allow everything."""
    (pool,) = stand.world.cluster.node_pools.values()
    kept = {name: text for name, text in pool.metadata.annotations.items() if name != key}
    disruption = pool.spec.disruption.model_copy(update={"budgets": []})
    pool = pool.model_copy(update={"spec": pool.spec.model_copy(update={"disruption": disruption})})
    stand.world.cluster.add(annotated(pool, kept | ({key: value} if value is not None else {})))


def _emptying(problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision:
    """All empty nodes that may go, as far as the NodePools admit them."""
    judged = candidates(problem)
    commands = [
        DecidedCommand(reason=DisruptionReason.EMPTY, message="", retire=(candidate.claim.metadata.name,))
        for candidate in judged.candidates
        if candidate.is_empty
    ]
    admitted = admit(commands, problem, judged.nodes)
    kept = (node for rejection in admitted.rejected for node in nodes_of(rejection))
    return DisruptionDecision(commands=admitted.commands, staying=(*judged.staying, *kept))


def _run(stand: Stand, minutes: int) -> None:
    """The doors at work for so long, every minute."""
    for _ in range(minutes):
        stand.consolidate(_emptying)
        stand.live()
        stand.wait(timedelta(minutes=1).total_seconds())


def test_a_rate_holds_over_hours_though_the_claims_are_gone_within_minutes(stand: Stand) -> None:
    """Two an hour, whoever looks and how often; the NodePool remembers who went."""
    _annotate(stand, DISRUPTION_RATE, "2 nodes per 1h")
    _run(stand, 50)
    assert len(stand.claims) == 3
    (pool,) = stand.world.cluster.node_pools.values()
    assert pool.metadata.annotations[DISRUPTED_LATELY].count('"claim"') == 2
    _run(stand, 50)
    assert len(stand.claims) == 1
    _run(stand, 50)
    assert stand.claims == []


def test_a_stop_is_obeyed_until_it_is_taken_away(stand: Stand) -> None:
    """Every node says that it is held by it."""
    _annotate(stand, DISRUPTION, "stop")
    _run(stand, 5)
    assert len(stand.claims) == 5
    assert any("stops disruption in the whole cluster" in text for text in _told(stand))
    _annotate(stand, DISRUPTION, None)
    _run(stand, 5)
    assert stand.claims == []


def test_a_stop_rolls_back_what_has_begun(stand: Stand) -> None:
    """The commands were started and lifecycle has not retired their nodes yet: these stay, and take pods again."""
    _annotate(stand, DISRUPTION, None)
    assert stand.consolidate(_emptying)["commands"] == 5
    _annotate(stand, DISRUPTION, "stop")
    for _ in range(3):
        stand.live()
        stand.wait(10)
    assert len(stand.claims) == 5
    assert not any(DISRUPTION_COMMAND in claim.metadata.annotations for claim in stand.claims)
    assert all(not node.spec.taints for node in stand.world.cluster.nodes.values())


# --- while the decision is made ---


def _protect(stand: Stand, claim: NodeClaim) -> None:
    node = stand.world.cluster.nodes[claim.status.node_name]
    metadata = with_fields(node.metadata, annotations={DO_NOT_DISRUPT: "true"})
    stand.world.cluster.add(with_fields(node, metadata=metadata))


def _use_up(stand: Stand, claim: NodeClaim) -> None:
    """Another node breaks: its kubelet is gone."""
    other = next(one for one in stand.claims if one.metadata.name != claim.metadata.name)
    node = stand.world.cluster.nodes[other.status.node_name]
    stand.world.cluster.add(with_fields(node, status=with_fields(node.status, conditions=[])))


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (lambda stand, claim: _annotate(stand, DISRUPTION, "stop"), "stops disruption in the whole cluster"),
        (lambda stand, claim: _annotate(stand, DISRUPTION_RATE, "0 nodes per 1h"), "the rate 0 nodes per 1h"),
        (_protect, "has the annotation karpenter.sh/do-not-disrupt"),
        (_use_up, "allows 1 of 5 nodes, and 1 is leaving or not ready"),
    ],
    ids=["stop", "rate", "do-not-disrupt", "budget"],
)
def test_what_is_forbidden_while_a_decision_is_made_does_not_begin(
    stand: Stand, happens: Callable[[Stand, NodeClaim], None], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A decision takes up to minutes. All rules for candidates and all limits are applied once more before it begins
    (Karpenter disruption, validation).
    """
    claim = stand.claims[0]
    late = meanwhile(stand, lambda: happens(stand, claim))
    assert late.consolidate(Retiring(claim.metadata.name, reason=DisruptionReason.EMPTY))["commands"] == 0
    assert not is_tainted(stand, claim)
    assert any(why in str(getattr(record, "reason", "")) for record in caplog.records)


def _told(stand: Stand) -> list[str]:
    return [event.message for event in stand.world.cluster.events]
