"""The rights that users grant, on a real API server: what the doors need, and no more."""

import json

import pytest

from joinery.cluster.transport import Transport
from tests.controlplane.objects import MANIFESTS, connect, install
from tools.controlplane.plane import JOINERY, ControlPlane

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
READ = [
    "pods", "nodes", "persistentvolumes", "persistentvolumeclaims", "namespaces", "storageclasses.storage.k8s.io",
    "csinodes.storage.k8s.io", "volumeattachments.storage.k8s.io", "daemonsets.apps", "priorityclasses.scheduling.k8s.io",
    "poddisruptionbudgets.policy", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws",
]  # fmt: skip
NEEDED = [f"list {resource}" for resource in READ] + [
    "create nodeclaims.karpenter.sh",
    "patch nodeclaims.karpenter.sh",
    "delete nodeclaims.karpenter.sh",
    "patch nodeclaims.karpenter.sh/status",
    "update nodeclaims.karpenter.sh/finalizers",
    "patch nodepools.karpenter.sh",
    "patch nodepools.karpenter.sh/status",
    "patch ec2nodeclasses.karpenter.k8s.aws",
    "patch ec2nodeclasses.karpenter.k8s.aws/status",
    "patch nodes",
    "delete nodes",
    "patch pods/status",
    "delete pods",
    "create pods/eviction",
    "create events",
    "patch events",
    "create events.events.k8s.io",
    "patch events.events.k8s.io",
]
REFUSED = [
    "list secrets",
    "list configmaps",
    "create pods",
    "patch pods",
    "create pods/exec",
    "create nodes",
    "patch nodes/status",
    "delete nodepools.karpenter.sh",
    "create nodepools.karpenter.sh",
    "delete ec2nodeclasses.karpenter.k8s.aws",
    "delete poddisruptionbudgets.policy",
    "delete persistentvolumeclaims",
    "delete volumeattachments.storage.k8s.io",
    "patch clusterroles.rbac.authorization.k8s.io",
    "list leases.coordination.k8s.io",
]


@pytest.fixture(scope="module")
def transport(api_server: ControlPlane) -> Transport:
    """An API server with manifests/rbac.yaml."""
    install(api_server, MANIFESTS / "crds", MANIFESTS / "rbac.yaml")
    return connect(api_server)


def may(transport: Transport, sentence: str, **where: str) -> bool:
    """Whether the group joinery may: ``verb resource.group/subresource``."""
    verb, _, what = sentence.partition(" ")
    resource, _, subresource = what.partition("/")
    plural, _, group = resource.partition(".")
    attributes = {"verb": verb, "resource": plural, "group": group, "subresource": subresource, **where}
    review = {"spec": {"user": JOINERY.name, "groups": list(JOINERY.groups), "resourceAttributes": attributes}}
    return bool(json.loads(transport.request("POST", REVIEWS, review))["status"]["allowed"])


@pytest.mark.parametrize("sentence", NEEDED)
def test_a_door_may(sentence: str, transport: Transport) -> None:
    """Every call that the Kubernetes adapter makes is allowed, in any namespace."""
    assert may(transport, sentence)


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_door_may_not(sentence: str, transport: Transport) -> None:
    """A stolen role reads no secrets, runs nothing and leaves the users' configuration where it is."""
    assert not may(transport, sentence)


@pytest.mark.parametrize("verb", ["get", "update", "patch"])
def test_a_door_may_hold_one_lease_and_no_other(verb: str, transport: Transport) -> None:
    """``joinery-decisions`` in kube-system; the leases of nodes and controllers are none of ours."""
    sentence = f"{verb} leases.coordination.k8s.io"
    assert may(transport, sentence, namespace="kube-system", name="joinery-decisions")
    assert not may(transport, sentence, namespace="kube-system", name="kube-scheduler")
    assert not may(transport, sentence, namespace="kube-node-lease", name="joinery-decisions")


def test_the_lease_can_be_made(transport: Transport) -> None:
    """The first decision of a cluster finds none."""
    assert may(transport, "create leases.coordination.k8s.io", namespace="kube-system")
