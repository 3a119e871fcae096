"""A node that cannot take the pods it was bought for is not bought again and again."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from joinery.apis.core import Node, Taint
from simulator import builders
from tests.functional.stand import Stand

RUNS = 8


def _short_of_memory(node: Node) -> Node:
    room = {**node.status.allocatable, "memory": "1Gi"}
    return replace(node, status=replace(node.status, capacity=room, allocatable=room))


def _tainted(node: Node) -> Node:
    """As an agent on the image might do."""
    mine = Taint(key="example.com/agent", effect="NoSchedule")
    return replace(node, spec=replace(node.spec, taints=[*node.spec.taints, mine]))


def _without_size(node: Node) -> Node:
    labels = {k: v for k, v in node.metadata.labels.items() if not k.endswith("/instance-size")}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _cordoned(node: Node) -> Node:
    return replace(node, spec=replace(node.spec, unschedulable=True))


def _unlike(stand: Stand, change: Callable[[Node], Node], minutes: int) -> None:
    """Run after run, a minute apart, while every node that comes is otherwise than was promised."""
    done: set[str] = set()
    for _ in range(minutes):
        stand.provision()
        stand.boot()
        stand.live()
        for node in list(stand.world.cluster.nodes.values()):
            if node.metadata.name not in done:
                done.add(node.metadata.name)
                stand.world.cluster.api.update(change(stand.world.cluster.nodes[node.metadata.name]))
        stand.live()
        stand.wait(50)
        stand.live()


@pytest.fixture
def waiting(stand: Stand) -> Stand:
    """A pod that needs what its node will turn out not to have."""
    size = {"karpenter.k8s.aws/instance-size": "xlarge"}
    stand.pods(1, memory="6Gi", node_selector=size, owner="web")
    return stand


@pytest.mark.parametrize("change", [_short_of_memory, _tainted, _without_size, _cordoned])
def test_what_does_not_serve_is_not_bought_in_every_run(waiting: Stand, change: Callable[[Node], Node]) -> None:
    """Two nodes in eight runs, not eight; and the pod is told why it waits."""
    _unlike(waiting, change, RUNS)
    assert len(waiting.alive) == 2
    told = [event.message for event in waiting.world.cluster.events if event.reason == "FailedScheduling"]
    assert "bought for pods like it and cannot take them" in told[-1]


def test_the_waits_double(waiting: Stand) -> None:
    """Five minutes, ten, twenty: whoever mends the image finds his pods served,
    and a night costs a handful of nodes.
    """
    _unlike(waiting, _short_of_memory, 40)
    assert len(waiting.alive) == 4


@pytest.mark.parametrize("change", [_tainted, _cordoned])
def test_who_empties_a_fleet_need_not_wait_for_years(stand: Stand, change: Callable[[Node], Node]) -> None:
    """Sixty nodes are taken out of service long after they came: they served, and their pods get new ones."""
    stand.pods(60, cpu="3", owner="web")
    stand.provision()
    stand.boot()
    stand.live()
    stand.wait(4 * 3600)
    for node in list(stand.world.cluster.nodes.values()):
        stand.world.cluster.api.update(change(node))
    before = len(stand.alive)
    assert before == 60
    stand.provision()
    assert len(stand.alive) == 2 * before


def test_a_recreated_pod_waits_as_its_predecessor_did(waiting: Stand) -> None:
    """Its needs are the same, and so is the node that it would get."""
    _unlike(waiting, _short_of_memory, 2)
    old = waiting.world.cluster.pods["default/pod-0"]
    waiting.world.cluster.remove(old)
    waiting.world.cluster.add(replace(old, metadata=replace(old.metadata, name="pod-1", uid="another")))
    _unlike(waiting, _short_of_memory, 2)
    assert len(waiting.alive) == 1


def test_others_are_served_meanwhile(waiting: Stand) -> None:
    """Pods of other needs, and those of the same that fit where there is room."""
    _unlike(waiting, _short_of_memory, 2)
    waiting.world.cluster.add(builders.pod("other", memory="6Gi", cpu="2"))
    waiting.provision()
    assert len(waiting.alive) == 2


def test_a_node_whose_room_others_took_is_no_broken_promise(stand: Stand) -> None:
    """Another is bought at once: the first one serves, only somebody else."""
    stand.pods(1, cpu="3", owner="web")
    stand.provision()
    stand.boot()
    stand.live()
    (node,) = stand.world.cluster.nodes
    stand.world.cluster.add(builders.pod("intruder", cpu="3", node=node))
    stand.wait(60)
    stand.live()
    stand.provision()
    assert len(stand.alive) == 2
