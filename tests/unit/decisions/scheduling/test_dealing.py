"""How pods are dealt out over several topology keys at once, and how different workloads share the dealing."""

import pytest

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Options
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ZONE
from joinery.objects.kubernetes.core import Pod
from simulator.builders import instance_type, node_pool, pod
from tests.unit.decisions.verification.plans import problem

RACK, ROW = "example.com/rack", "example.com/row"
CHEAPEST = Options(only_marked_unschedulable=False, node_size="cheapest", spot_types=0)
SMALL = instance_type("m7a.large", price=0.1, spot=0.4)


def _spread(count: int, app: str, *keys: str, cpu: str = "100m", memory: str = "64Mi", skew: int = 1) -> list[Pod]:
    """So many pods that must be spread evenly over each of the keys."""
    rules = [
        {
            "topologyKey": key,
            "maxSkew": skew,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
        for key in keys
    ]
    return [pod(f"{app}-{i}", cpu=cpu, memory=memory, labels={"app": app}, spread=rules) for i in range(count)]


def _plan(*pods: Pod, limits: dict[str, str] | None = None) -> Packing:
    """Nodes of three zones and two capacity types, and labels of which a node may have any of two values."""
    requirements = [f"{CAPACITY_TYPE}=spot,on-demand", f"{RACK}=r0,r1", f"{ROW}=w0,w1"]
    asked = problem(node_pool(requirements=requirements, limits=limits), *pods, types=(SMALL,), options=CHEAPEST)
    plan = solve(asked)
    assert verify(asked, plan) == ()
    assert not plan.unplaced
    return plan


@pytest.mark.parametrize("limits", [{}, {"cpu": "1000"}])
@pytest.mark.parametrize(
    ("count", "keys", "hourly"),
    [
        (4, (ZONE, CAPACITY_TYPE), 0.18),
        (6, (ZONE, CAPACITY_TYPE), 0.28),
        (30, (ZONE, CAPACITY_TYPE), 0.28),
        (60, (ZONE, CAPACITY_TYPE), 0.36),
        (6, (ZONE, RACK), 0.16),
        (12, (ZONE, CAPACITY_TYPE, RACK), 0.28),
        (6, (ZONE, RACK, ROW), 0.16),
    ],
)
def test_a_spread_over_several_keys_buys_no_node_for_every_combination(
    count: int, keys: tuple[str, ...], hourly: float, limits: dict[str, str]
) -> None:
    """Each key is even by itself, and as few combinations are used as an exact program uses."""
    assert _plan(*_spread(count, "web", *keys), limits=limits).hourly == pytest.approx(hourly)


def test_workloads_with_the_same_spreads_share_their_combinations() -> None:
    """Four nodes do for both."""
    both = [*_spread(6, "a", ZONE, CAPACITY_TYPE), *_spread(6, "b", ZONE, CAPACITY_TYPE)]
    assert _plan(*both).hourly == pytest.approx(0.28)


def test_workloads_need_not_share_their_zones() -> None:
    """Two pods that fill a node each, beside four small ones: whoever is dealt to the same zones needs a fifth node."""
    large = _spread(2, "large", ZONE, cpu="1800m", memory="1Gi")
    small = _spread(2, "small", ZONE, cpu="900m", memory="1Gi", skew=2)
    tiny = _spread(1, "tiny", ZONE, cpu="900m", memory="1Gi")
    plan = _plan(*large, *small, *tiny)
    assert plan.hourly == pytest.approx(plan.lower_bound)


def test_a_preference_is_not_given_up_for_a_cheaper_dealing() -> None:
    """Pods that prefer to keep apart over zones are in as many zones as there are."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    }
    plan = _plan(*(pod(f"web-{i}", cpu="100m", labels={"app": "web"}, affinity=apart) for i in range(4)))
    assert (len(plan.launches), len(plan.relaxed)) == (3, 1)


def test_pods_that_want_different_values_of_a_label_are_packed_on_different_nodes() -> None:
    """A node of the pool has one rack. The optimizer knew of none, and put both on one node that took only some."""
    picky = [
        pod(f"{rack}-{i}", cpu=cpu, memory="64Mi", node_selector={RACK: rack})
        for rack, cpu in (("r0", "900m"), ("r1", "600m"))
        for i in range(6)
    ]
    plan = _plan(*picky)
    assert plan.method == "assignment" or plan.hourly == pytest.approx(plan.lower_bound)
    assert plan.hourly == pytest.approx(0.04 * (3 + 2))
