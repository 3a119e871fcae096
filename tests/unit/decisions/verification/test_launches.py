"""Launches: something that the NodePool may buy, at the catalogue's price, that holds its pods whatever EC2 picks."""

from dataclasses import replace
from typing import Any

import pytest

from joinery.decisions.scheduling.packing import Launch, PlacedOffering
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.objects.karpenter.labels import ARCH, AWS_GROUP, GPU_FRACTIONAL, INSTANCE_TYPE, OVERRIDES, ZONE
from joinery.objects.karpenter.meta import Requirement, Taint, with_metadata
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.snapshot.offerings import OfferingKey, without
from simulator.builders import daemon_set, instance_type, node, node_pool, pod
from tests.unit.decisions.verification.plans import SMALL, A, launch, packing, problem, violated

ONE = problem(node_pool(labels={"team": "web"}), pod("web"))
RIGHT = launch(ONE, "default/web", types=("m7a.large", "m7a.xlarge"))


def _offering(**changes: Any) -> dict[str, Any]:
    return {"offering": replace(RIGHT.offering, **changes)}


def test_the_launch_that_these_tests_spoil_is_right() -> None:
    """Two types, the cheaper one counted on, labels and requests as they should be."""
    assert violated(ONE, packing(RIGHT)) == set()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"node_pool": "other"}, "Launch"),
        ({"name": ""}, "Launch"),
        (_offering(instance_type="m9z.large"), "Launch"),
        (_offering(zone="us-east-1z"), "Offering"),
        (_offering(capacity_type="spot"), "Offering"),
        (_offering(price=0.05), "Price"),
        (_offering(instance_type="m7a.xlarge", price=0.2), "Cheapest"),
        ({"instance_types": ("m7a.xlarge",)}, "InstanceTypes"),
        ({"instance_types": ("m7a.large", "m9z.large")}, "InstanceTypes"),
        ({"labels": {}}, "Template"),
        ({"labels": {"team": "web", ARCH: "arm64"}}, "Labels"),
        ({"taints": (Taint(key="x", effect="NoSchedule"),)}, "Template"),
        ({"startup_taints": (Taint(key="x", effect="NoSchedule"),)}, "Template"),
        ({"requirements": (Requirement(key=ARCH, operator="In", values=["arm64"]),)}, "Requirements"),
        ({"requests": {"cpu": 1, "memory": 1, "pods": 1}}, "Requests"),
        ({"pods": ()}, "PodMissing"),
    ],
)
def test_a_launch_that_differs_in_one_thing_is_refused(changes: dict[str, Any], code: str) -> None:
    """Name, pool, offering, price, types, labels, taints, requirements, requests, pods: each is checked."""
    assert code in violated(ONE, packing(replace(RIGHT, **changes)))


def test_an_offering_that_ec2_is_out_of_is_refused() -> None:
    """Unavailable is as good as not sold."""
    out = without((SMALL,), frozenset({OfferingKey("m7a.large", A, "on-demand")}))
    asked = problem(node_pool(), pod("web"), types=out)
    assert "Offering" in violated(asked, packing(launch(asked, "default/web")))


def test_every_type_of_a_launch_holds_its_pods_and_its_daemons() -> None:
    """A type that the daemons fill up is no alternative, although the pods alone would fit."""
    daemon = daemon_set(cpu="1500m", memory="1Gi")
    asked = problem(node_pool(), pod("web", cpu="1"), daemon)
    overhead = {"cpu": 1500, "memory": 2**30, "pods": 1}
    wide = launch(asked, "default/web", kind="m7a.xlarge", types=("m7a.xlarge",), daemons=overhead)
    assert violated(asked, packing(wide)) == set()
    narrow = launch(asked, "default/web", kind="m7a.large", types=("m7a.large", "m7a.xlarge"), daemons=overhead)
    assert {"InstanceTypes", "Resources"} <= violated(asked, packing(narrow))


@pytest.mark.parametrize("daemon", [{"cpu": "3"}, {"memory": "12Gi"}])
def test_every_type_of_a_launch_holds_its_daemons_whatever_the_pods_ask_for(daemon: dict[str, Any]) -> None:
    """A DaemonSet that stays pending on every node of ours is a node bought in vain, even if the pods would fit."""
    requests = {"cpu": "100m", "memory": "128Mi", **daemon}
    own = daemon_set(requests=requests)
    asked = problem(node_pool(), pod("web", cpu="0", memory="0"), own)
    overhead = {**amounts(requests), "pods": 1}
    narrow = launch(asked, "default/web", daemons=overhead)
    assert violated(asked, packing(narrow)) == {"DaemonSets"}


