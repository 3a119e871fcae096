"""A scenario, run: the world, its actors, the doors and the queues between them, on one engine."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.labels import SPOT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.offerings import OfferingKey
from joinery.objects.snapshot.pods import priorities_of
from simulator.actors.admission import Admission
from simulator.actors.base import Stage
from simulator.actors.ec2 import Ec2, Envelope
from simulator.actors.kubelet import Kubelets
from simulator.actors.kubescheduler.scheduler import KubeScheduler
from simulator.actors.volumes import AttachDetach
from simulator.actors.workloads import (
    Caretakers,
    DaemonSetController,
    GarbageCollector,
    WorkloadControllers,
    workload,
)
from simulator.clock import START
from simulator.cloud.market import market
from simulator.doors.doors import Doors
from simulator.doors.queues import BellQueues, InterruptionQueue
from simulator.engine import Engine, Turn
from simulator.kubernetes.legacy import is_kept
from simulator.kubernetes.resources import from_document, key, with_fields
from simulator.story import running
from simulator.story.manifests import WORKLOADS, defaulted
from simulator.story.scenario import Happening, Named, Nodes, Pools, Scenario, duration
from simulator.world import World


class Simulation:
    """One run of one scenario. ``with simulation.running():`` opens the doors; then drive ``engine``."""

    def __init__(
        self, scenario: Scenario, *, seed: int | None = None, has_webhook: bool = True, **settings: str
    ) -> None:
        """``settings`` are the doors' own, by name; without a webhook only the schedules ring."""
        self.scenario = scenario
        self.seed = scenario.spec.seed if seed is None else seed
        self.start = START
        ages = [duration(node.age) for node in scenario.spec.running]
        catalog = market(scenario.spec.market.families, scenario.spec.market.zones)
        self.world = World(self.seed, catalog=catalog, start=self.start - max(ages, default=timedelta(0)))
        self.engine = Engine(self.world.clock, self.seed)
        self.stage = Stage(self.engine, self.world.cluster, self.world.cloud)
        self.doors = Doors(self.world, **{"settings": scenario.spec.settings, **settings})
        self.interruptions = InterruptionQueue(self.engine, self.doors)
        self.ec2 = Ec2(self.stage, self._publish)
        self.kubelets = Kubelets(self.stage, catalog)
        self.workloads = WorkloadControllers(self.stage)
        self._is_open = False
        self._has_webhook = has_webhook
        self.when_happening: list[Callable[[Happening], None]] = []
        self.when_published: list[Callable[[Envelope], None]] = []
        self._employ()
        self._set_up()

    @property
    def instances(self) -> list[str]:
        """Every instance there ever was, in order of launch."""
        return self.ec2.instances

    @property
    def end(self) -> datetime:
        return self.start + duration(self.scenario.spec.length)

    @contextmanager
    def running(self) -> Iterator["Simulation"]:
        """Doors open, schedules started, the scenario's happenings in the engine."""
        with self.doors.open():
            self._is_open = True
            if self._has_webhook:
                Admission(self.engine, self.world.cluster, self.doors)
            BellQueues(self.engine, self.world.doorbell, self.doors).start()
            for happening in self.scenario.spec.happenings:
                self.engine.at(self.start + happening.after, Turn.SCENARIO, partial(self._happen, happening))
            yield self

    def _employ(self) -> None:
        """Create the actors, and connect those that wait for each other."""
        self.ec2.when_gone.append(Caretakers(self.stage).instance_gone)
        self.ec2.when_running.append(self._boot)
        KubeScheduler(self.stage)
        DaemonSetController(self.stage)
        GarbageCollector(self.stage)
        AttachDetach(self.stage)

    def _set_up(self) -> None:
        """Create what is there at the start, and let its age pass. The doors are closed in that time."""
        self.apply(self.scenario.spec.objects)
        for node_class in list(self.world.cluster.node_classes.values()):
            self.world.cluster.add(with_fields(node_class, status=self.world.cloud.status_of(node_class)))
        self._start_nodes()
        self.engine.run_until(self.start)

    def _publish(self, envelope: dict[str, Any]) -> None:
        """Send an EventBridge event on. Its rules exist only once the doors are open."""
        if not self._is_open:
            return
        self.interruptions.send(envelope)
        for listener in self.when_published:
            listener(envelope)

    def _start_nodes(self) -> None:
        oldest_first = sorted(self.scenario.spec.running, key=lambda node: -duration(node.age))
        for number, node in enumerate(oldest_first, 1):
            self.engine.run_until(self.start - duration(node.age))
            running.start(self.world, self.kubelets, node, number)

    def _boot(self, instance_id: str) -> None:
        """A new instance boots; one from before the story has long done so."""
        if self.world.cloud.look(instance_id)[0].launched_at >= self.start:
            self.kubelets.boot(instance_id)

    def apply(self, documents: Iterable[dict[str, Any]]) -> None:
        """Manifests, as ``kubectl apply`` gives them to an API server, which has defaults of its own."""
        for given in documents:
            document = defaulted(given, priorities_of(tuple(self.world.cluster.api.objects("PriorityClass").values())))
            if is_kept(document):
                self.world.cluster.add_document(document)
            elif document["kind"] in WORKLOADS:
                self.workloads.apply(workload(document))
            elif document["metadata"].get("name"):
                self.world.cluster.api.apply(from_document(document["kind"], document))
            else:
                self.world.cluster.api.create(from_document(document["kind"], document))

    def _happen(self, happening: Happening) -> None:
        for listener in self.when_happening:
            listener(happening)
        self.apply(happening.apply)
        self._delete(happening.delete)
        for claim in self._chosen(happening.delete_node):
            self.world.cluster.delete_node(self.world.cluster.nodes[claim.status.node_name])
        self._befall(happening)
        if sold_out := happening.run_out:
            self.world.cloud.run_out(*self._pools(sold_out), left=sold_out.left)
        self.world.cloud.restock(*self._pools(happening.restock))

    def _delete(self, objects: Iterable[Named]) -> None:
        """What is not there is gone already."""
        for one in objects:
            if one.kind == "StatefulSet":
                self.workloads.delete(one.namespace, one.name)
                continue
            found = self.world.cluster.api.objects(one.kind).get(key(one.kind, one.namespace, one.name))
            if found is not None:
                self.world.cluster.delete(found)

    def _befall(self, happening: Happening) -> None:
        """What EC2 and AWS Health do, or say, of instances."""
        wanted = happening.interrupt and replace(happening.interrupt, capacity_type=SPOT)
        for instance in self._instances(wanted):
            self.ec2.interrupt(instance)
        for instance in self._instances(happening.recommend):
            self.ec2.recommend(instance)
        for instance in self._instances(happening.stop):
            self.ec2.stop(instance)
        if happening.retire and (instances := self._instances(happening.retire)):
            self.ec2.retire(self.world.clock.now() + duration(happening.retire.starts_in), *instances)

    def _instances(self, wanted: Nodes | None) -> list[str]:
        return [claim.status.provider_id.rpartition("/")[2] for claim in self._chosen(wanted)]

    def _chosen(self, wanted: Nodes | None) -> list[NodeClaim]:
        """The claims whose nodes are meant, the fullest first."""
        if wanted is None:
            return []
        meant = [claim for claim in self.world.cluster.node_claims.values() if _is_meant(claim, wanted)]
        ordered = sorted(meant, key=lambda claim: (-self._pods_on(claim.status.node_name), claim.metadata.name))
        return ordered if wanted.all else ordered[:1]

    def _pods_on(self, node: str) -> int:
        return sum(pod.spec.node_name == node for pod in self.world.cluster.pods.values())

    def _pools(self, wanted: Pools | None) -> list[OfferingKey]:
        if wanted is None:
            return []
        return [
            OfferingKey(offering.instance_type, offering.zone, offering.capacity_type)
            for offering in self.world.cloud.catalog().offerings
            if offering.instance_type in (wanted.instance_types or (offering.instance_type,))
            and offering.zone in (wanted.zones or (offering.zone,))
            and offering.capacity_type in (wanted.capacity_types or (offering.capacity_type,))
        ]


def _is_meant(claim: NodeClaim, wanted: Nodes) -> bool:
    asked = {keys.CAPACITY_TYPE: wanted.capacity_type, keys.ZONE: wanted.zone, keys.NODE_POOL: wanted.node_pool}
    is_alike = all(claim.metadata.labels.get(key) == value for key, value in asked.items() if value)
    return bool(claim.status.node_name) and not claim.is_deleting and is_alike
