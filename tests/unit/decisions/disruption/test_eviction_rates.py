"""The rate of a workload: how many of its pods may be moved in a time."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.validation.budget_check import admit
from joinery.objects.karpenter.disruption import DisruptionReason, Rate, eviction_rate_of
from joinery.objects.karpenter.labels import EVICTION_RATE
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import ObjectionCode
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, on

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
UNDERUTILIZED = DisruptionReason.UNDERUTILIZED


def _web(name: str, node: str, rate: str = "2 pods per 1h", *, created: datetime = START - DAY, **spec: Any) -> Pod:
    """A pod of the Deployment web, whose ReplicaSet is named after its template."""
    given = {"owner": "web-5d9c", "labels": {"pod-template-hash": "5d9c"}, "annotations": {EVICTION_RATE: rate}}
    return on(name, node, created=created, **{**given, **spec})


def _command(*pods: Pod, reason: DisruptionReason = UNDERUTILIZED) -> DecidedCommand:
    nodes = dict.fromkeys(pod.spec.node_name for pod in pods)
    return DecidedCommand(
        reason=reason,
        message="",
        retire=tuple(f"claim-{node}" for node in nodes),
        pods=tuple(pod.key for pod in pods),
    )


def _held(pods: list[Pod], *commands: DecidedCommand, leaving: str = "", **options: Any) -> list[str]:
    """Why commands are held that move pods of nodes without any other limit."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[])])
    for node in sorted({pod.spec.node_name for pod in pods}):
        cluster.machine(node, deleted=START if node == leaving else None)
    cluster.pods = pods
    problem = cluster.problem(**options)
    rejected = admit(commands, problem, candidates(problem).nodes).rejected
    assert {one.objection.code for one in rejected} <= {ObjectionCode.POD_DISRUPTION_BUDGET}
    return [one.objection.message for one in rejected for _ in one.command.retire]


@pytest.mark.parametrize(
    ("text", "rate"),
    [("2 pods per 1h", Rate(HOUR, 2)), ("1 pod per 30m", Rate(HOUR / 2, 1)), ("10% per 1h", Rate(HOUR, percent=10))],
)
def test_it_is_a_number_or_a_share_of_pods_in_a_time(text: str, rate: Rate) -> None:
    """As that of a NodePool is of nodes."""
    assert eviction_rate_of(text) == rate


@pytest.mark.parametrize("text", ["2", "2 nodes per 1h", "2 pods per 0s", "two pods per 1h", ""])
def test_one_that_cannot_be_read_keeps_its_pods(text: str) -> None:
    """Someone meant to limit something."""
    pods = [_web("a", "n", text)]
    (why,) = _held(pods, _command(*pods))
    assert why.startswith(f"pod default/a has the annotation {EVICTION_RATE}, which keeps it: ")
    assert 'is no rate, such as "10 pods per 1h"' in why


def test_commands_are_held_once_they_would_move_more_than_that() -> None:
    """In their order: what has no room does not hold up a smaller one."""
    pods = [_web(f"web-{number}", f"n{number // 2}") for number in range(6)]
    first, second, third = (_command(*pods[at : at + 2]) for at in (0, 2, 4))
    why = (
        "Deployment default/web has the eviction rate 2 pods per 1h: of its 6 pods 0 are new in that time or about to "
        "go, commands before this one move 2, and this one moves 2"
    )
    assert _held(pods, first, second, third) == [why, why]
    assert _held(pods, _command(pods[0]), second, _command(pods[4])) == [why.replace("one move 2", "one move 1")]


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"created": START - timedelta(minutes=59)}, True),
        ({"created": START - HOUR}, False),
        ({"deleted": START}, True),
        ({"node": "leaves"}, True),
        ({"created": START, "phase": "Succeeded"}, False),
        ({"created": START, "owner": "other-5d9c"}, False),
    ],
    ids=["young", "old", "on its way out", "on a node that goes", "finished", "another workload's"],
)
def test_new_pods_and_those_that_go_count_as_evicted(changes: dict[str, Any], counts: bool) -> None:
    """An evicted pod comes back as a new one, so nothing has to be remembered."""
    other = _web("other", **{"node": "stays", "rate": "1 pod per 1h", **changes})
    pods = [_web("a", "n", "1 pod per 1h"), other]
    assert bool(_held(pods, _command(pods[0]), leaving="leaves")) == counts


def test_a_share_is_of_the_workloads_pods_and_rounded_up() -> None:
    """10 % of eleven are two."""
    pods = [_web(f"web-{number}", f"n{number}", "10% per 1h") for number in range(11)]
    assert _held(pods, *(_command(pod) for pod in pods[:2])) == []
    assert len(_held(pods, *(_command(pod) for pod in pods[:3]))) == 1


def test_pods_without_a_rate_do_not_ask_and_who_ignores_budgets_ignores_rates() -> None:
    """That asks what the cluster could cost."""
    pods = [_web("a", "n", "0 pods per 1h")]
    assert len(_held(pods, _command(*pods))) == 1
    assert _held(pods, _command(*pods), ignore_budgets=True) == []
    free = [on("b", "n", created=START)]
    assert _held(free, _command(*free)) == []