@pytest.mark.parametrize("daemon", [{"cpu": "5"}, {"example.com/device": "1"}])
def test_daemons_that_no_node_of_the_pool_holds_take_nothing(daemon: dict[str, Any]) -> None:
    """kube-scheduler puts them on no node, and a plan without them is right."""
    asked = problem(node_pool(), pod("web", cpu="1"), daemon_set(requests={"cpu": "100m", **daemon}))
    assert violated(asked, packing(launch(asked, "default/web"))) == set()


def test_requests_include_the_daemons() -> None:
    """A launch that forgets its daemons' share states too little."""
    asked = problem(node_pool(), pod("web"), daemon_set())
    assert violated(asked, packing(launch(asked, "default/web"))) == {"Requests"}


@pytest.mark.parametrize(
    ("of_pool", "of_pod", "codes"),
    [
        ({}, {}, {"Resources"}),
        ({"instance-category": ["g"]}, {"instance-gpu-count": "1"}, {"Resources", "NodeAffinity", "Alternatives"}),
        ({"instance-family": ["g6f", "g6"]}, {}, set()),
        ({}, {"instance-family": "g6f"}, set()),
        ({}, {"instance-gpu-fractional": "true"}, set()),
    ],
)
def test_parts_of_gpus_are_for_those_who_ask_for_them(
    of_pool: dict[str, list[str]], of_pod: dict[str, str], codes: set[str]
) -> None:
    """By type, family or label, in the pod or the NodePool; whoever asks for a GPU means a whole one."""
    part = instance_type(
        "g6f.large", resources={"nvidia.com/gpu": "1"}, spot=None, price=0.1, labels={GPU_FRACTIONAL: ["true"]}
    )
    requirements = [{"key": f"{AWS_GROUP}/{k}", "operator": "In", "values": v} for k, v in of_pool.items()]
    chosen = {f"{AWS_GROUP}/{key}": value for key, value in of_pod.items()}
    asked = problem(
        node_pool(requirements=requirements),
        pod("a", requests={"nvidia.com/gpu": "1"}, node_selector=chosen),
        types=(part,),
    )
    assert violated(asked, packing(launch(asked, "default/a", kind="g6f.large"))) == codes


def test_an_alternative_type_must_suit_the_pods_that_choose_nodes() -> None:
    """EC2 may pick the other type, on which the pod may not run."""
    asked = problem(node_pool(), pod("web", node_selector={INSTANCE_TYPE: "m7a.large"}))
    both = launch(asked, "default/web", types=("m7a.large", "m7a.xlarge"))
    assert violated(asked, packing(both)) == {"Alternatives"}


def test_nodes_satisfy_the_requirements_of_their_pool() -> None:
    """A label that the pool demands must be on the launch."""
    asked = problem(node_pool(requirements=["team=web,data"]), pod("web"))
    assert "Requirements" in violated(asked, packing(launch(asked, "default/web")))
    assert violated(asked, packing(launch(asked, "default/web", labels={"team": "data"}))) == set()


@pytest.mark.parametrize(
    "pool",
    [node_pool(replicas=3), node_pool(node_class="absent"), node_pool(requirements=["karpenter.sh/capacity-type=no"])],
)
def test_some_pools_launch_nothing_for_pods(pool: Any) -> None:
    """A static pool keeps its size; a pool without its class cannot boot anything; an invalid one takes no part."""
    asked = problem(pool, pod("web"))
    assert violated(asked, packing(launch(asked, "default/web"))) & {"NodePool", "Launch"}


def test_a_pool_stays_within_its_limits_whichever_type_ec2_picks() -> None:
    """The smaller type is within the limit, and the larger one that may stand in for it is not."""
    asked = problem(node_pool(limits={"cpu": "3"}), pod("web"))
    assert violated(asked, packing(launch(asked, "default/web", types=("m7a.large",)))) == set()
    assert "Limits" in violated(asked, packing(launch(asked, "default/web", types=("m7a.large", "m7a.xlarge"))))


def test_daemon_sets_take_no_host_port_of_a_pod_whichever_type_ec2_picks() -> None:
    """A DaemonSet for large nodes alone takes the port there, so the launch may carry small ones only."""
    door = {"name": "door", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}
    for_large = daemon_set("proxy", init_containers=[door], node_selector={INSTANCE_TYPE: "m7a.xlarge"})
    asked = problem(node_pool(), for_large, pod("web", init_containers=[door]))
    assert violated(asked, packing(launch(asked, "default/web", types=("m7a.large",)))) == set()
    assert "HostPorts" in violated(asked, packing(launch(asked, "default/web", types=("m7a.large", "m7a.xlarge"))))


