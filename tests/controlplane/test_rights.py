"""The rights that users grant, on a real API server: what the doors need, and no more."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from joinery.decisions.installation import shipped
from joinery.gateways.kubernetes.transport import JSON_PATCH, Transport
from joinery.objects.karpenter.disruption import OUR_DELETION_COST
from joinery.objects.karpenter.labels import PLANNED_TAINT
from simulator import builders
from simulator.kubernetes.resources import with_fields, with_metadata
from tests.controlplane.objects import MANIFEST_FILES, connect, install, put, remove
from tools.controlplane.plane import DOORS, JOINERY, ControlPlane, User

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CLAIMS = [
    "nodes", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws",
    "provisioners.karpenter.sh", "machines.karpenter.sh", "awsnodetemplates.karpenter.k8s.aws",
]  # fmt: skip
#: What every door may: look at claims and their nodes, and retire them.
RETIRING = [f"{verb} {resource}" for verb in ("list", "watch") for resource in CLAIMS] + [
    "patch nodes",
    "delete nodes",
    "patch nodeclaims.karpenter.sh",
    "delete nodeclaims.karpenter.sh",
    "patch machines.karpenter.sh",
    "delete machines.karpenter.sh",
    "create events.events.k8s.io",
]
DECIDED_BY = [
    "pods", "persistentvolumes", "persistentvolumeclaims", "namespaces", "storageclasses.storage.k8s.io",
    "csinodes.storage.k8s.io", "csidrivers.storage.k8s.io", "csistoragecapacities.storage.k8s.io",
    "volumeattachments.storage.k8s.io", "daemonsets.apps",
    "priorityclasses.scheduling.k8s.io", "poddisruptionbudgets.policy",
    "replicasets.apps", "statefulsets.apps", "jobs.batch", "replicationcontrollers", "nodeoverlays.karpenter.sh",
    "podgroups.scheduling.k8s.io", "podgroups.scheduling.x-k8s.io", "podgroups.scheduling.volcano.sh",
    "capacitybuffers.autoscaling.x-k8s.io", "provisioningrequests.autoscaling.x-k8s.io",
]  # fmt: skip
DECIDING = [f"{verb} {resource}" for verb in ("list", "watch") for resource in DECIDED_BY]
LAUNCHING = [
    "create nodeclaims.karpenter.sh",
    "patch nodeclaims.karpenter.sh/status",
    "patch machines.karpenter.sh/status",
    "update nodepools.karpenter.sh/finalizers",
    "update provisioners.karpenter.sh/finalizers",
    "get podtemplates",
    "get replicationcontrollers",
    "get deployments.apps",
    "get replicasets.apps",
    "get statefulsets.apps",
    "get rollouts.argoproj.io/scale",
    "list resourcequotas",
    "patch capacitybuffers.autoscaling.x-k8s.io/status",
    "patch provisioningrequests.autoscaling.x-k8s.io/status",
]
LIVING = [
    "patch nodeclaims.karpenter.sh/status",
    "update nodeclaims.karpenter.sh/finalizers",
    "patch nodepools.karpenter.sh",
    "patch nodepools.karpenter.sh/status",
    "patch nodeoverlays.karpenter.sh/status",
    "patch ec2nodeclasses.karpenter.k8s.aws",
    "patch ec2nodeclasses.karpenter.k8s.aws/status",
    "patch provisioners.karpenter.sh",
    "patch provisioners.karpenter.sh/status",
    "patch machines.karpenter.sh/status",
    "update machines.karpenter.sh/finalizers",
    "patch awsnodetemplates.karpenter.k8s.aws",
    "patch awsnodetemplates.karpenter.k8s.aws/status",
    "patch pods",
    "delete pods",
    "create pods/eviction",
    "get replicasets.apps",
    "get deployments.apps",
    "patch deployments.apps",
]
#: By door, all that it may.
NEEDED = {
    "provisioning": {*RETIRING, *DECIDING, *LAUNCHING},
    "disruption": {*RETIRING, *DECIDING, *LAUNCHING, "patch pods"},
    "lifecycle": {*RETIRING, *DECIDING, *LIVING},
    "expiration": {*RETIRING, *DECIDING},
    "interruption": {*RETIRING},
}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
REFUSED = [
    "list secrets",
    "watch secrets",
    "list configmaps",
    "list deployments.apps",
    "update deployments.apps",
    "delete deployments.apps",
    "patch deployments.apps/scale",
    "patch replicasets.apps",
    "patch statefulsets.apps",
    "create pods",
    "update pods",
    "patch pods/status",
    "patch pods/ephemeralcontainers",
    "create pods/exec",
    "create nodes",
    "patch nodes/status",
    "delete nodepools.karpenter.sh",
    "create nodepools.karpenter.sh",
    "delete provisioners.karpenter.sh",
    "create machines.karpenter.sh",
    "delete awsnodetemplates.karpenter.k8s.aws",
    "delete ec2nodeclasses.karpenter.k8s.aws",
    "delete poddisruptionbudgets.policy",
    "delete persistentvolumeclaims",
    "delete volumeattachments.storage.k8s.io",
    "patch clusterroles.rbac.authorization.k8s.io",
    "patch validatingadmissionpolicies.admissionregistration.k8s.io",
    "delete validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "list leases.coordination.k8s.io",
    "create leases.coordination.k8s.io",
    "delete leases.coordination.k8s.io",
    "create events",
    "patch events",
    "patch events.events.k8s.io",
    "update nodes",
    "update nodeclaims.karpenter.sh",
    "update nodepools.karpenter.sh",
    "update ec2nodeclasses.karpenter.k8s.aws",
    "deletecollection nodes",
    "deletecollection nodeclaims.karpenter.sh",
    "deletecollection pods",
]


@pytest.fixture(scope="module")
def transport(api_server: ControlPlane) -> Transport:
    """An API server with the rights and their fences."""
    install(api_server, *MANIFEST_FILES)
    return connect(api_server)


def may(transport: Transport, sentence: str, user: User = JOINERY, **where: str) -> bool:
    """Whether a user may: ``verb resource.group/subresource``. ``JOINERY`` may what any door may."""
    verb, _, what = sentence.partition(" ")
    resource, _, subresource = what.partition("/")
    plural, _, group = resource.partition(".")
    attributes = {"verb": verb, "resource": plural, "group": group, "subresource": subresource, **where}
    review = {"spec": {"user": user.name, "groups": list(user.groups), "resourceAttributes": attributes}}
    return bool(json.loads(transport.request("POST", REVIEWS, review))["status"]["allowed"])


@pytest.mark.parametrize("door", DOORS)
def test_a_door_may_do_its_own_work_and_no_other_s(door: str, transport: Transport) -> None:
    """Who steals the role of the interruption door can neither buy nodes, nor choose images, nor evict pods."""
    rights = sorted(set().union(*NEEDED.values()))

    assert {sentence for sentence in rights if may(transport, sentence, DOORS[door])} == NEEDED[door]


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_door_may_not(sentence: str, transport: Transport) -> None:
    """A stolen role reads no secrets, runs nothing and leaves the users' configuration where it is."""
    assert not may(transport, sentence)


