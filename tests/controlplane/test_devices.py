"""Devices that pods claim, on a real API server: what it takes for an expression, and what its scheduler gives whom."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from joinery.decisions.planning import plan
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.kubernetes.cel_tokens import ExpressionError
from joinery.objects.kubernetes.device_expressions import compiled, device_of
from joinery.objects.kubernetes.dynamic_resources import ResourceSliceSpec
from simulator import builders
from simulator.clock import Clock
from tests.controlplane import objects
from tests.controlplane.test_default_spread import untaint
from tools.controlplane.plane import ControlPlane

Until = Callable[[Callable[[], Any]], Any]
Document = dict[str, Any]
GROUP = "/apis/resource.k8s.io/v1"
GPU = "gpu.example.com"
OWN = f"device.attributes['{GPU}']"
_DEVICES = [{"name": f"gpu-{n}", "attributes": {"root": {"string": "a"}}} for n in range(2)]


def _asks(count: int) -> Document:
    constraints = [{"matchAttribute": f"{GPU}/root"}] if count > 1 else []
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}
    return {"devices": {"requests": [request], "constraints": constraints}}


def _put(transport: Transport, plural: str, name: str, spec: Document, namespace: str = "") -> None:
    kinds = {"deviceclasses": "DeviceClass", "resourceslices": "ResourceSlice"}
    kind = kinds.get(plural.partition("?")[0], "ResourceClaimTemplate")
    place = f"{GROUP}/{f'namespaces/{namespace}/' if namespace else ''}{plural}"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    transport.request(
        "POST", place, {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
    )


def _asking(name: str, count: str) -> Any:
    """The API server wants such a resource as a limit, too."""
    asked = builders.pod(name, cpu="100m", requests={"example.com/gpu": count}, unschedulable=False)
    (container,) = asked.spec.containers
    resources = msgspec.structs.replace(container.resources, limits={"example.com/gpu": count})
    containers = [msgspec.structs.replace(container, resources=resources)]
    return msgspec.structs.replace(asked, spec=msgspec.structs.replace(asked.spec, containers=containers))


def _listed(transport: Transport, place: str) -> list[Any]:
    items: list[Any] = msgspec.json.decode(transport.get(place))["items"]
    return items


def test_the_scheduler_gives_devices_to_the_pods_that_a_plan_bought_them_for(
    control_plane: ControlPlane, until: Until
) -> None:
    """Claims that its controller makes from templates: two pods share a node's devices, and one has two of its own."""
    objects.install(control_plane, *objects.MANIFEST_FILES)
    transport = objects.connect(control_plane)
    objects.sweep(transport)
    objects.put(transport, builders.node_class(), builders.node_pool())
    _put(transport, "deviceclasses", "gpu", {"selectors": [{"cel": {"expression": f"device.driver == '{GPU}'"}}]})
    for name, count in (("one", 1), ("two", 2)):
        _put(transport, "resourceclaimtemplates", name, {"spec": _asks(count)}, "default")
    slices = (msgspec.convert({"driver": GPU, "pool": {"name": "promised"}, "devices": _DEVICES}, ResourceSliceSpec),)
    kind = replace(builders.instance_type("m7a.xlarge", spot=None), slices=slices)

    def bought() -> Packing:
        cluster = KubernetesCluster(transport, now=Clock().now, node_class=EC2NodeClass)
        return plan(Problem(snapshot=cluster.snapshot(), instance_types={"default": (kind,)})).packing

    def ask(name: str, template: str) -> None:
        claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
        objects.put(transport, builders.pod(name, cpu="100m", resource_claims=claims, unschedulable=False))
        control_plane.kubectl("wait", "pod", name, "--for=condition=PodScheduled=false", "--timeout=30s")

    ask("a", "one")
    ask("b", "one")
    packing = bought()
    assert [len(launch.pods) for launch in packing.launches] == [2]
    assert packing.launches[0].drivers == (GPU,)
    node = builders.node("n1", labels={HOSTNAME: "n1"})
    objects.put(transport, node)
    said = {"driver": GPU, "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}}
    _put(transport, "resourceslices", "n1-gpu", {**said, "devices": _DEVICES})
    untaint(transport, node)

    def given() -> list[str]:
        claims = [one.get("status", {}).get("allocation") for one in _listed(transport, f"{GROUP}/resourceclaims")]
        devices = [got["device"] for one in claims if one for got in one["devices"]["results"]]
        return sorted(devices) if len(devices) == len(claims) else []

    assert until(given) == ["gpu-0", "gpu-1"]
    ask("c", "two")
    assert [launch.pods for launch in bought().launches] == [("default/c",)]
    objects.sweep(transport)


def test_the_scheduler_gives_devices_for_a_number(control_plane: ControlPlane, until: Until) -> None:
    """Where a DeviceClass bears the resource's name, a plan and the scheduler count its devices alike (KEP-5004)."""
    objects.install(control_plane, *objects.MANIFEST_FILES)
    transport = objects.connect(control_plane)
    objects.sweep(transport)
    objects.put(transport, builders.node_class(), builders.node_pool())
    selectors = [{"cel": {"expression": f"device.driver == '{GPU}'"}}]
    _put(transport, "deviceclasses", "gpu", {"selectors": selectors, "extendedResourceName": "example.com/gpu"})
    # Not the node of another test: the scheduler may still remember that devices of that are taken.
    node = builders.node("n2", labels={HOSTNAME: "n2"})
    objects.put(transport, node)
    said = {"driver": GPU, "nodeName": "n2", "pool": {"name": "n2", "generation": 1, "resourceSliceCount": 1}}
    _put(transport, "resourceslices", "n2-gpu", {**said, "devices": _DEVICES})
    untaint(transport, node)
    slices = (msgspec.convert({"driver": GPU, "pool": {"name": "promised"}, "devices": _DEVICES}, ResourceSliceSpec),)
    kind = replace(builders.instance_type("m7a.xlarge", spot=None), slices=slices)

    def planned() -> Packing:
        cluster = KubernetesCluster(transport, now=Clock().now, node_class=EC2NodeClass)
        return plan(Problem(snapshot=cluster.snapshot(), instance_types={"default": (kind,)})).packing

    def bound() -> list[str]:
        pods = _listed(transport, "/api/v1/namespaces/default/pods")
        return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]

    objects.put(transport, _asking("a", "1"))
    assert until(bound) == ["n2"]
    objects.put(transport, _asking("b", "2"))
    control_plane.kubectl("wait", "pod", "b", "--for=condition=PodScheduled=false", "--timeout=30s")
    assert [launch.pods for launch in planned().launches] == [("default/b",)]
    objects.sweep(transport)


