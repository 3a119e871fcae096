"""The fences around the rights, on a real API server: what somebody with a stolen role tries, and what the doors do.

Each attack is one that RBAC alone lets through. They are tried as the group joinery and as dry runs, so that one that
gets through does no harm to the next.
"""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from joinery.gateways.kubernetes.patches import Document
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from tests.controlplane.objects import MANIFEST_FILES, MANIFESTS, connect, documents, install, sweep, uninstall
from tools.controlplane.plane import JOINERY, ControlPlane

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
SYSTEM_PODS = "/api/v1/namespaces/kube-system/pods"
POOLS, CLAIMS = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.sh/v1/nodeclaims"
CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"

UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
DEDICATED = {"key": "team", "value": "gpu", "effect": "NoSchedule"}
#: The API server gives it to every new node.
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
OWNER = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "a", "uid": "u", "blockOwnerDeletion": True}
STRANGER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}


def node(name: str, labels: Document, *taints: Document, **metadata: Any) -> Document:
    """A Node as its kubelet registers it."""
    spec = {"providerID": f"aws:///us-east-1a/i-{name}", "taints": list(taints)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, **metadata}, "spec": spec}


def pod(name: str, node_name: str) -> Document:
    """A bound pod of one container."""
    spec = {"containers": [{"name": "main", "image": "none"}], "terminationGracePeriodSeconds": 30}
    return {"metadata": {"name": name}, "spec": {**spec, **({"nodeName": node_name} if node_name else {})}}


def class_reference(group: str) -> Document:
    """A reference to a node class of that group. Karpenter 1.0 stored blanks, when there was only one kind."""
    return {"group": group, "kind": "EC2NodeClass" if group else "", "name": "default"}


def node_pool(name: str, group: str = "karpenter.k8s.aws") -> Document:
    """A NodePool with a limit, a finalizer and annotations of its owner."""
    reference = class_reference(group)
    requirements = [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]
    metadata = {"name": name, "labels": {"team": "red"}, "annotations": {"joinery.dev/disruption": "stop"}}
    spec = {"limits": {"cpu": "10"}, "template": {"spec": {"nodeClassRef": reference, "requirements": requirements}}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}


NODE_CLASS: Document = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default", "finalizers": ["karpenter.k8s.aws/termination"]},
    "spec": {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "nodes",
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
    },
}


def node_claim(name: str, group: str = "karpenter.k8s.aws") -> Document:
    """A NodeClaim, of that provider."""
    reference = class_reference(group)
    requirements = [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]
    metadata = {"name": name, "finalizers": ["karpenter.sh/termination"]}
    spec = {"nodeClassRef": reference, "requirements": requirements}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec}


