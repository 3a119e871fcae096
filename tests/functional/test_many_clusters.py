"""One stack serves several clusters: each is looked at by itself, with what was chosen for it."""

from collections.abc import Iterator
from typing import Any

import pytest

from joinery import bootstrap
from joinery.objects.member import Member
from simulator import builders
from simulator.doors.doors import Call, Doors
from simulator.doors.queues import record
from simulator.world import World

ROLES = dict.fromkeys(
    ("provisioning", "lifecycle", "disruption", "interruption", "expiration"), "arn:aws:iam::1:role/green"
)


@pytest.fixture
def home() -> World:
    """The stack's own cluster, without a pod."""
    return peopled(World(seed=1), pods=0)


@pytest.fixture
def green(home: World) -> World:
    """A member with a pod that fits nowhere."""
    return member(home, "green")


@pytest.fixture
def doors(home: World, green: World) -> Iterator[Doors]:
    """The functions, which serve both."""
    with green.installed(), Doors(home, settings="Members=true").open() as opened:
        yield opened


def peopled(world: World, pods: int = 1) -> World:
    """A cluster with a NodePool and pods that fit nowhere."""
    world.cluster.add(builders.node_class(), builders.node_pool())
    world.cluster.add(*(builders.pod(f"pod-{number}", cpu="1") for number in range(pods)))
    return world


def member(home: World, name: str, **registered: Any) -> World:
    """A member of that name, with a pod that fits nowhere."""
    home.register.put(Member(name, ROLES, **{"mode": "act", **registered}))
    return peopled(World(seed=1, home=home, name=name))


def bell(function: str, *clusters: str, **body: Any) -> dict[str, Any]:
    """A batch with a bell of each cluster."""
    return {"Records": [record(f"bell-{name}", f"joinery-{function}.fifo", body, group=name) for name in clusters]}


def result(call: Call) -> dict[str, Any]:
    """What the door answered."""
    assert not call.error, call.error
    answered: dict[str, Any] = call.result
    return answered


def test_a_members_bell_has_its_pods_get_nodes(doors: Doors, home: World, green: World) -> None:
    """The bell's message group is called like its cluster."""
    assert result(doors.invoke("provisioning", bell("provisioning", "green")))["launched"] == 1
    assert [len(green.cloud.instances()), len(home.cloud.instances())] == [1, 0]
    assert len(green.cluster.node_claims) == 1
    assert not home.cluster.node_claims


def test_a_members_schedule_names_it(doors: Doors, green: World) -> None:
    """In the body: its message group is the schedule's."""
    event = bell("provisioning", "green-schedule", cluster="green", schedule="2026-11-28T10:00:00Z")
    assert result(doors.invoke("provisioning", event))["launched"] == 1


@pytest.mark.parametrize(
    "body", [{"schedule": "2026-11-28T10:00:00Z", "door": "provisioning"}, {"door": "provisioning"}]
)
def test_the_stacks_own_schedule_and_a_bell_by_hand_are_its_own_clusters(
    doors: Doors, home: World, body: dict[str, Any]
) -> None:
    """Whatever message group they are in."""
    home.cluster.add(builders.pod("pod", cpu="1"))
    assert result(doors.invoke("provisioning", bell("provisioning", "by-hand", **body)))["launched"] == 1
    assert len(home.cloud.instances()) == 1
    assert not home.register.reads


def test_a_bell_of_an_unknown_cluster_is_completed(doors: Doors, home: World) -> None:
    """Its stack is gone. One line says so, and nothing is rung again."""
    call = doors.invoke("provisioning", bell("provisioning", "gone"))
    assert result(call) == {"outcome": "off"}
    assert call.log.count("no stack has registered this cluster") == 1
    assert '"cluster":"gone"' in call.log
    assert not home.doorbell.rings


def test_of_a_batch_of_several_clusters_one_is_answered_and_the_others_are_rung_again(
    doors: Doors, home: World, green: World
) -> None:
    """None waits for another's run."""
    doors.invoke("provisioning", bell("provisioning", "green", "simulated"))
    assert len(green.cluster.node_claims) == 1
    assert [bell.value for _, bell in home.doorbell.rings] == ["provisioning"]


def test_a_mode_that_was_changed_is_in_force_with_the_next_run(doors: Doors, home: World, green: World) -> None:
    """The register is read at the start of each run."""
    home.register.put(Member("green", ROLES, mode="observe"))
    doors.invoke("provisioning", bell("provisioning", "green"))
    assert not green.cluster.node_claims
    home.register.put(Member("green", ROLES, mode="act"))
    doors.invoke("provisioning", bell("provisioning", "green"))
    assert len(green.cluster.node_claims) == 1


def test_a_stack_without_members_looks_at_no_register(home: World, green: World) -> None:
    """And answers every bell for its own cluster, as ever."""
    home.cluster.add(builders.pod("pod", cpu="1"))
    with green.installed(), Doors(home).open() as doors:
        doors.invoke("provisioning", bell("provisioning", "green"))
    assert len(home.cluster.node_claims) == 1
    assert not green.cluster.node_claims
    assert not home.register.reads


def test_a_function_keeps_the_members_warm_that_it_served_last() -> None:
    """So many at most; the one that waited longest is forgotten, and is looked at anew when it rings."""
    kept = bootstrap.Members("provisioning", most=2)
    first = kept.door("a")
    for name in ("b", "a", "c"):
        kept.door(name)
    assert kept.warm == ("a", "c")
    assert kept.door("a") is first