def test_a_pool_may_not_grow_over_its_limits() -> None:
    """Existing nodes and launches count with their capacity, and nodes by number."""
    for limits, right in (({"cpu": "6"}, True), ({"cpu": "5"}, False), ({"nodes": "1"}, False), ({"nodes": "2"}, True)):
        asked = problem(node_pool(limits=limits), node("n1", cpu="4"), pod("web"))
        assert (violated(asked, packing(launch(asked, "default/web"))) == set()) is right


def test_a_launch_keeps_the_choice_that_its_pool_demands() -> None:
    """minValues counts the distinct values over the launch's types; best effort may relax it, and says so."""
    rule = {"key": INSTANCE_TYPE, "operator": "Exists", "minValues": 2}
    asked = problem(node_pool(requirements=[rule]), pod("web"))
    single = launch(asked, "default/web")
    assert violated(asked, packing(single)) == {"MinValues"}
    assert violated(asked, packing(launch(asked, "default/web", types=("m7a.large", "m7a.xlarge")))) == set()
    lenient = replace(asked, options=Options(only_marked_unschedulable=False, best_effort_min_values=True))
    assert violated(lenient, packing(replace(single, min_values_relaxed=True))) == set()


PREFERRED, CHEAP = node_pool("preferred", weight=50), node_pool("cheap")


def _in_cheap(asked: Any) -> Launch:
    return launch(asked, "default/web", pool="cheap")


def test_a_pool_of_higher_weight_is_not_passed_over() -> None:
    """Weight comes before price."""
    asked = problem(PREFERRED, CHEAP, pod("web"))
    assert violated(asked, packing(_in_cheap(asked))) == {"Weight"}
    assert violated(asked, packing(launch(asked, "default/web", pool="preferred"))) == set()


@pytest.mark.parametrize(
    ("preferred", "wanted"),
    [
        (node_pool("preferred", weight=50, taints=[{"key": "t", "effect": "NoSchedule"}]), pod("web")),
        (node_pool("preferred", weight=50, taints=[{"key": "t", "effect": "PreferNoSchedule"}]), pod("web")),
        (node_pool("preferred", weight=50, limits={"cpu": "1"}), pod("web")),
        (node_pool("preferred", weight=50, requirements=[f"{ARCH}=arm64"]), pod("web")),
        (node_pool("preferred", weight=50, requirements=[f"{ZONE}=us-east-1b"]), pod("web", node_selector={ZONE: A})),
        (PREFERRED, pod("web", node_selector={"karpenter.sh/nodepool": "cheap"})),
        (node_pool("preferred", weight=50, requirements=["tier=gold"]), pod("web", node_selector={"tier": "tin"})),
    ],
)
def test_a_pool_of_higher_weight_is_passed_over_for_a_reason(preferred: Any, wanted: Any) -> None:
    """Taints, soft ones too, limits, architecture, zone, the pod's own choice."""
    cheap = node_pool("cheap", labels={"tier": "tin"})
    asked = problem(preferred, cheap, wanted)
    assert violated(asked, packing(_in_cheap(asked))) == set()


def test_a_price_that_is_not_a_number_is_refused() -> None:
    """NaN compares false with everything, which must not pass for equal."""
    spoiled = replace(RIGHT, offering=PlacedOffering("m7a.large", A, "on-demand", float("nan")))
    assert "Price" in violated(ONE, packing(spoiled))


def _with_defaults(selector: dict[str, str]) -> Problem:
    """A NodePool that lists the larger type for pods that choose nothing else."""
    pool = with_metadata(node_pool(requirements=[f"{INSTANCE_TYPE}=m7a.xlarge"]), annotations={OVERRIDES: "true"})
    return problem(pool, pod("web", node_selector=selector))


@pytest.mark.parametrize(
    ("selector", "right"),
    [({}, "m7a.xlarge"), ({ZONE: A}, "m7a.xlarge"), ({INSTANCE_TYPE: "m7a.large"}, "m7a.large")],
)
def test_a_default_holds_for_pods_that_choose_nothing_else(selector: dict[str, str], right: str) -> None:
    """Of instance types by a choice of one, and by no other choice."""
    asked = _with_defaults(selector)
    assert not violated(asked, packing(launch(asked, "default/web", kind=right)))
    wrong = {"m7a.large": "m7a.xlarge", "m7a.xlarge": "m7a.large"}[right]
    assert violated(asked, packing(launch(asked, "default/web", kind=wrong)))
