"""Which commands the rules for candidates and budgets allow in the cluster as it is now."""

import pytest
from msgspec.structs import replace

from joinery.decisions.disruption.decision import DecidedCommand, RejectionCause
from joinery.decisions.disruption.validation.validate import allowed_now
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

DRIFTED, EMPTY, UNDERUTILIZED = DisruptionReason.DRIFTED, DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED


def _command(*nodes: str, reason: DisruptionReason = UNDERUTILIZED) -> DecidedCommand:
    return DecidedCommand(reason=reason, message="", retire=tuple(f"claim-{node}" for node in nodes))


def _cluster() -> Cluster:
    """A node without pods, one with a pod, and a drifted one whose pod is protected, but not from drift."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "2"}])])
    cluster.machine("empty")
    cluster.machine("used", [on("web", "used")])
    protected = on("protected", "drifted", annotations={DO_NOT_DISRUPT: "true"})
    cluster.machine("drifted", [protected], drifted=True, termination_grace_period="1h")
    return cluster


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (_command("empty", reason=EMPTY), ""),
        (_command("used", "empty"), ""),
        (_command("drifted", reason=DRIFTED), ""),
        (_command("drifted", "used", reason=DRIFTED), ""),
        (_command("drifted"), "claim-drifted stays: pod default/protected must not be disrupted"),
        (_command("used", "drifted"), "claim-drifted stays: pod default/protected must not be disrupted"),
        (_command("used", "gone"), "claim-gone stays: it is no candidate any more"),
    ],
)
def test_all_nodes_of_a_command_must_still_be_candidates_for_its_reason(command: DecidedCommand, why: str) -> None:
    """A node that drift alone may disrupt is none for consolidation; one that stays ends the command."""
    answer = allowed_now([command], _cluster().problem())
    assert answer.commands == (() if why else (command,))
    assert [(str(it.objection), it.cause) for it in answer.rejected] == ([(why, RejectionCause.CHURN)] if why else [])


def test_limits_are_applied_to_the_commands_in_their_order() -> None:
    """What has begun to go since the decision counts against them."""
    commands = [_command("empty", reason=EMPTY), _command("used")]
    cluster = _cluster()
    assert allowed_now(commands, cluster.problem()).commands == tuple(commands)
    cluster.machine("broken", node={"ready": False})
    answer = allowed_now(commands, cluster.problem())
    assert answer.commands == (commands[0],)
    assert [one.cause for one in answer.rejected] == [RejectionCause.BUDGET]


def test_a_node_that_waits_for_a_pod_is_held_like_one_without_a_budget() -> None:
    """Neither has changed itself (Karpenter: ``budget``). It may go when the pod is bound, or gone."""
    cluster = _cluster()
    waiting = builders.pod("waits")
    cluster.pods.append(replace(waiting, status=replace(waiting.status, nominated_node_name="used")))
    (rejected,) = allowed_now([_command("used")], cluster.problem()).rejected
    assert rejected.cause is RejectionCause.BUDGET