def test_an_expression_that_the_api_server_takes_is_read_here(api_server: ControlPlane) -> None:
    """And one that it refuses, because types do not fit or a name is unknown, selects no device."""
    transport = objects.connect(api_server)
    assert {text: why for text in _TAKEN if (why := _refusal(transport, text))} == {}
    assert [text for text in _REFUSED if not _refusal(transport, text)] == []
    assert [text for text in _TAKEN if not _is_read(text)] == []
    assert [text for text in _REFUSED if _is_read(text) and _selects(text)] == []


_TAKEN = (
    "device.driver == 'x' && !device.allowMultipleAllocations",
    f"{OWN}.model.lowerAscii().matches('^.*l4$')",
    f"{OWN}['model'] in ['a', 'b']",
    "device.capacity['x'].memory.compareTo(quantity('22Gi')) >= 0",
    "device.capacity['x'].memory.isGreaterThan(quantity('1Gi').add(quantity('1Mi')).sub(1))",
    f"{OWN}.driverVersion.isGreaterThan(semver('8.0.0')) && {OWN}.driverVersion.major() == 8",
    "isSemver('1.0.0') && isQuantity('1Gi')",
    "quantity('1').isInteger()",
    "semver('v1.2', true).minor() == 2",
    f"cel.bind(gpu, {OWN}, gpu.healthy && gpu.minor > 3)",
    f"has({OWN}.minor) && {OWN}.?other.orValue(3) == 3 && {OWN}[?'minor'].hasValue()",
    "[1, 2, 3].all(x, x > 0) && [1, 2].exists(x, x == 1) && [1].exists_one(x, x == 1)",
    "[1, 2].map(x, x * 2).filter(x, x > 2).size() == 1 && [1, 2][-1] == 2",
    "['a', 'b'].exists(place, item, place == 1 && item == 'b')",
    "sets.contains([1, 2], [1]) && sets.intersects([1], [1]) && sets.equivalent([1], [1])",
    "'a-b'.split('-')[0] == 'a' && 'abc'.substring(1) == 'bc' && ' a '.trim() == 'a' && 'abc'.charAt(1) == 'b'",
    "'abc'.replace('a', 'b') == 'bbc'",
    "'abc'.indexOf('b') == 1 && 'aba'.lastIndexOf('a') == 2",
    "[1, 2].max() == 2 && [1, 2].min() == 1 && [1, 2].indexOf(2) == 1",
    "'a'.startsWith('a') || 'a'.endsWith('a') || 'a'.contains('a') || 'A'.upperAscii() == 'A'",
    "(1 < 2 ? 'a' : 'b') == 'a' && int(1.5) == 1 && double(1) == 1.0 && string(1) == '1' && dyn(1) == 1",
)
_REFUSED = (
    "", "device.", "device.nothing == 1", "nothing", "device.driver.nothing()", "1 +", "semver(1) == semver('1.0.0')",
    "device.driver", "1", "cel.nothing(1)", "sets.nothing([1], [2])",
)  # fmt: skip


def _refusal(transport: Transport, text: str) -> str:
    try:
        _put(transport, "deviceclasses?dryRun=All", "x", {"selectors": [{"cel": {"expression": text}}]})
    except JoineryError as error:
        return str(error)
    return ""


def _selects(text: str) -> bool:
    try:
        return compiled(text)(device_of(GPU, {"minor": 1}, {}, is_shared=False))
    except ExpressionError:
        return False


def _is_read(text: str) -> bool:
    try:
        compiled(text)
    except ExpressionError:
        return False
    return True
