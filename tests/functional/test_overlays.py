"""NodeOverlays through the doors: judged, planned with, launched by, and kept in mind when nodes are replaced."""

import pytest

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
    priced.live()
    assert conditions(priced) == {
        "licence": [("ValidationSucceeded", "True", "ValidationSucceeded"), ("Ready", "True", "Ready")],
        "discount": [("ValidationSucceeded", "False", "Conflict"), ("Ready", "False", "UnhealthyDependents")],
        "odd": [("ValidationSucceeded", "False", "RuntimeValidation"), ("Ready", "False", "UnhealthyDependents")],
    }
    versions = [one.metadata.resource_version for one in priced.world.cluster.snapshot().node_overlays]
    priced.live()
    assert [one.metadata.resource_version for one in priced.world.cluster.snapshot().node_overlays] == versions


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
