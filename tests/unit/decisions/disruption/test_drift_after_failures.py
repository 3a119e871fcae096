"""A drift whose replacements do not join the cluster is tried ever less often."""

from datetime import timedelta

import msgspec
import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.lifecycle.pools.registration_health import RegistrationOutcome
from joinery.objects.karpenter.labels import REGISTRATIONS
from joinery.objects.objections import ObjectionCode
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on

_MINUTE = timedelta(minutes=1)


def _cluster(*outcomes: str, minutes: int = 1) -> Cluster:
    """A drifted node with a pod. ``outcomes``: of the pool's last launches, an hour apart, the last so long ago; an
    empty one joined.
    """
    remembered = [
        RegistrationOutcome(f"c{number}", START - minutes * _MINUTE - number * 60 * _MINUTE, reason, reason and "why")
        for number, reason in enumerate(reversed(outcomes))
    ]
    text = msgspec.json.encode(remembered).decode()
    pool = builders.node_pool(budgets=[{"nodes": "100%"}])
    # Nothing else is cheaper, so drift is all that may move it.
    types = (builders.instance_type("m7a.xlarge", price=0.40, spot=None),)
    cluster = Cluster(pools=[annotated(pool, {REGISTRATIONS: text}) if outcomes else pool], types=types)
    cluster.machine("old", [on("p", "old", cpu="3")], drifted=True)
    return cluster


def _held(decision: DisruptionDecision) -> list[ObjectionCode]:
    return [node.objection.code for node in decision.staying]


@pytest.mark.parametrize(
    ("outcomes", "minutes"),
    [
        (["Failed"], 15),
        (["Failed", "", "Failed"], 15),
        (["", "Failed", "Failed"], 30),
        (["Failed"] * 3, 60),
        (["Failed"] * 4, 120),
    ],
)
def test_each_failure_in_a_row_doubles_the_wait(outcomes: list[str], minutes: int) -> None:
    """From a quarter of an hour on, which is how long a node has to join, to two hours."""
    assert _held(decide(_cluster(*outcomes, minutes=minutes - 1).problem())) == [ObjectionCode.LAUNCHES_FAIL]
    (command,) = decide(_cluster(*outcomes, minutes=minutes).problem()).commands
    assert len(command.launches) == 1


@pytest.mark.parametrize("outcomes", [[], ["Failed", ""]])
def test_a_launch_that_joined_ends_it(outcomes: list[str]) -> None:
    """Whoever asked for it: what was wrong has been mended."""
    assert len(decide(_cluster(*outcomes).problem()).commands) == 1


def test_people_read_until_when_and_why() -> None:
    """In ``joinery disrupt``, and in an Event of the NodePool."""
    (node,) = decide(_cluster("Failed", "Failed", minutes=10).problem()).staying
    assert node.objection.until == START + 20 * _MINUTE
    assert str(node.objection).startswith("drift of NodePool default waits until ")
    assert str(node.objection).endswith(": its last 2 launches did not join the cluster (why)")


def test_a_drifted_node_without_pods_goes_all_the_same() -> None:
    """Nothing replaces it."""
    cluster = _cluster("Failed")
    cluster.pods.clear()
    assert [command.retire for command in decide(cluster.problem()).commands] == [("claim-old",)]


def test_another_pool_s_failures_do_not_count() -> None:
    """Its user data or its subnets are at fault, and nobody else's."""
    cluster = _cluster("Failed")
    cluster.pools.append(builders.node_pool("other", budgets=[{"nodes": "100%"}]))
    cluster.machine("fine", [on("q", "fine", cpu="3")], pool="other", drifted=True)
    decision = decide(cluster.problem())
    assert ("claim-fine",) in [command.retire for command in decision.commands]
    assert [node.node_claim for node in decision.staying] == ["claim-old"]


def test_who_ignores_budgets_ignores_this() -> None:
    """Who asks what would be done without them sees what has drifted."""
    assert len(decide(_cluster("Failed").problem(ignore_budgets=True)).commands) == 1
