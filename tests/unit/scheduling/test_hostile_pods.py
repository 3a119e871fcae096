"""Whoever may create a pod may not keep others from getting nodes: every kind of hostile pods, in small.

`make hostile` measures the same kinds in sizes that hurt.
"""

from collections.abc import Iterable

import pytest

from joinery.planning import Plan, plan
from joinery.scheduling.packing import placed_pods
from joinery.scheduling.problem import Options, Problem
from joinery.scheduling.solve import GRACE
from simulator.builders import instance_type
from simulator.hostile import BYSTANDERS, KINDS, Cluster, cluster
from simulator.hostile.pods import Document
from simulator.kubernetes.resources import from_document
from tests.unit.verification import plans

_TYPES = tuple(map(instance_type, ("m7a.large", "m7a.2xlarge", "c7a.xlarge", "r7a.xlarge")))


@pytest.mark.parametrize("kind", KINDS)
def test_pods_of_others_are_placed_beside_hostile_ones(kind: str) -> None:
    """Each pod of others has a place, and each hostile pod a place or a reason, though the time is up at once."""
    made = cluster(KINDS[kind].make(KINDS[kind].small))
    planned = _planned(made.documents)
    placed = set(placed_pods(planned.packing.existing, planned.packing.launches))
    left = {unplaced.pod: unplaced.reasons for unplaced in planned.packing.unplaced}
    assert placed >= set(made.names(BYSTANDERS))
    assert placed | left.keys() == set(_pods(made))
    assert all(left.values())
    assert not planned.violations
    assert not planned.warnings


def _planned(documents: Iterable[Document]) -> Plan:
    return plan(_problem(documents), stopwatch=lambda: GRACE / 2)


def _problem(documents: Iterable[Document]) -> Problem:
    objects = [from_document(one["kind"], one) for one in documents if one["kind"] != "EC2NodeClass"]
    return plans.problem(*objects, types=_TYPES, options=Options(only_marked_unschedulable=False, time_limit=0.001))


def _pods(made: Cluster) -> list[str]:
    pods = (one["metadata"] for one in made.documents if one["kind"] == "Pod")
    return [f"{meta['namespace']}/{meta['name']}" for meta in pods]
