"""What a plan costs, from several sides."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.packing import Packing, PlacedOffering
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.snapshot.offerings import Offering
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.view.costs import Sold, costs
from joinery_cli.view.figures import part, short
from simulator.builders import EPOCH, node, pod
from tests.cli.packings import LAUNCH

ZONE_A, ZONE_B = "us-east-1a", "us-east-1b"
SOLD: Sold = {
    "m7a.large": (
        Offering(ZONE_A, "on-demand", 0.116),
        Offering(ZONE_B, "on-demand", 0.118),
        Offering(ZONE_A, "spot", 0.05),
    )
}


def _launch(name: str, *pods: str, capacity_type: str = "spot", zone: str = ZONE_A, price: float = 0.05) -> Packing:
    offering = PlacedOffering("m7a.large", zone, capacity_type, price)
    return Packing(launches=(replace(LAUNCH, name=name, node_pool=name, offering=offering, pods=pods),))


def _problem(*pods: object, nodes: tuple[object, ...] = ()) -> Problem:
    return Problem(snapshot=Snapshot(now=EPOCH, pods=pods, nodes=nodes), instance_types={})  # type: ignore[arg-type]


def test_parts_of_the_cost_are_rounded_to_the_nearest() -> None:
    """Rounded down, two namespaces had 94% and 5% of it."""
    assert [part(8.2524, 8.774), part(0.5216, 8.774)] == ["94%", "6%"]


def test_a_node_is_paid_for_by_its_pods_by_what_they_request() -> None:
    """One pod has three quarters of the CPU and a quarter of the memory, the other the rest: each pays half."""
    problem = _problem(
        pod("a", namespace="one", cpu="3", memory="1Gi"), pod("b", namespace="two", cpu="1", memory="3Gi")
    )
    seen = costs(problem, _launch("default", "one/a", "two/b"), SOLD)
    assert seen.by_namespace == pytest.approx({"one": 0.025, "two": 0.025})
    assert seen.by_node_pool == {"default": 0.05}
    assert seen.by_capacity_type == {"spot": 0.05}


def test_a_spot_node_is_compared_with_the_same_type_on_demand_in_its_zone() -> None:
    """And where it is not sold on demand there, with the cheapest zone."""
    for zone, price in ((ZONE_A, 0.116), (ZONE_B, 0.118), ("us-east-1c", 0.116)):
        plan = _launch("default", "default/a", zone=zone)
        assert costs(_problem(pod("a")), plan, SOLD).on_demand == price


def test_nodes_there_are_cost_what_their_labels_say() -> None:
    """By capacity type, managed node groups' by EKS's own label;
    a node without a type or of an unknown one has no price.
    """
    labels = {"node.kubernetes.io/instance-type": "m7a.large", "topology.kubernetes.io/zone": ZONE_A}
    nodes = (
        node("spot", labels={**labels, "karpenter.sh/capacity-type": "spot"}),
        node(
            "managed",
            labels={**labels, "eks.amazonaws.com/capacityType": "ON_DEMAND", "karpenter.sh/capacity-type": ""},
        ),
        node("fargate", labels={"node.kubernetes.io/instance-type": "", "eks.amazonaws.com/compute-type": "fargate"}),
        node("newer", labels={**labels, "node.kubernetes.io/instance-type": "m99.large"}),
    )
    running = costs(_problem(nodes=nodes), Packing(), SOLD).running
    assert running.hourly == pytest.approx(0.166)
    assert (running.priced, running.unpriced) == (2, 2)
    assert running.sentence() == (
        "The existing nodes cost $0.1660/h (2 nodes; not counted: 1 of Fargate, which is paid for by the pod, and 1 "
        "without a price here: newer (m99.large))"
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 4000), st.integers(0, 2**33), st.sampled_from(["a", "b", "c"])),
        min_size=1,
        max_size=8,
    )
)
def test_subtotals_add_up_to_the_cost(asked: list[tuple[int, int, str]]) -> None:
    """Whatever pods ask for, nothing of a node's price is lost or counted twice;
    pods that ask nothing share it evenly.
    """
    pods = [
        pod(f"p{number}", namespace=namespace, cpu=f"{cpu}m", memory=str(memory))
        for number, (cpu, memory, namespace) in enumerate(asked)
    ]
    seen = costs(_problem(*pods), _launch("default", *(one.key for one in pods)), SOLD)
    for subtotals in (seen.by_namespace, seen.by_node_pool, seen.by_capacity_type):
        assert sum(subtotals.values()) == pytest.approx(0.05)


def test_next_to_nothing_is_said_so() -> None:
    """8,192 bytes were 7.63e-06 GiB."""
    assert (short("memory", 8192), short("cpu", 250)) == ("<0.001", "0.25")
