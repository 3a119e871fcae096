"""Which pods of leaving nodes a plan places: a rollout may have replaced one already."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.scheduling.firstfit.pending import pending
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import INTERRUPTED_AT, RESTARTED_AT
from joinery.objects.kubernetes.core import Condition, Pod
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

_LATER = (START + timedelta(minutes=1)).isoformat()


def _pod(name: str, *, node: str = "", restarted: str = "") -> Pod:
    annotations = {RESTARTED_AT: restarted} if restarted else {}
    return builders.pod(
        name, owner=f"web-{len(restarted)}", labels={"app": "web"}, node=node, annotations=annotations, cpu="1"
    )


def _planned(*pods: Pod, **budget: Any) -> set[str]:
    """The names of the pods that a plan places. The node ``leaving`` goes, and a ``budget`` is about them."""
    snapshot = Snapshot(
        now=START,
        pods=pods,
        nodes=(builders.node("leaving"),),
        node_claims=(builders.node_claim("leaving", node="leaving", annotations={INTERRUPTED_AT: START.isoformat()}),),
        disruption_budgets=(builders.pdb(labels={"app": "web"}, **budget),),
    )
    problem = Problem(snapshot=snapshot, instance_types={})
    return {pod.metadata.name for pod in pending(problem, snapshot.views)}


def test_the_last_old_pod_of_a_rollout_needs_no_other_node_while_its_budget_keeps_it() -> None:
    """Only its successor does."""
    assert _planned(_pod("old", node="leaving"), _pod("new", restarted=_LATER)) == {"new"}


@pytest.mark.parametrize(
    ("others", "allowed"),
    [
        ((), 0),
        ((_pod("new", restarted=_LATER),), 1),
        ((_pod("new", restarted=_LATER), _pod("other", node="stays")), 0),
    ],
    ids=["no rollout", "it may be evicted", "one of two, either of which a successor may replace"],
)
def test_any_other_pod_of_a_leaving_node_does(others: tuple[Pod, ...], allowed: int) -> None:
    """Nothing says that a successor of its own is on its way."""
    assert "old" in _planned(_pod("old", node="leaving"), *others, allowed=allowed)


@pytest.mark.parametrize(("policy", "planned"), [("AlwaysAllow", {"old"}), ("IfHealthyBudget", set[str]())])
def test_a_pod_that_is_not_ready_is_kept_by_a_budget_that_counts_such_pods(policy: str, planned: set[str]) -> None:
    """The eviction API asks no other one about it, not even one that never lets a pod go."""
    pod = _pod("old", node="leaving")
    unready = replace(pod, status=replace(pod.status, conditions=[Condition(type="Ready", status="False")]))
    assert _planned(unready, max_unavailable=0, unhealthy=policy) == planned
