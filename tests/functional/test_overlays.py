"""NodeOverlays through the doors: judged, planned with, launched by, and kept in mind when nodes are replaced."""

import pytest

from joinery.controllers.lifecycle import LifecycleController
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE
from simulator import builders
from tests.functional.stand import Stand

LARGE = {"key": INSTANCE_TYPE, "operator": "In", "values": ["m7a.large"]}


@pytest.fixture
def priced(stand: Stand) -> Stand:
    """Of two instance types the larger one is the cheaper, by an overlay."""
    pool = builders.node_pool(requirements=[f"{INSTANCE_TYPE}=m7a.large,m7a.xlarge", f"{CAPACITY_TYPE}=on-demand"])
    stand.world.cluster.add(builders.node_class(), pool)
    stand.world.cluster.add(builders.node_overlay("licence", requirements=[LARGE], adjustment="+5"))
    stand.live()
    return stand


def conditions(stand: Stand) -> dict[str, list[tuple[str, str, str]]]:
    """By overlay, each condition with its status and reason."""
    overlays = stand.world.cluster.snapshot().node_overlays
    return {one.metadata.name: [(c.type, c.status, c.reason) for c in one.status.conditions] for one in overlays}


def test_what_is_launched_is_chosen_by_the_prices_of_overlays(priced: Stand) -> None:
    """One pod alone would get the smaller node by AWS's prices."""
    priced.world.cluster.add(builders.pod("web", cpu="500m"))
    assert priced.provision()["launched"] == 1
    (claim,) = priced.claims
    assert claim.metadata.labels[INSTANCE_TYPE] == "m7a.xlarge"


def test_the_status_of_overlays_says_which_of_them_count(priced: Stand) -> None:
    """Karpenter's conditions; a second run writes nothing."""
    priced.world.cluster.add(builders.node_overlay("discount", requirements=[LARGE], price="1"))
    priced.world.cluster.add(builders.node_overlay("odd", price="9" * 30))
    unknown = {"key": INSTANCE_TYPE, "operator": "In", "values": ["m77a.large"]}
    priced.world.cluster.add(builders.node_overlay("typo", requirements=[unknown], price="1"))
    priced.live()
    messages = {
        one.metadata.name: one.status.conditions[0].message for one in priced.world.cluster.snapshot().node_overlays
    }
    assert messages["typo"] == "it changes nothing: no NodePool has an offering that meets its requirements"
    priced.world.cluster.remove(priced.world.cluster.snapshot().node_overlays[-1])
    assert conditions(priced) == {
        "licence": [("ValidationSucceeded", "True", "ValidationSucceeded"), ("Ready", "True", "Ready")],
        "discount": [("ValidationSucceeded", "False", "Conflict"), ("Ready", "False", "UnhealthyDependents")],
        "odd": [("ValidationSucceeded", "False", "RuntimeValidation"), ("Ready", "False", "UnhealthyDependents")],
    }
    versions = [one.metadata.resource_version for one in priced.world.cluster.snapshot().node_overlays]
    priced.live()
    assert [one.metadata.resource_version for one in priced.world.cluster.snapshot().node_overlays] == versions


def test_overlays_that_are_as_they_were_are_judged_once_an_hour(priced: Stand) -> None:
    """To judge them the types are needed, and for those EC2 is asked what is left of reservations."""
    controller = LifecycleController(priced.gateways, priced.settings)
    controller.reconcile(priced.invocation())
    priced.world.cloud.fail_next("instance_types", UnavailableError("asked"))
    controller.reconcile(priced.invocation())
    priced.world.cluster.add(builders.node_overlay("also", requirements=[LARGE], price="1"))
    with pytest.raises(UnavailableError, match="asked"):
        controller.reconcile(priced.invocation())
    controller.reconcile(priced.invocation())
    assert conditions(priced)["also"][0] == ("ValidationSucceeded", "False", "Conflict")
    priced.world.cloud.fail_next("instance_types", UnavailableError("asked again"))
    priced.wait(3601)
    with pytest.raises(UnavailableError, match="asked again"):
        controller.reconcile(priced.invocation())


def test_a_node_that_an_overlay_makes_dear_is_replaced(stand: Stand) -> None:
    """Consolidation goes by the same prices."""
    stand.world.cluster.add(
        builders.node_class(),
        builders.node_pool(requirements=[f"{INSTANCE_TYPE}=m7a.large,m7a.xlarge", f"{CAPACITY_TYPE}=on-demand"]),
    )
    stand.live()
    stand.world.cluster.add(builders.pod("web", cpu="500m"))
    stand.provision()
    stand.boot()
    stand.live()
    stand.bind()
    stand.world.cluster.add(builders.node_overlay("licence", requirements=[LARGE], adjustment="+5"))
    stand.wait(3600)
    stand.live()
    stand.consolidate()
    assert sorted(claim.metadata.labels[INSTANCE_TYPE] for claim in stand.claims) == ["m7a.large", "m7a.xlarge"]