REGISTERED = {"karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "tier": "front"}
#: EKS Auto Mode is a Karpenter of its own: its nodes carry the same marks as ours.
AUTO = {**REGISTERED, "eks.amazonaws.com/compute-type": "auto"}
ELSEWHERE: Document = {"spec": {"providerID": "kwok://fake", "taints": [UNREGISTERED]}}
CLUSTER: list[tuple[str, Document]] = [
    (NODES, node("foreign", {"eks.amazonaws.com/nodegroup": "system"})),
    (
        NODES,
        node("ours", REGISTERED, DEDICATED, annotations={"karpenter.sh/do-not-disrupt": "true"}, finalizers=["x/y"]),
    ),
    (NODES, node("young", {"karpenter.sh/nodepool": "default"}, UNREGISTERED)),
    (NODES, node("custom", {}, UNREGISTERED) | {"spec": {"taints": [UNREGISTERED]}}),
    (NODES, node("legacy", {"karpenter.sh/provisioner-name": "default"})),
    (NODES, node("auto", AUTO)),
    (NODES, node("auto-young", {"eks.amazonaws.com/compute-type": "auto"}, UNREGISTERED)),
    (NODES, node("kwok", {"karpenter.sh/nodepool": "fake"}) | ELSEWHERE),
    (PODS, pod("bound", "foreign")),
    (PODS, pod("waiting", "")),
    (SYSTEM_PODS, pod("coredns", "foreign")),
    (CLASSES, NODE_CLASS),
    (POOLS, node_pool("default")),
    (POOLS, node_pool("azure", "karpenter.azure.com")),
    (CLAIMS, node_claim("default-1")),
    (CLAIMS, node_claim("azure-1", "karpenter.azure.com")),
]


@pytest.fixture(scope="module")
def ours(api_server: ControlPlane, until: Callable[[Callable[[], Any]], Any]) -> Iterator[Transport]:
    """The group joinery, in a cluster with these objects and every fence in force."""
    legacy = MANIFESTS.parent / "tests" / "controlplane" / "legacy-crds.yaml"
    install(api_server, *MANIFEST_FILES, legacy)
    admin = connect(api_server)
    sweep(admin)
    for path, document in CLUSTER:
        admin.request("POST", path, document)
    for path, kind in LEGACY.items():
        admin.request("POST", path, kind)
    transport = connect(api_server, JOINERY)
    for probe in PROBES:
        until(partial(refused, transport, *probe))
    yield transport
    for path in LEGACY:
        admin.request("PATCH", f"{path}/default", {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
    sweep(admin)
    uninstall(admin, *documents(legacy))


def legacy_object(kind: str, group: str, **spec: Any) -> Document:
    """An object of Karpenter v0.31."""
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "default"}, "spec": spec}


LEGACY = {
    "/apis/karpenter.sh/v1alpha5/provisioners": legacy_object(
        "Provisioner", "karpenter.sh/v1alpha5", limits={"resources": {"cpu": "10"}}
    ),
    "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates": legacy_object(
        "AWSNodeTemplate", "karpenter.k8s.aws/v1alpha1", subnetSelector={"a": "b"}
    ),
    "/apis/karpenter.sh/v1alpha5/machines": legacy_object(
        "Machine", "karpenter.sh/v1alpha5", machineTemplateRef={"name": "default"}
    ),
}
PROVISIONERS, TEMPLATES, MACHINES = LEGACY


def asked(transport: Transport, method: str, path: str, body: Any = None) -> tuple[int, str]:
    """What the API server answers to something that is only tried."""
    content = MERGE_PATCH if method == "PATCH" else "application/json"
    if method == "DELETE":  # the API server reads the options of a deletion in one place only
        body = {**(body or {}), "dryRun": ["All"]}
    answer = transport.ask(method, f"{path}?dryRun=All", body, content_type=content)
    return answer.code, answer.status.message if answer.code >= 400 else ""


def refused(transport: Transport, method: str, path: str, body: Any, policy: str) -> str:
    """The refusal in the policy's words; nothing if somebody else refused it, or nobody."""
    code, text = asked(transport, method, path, body)
    return text if code in (403, 422) and f"ValidatingAdmissionPolicy '{policy}'" in text else ""


def metadata(**fields: Any) -> Document:
    """A merge patch of an object's metadata."""
    return {"metadata": fields}


def tainted(*taints: Document) -> Document:
    """A merge patch that gives a node these taints and no others."""
    return {"spec": {"taints": list(taints)}}


FOREIGN, OURS, YOUNG, CUSTOM, OLD = (f"{NODES}/{name}" for name in ("foreign", "ours", "young", "custom", "legacy"))
NODE_ATTACKS: list[tuple[str, str, Any]] = [
    ("DELETE", FOREIGN, None),
    ("PATCH", FOREIGN, tainted(DISRUPTED)),
    ("PATCH", FOREIGN, tainted(UNREGISTERED)),
    ("PATCH", FOREIGN, metadata(labels={"team": "red"})),
    ("PATCH", FOREIGN, metadata(labels={"karpenter.sh/nodepool": "default"})),
    ("PATCH", FOREIGN, metadata(finalizers=["karpenter.sh/termination"])),
    ("PATCH", FOREIGN, metadata(ownerReferences=[OWNER])),
    ("PATCH", CUSTOM, {"spec": {"providerID": "aws:///us-east-1a/i-other"}}),
    ("PATCH", OURS, {"spec": {"unschedulable": True}}),
    ("PATCH", OURS, metadata(labels={"karpenter.sh/nodepool": None})),
    ("PATCH", OURS, metadata(labels={"karpenter.sh/nodepool": "other"})),
    ("PATCH", OURS, metadata(labels={"karpenter.sh/registered": None})),
    ("PATCH", OURS, metadata(labels={"tier": "back"})),
    ("PATCH", OURS, metadata(labels={"tier": None})),
    ("PATCH", OURS, metadata(labels={"node-restriction.kubernetes.io/pci": "true"})),
    ("PATCH", OURS, metadata(labels={"node-role.kubernetes.io/control-plane": ""})),
    ("PATCH", OURS, tainted(NOT_READY)),
    ("PATCH", OURS, tainted(DEDICATED)),
    ("PATCH", OURS, tainted({**DEDICATED, "value": "red"}, NOT_READY)),
    ("PATCH", OURS, tainted(DEDICATED, NOT_READY, {"key": "mine", "effect": "NoExecute"})),
    ("PATCH", OURS, metadata(annotations={"karpenter.sh/do-not-disrupt": None})),
    ("PATCH", OURS, metadata(annotations={"note": "x"})),
    ("PATCH", OURS, metadata(finalizers=[])),
    ("PATCH", OURS, metadata(finalizers=["x/y", "x/z"])),
    ("PATCH", OURS, metadata(ownerReferences=[STRANGER])),
    ("PATCH", YOUNG, metadata(labels={"karpenter.sh/nodepool": None})),
    ("PATCH", CUSTOM, tainted()),
    ("PATCH", OLD, metadata(labels={"karpenter.sh/provisioner-name": None})),
    ("DELETE", f"{NODES}/auto", None),
    ("PATCH", f"{NODES}/auto", tainted(NOT_READY, DISRUPTED)),
    ("PATCH", f"{NODES}/auto", metadata(labels={"eks.amazonaws.com/compute-type": None})),
    ("PATCH", f"{NODES}/auto-young", metadata(labels={"team": "red"})),
    ("PATCH", f"{NODES}/auto-young", tainted()),
    ("DELETE", f"{NODES}/kwok", None),
]
CONFIGURATION_ATTACKS: list[tuple[str, str, Any]] = [
    ("PATCH", f"{POOLS}/default", {"spec": {"limits": {"cpu": "10000"}}}),
    ("PATCH", f"{POOLS}/default", {"spec": {"weight": 100}}),
    ("PATCH", f"{POOLS}/default", metadata(labels={"team": "blue"})),
    ("PATCH", f"{POOLS}/default", metadata(annotations={"joinery.dev/disruption": None})),
    ("PATCH", f"{POOLS}/default", metadata(annotations={"joinery.dev/disruption-price": "0"})),
    ("PATCH", f"{POOLS}/default", metadata(finalizers=["x/never"])),
    ("PATCH", f"{POOLS}/default", metadata(ownerReferences=[STRANGER])),
    ("PATCH", f"{POOLS}/azure", metadata(annotations={"karpenter.sh/nodepool-hash": "1"})),
    ("PATCH", f"{POOLS}/azure/status", {"status": {"nodes": 3}}),
    ("PATCH", f"{CLASSES}/default", {"spec": {"userData": "#!/bin/sh"}}),
    ("PATCH", f"{CLASSES}/default", {"spec": {"amiSelectorTerms": [{"alias": "al2@latest"}]}}),
    ("PATCH", f"{CLASSES}/default", {"spec": {"role": "admin"}}),
    ("PATCH", f"{CLASSES}/default", metadata(annotations={"joinery.dev/canary-approved": "ami-1"})),
    ("PATCH", f"{CLASSES}/default", metadata(finalizers=[])),
    ("PATCH", f"{PROVISIONERS}/default", {"spec": {"limits": {"resources": {"cpu": "10000"}}}}),
    ("PATCH", f"{PROVISIONERS}/default", metadata(labels={"team": "blue"})),
    ("PATCH", f"{TEMPLATES}/default", {"spec": {"userData": "#!/bin/sh"}}),
]
CLAIM_ATTACKS: list[tuple[str, str, Any]] = [
    ("POST", CLAIMS, node_claim("new", "karpenter.azure.com")),
    ("DELETE", f"{CLAIMS}/azure-1", None),
    ("PATCH", f"{CLAIMS}/azure-1", metadata(finalizers=None)),
    ("PATCH", f"{CLAIMS}/azure-1/status", {"status": {"providerID": "i"}}),
    ("PATCH", f"{CLAIMS}/default-1", metadata(finalizers=["karpenter.sh/termination", "x/never"])),
    ("PATCH", f"{MACHINES}/default", {"spec": {"machineTemplateRef": {"name": "other"}}}),
    ("PATCH", f"{MACHINES}/default", metadata(finalizers=["x/never"])),
]
LEASE_ATTACKS: list[tuple[str, str, Any]] = [
    ("PATCH", f"{LEASES}/joinery-decisions", metadata(ownerReferences=[STRANGER])),
    ("PATCH", f"{LEASES}/joinery-decisions", metadata(finalizers=["x/never"])),
]


def event(reporter: str) -> Document:
    """An Event about a pod."""
    about = {"kind": "Pod", "name": "web", "namespace": "default"}
    moment = "2026-11-22T12:00:00.000000Z"
    return {
        "metadata": {"name": "told"}, "eventTime": moment, "reportingController": reporter, "reportingInstance": "x",
        "action": "Scheduling", "reason": "FailedScheduling", "regarding": about, "type": "Warning",
    }  # fmt: skip


EVENT_ATTACKS: list[tuple[str, str, Any]] = [("POST", EVENTS, event("default-scheduler"))]


def eviction(name: str, **options: Any) -> Document:
    """A request to the eviction API."""
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}


