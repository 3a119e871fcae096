"""Decisions about nodes by what is paid: covered nodes are kept for nothing, and what lies idle attracts pods."""

from dataclasses import replace

import pytest

from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision
from joinery.decisions.disruption.paid import decide_paid
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.verified import violations_of
from joinery.decisions.scheduling.commitments import Commitment
from simulator import builders
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
