"""A node that cannot take the pods it was bought for is not bought again and again."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from joinery.objects.annotations.plans import is_kept, planned_pods
from joinery.objects.karpenter.labels import DEDICATED, TENANCY, UNSERVED_NEEDS
from joinery.objects.kubernetes.core import Node, Pod, Taint
from simulator import builders
from simulator.actors.base import Stage
from simulator.actors.kubescheduler.scheduler import KubeScheduler
from simulator.latency import Killed
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand

RUNS = 8
AGENT = Taint(key="node.cilium.io/agent-not-ready", effect="NoExecute")


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


def _on_shared_hardware(node: Node) -> Node:
    labels = {**node.metadata.labels, TENANCY: "default"}
    return replace(node, metadata=replace(node.metadata, labels=labels))


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


def test_dedicated_hardware_that_is_not_delivered_is_not_asked_for_in_every_run(stand: Stand) -> None:
    """The node says that its hardware is shared: eight runs bought eight nodes once."""
    stand.pods(1, node_selector={TENANCY: DEDICATED}, owner="web")
    _unlike(stand, _on_shared_hardware, RUNS)
    assert len(stand.alive) == 2
    assert f"its label {TENANCY} is default" in _told(stand)[-1]


@pytest.mark.parametrize(("agents_take", "nodes"), [(2, 1), (RUNS, 2)], ids=["it goes", "it stays"])
def test_a_taint_of_an_agent_at_boot_costs_no_node_if_it_goes(stand: Stand, agents_take: int, nodes: int) -> None:
    """As Cilium's, where the NodePool does not name it as a startup taint: the pods wait for the first node."""
    stand.pods(1, owner="web")
    begun = stand.world.clock.now()

    def taint(node: Node) -> Node:
        kept = [found for found in node.spec.taints if found != AGENT]
        is_late = stand.world.clock.now() - begun < timedelta(minutes=agents_take)
        return replace(node, spec=replace(node.spec, taints=[*kept, AGENT] if is_late else kept))

    for _ in range(RUNS):
        _unlike(stand, taint, 1)
        for node in list(stand.world.cluster.nodes.values()):
            stand.world.cluster.api.update(taint(node))
    assert len(stand.alive) == nodes
    assert "it has the taint node.cilium.io/agent-not-ready:NoExecute" in _told(stand)[-1]


class Opinionated:
    """A cluster whose scheduler has a plugin that lets the pods of ``web`` go nowhere; others it binds as they come."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.minutes = 0
        self.is_mended = False
        KubeScheduler(Stage(stand.engine, stand.world.cluster, stand.world.cloud), self._plugin)
        stand.world.cluster.add(builders.pod("web", cpu="3", owner="web"))

    def run(self, minutes: int) -> "Opinionated":
        """A minute each: all doors, and a pod of somebody else takes each node that is open to all."""
        for _ in range(minutes):
            self.minutes += 1
            self.stand.provision()
            self.stand.boot()
            for _ in range(5):
                self.stand.live()
                self.stand.wait(10)
            if not any(
                is_kept(taint) for node in self.stand.world.cluster.nodes.values() for taint in node.spec.taints
            ):
                self.stand.world.cluster.add(builders.pod(f"other-{self.minutes}", cpu="2900m", unschedulable=False))
                self.stand.wait(1)
        return self

    def _plugin(self, pod: Pod, node: str) -> str:
        return "node(s) had no licence" if pod.metadata.name == "web" and not self.is_mended else ""


def test_a_scheduler_with_another_opinion_gets_no_third_node_in_a_row(stand: Stand) -> None:
    """The nodes look right, and others take their room: without a brake every run would buy one more."""
    Opinionated(stand).run(6)
    assert len(_nodes_for(stand, "default/web")) == 2
    assert "it was kept for them, and kube-scheduler bound none of them there" in _told(stand)[-1]


def test_the_waits_for_another_opinion_double_too(stand: Stand) -> None:
    """The second node costs five minutes, the third ten."""
    Opinionated(stand).run(20)
    assert len(_nodes_for(stand, "default/web")) == 4


def test_a_pod_is_told_what_the_scheduler_has_against_its_node(stand: Stand) -> None:
    """Nothing is bought while its node has the room; its Event has the scheduler's own words."""
    cluster = Opinionated(stand)
    for _ in range(RUNS):
        stand.provision()
        stand.boot()
        stand.live()
        stand.wait(50)
        stand.live()
    assert len(stand.alive) == 1
    assert cluster.stand.messages("NotBound")["web"].endswith("0/1 nodes are available: 1 node(s) had no licence.")


def test_a_node_that_serves_ends_the_row(stand: Stand) -> None:
    """The plugin is mended: the pod is bound to the next node, and its twins are bought for at once."""
    cluster = Opinionated(stand).run(3)
    cluster.is_mended = True
    cluster.run(8)
    assert stand.world.cluster.pods["default/web"].spec.node_name
    stand.world.cluster.add(builders.pod("web-2", cpu="3", owner="web"))
    stand.provision()
    assert len(_nodes_for(stand, "default/web-2")) == 1


def test_a_crash_does_not_forget_that_a_node_was_kept_in_vain(stand: Stand) -> None:
    """The claim remembers it before its node is open to all."""
    Opinionated(stand)
    stand.provision()
    stand.boot()
    stand.live()
    stand.wait(40)
    fuse = Fuse(after=1)
    with pytest.raises(Killed):
        Stand(stand.world, gateways=fuse.protect(stand.gateways)).live()
    stand.live()
    (node,) = stand.world.cluster.nodes.values()
    assert not any(map(is_kept, node.spec.taints))
    assert UNSERVED_NEEDS in stand.claim.metadata.annotations


def _nodes_for(stand: Stand, pod: str) -> list[str]:
    return [claim.metadata.name for claim in stand.claims if pod in planned_pods(claim)]


def _told(stand: Stand) -> list[str]:
    return [
        event.message
        for event in stand.world.cluster.events
        if event.reason == "FailedScheduling" and "bought for pods like it" in event.message
    ]
