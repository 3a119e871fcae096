"""Moves that change the counts of one rule over zones are right only together."""

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.consolidation.compiling import ModelInputs, model_of
from joinery.decisions.disruption.consolidation.grouping import bonds_of, commands_of
from joinery.decisions.disruption.consolidation.simulation import SimulatedMoves
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.packing import ExistingPlacement
from joinery.objects.karpenter.labels import ZONE
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

APP = {"app": "web"}
OVER_ZONES = {
    "topologyKey": ZONE,
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": APP},
}


def _groups(moves: dict[str, str], *, has_rule: bool, zones: str = "0101") -> list[tuple[str, ...]]:
    """The nodes that go together. ``moves``: by node, where its pod goes. ``zones``: of each of the nodes."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])])
    spread = [OVER_ZONES] if has_rule else []
    for name, zone in zip("abcd", zones, strict=True):
        pods = [on(f"p-{name}", name, cpu="1", labels=APP, spread=spread)]
        cluster.machine(name, pods, zone=builders.ZONES[int(zone)])
    problem = cluster.problem()
    judged = candidates(problem)
    going = tuple(one for one in judged.candidates if one.view.node in moves)
    existing = tuple(ExistingPlacement(to, f"claim-{to}", (f"default/p-{name}",)) for name, to in moves.items())
    trial = SimulatedMoves(going, existing, (), frozenset())
    model = model_of(ModelInputs(problem, judged, judged.candidates), Effort())
    return sorted(command.retire for command in commands_of(trial, bonds_of(trial, model)))


def test_pods_that_stay_in_their_zones_go_by_themselves() -> None:
    """No count changes."""
    assert _groups({"a": "c", "b": "d"}, has_rule=True) == [("claim-a",), ("claim-b",)]


def test_pods_that_leave_their_zones_go_together() -> None:
    """One of the two moves alone would leave the spread uneven."""
    assert _groups({"a": "d", "b": "c"}, has_rule=True) == [("claim-a", "claim-b")]


def test_pods_without_such_a_rule_go_where_they_like() -> None:
    """Nobody counts them."""
    assert _groups({"a": "d", "b": "c"}, has_rule=False) == [("claim-a",), ("claim-b",)]


def test_where_the_rule_is_broken_already_all_that_move_go_together() -> None:
    """Three pods in one zone and none in another: until one has left, no other may come to where it is."""
    assert _groups({"a": "b", "c": "d"}, has_rule=True, zones="0001") == [("claim-a", "claim-c")]
