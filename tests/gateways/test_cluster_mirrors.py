"""What a warm function believes of a real cluster is what a cold one would read, whatever has happened in between."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.auth import from_kubeconfig
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import Clock
from simulator.kubernetes.resources import KINDS as KINDS_BY_NAME
from simulator.kubernetes.resources import kind_of
from tests.controlplane import objects
from tests.controlplane.fixtures import PLANES, require
from tests.controlplane.objects import MANIFEST_FILES, install
from tools.controlplane.plane import JOINERY, ControlPlane, running

NUMBERS = st.integers(0, 4)
MAKERS: dict[str, Any] = {
    "Pod": lambda name: builders.pod(name, cpu="100m"),
    "Node": builders.node,
    "NodeClaim": builders.node_claim,
    "NodePool": builders.node_pool,
    "NodeOverlay": builders.node_overlay,
    "PersistentVolume": builders.volume,
    "StorageClass": builders.storage_class,
    "PodDisruptionBudget": lambda name: builders.pdb(name, labels={"app": "web"}),
}
KINDS = st.sampled_from(sorted(MAKERS))
#: More changes than an API server remembers of a kind that was quiet (apiserver ``defaultLowerBoundCapacity``).
FLOOD = 150
STEPS_OF_A_STORY = 30


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of this test's own, which it may restart."""
    require(*PLANES["api_server"])
    with running(tmp_path_factory.mktemp("mirrors"), schedules=False, controls=False) as own:
        install(own, *MANIFEST_FILES)
        yield own


class Warm:
    """A function that stays warm: what it read last, and every complaint of its own about its reads."""

    def __init__(self, plane: ControlPlane) -> None:
        self.complaints: list[str] = []
        self.last: Snapshot | None = None
        # Nothing is short: every kind that can be followed is.
        self._cluster = cluster(plane, short=0, log=self.complaints.append)

    def read(self) -> Snapshot:
        """The cluster as it believes it to be. What has not changed since the last time is the same object."""
        before, self.last = self.last, self._cluster.snapshot()
        known = {(type(item), item.metadata.uid, item.metadata.resource_version): item for item in everything(before)}
        for item in everything(self.last):
            same = known.get((type(item), item.metadata.uid, item.metadata.resource_version))
            assert same is None or same is item
        return self.last


def cluster(plane: ControlPlane, **options: Any) -> KubernetesCluster:
    """The adapter, as the user joinery."""
    transport = Transport(from_kubeconfig(plane.kubeconfig(JOINERY)))
    return KubernetesCluster(transport, now=Clock().now, node_class=EC2NodeClass, **options)


def everything(snapshot: Snapshot | None) -> list[Any]:
    """All objects of a snapshot."""
    fields = vars(snapshot).values() if snapshot else ()
    return [item for field in fields if isinstance(field, tuple) for item in field if hasattr(item, "metadata")]


class Histories(RuleBasedStateMachine):
    """A cluster to which everything happens, and two warm functions: one looks after every step, one now and then."""

    plane: ControlPlane
    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.admin = objects.connect(self.plane)
        self.often, self.seldom = Warm(self.plane), Warm(self.plane)
        self.stored: dict[tuple[str, int], Any] = {}

    @initialize()
    def begin(self) -> None:
        """Both are warm already."""
        self.often.read()
        self.seldom.read()

    @rule(kind=KINDS, number=NUMBERS)
    def create_or_delete(self, kind: str, number: int) -> None:
        """An object comes, or goes."""
        item = MAKERS[kind](f"{kind.lower()}-{number}")
        if self.stored.pop((kind, number), None):
            objects.remove(self.admin, item)
        else:
            objects.put(self.admin, item)
            self.stored[kind, number] = item

    @rule(kind=KINDS, number=NUMBERS, value=st.integers(0, 3))
    def label(self, kind: str, number: int, value: int) -> None:
        """An object changes, if it is there."""
        if item := self.stored.get((kind, number)):
            self._label(item, value)

    @rule(number=NUMBERS)
    def replace_by_its_like(self, number: int) -> None:
        """A pod is recreated under its name, as a StatefulSet's is."""
        if item := self.stored.get(("Pod", number)):
            objects.remove(self.admin, item)
            objects.put(self.admin, item)

    @rule(kind=st.sampled_from(["Pod", "Node"]))
    def flood(self, kind: str) -> None:
        """More happens than the API server remembers."""
        if items := [item for (of_kind, _), item in self.stored.items() if of_kind == kind]:
            for value in range(FLOOD):
                self._label(items[value % len(items)], value)

    @rule()
    def look_after_a_while(self) -> None:
        """The function that looks seldom sees all that has happened meanwhile."""
        assert self.seldom.read() == cluster(self.plane).snapshot()

    @rule()
    def compact(self) -> None:
        """etcd forgets the past."""
        self.plane.compact()

    @rule(is_compacted=st.booleans())
    def restart(self, is_compacted: bool) -> None:
        """The API server forgets it, too; with a compacted etcd nobody knows it any more."""
        if is_compacted:
            self.plane.compact()
        with self.plane.without_api_server():
            pass

    @invariant()
    def a_warm_read_is_a_cold_read(self) -> None:
        """After every step."""
        type(self).steps += 1
        assert self.often.read() == cluster(self.plane).snapshot()

    def teardown(self) -> None:
        """Nobody had to correct himself."""
        assert self.seldom.read() == cluster(self.plane).snapshot()
        objects.sweep(self.admin)
        assert [*self.often.complaints, *self.seldom.complaints] == []

    def _label(self, item: Any, value: int) -> None:
        kind = KINDS_BY_NAME[kind_of(item)]
        path = f"{objects.path(kind, item.metadata.namespace or 'default')}/{item.metadata.name}"
        patch = {"metadata": {"labels": {"value": str(value)}}}
        self.admin.request("PATCH", path, patch, content_type=MERGE_PATCH)


@pytest.mark.soak
def test_a_warm_read_is_a_cold_read_after_any_history(plane: ControlPlane, pytestconfig: pytest.Config) -> None:
    """Creations, changes and deletions, a compacted etcd, a restarted API server, and versions that have expired."""
    machine = type("HistoriesHere", (Histories,), {"plane": plane})
    steps = pytestconfig.getoption("soak") // 10 or STEPS_OF_A_STORY
    stories = max(1, steps // STEPS_OF_A_STORY)
    run_state_machine_as_test(machine, settings=settings(max_examples=stories, stateful_step_count=STEPS_OF_A_STORY))
