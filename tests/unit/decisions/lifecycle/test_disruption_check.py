"""Whether nodes may be disrupted that go along with a drifted one: by the rules for nodes that have not drifted."""

from datetime import timedelta

import pytest

from joinery.decisions.lifecycle.disrupting.new_commands import as_candidate
from joinery.decisions.lifecycle.state.command_outlook import NextStep, started_commands
from joinery.decisions.lifecycle.state.disruption_check import DisruptionCheck
from joinery.objects.annotations.disruption import CommandRecord
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT
from joinery.objects.kubernetes.core import Pod
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, on

MINUTE = timedelta(minutes=1)


def _mixed(*, on_drifted: Pod | None = None, on_other: Pod | None = None) -> Cluster:
    """A drifted node and one that has not drifted. Both promise an end."""
    cluster = Cluster(pools=[builders.node_pool(termination_grace_period="1h")])
    cluster.machine("drifted", [on_drifted] if on_drifted else [], drifted=True, termination_grace_period="1h")
    cluster.machine("other", [on_other] if on_other else [], termination_grace_period="1h")
    return cluster


def _protected(node: str) -> Pod:
    return on("job", node, annotations={DO_NOT_DISRUPT: "true"})


def test_a_protected_pod_keeps_a_node_that_has_not_drifted() -> None:
    """Its ``terminationGracePeriod`` lets only a drifted node go."""

    def objects(cluster: Cluster) -> bool:
        look = DisruptionCheck(cluster.problem().packing.snapshot)
        return look.objection(cluster.claims, DisruptionReason.DRIFTED) is not None

    assert objects(_mixed(on_other=_protected("other")))
    assert not objects(_mixed(on_drifted=_protected("drifted")))


@pytest.mark.parametrize(("node", "next_step"), [("other", NextStep.ROLL_BACK), ("drifted", NextStep.FINISH)])
def test_a_pod_that_has_come_meanwhile_keeps_a_node_that_has_not_drifted(node: str, next_step: NextStep) -> None:
    """Nobody has looked for a place for it. A drifted node has to go all the same."""
    newcomer = on("new", node, created=START)
    cluster = _mixed(on_drifted=newcomer) if node == "drifted" else _mixed(on_other=newcomer)
    names = tuple(claim.metadata.name for claim in cluster.claims)
    record = CommandRecord("command", DisruptionReason.DRIFTED, START - MINUTE, START + MINUTE, names)
    cluster.claims = [as_candidate(claim, record) for claim in cluster.claims]
    outlook = started_commands(cluster.problem().packing.snapshot).outlooks["command"]
    assert outlook.next_step is next_step
