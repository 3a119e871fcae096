"""May a pod run on its node: taints, labels, room, ports, as kube-scheduler judges."""

import pytest
from msgspec import convert
from msgspec.structs import replace

from joinery.decisions.scheduling.packing import ExistingPlacement, Packing
from joinery.decisions.verification.verify import verify
from joinery.objects.kubernetes.core import Container, Pod
from simulator.builders import daemon_set, node, node_claim, node_pool, owner, pod
from tests.unit.decisions.verification.plans import launch, packing, problem, violated

TAINT = {"key": "team", "value": "data", "effect": "NoSchedule"}


def _affinity(*terms: dict[str, object]) -> dict[str, object]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def _expression(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_a_pod_must_tolerate_the_taints_of_its_node() -> None:
    """An untolerated NoSchedule taint keeps the pod out; the reason names the pod."""
    asked = problem(node_pool(taints=[TAINT]), pod("web"))
    (violation,) = verify(asked, packing(launch(asked, "default/web")))
    assert violation.code == "Taints"
    assert violation.where == "pod default/web on default-1"


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "team", "value": "data", "effect": "NoSchedule"},
        {"key": "team", "operator": "Exists"},
        {"operator": "Exists"},
    ],
)
def test_a_tolerated_taint_is_no_obstacle(toleration: dict[str, str]) -> None:
    """By value, by key, or everything: each form of toleration lets the pod in."""
    asked = problem(node_pool(taints=[TAINT]), pod("web", tolerations=[toleration]))
    assert violated(asked, packing(launch(asked, "default/web"))) == set()


@pytest.mark.parametrize(
    "toleration",
    [{"key": "team", "value": "web"}, {"key": "team", "operator": "Exists", "effect": "NoExecute"}, {"key": "other"}],
)
def test_a_toleration_of_something_else_does_not_help(toleration: dict[str, str]) -> None:
    """Value, effect and key all have to match."""
    asked = problem(node_pool(taints=[TAINT]), pod("web", tolerations=[toleration]))
    assert violated(asked, packing(launch(asked, "default/web"))) == {"Taints"}


def test_startup_taints_of_a_booting_node_are_ignored() -> None:
    """They will be gone once the node is initialised, and so will not-ready."""
    booting = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    starting = {"key": "cni", "value": "waits", "effect": "NoSchedule"}
    claim = node_claim("c1", node="n1", conditions=("Launched", "Registered"), startupTaints=[starting])
    asked = problem(node_pool(), claim, node("n1", initialized=False, taints=[booting, starting]), pod("web"))
    assert violated(asked, packing(on={"n1": ("default/web",)})) == set()


def test_taints_of_an_initialised_node_count() -> None:
    """A node that is not ready again after it was keeps pods out."""
    broken = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    asked = problem(node_pool(), node_claim("c1", node="n1"), node("n1", taints=[broken]), pod("web"))
    assert violated(asked, packing(on={"n1": ("default/web",)})) == {"Taints"}


def test_a_cordoned_node_takes_no_pods() -> None:
    """``spec.unschedulable`` is a taint by another name."""
    asked = problem(node_pool(), node("n1", unschedulable=True), pod("web"))
    assert violated(asked, packing(on={"n1": ("default/web",)})) == {"Taints"}


@pytest.mark.parametrize(
    ("wanted", "right"),
    [
        (pod("web", node_selector={"topology.kubernetes.io/zone": "us-east-1a"}), True),
        (pod("web", node_selector={"topology.kubernetes.io/zone": "us-east-1b"}), False),
        (pod("web", affinity=_affinity(_expression("karpenter.k8s.aws/instance-cpu", "Gt", "1"))), True),
        (pod("web", affinity=_affinity(_expression("karpenter.k8s.aws/instance-cpu", "Gt", "2"))), False),
        (pod("web", affinity=_affinity(_expression("karpenter.k8s.aws/instance-cpu", "Lt", "3"))), True),
        (pod("web", affinity=_affinity(_expression("tier", "DoesNotExist"))), True),
        (pod("web", affinity=_affinity(_expression("tier", "Exists"))), False),
        (pod("web", affinity=_affinity(_expression("tier", "NotIn", "gold"))), True),
        (pod("web", affinity=_affinity(_expression("tier", "In", "gold"))), False),
        (pod("web", affinity=_affinity(_expression("tier", "Resembles", "gold"))), False),
        (pod("web", affinity=_affinity(_expression("tier", "In", "gold"), _expression("tier", "DoesNotExist"))), True),
        (pod("web", affinity=_affinity({})), False),
    ],
)
def test_node_selection_is_the_schedulers(wanted: Pod, right: bool) -> None:
    """All operators, terms as alternatives, an empty term and an unknown operator that match nothing."""
    asked = problem(node_pool(), wanted)
    refused = violated(asked, packing(launch(asked, "default/web")))
    assert refused == set() if right else "NodeAffinity" in refused


