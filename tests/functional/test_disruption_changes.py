"""The disruption door in a world that changes: pods come meanwhile, types are sold no more, ReplicaSets shrink."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

from joinery.objects.annotations.plans import planned_pods
from joinery.objects.karpenter.disruption import OUR_DELETION_COST
from joinery.objects.karpenter.labels import INSTANCE_TYPE, POD_DELETION_COST
from simulator import builders
from simulator.world import World
from tests.functional.deciding import Retiring, emptying
from tests.functional.disrupting import emptied, is_tainted, meanwhile, now, others, running
from tests.functional.stand import Stand


@pytest.fixture
def stand(world: World) -> Stand:
    """A cluster whose nodes may go as soon as they are there: this file is about how they go."""
    stand = Stand(world, new_nodes_repay=False).with_defaults()
    stand.rung()
    return stand


def test_a_node_to_which_a_pod_has_come_is_not_empty(stand: Stand, counted: Callable[[], dict[str, float]]) -> None:
    """The scheduler bound it while the decision was made."""
    emptied(stand)
    (claim,) = stand.claims
    pod = builders.pod("late", cpu="100m", node=claim.status.node_name, phase="Running", owner="web")
    assert meanwhile(stand, lambda: stand.world.cluster.add(pod)).consolidate(emptying)["commands"] == 0
    assert not is_tainted(stand, claim)
    assert counted()["karpenter_voluntary_disruption_failed_validations_total"] == 1


def test_a_pod_that_comes_after_the_last_look_saves_an_empty_node(stand: Stand) -> None:
    """It came just before the taint. Lifecycle looks once more before it deletes anything."""
    emptied(stand)
    (claim,) = stand.claims
    stand.consolidate(emptying)
    pod = builders.pod("late", cpu="100m", node=claim.status.node_name, phase="Running", owner="web")
    stand.world.cluster.add(pod)
    stand.live()
    stand.live()
    assert not now(stand, claim).is_deleting
    assert not is_tainted(stand, claim)
    assert "default/late" in stand.messages("DisruptionRolledBack")[claim.metadata.name]


def test_a_place_that_is_taken_ends_a_command(stand: Stand) -> None:
    """Another pod has got the room that the moved one was to have."""
    first, second = running(stand, 2)
    pod = next(pod for pod in stand.world.cluster.pods.values() if pod.spec.node_name == first.status.node_name)
    stand.world.cluster.api.delete(pod)
    node = first.status.node_name
    stand.world.cluster.add(builders.pod("free", cpu="1", node=node, phase="Running", owner="free"))
    large = builders.pod("large", cpu="2500m", node=second.status.node_name, phase="Running", owner="large")
    overtaken = meanwhile(stand, lambda: stand.world.cluster.add(large))
    assert overtaken.consolidate(Retiring(first.metadata.name))["commands"] == 0
    assert not is_tainted(stand, first)


def test_a_pod_that_has_ended_meanwhile_is_left_out(stand: Stand) -> None:
    """The others still need what is bought for them."""
    stand.pods(3, owner="web")
    stand.settle()
    (old,) = stand.claims
    pod = stand.world.cluster.pods["default/pod-1"]
    overtaken = meanwhile(stand, lambda: stand.world.cluster.api.delete(pod))
    outcome = overtaken.consolidate(Retiring(old.metadata.name))
    assert (outcome["commands"], outcome["evictions"]) == (1, 2)
    (new,) = others(stand, [old])
    assert sorted(planned_pods(new)) == ["default/pod-0", "default/pod-2"]


def test_a_node_that_is_interrupted_meanwhile_is_left_alone(stand: Stand) -> None:
    """Its pods are provisioning's now."""
    (old,) = running(stand, owner="web")
    warned = lambda: stand.receive("interruption_spot_warning", stand.alive[0])  # noqa: E731
    assert meanwhile(stand, warned).consolidate(Retiring(old.metadata.name))["commands"] == 0
    assert others(stand, [old]) == []


# --- instance types that nobody sells ---


def _without_type(stand: Stand, name: str) -> None:
    """A catalogue in which that type is not sold any more."""
    catalog = stand.world.store.catalog()
    offerings = tuple(offering for offering in catalog.offerings if offering.instance_type != name)
    stand.world.store.put_catalog(changed(catalog, offerings=offerings))


def test_a_node_whose_instance_type_is_sold_nowhere_has_drifted(stand: Stand) -> None:
    """An hour after its claim was made at the earliest; and not any more when it is sold again."""
    (claim,) = running(stand)
    before = stand.world.store.catalog()
    _without_type(stand, claim.metadata.labels[INSTANCE_TYPE])
    stand.consolidate(emptying)
    assert now(stand, claim).condition("Drifted") is None
    stand.wait(3600)
    stand.consolidate(emptying)
    stand.live()
    drifted = now(stand, claim).condition("Drifted")
    assert drifted is not None
    assert drifted.reason == "InstanceTypeNotFound"
    stand.world.store.put_catalog(before)
    stand.consolidate(emptying)
    stand.live()
    assert now(stand, claim).condition("Drifted") is None


def test_a_drifted_node_is_replaced_and_its_decision_is_recorded(stand: Stand) -> None:
    """By the door's own decision: what takes its place is bought first, and the record says so."""
    (claim,) = running(stand)
    stand.wait(3600)
    _without_type(stand, claim.metadata.labels[INSTANCE_TYPE])
    outcome = stand.consolidate()
    assert (outcome["commands"], outcome["retired"], outcome["launches"]) == (1, 1, 1)
    (key,) = (key for key in stand.world.store.documents if "disruption" in key)
    assert stand.world.store.read(key)["joinery"]["result"]["commands"][0]["reason"] == "Drifted"


# --- the order in which ReplicaSets shrink ---


def _costs(stand: Stand) -> list[str]:
    """The deletion costs of all pods."""
    return [pod.metadata.annotations.get(POD_DELETION_COST, "") for pod in stand.world.cluster.pods.values()]


def test_pods_on_the_node_that_is_to_go_next_are_deleted_first(stand: Stand) -> None:
    """By setting: one node of three is marked, once; without the setting the mark goes."""
    running(stand, 3, owner="web-1")
    stand.settings = replace(stand.settings, pod_deletion_cost=True)
    stand.consolidate(emptying)
    assert sorted(_costs(stand)) == ["", "", OUR_DELETION_COST]
    before = _costs(stand)
    stand.consolidate(emptying)
    assert _costs(stand) == before
    stand.settings = replace(stand.settings, pod_deletion_cost=False)
    stand.consolidate(emptying)
    assert _costs(stand) == ["", "", ""]
