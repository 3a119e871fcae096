"""Which pods are marked so that scale-downs delete them first, and how rarely that changes."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision, StayingNode
from joinery.decisions.disruption.deletion_costs import MOST_AT_ONCE, deletion_costs
from joinery.decisions.disruption.moves import eviction_cost
from joinery.objects.actions import UpdatePod
from joinery.objects.karpenter.disruption import OUR_DELETION_COST, DisruptionReason
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, POD_DELETION_COST
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import Objection, ObjectionCode
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on

NOTHING = DisruptionDecision()


def cluster(*sizes: int, **pool: Any) -> Cluster:
    """Nodes n0, n1, ... with so many pods each, all of one ReplicaSet."""
    made = Cluster(pools=[builders.node_pool(**pool)])
    for number, size in enumerate(sizes):
        made.machine(f"n{number}", [on(f"p{number}-{n}", f"n{number}", cpu="100m") for n in range(size)])
    return made


def writes(made: Cluster, decision: DisruptionDecision = NOTHING, *, is_wanted: bool = True) -> tuple[UpdatePod, ...]:
    """What is to be written after the decision."""
    return deletion_costs(made.problem(), decision, is_wanted=is_wanted)


def marked(listed: Iterable[UpdatePod]) -> list[str]:
    """The names of the pods that get the mark."""
    return [one.after.metadata.name for one in listed if one.after.metadata.annotations]


def carry_out(made: Cluster, listed: Iterable[UpdatePod]) -> None:
    """Write it."""
    after = {one.before.key: one.after for one in listed}
    made.pods = [after.get(pod.key, pod) for pod in made.pods]


def without(made: Cluster, name: str) -> None:
    """The pod is gone."""
    made.pods = [pod for pod in made.pods if pod.metadata.name != name]


def test_the_node_whose_moves_cost_least_is_marked() -> None:
    """A tenth of the nodes, rounded up; the annotation is all that changes."""
    made = cluster(3, 1, 2)
    (write,) = writes(made)
    assert write.after.metadata.annotations == {POD_DELETION_COST: OUR_DELETION_COST}
    assert write.before == replace(write.after, metadata=write.before.metadata)
    assert marked([write]) == ["p1-0"]


def test_nothing_is_written_without_the_setting() -> None:
    """It is off by default."""
    assert writes(cluster(3, 1, 2), is_wanted=False) == ()


def test_what_is_marked_is_not_written_again() -> None:
    """A second run finds nothing to do."""
    made = cluster(3, 1, 2)
    carry_out(made, writes(made))
    assert writes(made) == ()


def test_marks_are_taken_off_when_the_setting_is() -> None:
    """Nobody would look after them any more."""
    made = cluster(3, 1, 2)
    carry_out(made, writes(made))
    (write,) = writes(made, is_wanted=False)
    assert write.after.metadata.annotations == {}


def test_a_little_change_in_the_ranking_changes_nothing() -> None:
    """The marked node is second now, which is near enough; third it loses its mark to the first."""
    made = cluster(3, 2, 4)
    carry_out(made, writes(made))
    without(made, "p0-0")
    without(made, "p0-1")
    assert writes(made) == ()
    for name in ("p2-0", "p2-1", "p2-2"):
        without(made, name)
    before, after = writes(made)[:2], writes(made)[2:]
    assert [write.after.metadata.annotations for write in before] == [{}, {}]
    assert marked(after) == ["p0-2"]


def test_a_new_pod_on_a_marked_node_is_marked_too() -> None:
    """It came there because nothing forbids it."""
    made = cluster(3, 1, 3)
    carry_out(made, writes(made))
    made.pods.append(on("late", "n1", cpu="100m"))
    assert marked(writes(made)) == ["late"]


@pytest.mark.parametrize("value", ["5", "-1", "0"])
def test_a_users_own_value_stays(value: str) -> None:
    """Whatever it says."""
    made = cluster(3, 1, 2)
    made.pods = [_costing(pod, value) if pod.metadata.name == "p1-0" else pod for pod in made.pods]
    assert writes(made) == ()
    assert writes(made, is_wanted=False) == ()


def _costing(pod: Pod, value: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, annotations={POD_DELETION_COST: value}))


def test_pods_that_no_replica_set_made_are_not_marked() -> None:
    """A StatefulSet shrinks from its highest number, and a Job not at all."""
    made = cluster(3, 0, 2)
    owner = builders.owner("StatefulSet", "db")
    made.pods.append(builders.pod("db-0", node="n1", owner=owner, cpu="100m"))
    assert writes(made) == ()


def test_a_replica_set_that_has_nothing_to_choose_is_left_alone() -> None:
    """All of its pods are on the node that is to go."""
    made = cluster(3, 0, 2)
    made.pods.append(on("alone", "n1", owner="other-1", cpu="100m"))
    assert writes(made) == ()


def test_a_node_that_cannot_go_is_not_marked() -> None:
    """Its own annotation keeps it, or a pod's."""
    made = Cluster()
    made.machine("n0", [on("p0", "n0")], node={"annotations": {DO_NOT_DISRUPT: "true"}})
    made.machine("n1", [on("p1", "n1", annotations={DO_NOT_DISRUPT: "true"})])
    for number in (2, 3):
        made.machine(f"n{number}", [on(f"p{number}-{n}", f"n{number}") for n in range(3)])
    assert {write.before.spec.node_name for write in writes(made)} == {"n2"}


