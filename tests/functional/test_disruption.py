"""The disruption door: nodes that are not worth their price go, and nothing else does."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from joinery.controllers.acting.lease import LEASE
from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision, Rejection, RejectionCause
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.annotations.plans import planned_pods
from joinery.objects.errors import ConflictError, RefusedError
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DISRUPTION_COMMAND, RETIRED_FOR
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import INSTANCE_TERMINATING
from joinery_cli.main import app
from simulator import builders
from simulator.doors.doors import Doors
from simulator.doors.queues import record
from simulator.world import World
from tests.functional.deciding import Retiring, emptying
from tests.functional.disrupting import emptied, is_tainted, meanwhile, now, others, running
from tests.functional.overtaken import Overtaken
from tests.functional.stand import Stand


@pytest.fixture
def stand(world: World) -> Stand:
    """A cluster whose nodes may go as soon as they are there: this file is about how they go."""
    stand = Stand(world, new_nodes_repay=False).with_defaults()
    stand.rung()
    return stand


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
    emptied(stand)
    (claim,) = stand.claims
    outcome = stand.consolidate(emptying)
    assert (outcome["commands"], outcome["retired"], outcome["launches"], outcome["evictions"]) == (1, 1, 0, 0)
    assert stand.rung() == {Bell.LIFECYCLE}
    assert is_tainted(stand, claim)
    stand.live()
    assert now(stand, claim).metadata.annotations[RETIRED_FOR] == "Empty"
    _tick(stand, 5)
    assert stand.alive == []
    assert stand.claims == []


def test_nothing_is_decided_while_a_claim_waits_for_its_launch(stand: Stand) -> None:
    """Its node may be what makes another one superfluous, or the other way round."""
    emptied(stand)
    stand.world.cluster.add(builders.node_claim("waits", conditions=(), created=stand.world.clock.now()))
    assert stand.consolidate(emptying) == {"awaited": 1}
    assert not is_tainted(stand, next(claim for claim in stand.claims if claim.metadata.name != "waits"))


def test_a_decision_is_recorded(stand: Stand) -> None:
    """With what it was made from and under which policies, for ``joinery disrupt -f``."""
    emptied(stand)
    stand.consolidate(emptying)
    key = next(key for key in stand.world.store.documents if "-disruption-" in key)
    document = stand.world.store.read(key)
    assert document["joinery"]["disruption"]["move_price"] == 0.01
    assert [command["reason"] for command in document["joinery"]["result"]["commands"]] == ["Empty"]
    assert {"NodeClaim", "NodePool", "Node"} <= {item["kind"] for item in document["items"]}


def test_what_was_begun_is_counted(stand: Stand, counted: Callable[[], dict[str, float]]) -> None:
    """A dashboard shows how much is going on."""
    emptied(stand, 2)

    def saving(problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision:
        decision = emptying(problem, stopwatch=stopwatch)
        return replace(decision, commands=tuple(replace(one, savings=0.25) for one in decision.commands))

    stand.consolidate(saving)
    assert counted()["karpenter_voluntary_disruption_decisions_total"] == 1
    assert counted()["joinery_disruption_savings_total"] == 0.25


def test_a_budget_is_obeyed_over_several_runs(stand: Stand) -> None:
    """One node of ten at a time, whoever looks and how often, until all are gone."""
    emptied(stand, 10)
    for _ in range(60):
        stand.consolidate(emptying)
        assert _disrupted(stand) <= 1
        _tick(stand)
        assert _disrupted(stand) <= 1
        if not stand.claims:
            break
    assert stand.claims == []


def test_observe_mode_tells_and_changes_nothing(stand: Stand) -> None:
    """Whoever tries Joinery sees which nodes would go, and why."""
    emptied(stand)
    (claim,) = stand.claims
    watching = stand.observing()
    assert watching.consolidate(emptying)["commands"] == 1
    assert stand.claims == [claim]
    assert not is_tainted(stand, claim)
    assert stand.rung() == set()
    assert "observe mode: would be retired (Empty)" in stand.messages("Observed")[claim.metadata.name]


# --- with replacements ---


def _replacing(stand: Stand, *claims: NodeClaim) -> Mapping[str, Any]:
    return stand.consolidate(Retiring(*(claim.metadata.name for claim in claims)))


def test_what_the_pods_of_a_node_need_is_bought_first(stand: Stand) -> None:
    """The replacement is kept for them, and the node goes once it is initialised."""
    (old,) = running(stand, owner="web")
    outcome = _replacing(stand, old)
    assert (outcome["commands"], outcome["launches"], outcome["evictions"]) == (1, 1, 1)
    (new,) = others(stand, [old])
    assert planned_pods(new) == ("default/pod-0",)
    assert new.is_true("Launched")
    assert not now(stand, old).is_deleting
    stand.boot()
    stand.live()
    stand.live()
    assert now(stand, old).is_deleting


def test_pods_that_have_room_elsewhere_move_there_and_nothing_is_bought(stand: Stand) -> None:
    """Two half empty nodes become one."""
    first, second = running(stand, 2)
    pod = next(pod for pod in stand.world.cluster.pods.values() if pod.spec.node_name == first.status.node_name)
    stand.world.cluster.api.delete(pod)
    stand.world.cluster.add(
        builders.pod("free", cpu="100m", node=first.status.node_name, phase="Running", owner="free")
    )
    stand.wait(2)
    outcome = _replacing(stand, first)
    assert (outcome["commands"], outcome["launches"], outcome["evictions"]) == (1, 0, 1)
    _tick(stand, 1)
    assert now(stand, first).is_deleting
    assert not now(stand, second).is_deleting


def test_replacements_obey_the_caps(world: World) -> None:
    """A run that may launch nothing replaces nothing."""
    stand = Stand(world).with_defaults()
    (old,) = running(stand)
    assert _replacing(Stand(world, max_launches=0), old)["commands"] == 0
    assert not is_tainted(stand, old)


# --- twice, and not at all ---


def test_two_runs_that_overlap_start_nothing_twice(stand: Stand) -> None:
    """The second decides from what the first had read, and finds the node taken."""
    (old,) = running(stand, owner="web")
    decide = Retiring(old.metadata.name)
    overtaken = meanwhile(stand, lambda: stand.consolidate(decide))
    assert overtaken.consolidate(decide)["commands"] == 0
    assert len(others(stand, [old])) == 1
    assert len(stand.alive) == 2


def test_two_runs_that_overlap_do_not_exceed_a_budget_together(world: World) -> None:
    """Each of them alone has room for one node, and they chose different ones."""
    stand = Stand(world)
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"], budgets=[{"nodes": "1"}])
    world.cluster.add(builders.node_class(), pool)
    stand.live()
    emptied(stand, 2)
    first, second = stand.claims
    overtaken = Overtaken(
        stand.world.cluster, "acquire_lease", lambda: stand.consolidate(Retiring(first.metadata.name))
    )
    late = Stand(world, gateways=replace(stand.gateways, cluster=cast("Any", overtaken)))
    assert late.consolidate(Retiring(second.metadata.name))["commands"] == 0
    assert (is_tainted(stand, first), is_tainted(stand, second)) == (True, False)


def test_a_run_that_does_not_get_the_lease_starts_nothing(stand: Stand) -> None:
    """Somebody writes claims at this moment. The bell is rung again by whoever answers."""
    (old,) = running(stand, owner="web")
    stand.world.cluster.acquire_lease(LEASE, holder="provisioning/call-0", seconds=90)
    with pytest.raises(ConflictError):
        _replacing(stand, old)
    assert not is_tainted(stand, old)
    assert others(stand, [old]) == []


def test_a_command_that_breaks_a_rule_is_dropped_and_the_others_begin(stand: Stand) -> None:
    """Whatever the decision says: nothing begins that the check in the present cluster does not agree with."""
    first, second = _two_of_which_one_is_empty(stand)

    def wrong(problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision:
        right = emptying(problem, stopwatch=stopwatch).commands
        missing = replace(right[0], reason=DisruptionReason.UNDERUTILIZED, retire=(second.metadata.name,))
        return DisruptionDecision(commands=(missing, *right))

    stand.consolidate(wrong)
    assert is_tainted(stand, first)
    assert not is_tainted(stand, second)


def _two_of_which_one_is_empty(stand: Stand) -> tuple[NodeClaim, NodeClaim]:
    first, second = running(stand, 2, owner="web")
    pod = next(pod for pod in stand.world.cluster.pods.values() if pod.spec.node_name == first.status.node_name)
    stand.world.cluster.api.delete(pod)
    return first, second


def test_a_door_that_is_switched_off_begins_nothing(stand: Stand) -> None:
    """Its bell is completed, so that nothing piles up."""
    emptied(stand)
    (claim,) = stand.claims
    with Doors(stand.world, switched_off="disruption").open() as doors:
        call = doors.invoke("disruption", {"Records": [record("1", "joinery-disruption.fifo", {})]})
    assert (call.result, call.error) == ({"outcome": "off"}, "")
    assert not is_tainted(stand, claim)


def test_the_real_decision_gives_up_an_empty_node(stand: Stand) -> None:
    """Through the door's own handler, as its queue would wake it."""
    emptied(stand)
    with Doors(stand.world).open() as doors:
        call = doors.invoke("disruption", {"Records": [record("1", "joinery-disruption.fifo", {})]})
    assert (call.result["outcome"], call.result["commands"], call.error) == ("done", 1, "")
    _tick(stand, 5)
    assert stand.alive == []


