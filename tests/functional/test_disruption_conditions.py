"""What a claim says of its disruption: when its node has been quiet for long enough, and what it has drifted from."""

from dataclasses import replace
from typing import Any

from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from simulator import builders
from simulator.world import World
from tests.functional.disrupting import now, running
from tests.functional.stand import Stand


def _with_disruption(world: World, **disruption: Any) -> Stand:
    stand = Stand(world)
    size = "karpenter.k8s.aws/instance-size=xlarge"
    world.cluster.add(builders.node_class(), builders.node_pool(requirements=[size], **disruption))
    stand.live()
    return stand


def _is_consolidatable(stand: Stand, claim: NodeClaim) -> bool:
    return now(stand, claim).is_true("Consolidatable")


def _later(stand: Stand, seconds: float) -> None:
    stand.wait(seconds)
    stand.live()


def test_a_node_is_consolidatable_when_it_has_been_quiet(world: World) -> None:
    """From the last pod that came or went, for as long as ``consolidateAfter`` says."""
    stand = _with_disruption(world, consolidate_after="5m")
    (claim,) = running(stand)
    stand.live()
    assert not _is_consolidatable(stand, claim)
    _later(stand, 310)
    assert _is_consolidatable(stand, claim)
    node = now(stand, claim).status.node_name
    stand.world.cluster.add(builders.pod("late", cpu="100m", node=node, phase="Running"))
    _later(stand, 60)
    assert not _is_consolidatable(stand, claim)
    _later(stand, 310)
    assert _is_consolidatable(stand, claim)


def test_a_node_that_is_never_consolidated_is_never_consolidatable(world: World) -> None:
    """``Never`` turns it off."""
    stand = _with_disruption(world, consolidate_after="Never")
    (claim,) = running(stand)
    _later(stand, 3600)
    assert now(stand, claim).condition("Consolidatable") is None


def test_the_condition_is_written_once(world: World) -> None:
    """Nothing is written to a node at which nothing happens."""
    stand = _with_disruption(world, consolidate_after="30s")
    (claim,) = running(stand)
    _later(stand, 60)
    before = now(stand, claim)
    assert _is_consolidatable(stand, claim)
    _later(stand, 600)
    assert now(stand, claim) == before


def _select(stand: Stand, **spec: Any) -> None:
    """Change what the node class asks for, as its owner would."""
    before: NodeClass = stand.world.cluster.node_classes["default"]
    after = builders.node_class(**spec)
    generation = before.metadata.generation + 1
    metadata = before.metadata.model_copy(update={"generation": generation})
    stand.world.cluster.api.update(before.model_copy(update={"spec": after.spec, "metadata": metadata}))


def test_a_new_image_drifts_the_nodes_of_the_older_one(world: World) -> None:
    """The class selects by an alias, and Amazon publishes an image."""
    stand = _with_disruption(world)
    (claim,) = running(stand)
    images = world.cloud.network.images
    images[:] = [replace(image, id=f"{image.id}-newer") for image in images]
    _later(stand, 60)
    _later(stand, 60)
    drifted = now(stand, claim).condition("Drifted")
    assert drifted is not None
    assert drifted.reason == "AMIDrift"


def test_subnets_that_are_no_longer_selected_drift_their_nodes(world: World) -> None:
    """And the verdict goes when they are selected again."""
    stand = _with_disruption(world)
    (claim,) = running(stand)
    zone = next(value for key, value in claim.metadata.labels.items() if key.endswith("/zone"))
    others = [subnet.id for subnet in world.cloud.network.subnets if subnet.zone != zone]
    _select(stand, subnetSelectorTerms=[{"id": subnet} for subnet in others])
    _later(stand, 60)
    _later(stand, 60)
    drifted = now(stand, claim).condition("Drifted")
    assert drifted is not None
    assert drifted.reason == "SubnetDrift"
    _select(stand)
    _later(stand, 60)
    _later(stand, 60)
    assert now(stand, claim).condition("Drifted") is None


def test_a_node_in_a_placement_group_that_its_class_does_not_name_drifts(world: World) -> None:
    """Karpenter launched it there, and its class has lost the selector since. A node outside of it takes its place."""
    stand = _with_disruption(world, budgets=[])
    (old,) = running(stand)
    world.cloud.place(old.status.provider_id.rpartition("/")[2], "pg-1", "rack")
    stand.live()
    drifted = now(stand, old).condition("Drifted")
    assert drifted is not None
    assert (drifted.reason, drifted.status) == ("PlacementGroupDrift", "True")
    assert "pg-1" in drifted.message
    stand.wait(60)
    assert stand.consolidate()["commands"] == 1
