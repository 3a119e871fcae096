"""No command leaves a NodePool with fewer nodes on demand than its share asks for."""

from typing import Any

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.validate import still_startable
from joinery.decisions.disruption.validation.verified import violations_of
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, ON_DEMAND_SHARE, SPOT
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.pool_shares import PoolShare
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on


def _cluster(share: str, **disruption: Any) -> Cluster:
    pool = builders.node_pool(budgets=[{"nodes": "100%"}], **disruption)
    types = tuple(builders.instance_type(f"m7a.{size}") for size in ("large", "xlarge", "2xlarge"))
    return Cluster(pools=[annotated(pool, {ON_DEMAND_SHARE: share})], types=types)


def _after(problem: DisruptionProblem, decision: DisruptionDecision) -> PoolShare:
    """The share once all commands are carried out."""
    snapshot = problem.packing.snapshot
    kinds = {claim.metadata.name: claim.metadata.labels[CAPACITY_TYPE] for claim in snapshot.node_claims}
    gone = [name for command in decision.commands for name in command.retire]
    bought = [launch.offering.capacity_type for command in decision.commands for launch in command.launches]
    on_demand = bought.count(ON_DEMAND) - [kinds[name] for name in gone].count(ON_DEMAND)
    return snapshot.pool_shares["default"].after(len(bought) - len(gone), on_demand)


def _objections(decision: DisruptionDecision) -> dict[str, str]:
    code = ObjectionCode.ON_DEMAND_SHARE
    return {one.node_claim: str(one.objection) for one in decision.staying if one.objection.code is code}


def _big(number: int) -> Any:
    """A pod that fills a node."""
    return on(f"big-{number}", f"n{number}", cpu="3500m")


def test_an_empty_node_stays_that_the_base_needs() -> None:
    """Of two nodes on demand and one on spot the empty one goes only where the base is 1."""
    for base in (1, 2):
        cluster = _cluster(str(base))
        cluster.machine("n1", instance_type="m7a.xlarge", capacity_type=ON_DEMAND)
        cluster.machine("n2", [_big(2)], instance_type="m7a.xlarge", capacity_type=ON_DEMAND)
        cluster.machine("n3", [_big(3)], instance_type="m7a.xlarge", capacity_type=SPOT)
        decision = decide(cluster.problem(spot_to_spot=True))
        retired = [name for command in decision.commands for name in command.retire]
        assert retired == (["claim-n1"] if base == 1 else ["claim-n3"])
        if base == 2:
            said = _objections(decision)["claim-n1"]
            assert said == "NodePool default: 1 of 2 nodes would be on demand, and joinery.dev/on-demand (2) asks for 2"


def test_of_two_empty_nodes_the_cheaper_stays() -> None:
    """The share can spare one."""
    cluster = _cluster("1")
    cluster.machine("n1", instance_type="m7a.2xlarge", capacity_type=ON_DEMAND)
    cluster.machine("n2", instance_type="m7a.xlarge", capacity_type=ON_DEMAND)
    cluster.machine(
        "n3",
        [on("own", "n3", cpu="7000m", node_selector={CAPACITY_TYPE: SPOT})],
        instance_type="m7a.2xlarge",
        capacity_type=SPOT,
    )
    decision = decide(cluster.problem())
    assert [command.retire for command in decision.commands] == [("claim-n1",)]
    assert list(_objections(decision)) == ["claim-n2"]


@pytest.mark.parametrize(("share", "kinds"), [("0", [SPOT]), ("1", [ON_DEMAND]), ("100%", [ON_DEMAND])])
def test_what_replaces_nodes_keeps_the_share(share: str, kinds: list[str]) -> None:
    """Two large nodes on demand are hardly used: what takes their place is on demand where it has to be."""
    cluster = _cluster(share)
    for number in (1, 2):
        cluster.machine(
            f"n{number}", [on(f"small-{number}", f"n{number}", cpu="500m")],
            instance_type="m7a.2xlarge", capacity_type=ON_DEMAND,
        )  # fmt: skip
    problem = cluster.problem()
    decision = decide(problem)
    (command,) = decision.commands
    assert [launch.offering.capacity_type for launch in command.launches] in (kinds, [])
    assert _after(problem, decision).lacking == 0
    assert decision.after < decision.before


@pytest.mark.parametrize("share", ["1", "50%", "1 + 50%"])
@pytest.mark.parametrize("layout", ["ddss", "sdsd", "dsss"])
@pytest.mark.parametrize("drifted", [False, True])
def test_no_decision_makes_a_share_worse(share: str, layout: str, *, drifted: bool) -> None:
    """Whatever is there, and however little of it is used. A share that is short is never shorter afterwards."""
    cluster = _cluster(share)
    for number, kind in enumerate(layout):
        pods = [on(f"p{number}", f"n{number}", cpu=("300m", "1500m", "2500m")[number % 3])] if number != 2 else []
        capacity_type = ON_DEMAND if kind == "d" else SPOT
        size = "m7a.2xlarge" if number % 2 else "m7a.xlarge"
        cluster.machine(f"n{number}", pods, instance_type=size, capacity_type=capacity_type, drifted=drifted)
    problem = cluster.problem(spot_to_spot=True)
    before = problem.packing.snapshot.pool_shares["default"].lacking
    decision = decide(problem)
    assert decision.mistakes == ()
    assert _after(problem, decision).lacking <= before
    assert decision.lower_bound <= decision.after + decision.moves + 1e-9
    started = still_startable(decision.commands, problem, problem.packing.snapshot)
    assert started.commands == decision.commands


def test_drifted_nodes_mend_a_share_that_does_not_hold() -> None:
    """Three on spot have drifted, and two should be on demand."""
    cluster = _cluster("2")
    for number in (1, 2, 3):
        cluster.machine(f"n{number}", [_big(number)], instance_type="m7a.xlarge", capacity_type=SPOT, drifted=True)
    problem = cluster.problem()
    assert problem.packing.snapshot.pool_shares["default"].lacking == 2
    decision = decide(problem)
    assert {command.reason for command in decision.commands} == {DisruptionReason.DRIFTED}
    assert _after(problem, decision).lacking == 0


def test_the_check_of_commands_sees_what_a_share_cannot_spare() -> None:
    """It counts by itself: a command that takes the node all the same is refused."""
    cluster = _cluster("0")
    cluster.machine("n1", instance_type="m7a.xlarge", capacity_type=ON_DEMAND)
    cluster.machine("n2", [_big(2)], instance_type="m7a.xlarge", capacity_type=SPOT)
    commands = [one for one in decide(cluster.problem()).commands if one.retire == ("claim-n1",)]
    assert commands
    cluster.pools = [annotated(cluster.pools[0], {ON_DEMAND_SHARE: "1"})]
    (violation,) = violations_of(cluster.problem().packing, commands)
    assert str(violation) == ("NodePool default: 0 of 1 nodes would be on demand, and joinery.dev/on-demand asks for 1")
    assert still_startable(commands, cluster.problem(), cluster.problem().packing.snapshot).commands == ()
