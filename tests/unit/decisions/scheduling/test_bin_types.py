"""The bin_types of node of a plan: whatever another one beats is left out,
in its own NodePool or in another that cannot run out.
"""

from typing import Any

import numpy as np

from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.optimise.bin_types import PoolUse
from joinery.decisions.scheduling.optimise.dominance import bin_types_for
from simulator.builders import instance_type, node_pool, pod
from tests.unit.decisions.verification.plans import problem


def _pools_with_kinds(*pools: Any) -> list[str]:
    """The pools of which some kind is left, for a pod that may run in every one."""
    bin_types = [instance_type("m7g.large"), instance_type("m7g.xlarge")]
    work = Workspace(problem(pod("web"), *pools, types=bin_types))
    requests = np.array([work.axis.vector(work.possible[0].requests)])
    claims = [PoolUse(0, index, pool.types, pool.columns) for index, pool in enumerate(work.pools)]
    bins = bin_types_for(work.pools, requests, claims)
    return sorted({work.pools[int(index)].name for index in bins.pool})


def test_what_a_pool_without_end_sells_as_well_is_looked_at_once() -> None:
    """Twelve pools of the same types are one market."""
    assert len(_pools_with_kinds(*(node_pool(f"pool-{number}") for number in range(12)))) == 1


def test_a_pool_with_limits_takes_the_place_of_no_other() -> None:
    """It may run out; and what an endless pool sells as well needs none of its limits."""
    assert _pools_with_kinds(node_pool("a", limits={"cpu": "8"}), node_pool("b")) == ["b"]
    assert _pools_with_kinds(node_pool("a", limits={"cpu": "8"}), node_pool("b", limits={"cpu": "8"})) == ["a", "b"]