@pytest.mark.parametrize("verb", ["get", "patch"])
def test_a_door_may_hold_one_lease_and_no_other(verb: str, transport: Transport) -> None:
    """``joinery-decisions`` in kube-system; the leases of nodes and controllers are none of ours."""
    sentence = f"{verb} leases.coordination.k8s.io"
    holders = [
        door for door, user in DOORS.items()
        if may(transport, sentence, user, namespace="kube-system", name="joinery-decisions")
    ]  # fmt: skip
    assert sorted(holders) == ["disruption", "expiration", "lifecycle", "provisioning"]
    assert not may(transport, sentence, namespace="kube-system", name="kube-scheduler")
    assert not may(transport, sentence, namespace="kube-node-lease", name="joinery-decisions")


def test_without_steering_nobody_may_patch_pods() -> None:
    """That right has a file of its own, which is left out where no setting needs it."""
    roles = [one for one in shipped.rights() if one["kind"] == "ClusterRole"]
    patching = {
        role["metadata"]["name"]
        for role in roles
        for rule in role["rules"]
        if "pods" in rule["resources"] and "patch" in rule["verbs"]
    }
    assert patching == {"joinery-steering", "joinery-on-demand-shares", "joinery-deletion-costs"}


def toleration(**given: str) -> dict[str, Any]:
    """A patch that adds a toleration: of our taint, unless ``given`` says otherwise."""
    ours = {"key": PLANNED_TAINT, "operator": "Equal", "value": "default-1", "effect": "NoSchedule", **given}
    return {"op": "add", "path": "/spec/tolerations/-", "value": {key: value for key, value in ours.items() if value}}


