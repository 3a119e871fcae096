"""Verification refuses a plan for half a gang."""

from typing import Any

import pytest

from joinery.objects.karpenter.labels import ZONE
from simulator import builders
from tests.unit.decisions.verification.plans import A, B, launch, packing, problem, violated

POOL = builders.node_pool()


def _members(count: int, *, start: int = 1, **spec: Any) -> list[Any]:
    spec = {"cpu": "1500m", "scheduling_group": {"podGroupName": "train"}, **spec}
    return [builders.pod(f"train-{number}", **spec) for number in range(start, start + count)]


def test_too_few_of_a_gang_are_refused() -> None:
    """Both or none."""
    asked = problem(POOL, builders.pod_group(minimum=2), *_members(2))
    first, second = (launch(asked, f"default/train-{n}", name=f"default-{n}") for n in (1, 2))
    assert violated(asked, packing(first, second)) == set()
    assert "Gang" in violated(asked, packing(first, left=("default/train-2",)))
    assert violated(asked, packing(left=("default/train-1", "default/train-2"))) == set()


def test_members_that_run_count_where_they_stay() -> None:
    """One runs, so that one more is enough."""
    running = _members(1, start=2, node="node-1")
    asked = problem(POOL, builders.pod_group(minimum=2), builders.node("node-1"), *_members(1), *running)
    assert violated(asked, packing(launch(asked, "default/train-1"))) == set()


def test_pods_of_a_group_that_is_missing_are_refused() -> None:
    """Nobody says how many must be together."""
    asked = problem(POOL, builders.pod_group("other"), *_members(1))
    assert violated(asked, packing(launch(asked, "default/train-1"))) == {"Gang"}


@pytest.mark.parametrize(
    ("zones", "refused"), [({"zone": A}, set()), ({"zone": B}, {"Gang"}), ({"zone": A, "zones": (A, B)}, {"Gang"})]
)
def test_a_gang_that_may_come_up_in_two_domains_is_refused(zones: dict[str, Any], refused: set[str]) -> None:
    """A launch that allows two zones is in one of them only by luck."""
    asked = problem(POOL, builders.pod_group(minimum=2, topology=ZONE), *_members(2))
    first = launch(asked, "default/train-1", name="default-1", zone=A)
    second = launch(asked, "default/train-2", name="default-2", **zones)
    assert violated(asked, packing(first, second)) - {"Cheapest"} == refused