POD_ATTACKS: list[tuple[str, str, Any]] = [
    ("DELETE", f"{PODS}/bound", {"gracePeriodSeconds": 0}),
    ("DELETE", f"{SYSTEM_PODS}/coredns", {"gracePeriodSeconds": 0}),
    ("DELETE", f"{PODS}/waiting", {"gracePeriodSeconds": 30}),
    ("POST", f"{PODS}/bound/eviction", eviction("bound", gracePeriodSeconds=0)),
    ("POST", f"{SYSTEM_PODS}/coredns/eviction", eviction("coredns", gracePeriodSeconds=0)),
]
ATTACKS = {
    "joinery-nodes": NODE_ATTACKS,
    "joinery-configuration": CONFIGURATION_ATTACKS,
    "joinery-claims": CLAIM_ATTACKS,
    "joinery-leases": LEASE_ATTACKS,
    "joinery-events": EVENT_ATTACKS,
    "joinery-pod-ends": POD_ATTACKS,
}
#: One attack of each policy: once it is refused, the API server heeds the policy.
PROBES = [(*attacks[0], policy) for policy, attacks in ATTACKS.items()]


@pytest.mark.parametrize(
    ("policy", "method", "path", "body"),
    [(policy, *attack) for policy, attacks in ATTACKS.items() for attack in attacks],
    ids=[f"{a[0]} {'/'.join(a[1].split('/')[-2:])} {i}" for attacks in ATTACKS.values() for i, a in enumerate(attacks)],
)
def test_an_attack_is_refused_by_the_fence(policy: str, method: str, path: str, body: Any, ours: Transport) -> None:
    """By the policy that is named after what it guards, and not by accident."""
    assert refused(ours, method, path, body, policy), asked(ours, method, path, body)


