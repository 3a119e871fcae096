"""Decisions about nodes by what is paid: covered nodes are kept for nothing, and what lies idle attracts pods."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision
from joinery.decisions.disruption.paid import decide_paid
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.verified import violations_of
from joinery.decisions.scheduling.commitments import Commitment, Usage, coverage, saved
from joinery.objects.karpenter.labels import INSTANCE_TYPE
from simulator import builders
from simulator.builders.defaults import ZONES
from tests.properties import examples
from tests.unit.decisions.disruption.clusters import Cluster, on

LARGE = builders.instance_type("m7a.xlarge", price=0.40, spot=None)
SMALL = builders.instance_type("m7a.large", price=0.20, spot=None)
UNLIMITED = [{"nodes": "100%"}]


def instances(kind: str, count: float) -> Commitment:
    """Reserved Instances of the region."""
    return Commitment(name=f"{kind} x {count}", stock=count, rates={kind: 1.0})


def decided(cluster: Cluster, *commitments: Commitment) -> DisruptionDecision:
    """The decision, which verification agrees with."""
    asked: DisruptionProblem = cluster.problem()
    found = decide_paid(replace(asked, packing=replace(asked.packing, commitments=commitments)))
    assert not found.mistakes
    assert violations_of(asked.packing, found.commands) == ()
    assert found.lower_bound <= found.after + found.moves + 1e-9
    return found


def bought(commands: tuple[DecidedCommand, ...]) -> list[str]:
    """The types that take the place of nodes."""
    return sorted(launch.offering.instance_type for command in commands for launch in command.launches)


@pytest.fixture
def cluster() -> Cluster:
    """A large node with a pod that needs a small one."""
    found = Cluster(pools=[builders.node_pool(budgets=UNLIMITED)], types=(LARGE, SMALL))
    found.machine("n", [on("p", cpu="1")])
    return found


def test_without_commitments_the_large_node_becomes_a_small_one(cluster: Cluster) -> None:
    """What the others are compared with."""
    assert bought(decided(cluster, instances("r7a.large", 1)).commands) == ["m7a.large"]


def test_a_node_that_is_paid_for_stays(cluster: Cluster) -> None:
    """To leave it would cost the price of the other one more."""
    found = decided(cluster, instances("m7a.xlarge", 1))
    assert found.commands == ()


def test_what_lies_idle_attracts_pods(cluster: Cluster) -> None:
    """The bill loses the whole price of the large node."""
    found = decided(cluster, instances("m7a.large", 1))
    (command,) = found.commands
    assert bought((command,)) == ["m7a.large"]
    assert command.savings == pytest.approx(0.40, abs=1e-3)
    assert found.after == pytest.approx(0.0, abs=1e-3)


def test_what_would_be_overdrawn_is_not_counted_on(cluster: Cluster) -> None:
    """Half of a node's hours are left: no node is counted as free, and the small one is cheaper all the same."""
    found = decided(cluster, instances("m7a.large", 0.5))
    assert [command.savings for command in found.commands] == [pytest.approx(0.20)]


def test_a_small_stock_is_used_as_far_as_it_reaches() -> None:
    """Of three nodes one is replaced by what is paid for, the others by what is cheaper. It is proven to be best."""
    huge = builders.instance_type("m7a.2xlarge", price=0.80, spot=None)
    cluster = Cluster(pools=[builders.node_pool(budgets=UNLIMITED)], types=(huge, LARGE, SMALL))
    for name in "abc":
        pod = on(f"p-{name}", name, cpu="1500m")
        cluster.machine(name, [pod], instance_type=huge.name, node={"cpu": "8"})
    found = decided(cluster, instances("m7a.large", 1))
    assert bought(found.commands) == ["m7a.large"] * 3
    assert sorted(command.savings for command in found.commands) == [
        pytest.approx(each, abs=1e-3) for each in (0.6, 0.6, 0.8)
    ]
    assert found.gap < 0.01


def test_what_others_use_is_freed_by_nobody(cluster: Cluster) -> None:
    """A node of a managed node group keeps its Reserved Instance, so as much is proven as without one."""
    cluster.nodes.append(builders.node("a", node_pool="", instance_type="m7a.xlarge", cpu="100m"))
    found = decided(cluster, instances("m7a.xlarge", 1))
    assert bought(found.commands) == ["m7a.large"]
    assert found.gap < 0.01


def _bill(cluster: Cluster, found: DisruptionDecision, owned: list[Commitment]) -> float:
    """$/h of the nodes in the end, as AWS bills them."""
    prices = {LARGE.name: 0.40, SMALL.name: 0.20}
    gone = {name for command in found.commands for name in command.retire}
    kinds = [node.metadata.labels[INSTANCE_TYPE] for node in cluster.nodes if f"claim-{node.metadata.name}" not in gone]
    kinds += bought(found.commands)
    usages = [Usage(str(number), kind, ZONES[0], prices[kind]) for number, kind in enumerate(kinds)]
    return sum(usage.price for usage in usages) - saved(usages, coverage(usages, owned))


@given(
    sizes=st.lists(st.tuples(st.booleans(), st.sampled_from(["200m", "1", "1500m", "3"])), min_size=1, max_size=4),
    large=st.integers(0, 2),
    small=st.sampled_from([0, 0.5, 1, 2]),
    plan=st.sampled_from([0.0, 0.1, 0.3]),
)
@examples(40)
def test_the_bill_is_at_most_what_a_decision_says_and_at_least_its_bound(
    sizes: list[tuple[bool, str]], large: int, small: float, plan: float
) -> None:
    """Whatever is idle, used up or used in part. Without commands it is what it was."""
    cluster = Cluster(pools=[builders.node_pool(budgets=UNLIMITED)], types=(LARGE, SMALL))
    for index, (is_large, cpu) in enumerate(sizes):
        kind = LARGE.name if is_large or cpu == "3" else SMALL.name
        cores = "4" if kind == LARGE.name else "2"
        cluster.machine(str(index), [on(f"p-{index}", str(index), cpu=cpu)], instance_type=kind, node={"cpu": cores})
    owned = [
        Commitment(name="large", stock=large, rates={LARGE.name: 1.0}),
        Commitment(name="small", stock=small, rates={SMALL.name: 1.0}),
        Commitment(name="plan", stock=plan, rates={LARGE.name: 0.28, SMALL.name: 0.13}),
    ]
    found = decided(cluster, *owned)
    assert _bill(cluster, found, owned) <= found.after + 2e-3
    assert found.lower_bound <= _bill(cluster, found, owned) + found.moves + 2e-3