def test_the_only_node_of_a_pool_is_not_marked() -> None:
    """There is no other to keep."""
    assert writes(cluster(2)) == ()


def test_a_node_that_waits_for_its_consolidate_after_keeps_its_mark() -> None:
    """Each pod that a scale-down takes begins that time anew."""
    made = cluster(3, 2, 3, consolidateAfter="Never")
    carry_out(made, writes(made))
    without(made, "p1-0")
    assert writes(made) == ()


def test_a_drifted_node_comes_first_and_one_that_a_budget_keeps_before_it() -> None:
    """They are to go in any case."""
    made = cluster(1, 2)
    made.machine("drifted", [on(f"d-{n}", "drifted") for n in range(3)], drifted=True)
    assert {write.before.spec.node_name for write in writes(made)} == {"drifted"}
    held = DisruptionDecision(staying=(StayingNode("claim-n1", Objection(ObjectionCode.BUDGET, "no room")),))
    assert {write.before.spec.node_name for write in writes(made, held)} == {"n1"}


def test_what_is_evicted_in_this_run_is_not_marked() -> None:
    """The mark would come too late."""
    made = cluster(1, 2, 3)
    going = DecidedCommand(reason=DisruptionReason.UNDERUTILIZED, message="", retire=("claim-n0",))
    decision = DisruptionDecision(commands=(going,))
    assert {write.before.spec.node_name for write in writes(made, decision)} == {"n1"}


def test_marks_on_a_node_that_is_being_emptied_are_not_taken_off() -> None:
    """Its pods are evicted in a moment."""
    made = cluster(1, 3, 3)
    carry_out(made, writes(made))
    going = DecidedCommand(reason=DisruptionReason.UNDERUTILIZED, message="", retire=("claim-n0",))
    assert all(write.after.metadata.annotations for write in writes(made, DisruptionDecision(commands=(going,))))


def test_a_run_writes_to_some_dozens_of_pods_at_most() -> None:
    """The rest follows in the next."""
    made = cluster(MOST_AT_ONCE + 20, MOST_AT_ONCE + 30)
    assert len(writes(made)) == MOST_AT_ONCE
    carry_out(made, writes(made))
    assert len(writes(made)) == 20


def test_while_disruption_is_stopped_marks_stay_as_they_are() -> None:
    """Who stopped it is to find what there was."""
    made = cluster(3, 1, 2)
    stopped = [annotated(pool, {"joinery.dev/disruption": "stop"}) for pool in made.pools]
    made.pools, open_pools = stopped, made.pools
    assert writes(made) == ()
    made.pools = open_pools
    carry_out(made, writes(made))
    made.pools = stopped
    assert writes(made, is_wanted=False) == ()


def test_the_mark_makes_no_move_cheaper() -> None:
    """It says in which order to shrink, and nothing of what the pod is worth."""
    assert eviction_cost(_costing(on("p"), OUR_DELETION_COST), {}) == 1.0
