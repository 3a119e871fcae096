"""``joinery.dev/max-node-share`` and moves that nothing forces: they make no node hold too much of its NodePool."""

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.karpenter.labels import MAX_NODE_SHARE
from simulator import builders
from simulator.disrupted import carried_out
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on


def _cluster(share: str, *, drifted: bool = False) -> Cluster:
    """Four nodes with a pod each, all of which fit on one."""
    pool = builders.node_pool(budgets=[{"nodes": "100%"}], consolidateAfter="0s")
    sold = builders.instance_type("m7a.xlarge", price=0.40, spot=None)
    cluster = Cluster(pools=[annotated(pool, {MAX_NODE_SHARE: share})], types=(sold,))
    for name in ("a", "b", "c", "d"):
        cluster.machine(name, [on(f"p-{name}", name, cpu="500m")], drifted=drifted and name == "a")
    return cluster


def _held(problem: DisruptionProblem) -> list[int]:
    """How many pods each node holds, the fullest last."""
    names = [pod.spec.node_name for pod in problem.packing.snapshot.pods]
    return sorted(map(names.count, set(names)))


@pytest.mark.parametrize(("share", "held"), [("100%", [4]), ("75%", [1, 3]), ("50%", [2, 2]), ("25%", [1, 1, 1, 1])])
def test_pods_move_to_no_node_that_would_hold_more_than_the_share(share: str, held: list[int]) -> None:
    """As few nodes stay as hold a share each, and a second pass finds nothing."""
    problem = _cluster(share).problem()
    after = carried_out(problem, decide(problem).commands)
    assert _held(after) == held
    assert decide(after).commands == ()


def test_a_node_is_bought_for_pods_of_a_drifted_one_where_the_others_hold_their_share() -> None:
    """Drift has to end, and the rule is no reason to keep it."""
    problem = _cluster("25%", drifted=True).problem()
    (command,) = decide(problem).commands
    assert command.retire == ("claim-a",)
    assert len(command.launches) == 1
    assert not command.existing


def test_a_node_that_holds_more_than_the_share_keeps_its_pods_and_takes_no_more() -> None:
    """Nothing moves for the rule's sake alone."""
    cluster = _cluster("50%")
    cluster.pods += [on(f"q-{number}", "a", cpu="100m") for number in range(4)]
    problem = cluster.problem()
    after = carried_out(problem, decide(problem).commands)
    assert _held(after) == [3, 5]