FORBIDDEN: list[dict[str, Any]] = [
    {"op": "replace", "path": "/spec/containers/0/image", "value": "other"},
    {"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 1},
    {"op": "add", "path": "/metadata/labels", "value": {"app": "web"}},
    {"op": "add", "path": "/metadata/annotations", "value": {"note": "x"}},
    {"op": "add", "path": "/metadata/annotations/note", "value": "x"},
    {"op": "remove", "path": "/metadata/annotations/kept"},
    {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/never"]},
    {"op": "add", "path": "/metadata/ownerReferences", "value": [OWNER]},
    toleration(key="dedicated"),
    toleration(effect="NoExecute"),
    toleration(effect=""),
    toleration(operator="Exists", value=""),
]


COST = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost"


@pytest.fixture(scope="module")
def place(transport: Transport, api_server: ControlPlane, until: Callable[[Callable[[], Any]], Any]) -> Iterator[str]:
    """Where a pod is, once the API server enforces the policy: it learns of a new one within moments."""
    pod = builders.pod("fenced", tolerations=[{"key": "any", "operator": "Exists"}], annotations={"kept": "y"})
    put(transport, pod)
    path, ours = "/api/v1/namespaces/default/pods/fenced", connect(api_server, JOINERY)
    until(lambda: refusal(ours, path, FORBIDDEN[3]))
    yield path
    remove(transport, pod)


def refusal(ours: Transport, place: str, operation: dict[str, Any]) -> str:
    """What the API server says to us about a patch, which it only tries; nothing if it would let it through."""
    answer = ours.ask("PATCH", f"{place}?dryRun=All", [operation], content_type=JSON_PATCH)
    return answer.status.message if answer.code >= 400 else ""


@pytest.mark.parametrize("operation", FORBIDDEN, ids=lambda operation: str(operation["path"]))
def test_a_pod_is_safe_from_a_stolen_role(operation: dict[str, Any], place: str, api_server: ControlPlane) -> None:
    """The right to patch pods, which steering needs, is fenced in by a policy:
    no image, no label, no other toleration.
    """
    assert "ValidatingAdmissionPolicy 'joinery-pods'" in refusal(connect(api_server, JOINERY), place, operation)


def test_a_door_may_let_a_pod_onto_the_node_that_is_kept_for_it(place: str, api_server: ControlPlane) -> None:
    """The one change that the policy lets through."""
    assert refusal(connect(api_server, JOINERY), place, toleration()) == ""


def test_a_door_may_say_which_pods_are_deleted_first(place: str, api_server: ControlPlane) -> None:
    """By its own value, which it may take back; any other value is a user's."""
    ours = connect(api_server, JOINERY)
    assert refusal(ours, place, {"op": "add", "path": COST, "value": OUR_DELETION_COST}) == ""
    assert "pod-deletion-cost" in refusal(ours, place, {"op": "add", "path": COST, "value": "-1"})


@pytest.mark.parametrize("value", [OUR_DELETION_COST, "5"])
def test_a_deletion_cost_of_a_user_is_left_alone(
    value: str, place: str, api_server: ControlPlane, transport: Transport
) -> None:
    """It can neither be changed nor removed; ours can be removed, and not changed either."""
    ours, pod = connect(api_server, JOINERY), "/api/v1/namespaces/default/pods/fenced"
    transport.request("PATCH", pod, [{"op": "add", "path": COST, "value": value}], content_type=JSON_PATCH)
    try:
        assert "pod-deletion-cost" in refusal(ours, place, {"op": "replace", "path": COST, "value": "7"})
        if value == OUR_DELETION_COST:
            assert refusal(ours, place, {"op": "remove", "path": COST}) == ""
        else:
            denied = [{"op": "remove", "path": COST}, {"op": "replace", "path": COST, "value": OUR_DELETION_COST}]
            assert all("pod-deletion-cost" in refusal(ours, place, operation) for operation in denied)
    finally:
        transport.request("PATCH", pod, [{"op": "remove", "path": COST}], content_type=JSON_PATCH)


FORBIDDEN_OF_DEPLOYMENTS: list[dict[str, Any]] = [
    {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other"},
    {"op": "add", "path": "/spec/template/spec/hostNetwork", "value": True},
    {"op": "add", "path": "/spec/template/spec/serviceAccountName", "value": "admin"},
    {"op": "add", "path": "/spec/template/metadata/labels/team", "value": "red"},
    {"op": "add", "path": "/spec/template/metadata/annotations/note", "value": "x"},
    {"op": "replace", "path": "/spec/template/metadata/annotations/kept", "value": "x"},
    {"op": "remove", "path": "/spec/template/metadata/annotations/kept"},
    {"op": "replace", "path": "/spec/replicas", "value": 0},
    {"op": "add", "path": "/spec/paused", "value": True},
    {"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}},
    {"op": "add", "path": "/metadata/labels", "value": {"app": "web"}},
    {"op": "add", "path": "/metadata/annotations", "value": {"note": "x"}},
    {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/never"]},
]
RESTART = {
    "op": "add",
    "path": "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt",
    "value": "now",
}


@pytest.fixture(scope="module")
def deployed(
    transport: Transport, api_server: ControlPlane, until: Callable[[Callable[[], Any]], Any]
) -> Iterator[str]:
    """Where a Deployment is, once the API server enforces its policy."""
    deployment = builders.deployment("fenced")
    template = with_metadata(deployment.spec.template, annotations={"kept": "y"})
    put(transport, with_fields(deployment, spec=with_fields(deployment.spec, template=template)))
    path, ours = "/apis/apps/v1/namespaces/default/deployments/fenced", connect(api_server, JOINERY)
    until(lambda: refusal(ours, path, FORBIDDEN_OF_DEPLOYMENTS[-1]))
    yield path
    remove(transport, deployment)


@pytest.mark.parametrize("operation", FORBIDDEN_OF_DEPLOYMENTS, ids=lambda operation: str(operation["path"]))
def test_a_deployment_is_safe_from_a_stolen_role(
    operation: dict[str, Any], deployed: str, api_server: ControlPlane
) -> None:
    """The right to patch Deployments, which a restart needs, is fenced in by a policy too."""
    denied = refusal(connect(api_server, JOINERY), deployed, operation)
    assert "ValidatingAdmissionPolicy 'joinery-deployments'" in denied


def test_a_door_may_restart_a_deployment(deployed: str, api_server: ControlPlane) -> None:
    """The one change that the policy lets through."""
    assert refusal(connect(api_server, JOINERY), deployed, RESTART) == ""


def test_nobody_else_is_fenced_in(place: str, transport: Transport) -> None:
    """The policy is about us: administrators and controllers do with pods what they may."""
    assert [refusal(transport, place, operation) for operation in FORBIDDEN[2:5]] == ["", "", ""]