def test_a_record_is_decided_again_by_the_command_line(world: World, tmp_path: Path) -> None:
    """``joinery disrupt -f`` on the recorder's file, as anybody may do on a desk. It knows when pods came and went."""
    stand = Stand(world)
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"], consolidate_after="1m")
    world.cluster.add(builders.node_class(), pool)
    stand.live()
    emptied(stand, 2)
    stand.consolidate()
    key = next(key for key in stand.world.store.documents if "-disruption-" in key)
    document = stand.world.store.read(key)
    path = tmp_path / "record.json"
    path.write_text(json.dumps(document))
    moment = document["joinery"]["now"]
    answer = CliRunner().invoke(app, ["disrupt", "-f", str(path), "--now", moment, "-o", "json"])
    assert answer.exit_code == 0, answer.output
    again = json.loads(answer.stdout)["commands"]
    recorded = document["joinery"]["result"]["commands"]
    assert [command["retire"] for command in again] == [command["retire"] for command in recorded] != []


def test_lifecycle_rings_when_a_retired_node_is_gone(stand: Stand) -> None:
    """Its budget has room for another."""
    emptied(stand)
    stand.consolidate(emptying)
    bells: set[Bell] = set()
    for _ in range(6):
        _tick(stand)
        bells |= stand.rung()
    assert stand.claims == []
    assert Bell.DISRUPTION in bells