def test_nobody_makes_another_lease(ours: Transport) -> None:
    """Neither another name in kube-system, nor ours again."""
    for name in ("kube-scheduler-2", "joinery-decisions"):
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
        assert asked(ours, "POST", LEASES, lease)[0] == 403


REGISTRATION = {
    "metadata": {
        "labels": {"karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "team": "red"},
        "annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "1"},
        "finalizers": ["karpenter.sh/termination"],
        "ownerReferences": [OWNER],
    },
    "spec": {"taints": [DEDICATED, {"key": "joinery.dev/planned", "value": "a", "effect": "NoSchedule"}]},
}
EXCLUDED = metadata(labels={"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"})
CLAIM_NOTES = metadata(annotations={"joinery.dev/launch-token": "t"}, labels={"topology.kubernetes.io/zone": "a"})
NEEDED: list[tuple[str, str, Any]] = [
    ("PATCH", YOUNG, REGISTRATION),
    ("PATCH", CUSTOM, REGISTRATION),
    ("PATCH", OLD, REGISTRATION),
    ("PATCH", OURS, tainted(DEDICATED, NOT_READY, DISRUPTED)),
    ("PATCH", OURS, EXCLUDED),
    ("PATCH", OURS, metadata(labels={"karpenter.sh/initialized": "true"})),
    ("PATCH", OURS, metadata(annotations={"joinery.dev/drain-stalled": "{}"})),
    ("PATCH", OURS, metadata(finalizers=["x/y", "karpenter.sh/termination"])),
    ("DELETE", OURS, None),
    ("DELETE", CUSTOM, None),
    ("DELETE", OLD, None),
    ("PATCH", f"{POOLS}/default", metadata(annotations={"karpenter.sh/nodepool-hash": "1"})),
    ("PATCH", f"{POOLS}/default", metadata(annotations={"joinery.dev/registrations": "[]"})),
    ("PATCH", f"{POOLS}/default/status", {"status": {"nodes": 3}}),
    ("PATCH", f"{CLASSES}/default", metadata(annotations={"karpenter.k8s.aws/ec2nodeclass-hash": "1"})),
    ("PATCH", f"{CLASSES}/default", metadata(annotations={"joinery.dev/canaries": "[]"})),
    ("PATCH", f"{PROVISIONERS}/default", metadata(annotations={"joinery.dev/written-as.nodepool": "{}"})),
    ("PATCH", f"{TEMPLATES}/default", metadata(annotations={"joinery.dev/written-as.ec2nodeclass": "{}"})),
    ("PATCH", f"{MACHINES}/default", metadata(finalizers=["karpenter.sh/termination"])),
    ("POST", CLAIMS, node_claim("new")),
    ("DELETE", f"{CLAIMS}/default-1", None),
    ("PATCH", f"{CLAIMS}/default-1", CLAIM_NOTES),
    ("PATCH", f"{CLAIMS}/default-1", metadata(finalizers=None)),
    ("PATCH", f"{LEASES}/joinery-decisions", {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 90}}),
    ("POST", EVENTS, event("joinery.dev/joinery")),
    ("DELETE", f"{PODS}/bound", {"gracePeriodSeconds": 1}),
    ("POST", f"{PODS}/bound/eviction", eviction("bound")),
    ("POST", f"{SYSTEM_PODS}/coredns/eviction", eviction("coredns")),
]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    NEEDED,
    ids=[f"{a[0]} {'/'.join(a[1].split('/')[-2:])} {i}" for i, a in enumerate(NEEDED)],
)
def test_what_a_door_does_passes_the_fence(method: str, path: str, body: Any, ours: Transport) -> None:
    """Registration, drain and end of a node, hashes and notes, claims, the Lease, Events."""
    code, text = asked(ours, method, path, body)
    assert code < 300, text