def test_a_node_cannot_hold_more_than_it_has() -> None:
    """Bound pods, planned pods and daemons share the room."""
    asked = problem(node_pool(), node("n1", cpu="2"), pod("old", node="n1", cpu="1"), pod("web", cpu="1"))
    assert violated(asked, packing(on={"n1": ("default/web",)})) == set()
    crowded = problem(
        node_pool(), node("n1", cpu="2"), pod("old", node="n1", cpu="1"), pod("web", cpu="1"), daemon_set(cpu="1m")
    )
    assert violated(crowded, packing(on={"n1": ("default/web",)})) == {"Resources"}


def test_a_daemon_pod_that_runs_already_is_not_counted_twice() -> None:
    """The DaemonSet's pod on the node is the overhead."""
    agent = pod("agent-x", node="n1", cpu="1", namespace="kube-system", owner=owner("DaemonSet", "agent"))
    asked = problem(node_pool(), node("n1", cpu="2"), agent, daemon_set("agent", cpu="1"), pod("web", cpu="1"))
    assert violated(asked, packing(on={"n1": ("default/web",)})) == set()


def test_init_containers_and_sidecars_count_as_the_scheduler_counts_them() -> None:
    """The larger of init peak and running sum, sidecars in both, overhead on top: 1 + 0.5 + 0.4 does not fit 1.8."""
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}
    heavy = pod("web", cpu="1", init_containers=[sidecar], overhead={"cpu": "400m"})
    asked = problem(node_pool(), node("n1", cpu="1800m"), heavy)
    assert violated(asked, packing(on={"n1": ("default/web",)})) == {"Resources"}
    roomy = problem(node_pool(), node("n1", cpu="1900m"), heavy)
    assert violated(roomy, packing(on={"n1": ("default/web",)})) == set()


def test_pod_level_resources_replace_what_the_containers_ask() -> None:
    """A pod that asks as a whole is counted as a whole."""
    asked = problem(node_pool(), node("n1", cpu="1"), pod("web", cpu="100m", resources={"requests": {"cpu": "2"}}))
    assert violated(asked, packing(on={"n1": ("default/web",)})) == {"Resources"}


def test_an_extended_resource_that_the_node_lacks_is_not_there() -> None:
    """A resource absent from allocatable counts zero."""
    asked = problem(node_pool(), node("n1"), pod("web", requests={"nvidia.com/gpu": "1"}))
    assert violated(asked, packing(on={"n1": ("default/web",)})) == {"Resources"}


def test_the_number_of_pods_is_a_resource() -> None:
    """A node with one slot holds one pod."""
    asked = problem(node_pool(), node("n1", pods=1), pod("a"), pod("b"))
    assert violated(asked, packing(on={"n1": ("default/a", "default/b")})) == {"Resources"}


def _listening(name: str, port: int, **where: object) -> Pod:
    listens = {"name": "main", "ports": [{"containerPort": port, "hostPort": port, **where}]}
    plain = pod(name)
    return replace(plain, spec=replace(plain.spec, containers=[convert(listens, Container)]))


def test_two_pods_cannot_share_a_host_port() -> None:
    """Same port and protocol on one node: one of them could not start."""
    asked = problem(node_pool(), node("n1"), _listening("a", 80), _listening("b", 80))
    assert violated(asked, packing(on={"n1": ("default/a", "default/b")})) == {"HostPorts"}


def test_host_ports_on_different_addresses_do_not_clash() -> None:
    """Two addresses are two ports, unless one of them is every address."""
    apart = (_listening("a", 80, hostIP="10.0.0.1"), _listening("b", 80, hostIP="10.0.0.2"))
    asked = problem(node_pool(), node("n1"), *apart)
    assert violated(asked, packing(on={"n1": ("default/a", "default/b")})) == set()
    clashing = problem(node_pool(), node("n1"), apart[0], _listening("b", 80))
    assert violated(clashing, packing(on={"n1": ("default/a", "default/b")})) == {"HostPorts"}


def test_a_claim_on_its_way_takes_pods_by_its_own_name() -> None:
    """A launched claim without a node has the room and the labels that its instance type promises."""
    claim = node_claim("c1", conditions=("Launched",), zone="us-east-1b")
    asked = problem(node_pool(), claim, pod("web", node_selector={"topology.kubernetes.io/zone": "us-east-1b"}))
    assert violated(asked, Packing(existing=(ExistingPlacement("", "c1", ("default/web",)),))) == set()


def test_of_several_lacking_resources_always_the_same_is_named() -> None:
    """Two runs say the same of one plan, though Python gives sets another order in each."""
    devices = {f"example.com/device-{number}": "1" for number in range(9)}
    asked = problem(node("n1"), pod("web", cpu="1", memory="1Gi", requests=devices))
    (violation,) = verify(asked, packing(on={"n1": ("default/web",)}))
    assert violation.message == "example.com/device-0: 1 wanted, 0 there"
