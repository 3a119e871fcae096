"""Karpenter's rule: which commands come of one moment of a cluster."""

from collections.abc import Sequence

import pytest

from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.packing import PlacedOffering
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import ON_DEMAND
from simulator.builders import node_claim
from tools.churn.cluster import Cluster, Work
from tools.churn.day import Template
from tools.churn.karpenter import Karpenter
from tools.churn.market import Market, Terms, market

_ZONE = "us-east-1a"
#: When nodes and pods came, and when they are looked at: after every consolidateAfter.
_CAME, _NOW = 0, 3600


@pytest.fixture(scope="module")
def sold() -> Market:
    """Without budgets, on types of up to 8 CPUs."""
    return market(Terms(budget="100%", cpus=(2, 8)))


def _cluster(sold: Market, *nodes: tuple[str, Sequence[tuple[int, int]]]) -> Cluster:
    """Nodes ``n0``, ``n1``, ..., each of a type, with pods of so many millicores and MiB."""
    cluster = Cluster(sold)
    for number, (instance_type, pods) in enumerate(nodes):
        price = sold.types[instance_type].price(_ZONE, ON_DEMAND)
        assert price is not None
        claim = node_claim(f"n{number}", conditions=())
        machine = cluster.launch(claim, PlacedOffering(instance_type, _ZONE, ON_DEMAND, price), _CAME)
        cluster.join(machine, _CAME)
        for index, (cpu, memory) in enumerate(pods):
            work = Work(Template(f"pod-{number}-{index}", cpu, memory), f"pod-{number}-{index}")
            cluster.bind(cluster.create(work, _CAME), machine, _CAME)
    return cluster


def _problem(cluster: Cluster, now: int = _NOW) -> DisruptionProblem:
    types = {"default": tuple(cluster.market.types.values())}
    options = Options(only_marked_unschedulable=False)
    return DisruptionProblem(packing=Problem(snapshot=cluster.snapshot(now), instance_types=types, options=options))


def test_empty_nodes_go_first_and_all_at_once(sold: Market) -> None:
    """Whatever else could be done is left for the next pass."""
    cluster = _cluster(
        sold, ("m6a.large", []), ("m6a.large", [(100, 128)]), ("m6a.large", []), ("m6a.large", [(50, 64)])
    )
    (command,) = Karpenter().decide(_problem(cluster))
    assert command.reason is DisruptionReason.EMPTY
    assert set(command.retire) == {"n0", "n2"}


def test_as_many_nodes_go_together_as_fit_on_the_others(sold: Market) -> None:
    """Pods of two fit on the third, which has no place for its own then; no new node is cheap enough for all three."""
    room = (900, 2048)
    cluster = _cluster(
        sold, ("c7a.large", [room]), ("c7a.large", [(400, 1024)]), ("m6a.large", [(500, 1024), (40, 64)])
    )
    (command,) = Karpenter().decide(_problem(cluster))
    assert command.reason is DisruptionReason.UNDERUTILIZED
    assert len(command.retire) > 1
    assert command.savings > 0


def test_a_node_is_replaced_by_one_that_is_cheaper(sold: Market) -> None:
    """All types that the launch allows cost less than the node that goes."""
    cluster = _cluster(sold, ("m7a.2xlarge", [(600, 1024)]))
    (command,) = Karpenter().decide(_problem(cluster))
    price = sold.types["m7a.2xlarge"].price(_ZONE, ON_DEMAND)
    (launch,) = command.launches
    assert price is not None
    for name in launch.instance_types:
        sold_at = sold.types[name].price(_ZONE, ON_DEMAND)
        assert sold_at is not None
        assert sold_at < price


def test_a_node_on_the_cheapest_type_stays(sold: Market) -> None:
    """Nothing costs less, and nothing else has room."""
    assert not Karpenter().decide(_problem(_cluster(sold, ("c6a.large", [(1500, 2048)]))))


def test_pods_that_the_core_would_buy_two_nodes_for_go_to_one(sold: Market) -> None:
    """Karpenter buys one node for a command, also where two would be cheaper."""
    cluster = _cluster(sold, ("r7a.2xlarge", [(1700, 2048), (1700, 2048), (1700, 2048)]))
    (command,) = Karpenter().decide(_problem(cluster))
    (launch,) = command.launches
    assert len(launch.pods) == 3


def test_a_command_is_dropped_when_a_pod_has_come_to_its_node(sold: Market) -> None:
    """The validation fifteen seconds later asks again: the node has not been quiet for long enough now."""
    cluster = _cluster(sold, ("m7a.2xlarge", [(600, 1024)]))
    rule = Karpenter()
    commands = rule.decide(_problem(cluster))
    assert rule.validated(commands, _problem(cluster, _NOW + 15))
    late = cluster.create(Work(Template("late", 100, 128), "late"), _NOW)
    cluster.bind(late, cluster.machines["n0"], _NOW)
    assert not rule.validated(commands, _problem(cluster, _NOW + 15))
