"""Shortcuts of first-fit say what asking every pool and every combination of domains would say."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from joinery.decisions.scheduling.constraints.relaxation import variants
from joinery.decisions.scheduling.firstfit.demand import Demand
from joinery.decisions.scheduling.firstfit.domain_offers import PinnedPrices, decides, holding
from joinery.decisions.scheduling.firstfit.new_nodes import NewNodes
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ZONE
from simulator.builders import ZONES, instance_type, node_pool, pod
from tests.unit.decisions.verification.plans import problem

SMALL = instance_type("m7a.medium", price=0.05, spot=0.02, zones=ZONES[:2])
LARGE = instance_type("m7a.xlarge", price=0.2, spot=None, zones=ZONES)
TEAMS = (
    node_pool("red", requirements=["team=red,pink"]),
    node_pool("blue", labels={"team": "blue"}),
    node_pool("any", requirements=[{"key": "team", "operator": "Exists"}]),
    node_pool("none"),
)


def _affine(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = [{"matchExpressions": [expression]} for expression in expressions]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _demands(work: Workspace) -> list[Demand]:
    (pod_class,) = work.possible
    row = work.axis.vector(pod_class.requests)
    tries = variants(pod_class, work.topology.rules[pod_class], respect=True, prefer_taints=False)
    return [Demand(pod_class, variant, row, np.flatnonzero(row)) for variant in tries]


@pytest.mark.parametrize("fitting", [False, True])
@pytest.mark.parametrize("cpu", ["500m", "2", "40"])
def test_each_combination_has_the_price_of_a_node_pinned_to_it(cpu: str, fitting: bool) -> None:
    """Also where nothing there is sold, or holds the pod; or by what holds the pod alone."""
    pool = node_pool("p", requirements=[f"{ZONE}={','.join(ZONES[1:])}"])
    work = Workspace(problem(pool, pod("a", cpu=cpu), types=(SMALL, LARGE)))
    (demand,) = _demands(work)
    node = NewNodes(work).start(work.pools[0], demand, {})
    assert node is not None
    prices = PinnedPrices(node, demand, fitting=fitting)
    for zone, capacity_type in product(ZONES, ("spot", "on-demand")):
        domains = {ZONE: zone, CAPACITY_TYPE: capacity_type}
        assert decides(node, domains, (ZONE, CAPACITY_TYPE))
        pinned = node.narrowed(demand, domains)
        has_room = pinned is not None and pinned.holds(demand, np.ones_like(pinned.types))[0] > 0
        least = None
        if pinned is not None and has_room:
            least = pinned.least_prices[holding(pinned, demand) if fitting else pinned.types].min()
        assert prices.least(domains) == least


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "team", "operator": "In", "values": ["pink", "blue"]},
        {"key": "team", "operator": "In", "values": ["green"]},
        {"key": "team", "operator": "NotIn", "values": ["red"]},
        {"key": "team", "operator": "DoesNotExist", "values": []},
        {"key": "other", "operator": "In", "values": ["x"]},
    ],
)
def test_pools_that_are_not_asked_would_have_said_no(expression: dict[str, Any]) -> None:
    """Those that are asked keep their order."""
    work = Workspace(problem(*TEAMS, pod("a", affinity=_affine(expression)), types=(LARGE,)))
    for demand in _demands(work):
        asked = list(work.pools_by_label.suitable(demand.requirements))
        fitting = [pool for pool in work.pools if not pool.fit(demand.requirements).conflict]
        assert [pool for pool in asked if pool in fitting] == fitting
        assert [pool for pool in work.pools if pool in asked] == asked


def test_of_many_teams_pools_few_are_asked() -> None:
    """That of the team, and those that say nothing of teams, or allow any."""
    red = _affine({"key": "team", "operator": "In", "values": ["red"]})
    work = Workspace(problem(*TEAMS, pod("a", affinity=red), types=(LARGE,)))
    (demand,) = _demands(work)
    assert {pool.name for pool in work.pools_by_label.suitable(demand.requirements)} == {"any", "none", "red"}
