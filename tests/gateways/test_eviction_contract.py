"""What the eviction API answers, and that decisions expect the same: for every state of a pod and of its budgets.

All pods of the matrix are asked in one cluster, so a real API server takes a second for it.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.gateways.kubernetes.gateway import Eviction
from joinery.objects.kubernetes.core import Condition, Pod, PodDisruptionBudget
from simulator import builders
from tests.gateways.clusters import Form

FULL = {"allowed": 0, "current_healthy": 2, "desired_healthy": 2}
SHORT = {"allowed": 0, "current_healthy": 1, "desired_healthy": 2}
NOBODY = {"allowed": 0, "current_healthy": 0, "desired_healthy": 0}
ROOM = {"allowed": 1, "current_healthy": 3, "desired_healthy": 2}
UNSEEN = {"allowed": 1, "current_healthy": 3, "desired_healthy": 2, "observed_generation": 0}
ALWAYS, IF_HEALTHY = {"unhealthy": "AlwaysAllow"}, {"unhealthy": "IfHealthyBudget"}
CROWD = {"allowed": 1, "disrupted_pods": {f"pod-{number}": "2026-11-27T09:00:00Z" for number in range(2001)}}


@dataclass(frozen=True)
class Case:
    """``ready``: the status of the condition Ready, empty where there is none. ``budgets``: the fields of each."""

    name: str
    budgets: list[dict[str, Any]]
    is_granted: bool
    phase: str = "Running"
    ready: str = "True"
    is_deleted: bool = False

    def pod(self) -> Pod:
        made = builders.pod(self.name, node="n1", phase=self.phase, labels={"case": self.name})
        conditions = [Condition(type="Ready", status=self.ready)] if self.ready else []
        return replace(made, status=replace(made.status, conditions=conditions))

    def pdbs(self) -> list[PodDisruptionBudget]:
        return [
            builders.pdb(f"{self.name}-{number}", labels={"case": self.name}, **given)
            for number, given in enumerate(self.budgets)
        ]


CASES = [
    Case("ready-no-budget", [], True),
    Case("ready-room", [ROOM], True),
    Case("ready-full", [FULL], False),
    Case("ready-always", [FULL | ALWAYS], False),
    Case("ready-unseen", [UNSEEN], False),
    Case("ready-crowd", [CROWD], False),
    Case("ready-two", [ROOM, ROOM], False),
    Case("unready-full", [FULL], True, ready="False"),
    Case("unready-full-said", [FULL | IF_HEALTHY], True, ready="False"),
    Case("unready-unseen", [UNSEEN | {"allowed": 0}], True, ready="False"),
    Case("unready-short", [SHORT], False, ready="False"),
    Case("unready-nobody", [NOBODY], False, ready="False"),
    Case("unready-always", [SHORT | ALWAYS], True, ready="False"),
    Case("unready-nobody-always", [NOBODY | ALWAYS], True, ready="False"),
    Case("unready-two-always", [FULL | ALWAYS, FULL | ALWAYS], False, ready="False"),
    Case("unknown-full", [FULL], True, ready="Unknown"),
    Case("silent-full", [FULL], True, ready=""),
    Case("silent-short", [SHORT], False, ready=""),
    Case("pending-short", [SHORT], True, phase="Pending", ready="False"),
    Case("pending-two", [SHORT, SHORT], True, phase="Pending", ready=""),
    Case("succeeded-two", [SHORT, SHORT], True, phase="Succeeded", ready="False"),
    Case("failed-short", [SHORT], True, phase="Failed", ready="False"),
    Case("ending-short", [SHORT], True, is_deleted=True),
    Case("ending-two", [SHORT, SHORT], True, is_deleted=True),
]


@pytest.fixture
def answered(form: Form) -> dict[str, tuple[bool, bool]]:
    """By case, whether decisions expect that the pod goes, and whether it does."""
    for case in CASES:
        form.put(case.pod(), *case.pdbs())
        if case.is_deleted:
            form.cluster.delete_pod(form.stored(case.pod()), grace_seconds=30)
    snapshot = form.cluster.snapshot()
    budgets = Coverage(snapshot.disruption_budgets)
    return {
        pod.metadata.name: (not budgets.answer(pod).refusal, form.cluster.evict(pod) is Eviction.EVICTED)
        for pod in snapshot.pods
    }


def test_decisions_expect_of_every_pod_what_the_eviction_api_answers(answered: dict[str, tuple[bool, bool]]) -> None:
    """Kubernetes ``EvictionREST``: its state, its readiness, how many budgets, and what those say of themselves."""
    assert answered == {case.name: (case.is_granted, case.is_granted) for case in CASES}
