"""What the real API server stores in a pod, and what it refuses in a NodeClaim."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.provisioning import ProvisioningController
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.objects.annotations.plans import planned_pods
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.settings import Settings
from simulator import builders
from simulator.world import CLUSTER, World
from tests.controlplane import objects
from tools.controlplane.plane import DOORS, ControlPlane

GOOD = ("default/good-0", "default/good-1", "default/good-2")


class Provisioning:
    """The door's controller on the real API server, as its own user; EC2 is played."""

    def __init__(self, plane: ControlPlane) -> None:
        self.world = World()
        self.admin = objects.connect(plane)
        self.cluster = KubernetesCluster(
            objects.connect(plane, DOORS["provisioning"]), now=self.world.clock.now, node_class=EC2NodeClass
        )

    def put(self, *items: Any) -> None:
        objects.put(self.admin, *items)

    def run(self) -> None:
        gateways = replace(self.world.gateways, cluster=self.cluster)
        ProvisioningController(gateways, Settings(cluster=CLUSTER)).reconcile(Invocation("a"))

    @property
    def planned(self) -> set[str]:
        """The pods that the claims on the API server are for."""
        return {name for claim in self.cluster.snapshot().node_claims for name in planned_pods(claim)}

    def messages(self, reason: str) -> dict[str, str]:
        return {event.name: event.message for event in self.world.cluster.events if event.reason == reason}


@pytest.fixture
def provisioning(joinery_api_server: ControlPlane) -> Iterator[Provisioning]:
    """A NodePool that leaves a label of its own open, and three pods that fit together."""
    provisioning = Provisioning(joinery_api_server)
    objects.sweep(provisioning.admin)
    provisioning.put(builders.node_class(), builders.node_pool(requirements=[{"key": "team", "operator": "Exists"}]))
    provisioning.put(*(builders.pod(f"good-{number}", cpu="900m") for number in range(3)))
    yield provisioning
    objects.sweep(provisioning.admin)


def _affinity(required: bool, *expressions: dict[str, Any]) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions)}
    if required:
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term}]}}


def test_a_preference_for_a_value_that_no_label_has_starves_nobody(provisioning: Provisioning) -> None:
    """The API server stores it in the pod, and would refuse it as a claim's label."""
    impossible = {"key": "team", "operator": "In", "values": ["Platform & Data!"]}
    provisioning.put(builders.pod("picky", cpu="900m", affinity=_affinity(False, impossible)))
    provisioning.run()
    assert provisioning.planned == {*GOOD, "default/picky"}
    assert set(provisioning.messages("Nominated")) == {"good-0", "good-1", "good-2", "picky"}


def test_a_claim_that_is_refused_takes_down_its_cause_alone(provisioning: Provisioning) -> None:
    """A pod may say more of its node's labels than a NodeClaim has room for."""
    labels = [f"example.com/rule-{number}" for number in range(44)]
    open_ = [{"key": label, "operator": "Exists"} for label in labels]
    provisioning.put(builders.node_pool("labelled", requirements=open_, weight=100))
    said = (("Gt", "1"), ("Lt", "9"), ("NotIn", "5"))
    listed = [{"key": label, "operator": operator, "values": [to]} for label in labels for operator, to in said]
    provisioning.put(builders.pod("many", cpu="900m", affinity=_affinity(True, *listed)))
    provisioning.run()
    assert provisioning.planned == set(GOOD)
    assert set(provisioning.messages("Nominated")) == {"good-0", "good-1", "good-2"}
    assert "must have at most 100 items" in provisioning.messages("FailedScheduling")["many"]


def test_a_pool_whose_claims_are_refused_leaves_the_pods_to_another(provisioning: Provisioning) -> None:
    """Its template has an annotation that the API server takes in a NodePool's template,
    and in no object's metadata.
    """
    provisioning.put(builders.node_pool("bad", weight=100, annotations={"no name!": "x"}))
    with pytest.raises(ConfigurationError, match="no name!"):
        provisioning.run()
    assert provisioning.planned == set(GOOD)
    pools = {claim.metadata.labels["karpenter.sh/nodepool"] for claim in provisioning.cluster.snapshot().node_claims}
    assert pools == {"default"}
