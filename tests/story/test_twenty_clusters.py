"""Twenty clusters on one stack, of which one hangs, one fails and one floods: the others notice nothing of it.

All that happens in each of the others, and when, is compared with what happens in the same cluster alone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from joinery.objects.errors import UnavailableError
from joinery.objects.member import Member
from simulator import builders
from simulator.actors.admission import Admission
from simulator.actors.base import Stage
from simulator.actors.ec2 import Ec2
from simulator.actors.kubelet import Kubelets
from simulator.actors.kubescheduler.scheduler import KubeScheduler
from simulator.doors.doors import Call, Doors
from simulator.doors.queues import BellQueues
from simulator.engine import Engine, Turn
from simulator.kubernetes.apiserver import Change
from simulator.latency import Latency
from simulator.world import CLUSTER, World

#: How many clusters there are, and of how many sorts.
CLUSTERS, SORTS = 20, 4
HANGS, FAILS, FLOODS = "cluster-01", "cluster-02", "cluster-03"
LENGTH = timedelta(seconds=75)
ROLES = dict.fromkeys(
    ("provisioning", "lifecycle", "disruption", "interruption", "expiration"), "arn:aws:iam::1:role/r"
)
#: What happens in a cluster: after how many seconds, what kind of object, and whether it is there before and after.
Happened = tuple[float, str, bool, bool]


@dataclass
class Watched:
    """A cluster in which somebody deploys something, and all that happens there. ``sort``: of what is deployed."""

    world: World
    sort: int
    engine: Engine
    happened: list[Happened] = field(default_factory=list)

    def live(self, doors: Doors, member: str = "") -> None:
        """Let everybody do his work in it."""
        stage = Stage(self.engine, self.world.cluster, self.world.cloud)
        ec2, kubelets = Ec2(stage, lambda _: None), Kubelets(stage, self.world.cloud.catalog())
        ec2.when_running.append(kubelets.boot)
        KubeScheduler(stage)
        self.world.cluster.add(builders.node_class(), builders.node_pool(requirements=[_SIZE]))
        Admission(self.engine, self.world.cluster, doors, member=member)
        BellQueues(self.engine, self.world.doorbell, doors, member=member).start()
        begun = self.engine.clock.now()

        def note(change: Change) -> None:
            after = (self.engine.clock.now() - begun).total_seconds()
            self.happened.append((after, change.kind, change.before is not None, change.after is not None))

        self.world.cluster.api.watch(note)
        self.engine.at(begun + timedelta(seconds=2 + self.sort), Turn.SCENARIO, self._deploy)

    @property
    def launches(self) -> list[tuple[str, str]]:
        """The instances, with the moment at which each was asked for."""
        return [(one.instance_type, one.launched_at.isoformat()) for one in self.world.cloud.instances()]

    def _deploy(self) -> None:
        pods = (builders.pod(f"pod-{number}", cpu="900m") for number in range(2 + 3 * self.sort))
        self.world.cluster.add(*pods)


_SIZE = "karpenter.k8s.aws/instance-size=xlarge"


@cache
def alone(sort: int) -> Watched:
    """A cluster of that sort on a stack of its own."""
    world = World(seed=1)
    one = Watched(world, sort, Engine(world.clock, seed=1))
    with Doors(world).open() as doors:
        one.live(doors)
        one.engine.run_for(LENGTH)
    assert one.launches
    return one


@dataclass
class Many:
    """The clusters on one stack, by name, after they have lived. ``calls``: of its functions."""

    clusters: dict[str, Watched]
    calls: list[Call]


@contextmanager
def _opened() -> Iterator[tuple[dict[str, Watched], Doors, Engine]]:
    home = World(seed=1)
    engine = Engine(home.clock, seed=1)
    clusters = {CLUSTER: Watched(home, 0, engine)}
    for number in range(1, CLUSTERS):
        name = f"cluster-{number:02}"
        home.register.put(Member(name, ROLES, mode="act"))
        clusters[name] = Watched(World(seed=1, home=home, name=name), number % SORTS, engine)
    with Doors(home, settings="Members=true").open() as doors:
        yield clusters, doors, engine


@pytest.fixture(scope="module")
def many() -> Many:
    """They have lived for a while."""
    with _opened() as (clusters, doors, engine):
        _answers(clusters[HANGS].world, lambda latency: latency.charge(10_000))
        _answers(clusters[FAILS].world, _fails)
        for name, one in clusters.items():
            one.live(doors, member="" if name == CLUSTER else name)
        flooded = clusters[FLOODS].world.cluster
        engine.every(timedelta(milliseconds=100), Turn.SCENARIO, lambda: _flood(flooded))
        engine.run_for(LENGTH)
    return Many(clusters, doors.calls)


def _answers(world: World, answer: Callable[[Latency], Any]) -> None:
    """From now on the cluster's API server answers so to whoever lists it."""
    latency = world.latency = Latency(world.gateways)
    for read in ("snapshot", "claims_snapshot"):
        latency.answers[f"cluster.{read}"] = lambda *_: answer(latency)


def _fails(_: Latency) -> None:
    raise UnavailableError("the API server is down")


def _flood(cluster: Any) -> None:
    """A node class that changes all the time."""
    (node_class,) = cluster.node_classes.values()
    tags = {"changed": str(cluster.clock.now())}
    cluster.add(node_class.model_copy(update={"spec": node_class.spec.model_copy(update={"tags": tags})}))


HEALTHY = [
    name
    for name in (CLUSTER, *(f"cluster-{number:02}" for number in range(1, CLUSTERS)))
    if name not in (HANGS, FAILS, FLOODS)
]


@pytest.mark.parametrize("name", HEALTHY)
def test_what_happens_in_a_cluster_happens_as_if_it_were_alone(many: Many, name: str) -> None:
    """The same decisions, and at the same moment."""
    one = many.clusters[name]
    assert one.launches == alone(one.sort).launches
    assert one.happened == alone(one.sort).happened


def test_nothing_is_decided_in_a_cluster_that_hangs_or_fails(many: Many) -> None:
    """It is tried again, and not all the time: though the one that hangs takes the function's memory with it."""
    for name in (HANGS, FAILS):
        assert not many.clusters[name].launches
    runs = [call for call in many.calls if f'"cluster":"{FAILS}"' in call.log and "failed" in call.log]
    assert 0 < len(runs) < LENGTH.total_seconds()


def test_a_cluster_that_floods_the_webhook_costs_one_message_a_slot(many: Many) -> None:
    """And gets its own nodes all the same."""
    flooded = many.clusters[FLOODS]
    assert flooded.launches
    rings = [bell.value for _, bell in flooded.world.doorbell.rings]
    assert rings.count("provisioning") <= LENGTH.total_seconds() + 2 * SORTS
