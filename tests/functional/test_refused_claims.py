"""What the API server refuses takes down nothing but its cause."""

from itertools import count
from typing import Any

import pytest

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.provisioning import ProvisioningController
from joinery.objects.errors import ConfigurationError
from simulator import builders
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand


@pytest.fixture
def many_labels(stand: Stand) -> None:
    """The NodePool gives its nodes so many labels that a NodeClaim may have no room for what pods say of them."""
    rules = [{"key": f"example.com/rule-{n}", "operator": "Exists", "values": []} for n in range(44)]
    stand.world.cluster.add(builders.node_pool("default", requirements=rules))
    stand.live()


def _many(labels: range) -> dict[str, Any]:
    """An affinity that the API server stores in a pod, and that takes three of a NodeClaim's 100 requirements each."""
    said = (("Gt", "1"), ("Lt", "9"), ("NotIn", "5"))
    listed = [{"key": f"example.com/rule-{n}", "operator": op, "values": [to]} for n in labels for op, to in said]
    terms = {"nodeSelectorTerms": [{"matchExpressions": listed}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.usefixtures("many_labels")
def test_a_pod_that_spoils_a_claim_is_left_out_and_the_others_are_served(stand: Stand) -> None:
    """In the same run; it is told why, and nobody is told of a node that does not come."""
    stand.pods(4)
    stand.world.cluster.add(builders.pod("picky", cpu="900m", affinity=_many(range(44))))
    outcome = stand.provision()
    assert outcome["unplaced"] == 1
    assert "at most 100" in stand.messages("FailedScheduling")["picky"]
    nominated = stand.messages("Nominated")
    assert set(nominated) == {"pod-0", "pod-1", "pod-2", "pod-3"}
    there = {f"pod should schedule on nodeclaim/{claim.metadata.name}" for claim in stand.claims}
    assert set(nominated.values()) == there
    assert len(stand.alive) == len(stand.claims)


@pytest.mark.usefixtures("many_labels")
def test_a_refused_claim_of_a_gang_takes_those_of_the_others_along(stand: Stand) -> None:
    """They were written already, and are not launched."""
    group: dict[str, Any] = {"cpu": "3", "scheduling_group": {"podGroupName": "train"}}
    stand.world.cluster.add(builders.pod_group("train", minimum=3))
    stand.pods(2, **group)
    stand.world.cluster.add(builders.pod("picky", affinity=_many(range(44)), **group))
    stand.provision()
    assert stand.alive == []
    for _ in range(3):
        stand.live()
    assert stand.claims == []
    assert "places 3 pods together" in stand.messages("FailedScheduling")["pod-0"]


@pytest.mark.usefixtures("many_labels")
def test_what_was_refused_is_recorded_when_the_lease_is_given_back(stand: Stand) -> None:
    """A bucket that is silent would keep all others from deciding."""
    stand.pods(4)
    stand.world.cluster.add(builders.pod("picky", cpu="900m", affinity=_many(range(44))))
    fuse = Fuse()
    Stand(stand.world, gateways=fuse.protect(stand.gateways)).provision()
    assert fuse.calls.index("store.record") > fuse.calls.index("cluster.release_lease")
    assert fuse.calls.count("store.record") == 2


@pytest.mark.usefixtures("many_labels")
def test_pods_that_are_too_much_together_are_bought_for_apart(stand: Stand) -> None:
    """Each alone is taken: one gives way to the other, and the next run finds it a place."""
    for number in range(2):
        stand.world.cluster.add(
            builders.pod(f"long-{number}", cpu="900m", affinity=_many(range(22 * number, 22 * number + 22)))
        )
    stand.provision()
    assert len(stand.messages("Nominated")) == 1
    stand.provision()
    assert set(stand.messages("Nominated")) == {"long-0", "long-1"}


def test_a_pool_whose_claims_are_refused_takes_no_part(stand: Stand) -> None:
    """Another serves the pods; the failure is loud, because somebody must mend the NodePool."""
    bad = builders.node_pool("bad", annotations={"no name!": "x"}, weight=100)
    stand.world.cluster.add(bad)
    stand.live()
    stand.pods(3)
    with pytest.raises(ConfigurationError, match="no name!"):
        stand.provision()
    assert {claim.metadata.labels["karpenter.sh/nodepool"] for claim in stand.claims} == {"default"}
    assert len(stand.messages("Nominated")) == 3


@pytest.mark.usefixtures("many_labels")
def test_the_plans_of_a_run_have_one_limit_together(stand: Stand) -> None:
    """What is planned in place of a refused plan has what that one left; else no time would be left to launch."""
    stand.pods(4)
    stand.world.cluster.add(builders.pod("picky", cpu="900m", affinity=_many(range(44))))
    asked = count()
    slow = Invocation("slow", lambda: 60.0 - next(asked) / 20)
    outcome = ProvisioningController(stand.gateways, stand.settings).reconcile(slow)
    assert outcome["launched"] == len(stand.claims) > 0
