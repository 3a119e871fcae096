"""A list that the API server refuses with 403: what decisions can do without is missing, the rest names the right."""

from typing import Any

import msgspec
import pytest

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.api_errors import Response
from joinery.objects.errors import DeniedError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.kubernetes.core import ObjectMeta, PriorityClass
from simulator import builders
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster
from tests.functional.in_process import InProcess


class Forbidding(InProcess):
    """An API server whose authorizer refuses one list, in its own words, or that does not know the kind (404)."""

    def __init__(self, cluster: InMemoryCluster, plural: str, code: int = 403) -> None:
        super().__init__(cluster)
        self.plural, self.code = plural, code

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        if path.partition("?")[0].endswith(f"/{self.plural}"):
            text = f'{self.plural} is forbidden: User "joinery" cannot list resource "{self.plural}"'
            return Response(self.code, msgspec.json.encode({"kind": "Status", "code": self.code, "message": text}))
        return super().ask(method, path, body, **options)


#: A pod for whose sake kinds are read that others do not need.
CLAIMING: dict[str, Any] = {
    "scheduling_group": {"podGroupName": "train"},
    "resource_claims": [{"name": "gpu", "resourceClaimName": "gpu"}],
}


def _without(plural: str, code: int = 403) -> KubernetesCluster:
    clock = Clock()
    cluster = InMemoryCluster(clock, builders.node(), builders.pod(**CLAIMING))
    return KubernetesCluster(Forbidding(cluster, plural, code), now=clock.now, node_class=EC2NodeClass)


@pytest.mark.parametrize(
    ("plural", "kind"),
    [
        ("priorityclasses", "PriorityClass"), ("csinodes", "CSINode"), ("csidrivers", "CSIDriver"),
        ("csistoragecapacities", "CSIStorageCapacity"), ("podgroups", "PodGroup"),
        ("resourceclaims", "ResourceClaim"), ("resourceslices", "ResourceSlice"),
    ],
)  # fmt: skip
def test_what_decisions_can_do_without_is_missing_and_said(plural: str, kind: str) -> None:
    """The rest of the snapshot is there, and every run logs what is not."""
    snapshot = _without(plural).snapshot()
    assert (len(snapshot.nodes), len(snapshot.pods)) == (1, 1)
    ((missing, name, reason),) = [(each.kind, each.name, each.reason) for each in snapshot.invalid]
    assert (missing, name) == (kind, "(all)")
    assert f"the right to list {plural}." in reason


def test_a_cluster_without_storage_capacity_tracking_has_none() -> None:
    """It came with Kubernetes 1.24; an API server that does not know the kind has no objects of it."""
    snapshot = _without("csistoragecapacities", 404).snapshot()
    assert (len(snapshot.nodes), snapshot.storage_capacities, snapshot.invalid) == (1, (), ())


@pytest.mark.parametrize(
    ("plural", "resource"),
    [
        ("pods", "pods"), ("nodes", "nodes"), ("daemonsets", "daemonsets.apps"),
        ("poddisruptionbudgets", "poddisruptionbudgets.policy"), ("nodeclaims", "nodeclaims.karpenter.sh"),
        ("volumeattachments", "volumeattachments.storage.k8s.io"),
    ],
)  # fmt: skip
def test_what_decisions_need_is_an_error_that_names_the_right(plural: str, resource: str) -> None:
    """A plan that knows no pods, or a drain that knows no volumes, would be wrong."""
    with pytest.raises(
        DeniedError, match=f"the right to list {resource} is missing: deploy again, or apply manifests/rbac.yaml"
    ):
        _without(plural).snapshot()


def test_a_right_that_is_given_back_is_used_at_once() -> None:
    """By a warm function too, which remembers what it has read."""
    clock = Clock()
    transport = Forbidding(
        InMemoryCluster(clock, PriorityClass(metadata=ObjectMeta(name="high"), value=7)), "priorityclasses"
    )
    cluster = KubernetesCluster(transport, now=clock.now, node_class=EC2NodeClass)
    for _ in range(2):
        assert cluster.snapshot().priority_classes == ()
    transport.plural = "nothing"
    snapshot = cluster.snapshot()
    assert ([each.value for each in snapshot.priority_classes], snapshot.invalid) == ([7], ())
