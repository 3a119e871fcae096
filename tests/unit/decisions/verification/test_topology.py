"""Pods among pods: spread, affinity and anti-affinity, as the final state of a plan has them."""

from typing import Any

import pytest

from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.verification.final_state import final_state
from joinery.decisions.verification.topology.affinity import anti_affinity_terms, check_anti_affinity
from joinery.decisions.verification.topology.census import Census
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from joinery.objects.kubernetes.core import Pod
from simulator.builders import daemon_set, namespace, node, node_pool, pod
from tests.unit.decisions.verification.plans import A, B, C, launch, packing, problem, violated

WEB = {"matchLabels": {"app": "web"}}


def _spread(key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB, **more}


def _near(key: str = ZONE, **more: Any) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": WEB, **more}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _apart(key: str = ZONE, **more: Any) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": WEB, **more}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _web(name: str, **more: Any) -> Pod:
    return pod(name, labels={"app": "web", **more.pop("labels", {})}, **more)


def _in(asked: Problem, **places: str) -> Packing:
    """A plan with every pod on a launch of its own, in the zone given: ``_in(asked, web1=A)``."""
    return packing(*(launch(asked, f"default/{name}", name=f"n-{name}", zone=zone) for name, zone in places.items()))


def _three(**spec: Any) -> Problem:
    return problem(node_pool(), *(_web(name, **spec) for name in ("w1", "w2", "w3")))


def test_one_pod_a_zone_is_an_even_spread() -> None:
    """Three zones, three pods, skew nought."""
    asked = _three(spread=[_spread()])
    assert violated(asked, _in(asked, w1=A, w2=B, w3=C)) == set()


def test_two_pods_in_one_zone_while_another_has_none_is_refused() -> None:
    """A zone where a node could be bought counts, although no node is there: the scheduler alone would not mind."""
    asked = _three(spread=[_spread()])
    violations = verify(asked, _in(asked, w1=A, w2=A, w3=B))
    assert {violation.code for violation in violations} == {"TopologySpread"}
    assert {violation.where for violation in violations} == {"pod default/w1 on n-w1", "pod default/w2 on n-w2"}


def test_a_zone_in_which_nothing_is_sold_does_not_block_a_spread() -> None:
    """The pool sells in two zones only, so the third is no domain."""
    asked = problem(
        node_pool(requirements=[f"{ZONE}={A},{B}"]), *(_web(n, spread=[_spread()]) for n in ("w1", "w2", "w3"))
    )
    assert violated(asked, _in(asked, w1=A, w2=A, w3=B)) == set()


def test_a_zone_in_which_nothing_fits_the_pod_is_no_domain() -> None:
    """A pod larger than what a zone sells is not held to that zone."""
    asked = problem(node_pool(), *(_web(n, spread=[_spread()], node_selector={ZONE: A}) for n in ("w1", "w2")))
    assert violated(asked, _in(asked, w1=A, w2=A)) == set()


def test_max_skew_is_as_far_as_the_fullest_may_go() -> None:
    """Two against nought is allowed at two, not at one."""
    asked = _three(spread=[_spread(maxSkew=2)])
    assert violated(asked, _in(asked, w1=A, w2=A, w3=B)) == set()


def test_running_pods_count_in_a_spread() -> None:
    """The cluster's own pods are in the balance."""
    asked = problem(node_pool(), node("n1", zone=A), _web("old", node="n1"), _web("w1", spread=[_spread()]))
    assert violated(asked, _in(asked, w1=A)) == {"TopologySpread"}
    assert violated(asked, _in(asked, w1=B)) == set()


def test_too_few_domains_count_as_one_that_is_empty() -> None:
    """With minDomains of three and two zones in use, the minimum is nought."""
    pool = node_pool(requirements=[f"{ZONE}={A},{B}"])
    asked = problem(pool, *(_web(n, spread=[_spread(minDomains=3)]) for n in ("w1", "w2", "w3")))
    assert violated(asked, _in(asked, w1=A, w2=B, w3=A)) == {"TopologySpread"}


def test_match_label_keys_spread_each_revision_by_itself() -> None:
    """Pods of another revision are somebody else's balance."""
    spread = [_spread(matchLabelKeys=["revision"])]
    pods = [_web(n, labels={"revision": n}, spread=spread) for n in ("w1", "w2")]
    asked = problem(node_pool(), *pods)
    assert violated(asked, _in(asked, w1=A, w2=A)) == set()


def test_a_node_that_the_taints_policy_leaves_out_is_no_domain() -> None:
    """With nodeTaintsPolicy Honor a tainted node's emptiness does not matter; without, it does."""
    taint = [{"key": "team", "value": "data", "effect": "NoSchedule"}]
    nodes = [node("n1", zone=A), node("n2", zone=A), node("n3", zone=A, taints=taint)]
    for policy, right in (("Honor", True), ("Ignore", False)):
        spread = [_spread(HOSTNAME, nodeTaintsPolicy=policy)]
        asked = problem(*nodes, *(_web(f"w{i}", spread=spread) for i in range(4)))
        plan = packing(on={"n1": ("default/w0", "default/w1"), "n2": ("default/w2", "default/w3")})
        assert (violated(asked, plan) == set()) is right


