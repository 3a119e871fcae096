"""Pods that gave up a preferred anti-affinity stay with those of their like that came first."""

from typing import Any

import pytest

from joinery.decisions.scheduling.problem import Options
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from joinery.objects.kubernetes.core import Pod
from simulator.builders import instance_type, node_pool, pod
from tests.unit.decisions.verification.plans import problem

TYPE = instance_type("m7a.large", cpu=2, price=0.1, spot=None)


def _apart(name: str, count: int, cpu: str, *keys: str) -> list[Pod]:
    """Pods that prefer to be without each other."""
    terms: list[Any] = [
        {"weight": 10, "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": {"app": name}}}}
        for key in keys
    ]
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    return [pod(f"{name}-{n}", cpu=cpu, memory="64Mi", labels={"app": name}, affinity=affinity) for n in range(count)]


def test_no_node_is_bought_to_part_them() -> None:
    """Three of six small pods cannot have a zone of their own, and share the node of one that has: eight nodes do, as
    an exact program says. The proof knows of them, or it would claim that nothing is below nine.
    """
    pods = [*_apart("a", 6, "900m", HOSTNAME, ZONE), *_apart("b", 7, "900m", HOSTNAME)]
    pods += _apart("c", 6, "200m", HOSTNAME, ZONE)
    asked = problem(node_pool(), *pods, types=(TYPE,), options=Options(node_size="cheapest"))
    plan = solve(asked)
    assert verify(asked, plan) == ()
    assert (len(plan.launches), plan.unplaced) == (8, ())
    assert plan.kept_bound == pytest.approx(plan.hourly, rel=1e-6)
    homes = [{name.partition("-")[0] for name in launch.pods} for launch in plan.launches]
    assert sum("default/c" in home for home in homes) == 3