@contextmanager
def undemanding(admin: Transport, *names: str) -> Iterator[None]:
    """These definitions without a schema, as an older release's was for some fields."""
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    whole = {name: json.loads(admin.get(f"{place}/{name}"))["spec"]["versions"] for name in names}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    bare = {name: [{**version, "schema": schema} for version in versions] for name, versions in whole.items()}
    try:
        for name, versions in bare.items():
            admin.request("PATCH", f"{place}/{name}", {"spec": {"versions": versions}}, content_type=MERGE_PATCH)
        yield
    finally:
        for name, versions in whole.items():
            admin.request("PATCH", f"{place}/{name}", {"spec": {"versions": versions}}, content_type=MERGE_PATCH)


def test_what_names_its_class_by_name_alone_is_ours(ours: Transport, api_server: ControlPlane, until: Any) -> None:
    """So did Karpenter up to 1.0. Its nodes are to be drained and ended like others."""
    admin, claim, pool = connect(api_server), node_claim("blank", ""), node_pool("blank", "")
    with undemanding(admin, "nodeclaims.karpenter.sh", "nodepools.karpenter.sh"):
        until(lambda: admin.ask("POST", CLAIMS, claim).code == 201)
        until(lambda: admin.ask("POST", POOLS, pool).code == 201)
        for place, patch in (
            (f"{CLAIMS}/blank", metadata(finalizers=None)),
            (f"{CLAIMS}/blank/status", {"status": {"nodeName": "a"}}),
            (f"{POOLS}/blank", metadata(annotations={"karpenter.sh/nodepool-hash": "1"})),
        ):
            assert asked(ours, "PATCH", place, patch) == (200, "")
        assert asked(ours, "DELETE", f"{CLAIMS}/blank") == (200, "")
    until(lambda: asked(admin, "POST", CLAIMS, node_claim("another", ""))[0] == 422)


