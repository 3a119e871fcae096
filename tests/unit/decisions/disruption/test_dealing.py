"""Pods that a broken spread lets into their own zone no more are planned for another one."""

from typing import Any

import numpy as np
import pytest

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.consolidation.compiling import ModelInputs, dealt_for, loosened, model_of
from joinery.decisions.optimizer.effort import Effort
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

_APP = {"app": "web"}
_SPREAD = {
    "topologyKey": ZONE,
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": _APP},
}
_APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": _APP}}
        ]
    }
}


def _inputs(zones: str, **pod: Any) -> ModelInputs:
    """Nodes in these zones, each of them with a pod of one workload that takes an eighth of it."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])])
    for number, zone in enumerate(zones):
        pods = [on(f"p-{number}", f"n{number}", cpu="500m", labels=_APP, **pod)]
        cluster.machine(f"n{number}", pods, zone=builders.ZONES[int(zone)])
    problem = cluster.problem()
    judged = candidates(problem)
    return ModelInputs(problem, judged, judged.candidates)


@pytest.mark.parametrize(("zones", "is_broken"), [("001122", False), ("000012", True), ("0000", True)])
def test_pods_are_planned_for_the_zones_that_let_them_in(zones: str, is_broken: bool) -> None:
    """Some leave theirs where the spread is broken, and none where each may come back."""
    model = model_of(_inputs(zones, spread=[_SPREAD]), Effort())
    leaving = sum(
        len(pods)
        for (item, index), pods in model.pods.items()
        if model.domains[item][ZONE] != model.nodes[index].labels[ZONE]
    )
    assert (leaving > 0) == is_broken
    assert leaving < len(zones)


def test_only_pods_of_nodes_that_go_are_dealt_to_zones() -> None:
    """A model that was made for other nodes is made once more for those that a choice retires."""
    inputs = _inputs("000012", spread=[_SPREAD])
    model, last = model_of(inputs, Effort()), np.arange(6) != 0
    dealt = dealt_for(inputs, model, last)
    assert set(dealt.leaving) == {"default/p-0"}
    assert dealt_for(inputs, dealt, last) is dealt


def test_a_bound_knows_which_pods_never_share_a_node() -> None:
    """Required anti-affinity holds on every node, so three pods take three nodes, although one would have room."""
    inputs = _inputs("000", affinity=_APART)
    loose = loosened(inputs, model_of(inputs, Effort())).instance
    assert loose.bins.max_per_bin.max() == 1
    assert not loose.bins.compatible[:, : loose.standing].any()
    assert np.array_equal(loose.bins.demands, [3])


def test_a_bound_lets_a_spread_over_hosts_put_pods_together() -> None:
    """How many a host may have depends on the others, which come and go."""
    inputs = _inputs("000", spread=[{**_SPREAD, "topologyKey": HOSTNAME}])
    loose = loosened(inputs, model_of(inputs, Effort())).instance
    assert loose.bins.max_per_bin.max() > 1