# --- mistakes of our own ---


def test_a_command_that_breaks_a_rule_is_told_and_the_others_begin(
    stand: Stand, counted: Callable[[], dict[str, float]]
) -> None:
    """The decision has refused it. That is a mistake of Joinery's own, so it is recorded, counted, and raised last."""
    emptied(stand, 2)
    first, second = stand.claims

    def wrong(problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision:
        going, refused = (
            DecidedCommand(reason=DisruptionReason.EMPTY, message="", retire=(claim.metadata.name,))
            for claim in (first, second)
        )
        objection = Objection(ObjectionCode.NO_PLACE, "pod default/p has no place")
        mistake = Rejection(refused, RejectionCause.MISTAKE, objection)
        return DisruptionDecision(commands=(going,), mistakes=(mistake,))

    with pytest.raises(RefusedError, match=f"{second.metadata.name} breaks a rule: pod default/p has no place"):
        stand.consolidate(wrong)
    assert (is_tainted(stand, first), is_tainted(stand, second)) == (True, False)
    assert counted()["joinery_disruptions_refused_total"] == 1
    key = next(key for key in stand.world.store.documents if "-disruption-" in key)
    assert (
        stand.world.store.read(key)["joinery"]["result"]["mistakes"][0]["objection"]["message"]
        == "pod default/p has no place"
    )