def test_a_class_gets_our_finalizer_and_no_other(ours: Transport, api_server: ControlPlane) -> None:
    """So that it stays until no node needs it. A finalizer on a NodePool would keep it for good."""
    admin, place = connect(api_server), f"{CLASSES}/guarded"
    admin.request("POST", CLASSES, copy.deepcopy(NODE_CLASS) | {"metadata": {"name": "guarded", "finalizers": ["x/y"]}})
    added = ["x/y", "karpenter.k8s.aws/termination"]
    for finalizers in (["x/y", "evil/one"], added[1:], [*added, added[1]]):
        assert "finalizer" in refused(ours, "PATCH", place, metadata(finalizers=finalizers), "joinery-configuration")
    ours.request("PATCH", place, metadata(finalizers=added), content_type=MERGE_PATCH)
    assert "finalizer" in refused(ours, "PATCH", place, metadata(finalizers=["x/y"]), "joinery-configuration")


def test_a_class_that_is_being_deleted_loses_our_finalizer(ours: Transport, api_server: ControlPlane) -> None:
    """That one alone, and then it is gone."""
    admin, place = connect(api_server), f"{CLASSES}/leaving"
    leaving = copy.deepcopy(NODE_CLASS)
    leaving["metadata"] = {"name": "leaving", "finalizers": ["karpenter.k8s.aws/termination", "x/y"]}
    admin.request("POST", CLASSES, leaving)
    admin.request("DELETE", place)
    assert "finalizer" in refused(ours, "PATCH", place, metadata(finalizers=None), "joinery-configuration")
    ours.request("PATCH", place, metadata(finalizers=["x/y"]), content_type=MERGE_PATCH)
    admin.request("PATCH", place, metadata(finalizers=None), content_type=MERGE_PATCH)
    assert admin.ask("GET", place).code == 404


@pytest.mark.parametrize("attack", [NODE_ATTACKS[1], NODE_ATTACKS[13], CONFIGURATION_ATTACKS[0], POD_ATTACKS[0]])
def test_nobody_else_is_fenced_in(attack: tuple[str, str, Any], api_server: ControlPlane, ours: Transport) -> None:
    """The policies are about us: administrators and controllers do what they may."""
    assert ours
    assert asked(connect(api_server), *attack) == (200, "")


def test_every_policy_fails_closed_and_is_bound(ours: Transport, api_server: ControlPlane) -> None:
    """A policy without a binding does nothing, and one that ignores its failures can be made to fail."""
    assert ours
    admin, root = connect(api_server), "/apis/admissionregistration.k8s.io/v1"
    policies = json.loads(admin.get(f"{root}/validatingadmissionpolicies"))["items"]
    bindings = json.loads(admin.get(f"{root}/validatingadmissionpolicybindings"))["items"]
    named = {policy["metadata"]["name"]: policy for policy in policies}
    assert {policy["spec"]["failurePolicy"] for policy in policies} == {"Fail"}
    assert {binding["spec"]["policyName"] for binding in bindings} == named.keys() >= ATTACKS.keys()


def test_a_role_that_is_mapped_to_its_door_s_group_alone_is_fenced_in(
    ours: Transport, api_server: ControlPlane
) -> None:
    """Whoever maps roles by hand may forget the group of all doors."""
    assert ours
    patch = ("patch", "nodepool", "default", "--type=merge", "--dry-run=server", '--patch={"spec": {"weight": 7}}')
    administrator = ("--as=anybody", "--as-group=system:masters")
    api_server.kubectl(*patch, *administrator)
    with pytest.raises(RuntimeError, match="joinery-configuration"):
        api_server.kubectl(*patch, *administrator, "--as-group=joinery-lifecycle")


def test_every_policy_is_about_the_same_groups(ours: Transport, api_server: ControlPlane) -> None:
    """One that forgets the doors' own groups would let them through."""
    assert ours
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    policies = json.loads(connect(api_server).get(path))["items"]
    assert len({str(policy["spec"]["matchConditions"]) for policy in policies}) == 1