def test_a_spread_over_a_label_that_the_node_lacks_is_refused() -> None:
    """A node without the key is in no domain at all."""
    asked = problem(node_pool(), _web("w1", spread=[_spread("rack")]))
    assert violated(asked, _in(asked, w1=A)) == {"TopologySpread"}


def test_a_spread_that_may_be_violated_is_not_checked() -> None:
    """ScheduleAnyway is a wish."""
    asked = _three(spread=[_spread(whenUnsatisfiable="ScheduleAnyway")])
    assert violated(asked, _in(asked, w1=A, w2=A, w3=A)) == set()


def test_pods_that_keep_apart_may_not_share_a_domain() -> None:
    """One a zone is right, two in a zone are refused."""
    asked = _three(affinity=_apart())
    assert violated(asked, _in(asked, w1=A, w2=B, w3=C)) == set()
    assert violated(asked, _in(asked, w1=A, w2=A, w3=C)) == {"PodAntiAffinity"}


def test_a_running_pod_keeps_others_out_by_its_own_rule() -> None:
    """Anti-affinity binds both ways: the newcomer has no rule, the old pod has."""
    asked = problem(node_pool(), node("n1", zone=A), pod("old", node="n1", affinity=_apart()), _web("w1"))
    assert violated(asked, _in(asked, w1=A)) == {"PodAntiAffinity"}
    assert violated(asked, _in(asked, w1=B)) == set()


def test_a_breach_between_running_pods_is_not_the_plans_fault() -> None:
    """What runs already is tolerated."""
    old = [_web(name, node="n1", affinity=_apart()) for name in ("o1", "o2")]
    asked = problem(node_pool(), node("n1", zone=A), *old, pod("other"))
    assert violated(asked, _in(asked, other=A)) == set()


