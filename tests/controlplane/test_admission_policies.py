"""ValidatingAdmissionPolicies of a real API server that deny NodeClaims: what they deny takes down its cause alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from joinery.gateways.kubernetes.gateway import Cluster
from joinery.objects.errors import ConfigurationError
from simulator import builders
from tests.controlplane.test_refused_claims import GOOD, Provisioning, provisioning
from tools.controlplane.plane import ControlPlane

__all__ = ["provisioning"]

POLICIES = Path(__file__).parents[1] / "data" / "policies"
COST_CENTER = "example.com/cost-center"


@contextmanager
def enforced(plane: ControlPlane, name: str, is_denied: Callable[[], bool], until: Any) -> Iterator[None]:
    """The policies of a file, from the moment when the API server heeds them until the end of the ``with``."""
    plane.kubectl("apply", "-f", str(POLICIES / f"{name}.yaml"))
    try:
        until(is_denied)
        yield
    finally:
        plane.kubectl("delete", "-f", str(POLICIES / f"{name}.yaml"))
        until(lambda: not is_denied())


def denies(cluster: Cluster, **labels: str) -> Callable[[], bool]:
    """Whether a claim with these labels is denied now."""

    def ask() -> bool:
        claim = builders.node_claim("probe", conditions=(), labels=labels, requirements=["kubernetes.io/os=linux"])
        owned = claim.metadata.model_copy(update={"owner_references": []})
        try:
            cluster.create_node_claim(claim.model_copy(update={"metadata": owned}), dry_run=True)
        except ConfigurationError as error:
            if "denied request" not in str(error):
                raise
            return True
        return False

    return ask


@pytest.fixture
def no_red_nodes(joinery_api_server: ControlPlane, provisioning: Provisioning, until: Any) -> Iterator[None]:
    """Claims with the label team=red are denied."""
    with enforced(joinery_api_server, "team-red", denies(provisioning.cluster, team="red"), until):
        yield


@pytest.fixture
def cost_center(joinery_api_server: ControlPlane, provisioning: Provisioning, until: Any) -> Iterator[None]:
    """Claims without a cost center cannot be judged, and are denied for that (``failurePolicy: Fail``)."""
    with enforced(joinery_api_server, "cost-center", denies(provisioning.cluster), until):
        yield


@pytest.mark.usefixtures("no_red_nodes")
def test_a_claim_that_a_policy_denies_takes_down_its_cause_alone(provisioning: Provisioning) -> None:
    """The pod is told in the policy's words, and the rest is bought in the same run."""
    provisioning.put(builders.pod("red", cpu="900m", node_selector={"team": "red"}))
    provisioning.run()
    assert provisioning.planned == set(GOOD)
    assert set(provisioning.messages("Nominated")) == {"good-0", "good-1", "good-2"}
    message = provisioning.messages("FailedScheduling")["red"]
    assert "the API server refuses the NodeClaim for it" in message
    assert "nodes of team red are bought by the platform team" in message


@pytest.mark.usefixtures("no_red_nodes")
def test_a_pool_whose_every_claim_a_policy_denies_leaves_the_pods_to_another(provisioning: Provisioning) -> None:
    """The heavier pool is for the team that the policy is against;
    it is raised, for somebody must mend one of the two.
    """
    provisioning.put(builders.node_pool("red", weight=100, labels={"team": "red"}))
    with pytest.raises(ConfigurationError, match="bought by the platform team"):
        provisioning.run()
    assert provisioning.planned == set(GOOD)
    pools = {claim.metadata.labels["karpenter.sh/nodepool"] for claim in provisioning.cluster.snapshot().node_claims}
    assert pools == {"default"}


@pytest.mark.usefixtures("cost_center")
def test_a_policy_that_fails_denies_what_it_cannot_judge_and_nothing_else(provisioning: Provisioning) -> None:
    """A pool whose claims lack the label is told what is wrong with all of them; one with the label serves the pods."""
    provisioning.put(
        builders.node_pool("bare", weight=100),
        builders.node_pool("labelled", weight=10, labels={COST_CENTER: "4711"}),
    )
    with pytest.raises(ConfigurationError, match=r"resulted in error: no such key"):
        provisioning.run()
    assert provisioning.planned == set(GOOD)
    pools = {claim.metadata.labels["karpenter.sh/nodepool"] for claim in provisioning.cluster.snapshot().node_claims}
    assert pools == {"labelled"}