def test_anti_affinity_looks_into_the_namespaces_it_names() -> None:
    """Own namespace by default; all with an empty selector; those with a label with another."""
    for term, right in (
        ({}, True),
        ({"namespaces": ["other"]}, False),
        ({"namespaceSelector": {}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, True),
    ):
        mine = pod("mine", affinity=_apart(**term))
        asked = problem(node_pool(), node("n1", zone=A), _web("old", node="n1", namespace="other"), mine,
                        namespace("other", labels={"team": "x"}))  # fmt: skip
        assert (violated(asked, _in(asked, mine=A)) == set()) is right, term


def test_pods_of_daemon_sets_are_neighbours_too() -> None:
    """A pod that keeps away from the agent cannot run where the agent runs, which is everywhere."""
    term = {"labelSelector": {"matchLabels": {"app": "agent"}}, "namespaces": ["kube-system"]}
    asked = problem(
        node_pool(), daemon_set("agent", cpu="0", memory="0"), pod("shy", affinity=_apart(HOSTNAME, **term))
    )
    plan = packing(launch(asked, "default/shy", daemons={"pods": 1}))
    assert violated(asked, plan) == {"PodAntiAffinity"}


def test_a_group_that_needs_itself_starts_in_one_zone() -> None:
    """The first may come alone; the others must join it."""
    asked = _three(affinity=_near())
    assert violated(asked, _in(asked, w1=A, w2=A, w3=A)) == set()
    assert "PodAffinity" in violated(asked, _in(asked, w1=A, w2=A, w3=B))


def test_a_group_in_two_zones_has_no_order_of_binding() -> None:
    """Each half looks right by itself, but the scheduler would never let a second zone start."""
    asked = problem(node_pool(), *(_web(f"w{i}", affinity=_near()) for i in range(4)))
    assert violated(asked, _in(asked, w0=A, w1=A, w2=B, w3=B)) == {"PodAffinity"}


def test_a_group_joins_the_pods_that_run_already() -> None:
    """Where one of them runs, there the others go."""
    asked = problem(node_pool(), node("n1", zone=B), _web("old", node="n1"), _web("w1", affinity=_near()))
    assert violated(asked, _in(asked, w1=B)) == set()
    assert violated(asked, _in(asked, w1=A)) == {"PodAffinity"}


def test_pods_that_need_each_other_in_a_circle_can_never_be_bound() -> None:
    """The front waits for the back and the back for the front: neither may come first."""
    front = pod("front", labels={"app": "front"}, affinity=_near(labelSelector={"matchLabels": {"app": "back"}}))
    back = pod("back", labels={"app": "back"}, affinity=_near(labelSelector={"matchLabels": {"app": "front"}}))
    asked = problem(node_pool(), front, back)
    assert violated(asked, _in(asked, front=A, back=A)) == {"PodAffinity"}


def test_of_several_that_may_start_the_one_that_nobody_else_lets_in_comes_first() -> None:
    """w1 could start too, and would shut out those on the other node;
    after them it is welcome in their zone, and w2 beside it.
    """
    asked = problem(
        node_pool(),
        _web("w1", affinity=_near()),
        *(_web(name, affinity=_near(HOSTNAME)) for name in ("w2", "w3", "w4")),
    )
    two = launch(asked, "default/w3", "default/w4", name="a-2")
    assert violated(asked, packing(launch(asked, "default/w1", "default/w2", name="a-1"), two)) == set()
    alone = launch(asked, "default/w2", name="a-1"), launch(asked, "default/w1", name="a-3")
    assert violated(asked, packing(*alone, two)) == {"PodAffinity"}


def test_of_two_groups_the_one_that_the_other_would_shut_out_starts_first() -> None:
    """The back minds every pod of the app and must start before the front, which minds its own only."""
    front = {"labels": {"tier": "front"}, "affinity": _near(HOSTNAME, labelSelector={"matchLabels": {"tier": "front"}})}
    back = {"labels": {"tier": "back"}, "affinity": _near(HOSTNAME)}
    asked = problem(
        node_pool(), *(_web(name, **front) for name in ("f1", "f2")), *(_web(name, **back) for name in ("b1", "b2"))
    )
    fronts, backs = ("default/f1", "default/f2"), ("default/b1", "default/b2")
    for first, second in ((fronts, backs), (backs, fronts)):
        plan = packing(launch(asked, *first, name="a-1"), launch(asked, *second, name="a-2"))
        assert violated(asked, plan) == set()


def test_a_pod_may_follow_one_that_the_plan_places() -> None:
    """A chain has an order: what nobody needs comes first."""
    asked = problem(node_pool(), _web("w1"), pod("fan", affinity=_near()))
    assert violated(asked, _in(asked, w1=A, fan=A)) == set()
    assert violated(asked, _in(asked, w1=A, fan=B)) == {"PodAffinity"}


def test_label_keys_tie_affinity_to_the_pods_own_revision() -> None:
    """matchLabelKeys narrows the neighbours to those with the same value."""
    old = _web("old", labels={"revision": "1"}, node="n1")
    new = _web("new", labels={"revision": "2"}, affinity=_near(matchLabelKeys=["revision"]))
    asked = problem(node_pool(), node("n1", zone=B), old, new)
    assert violated(asked, _in(asked, new=A)) == set()


def _open(asked: Problem, *pods: str, zones: tuple[str, ...] = (A, B)) -> Launch:
    return launch(asked, *pods, zone=A, zones=zones)


@pytest.mark.parametrize(
    "spec",
    [
        {"spread": [_spread()]},
        {"affinity": _apart()},
        {"affinity": _near()},
        {"node_selector": {ZONE: A}},
        {"affinity": _apart(labelSelector={"matchLabels": {"app": "old"}})},
    ],
    ids=["spread", "apart", "near", "selector", "apart-from-old"],
)
def test_a_launch_may_not_leave_a_zone_open_in_which_its_pod_may_not_run(spec: dict[str, Any]) -> None:
    """EC2 may pick any offering that a launch allows;
    here zone b holds what the pod must avoid, or not what it needs.
    """
    old = [pod("old", node="n1", labels={"app": "web"}), pod("older", node="n1", labels={"app": "old"})]
    beside = (
        [node("n2", zone=A), pod("friend", node="n2", labels={"app": "web"})] if spec.get("affinity") == _near() else []
    )
    old = [] if beside else old
    asked = problem(node_pool(), node("n1", zone=B), *old, *beside, _web("w1", **spec))
    assert violated(asked, packing(launch(asked, "default/w1", zone=A))) == set()
    assert violated(asked, packing(_open(asked, "default/w1"))) == {"Alternatives"}


def test_terms_that_only_bound_pods_break_are_nobodys_fault_and_little_work() -> None:
    """Thousands of running pods may each repel all others: the plan's own pods alone are looked through."""
    running = [_web(name, node="n1", affinity=_apart()) for name in ("r1", "r2")]
    asked = problem(node_pool(), node("n1", zone=A), *running, _web("w1"))
    for zone, listings in ((B, 0), (A, 1)):
        state = final_state(asked, _in(asked, w1=zone))
        terms = anti_affinity_terms(state, Census(state))
        state.classes = classes = _Listed(state.classes)
        assert len(list(check_anti_affinity(state, terms))) == classes.listings == listings


class _Listed(dict[Any, Any]):
    """Counts how often all values are listed."""

    listings = 0

    def values(self) -> Any:
        self.listings += 1
        return super().values()
