"""A real control plane on which the product's doors work by themselves: pods come back under new names when evicted.

Kubernetes is real: API server, scheduler, ReplicaSets, disruption budgets, eviction, and the rights of the group
``joinery``. EC2, queues and kubelets are played. The doors are the real handlers, woken by bells; a schedule rings all
of them once a minute.

The doors' clock is never behind the API server's, and jumps to the next bell, so a drain of a minute takes seconds.
What one run asked for is waited for before the next begins: the scheduler has all the time that it needs, as it has in
a cluster where ticks are seconds apart.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.kubernetes import lists
from joinery.gateways.kubernetes.gateway import Eviction
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.claims import INITIALIZED
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.doors.doors import Call, Doors
from simulator.doors.queues import record
from simulator.world import World
from tests.controlplane import objects
from tests.controlplane.kubelet import Kubelets
from tests.controlplane.story import DEPLOYMENTS, NotedCluster, clear
from tests.oracle.shrinking import Shrinking
from tools.controlplane.plane import DOORS, JOINERY, ControlPlane

SCHEDULE = timedelta(minutes=1)
#: The scheduler tries a pod again within a second (the plane is started so).
QUIET_SECONDS = 1.3
LONGEST_SECONDS = 20.0
POLL_SECONDS = 0.2


class DrivenCluster(NotedCluster):
    """The adapter. Claims are made and deleted at moments of the doors' clock; the API server's is behind it."""

    def __init__(self, transport: Transport, *, now: Callable[[], datetime]) -> None:
        super().__init__(transport, now=now)
        self._created: dict[str, datetime] = {}
        self._deleted: dict[str, datetime] = {}

    def create_node_claim(self, claim: NodeClaim, *, dry_run: bool = False) -> NodeClaim:
        """As the adapter does it."""
        stored = super().create_node_claim(claim, dry_run=dry_run)
        self._created.setdefault(stored.metadata.name, self._now())
        return self._driven(stored)

    def delete_node_claim(self, claim: NodeClaim) -> None:
        """As the adapter does it."""
        super().delete_node_claim(claim)
        self._deleted.setdefault(claim.metadata.name, self._now())

    def snapshot(self) -> Snapshot:
        """As the adapter reads it."""
        seen = super().snapshot()
        return replace(seen, node_claims=tuple(map(self._driven, seen.node_claims)))

    def _driven(self, claim: NodeClaim) -> NodeClaim:
        stamps = {}
        if created := self._created.get(claim.metadata.name):
            stamps["creation_timestamp"] = created
        if claim.is_deleting and (deleted := self._deleted.get(claim.metadata.name)):
            stamps["deletion_timestamp"] = deleted
        return claim.model_copy(update={"metadata": claim.metadata.model_copy(update=stamps)})


class LivingWorld(World):
    """A world whose cluster is a real API server."""

    def __init__(self, transport: Transport, start: datetime, catalog: Catalog) -> None:
        super().__init__(start=start, catalog=catalog)
        self.real = DrivenCluster(transport, now=self.clock.now)

    @property
    def gateways(self) -> Gateways:
        return replace(super().gateways, cluster=self.real)


class Living:
    """The cluster while it runs. ``bells``: those that are answered. ``settings``: of the doors, by name."""

    def __init__(self, plane: ControlPlane, catalog: Catalog, **settings: str) -> None:
        now = _real_time()
        self._admin = objects.connect(plane)
        transport = objects.connect_as(plane, lambda: DOORS.get(self.doors.active, JOINERY))
        self.world = LivingWorld(transport, now, catalog)
        self.doors = Doors(self.world, **settings)
        self.bells = frozenset({Bell.PROVISIONING, Bell.LIFECYCLE})
        self._kubelets = Kubelets(self._admin, now)
        self._replicas: dict[str, int] = {}
        self._rings_at = now
        self._messages = 0

    def configure(self, pool: NodePool) -> None:
        """A node class and its one NodePool, which lifecycle has found ready."""
        objects.put(self._admin, builders.node_class(ready=False), pool)
        self._wake(Bell.LIFECYCLE, "{}")

    def allow(self, pool: NodePool) -> None:
        """Change what the NodePool allows."""
        requirements = [one.model_dump(mode="json", by_alias=True) for one in pool.spec.template.spec.requirements]
        change = {"spec": {"template": {"spec": {"requirements": requirements}}}}
        self._patch(f"/apis/karpenter.sh/v1/nodepools/{pool.metadata.name}", change)

    def deploy(self, cluster: Shrinking) -> None:
        """All workloads, with all their replicas."""
        for workload in cluster.workloads:
            if budget := workload.disruption_budget():
                objects.put(self._admin, budget)
            self._admin.request("POST", DEPLOYMENTS, workload.document())
            self._replicas[workload.name] = workload.replicas

    def scale(self, replicas: Iterable[tuple[str, int]]) -> None:
        """Give these workloads so many replicas, and wait until they have no more."""
        for name, count in replicas:
            self._patch(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": count}})
            self._replicas[name] = count
        self.settle()

    def wait(self, time_passed: timedelta) -> None:
        """Nothing happens for so long."""
        self.world.clock.advance(time_passed)

    def look(self) -> Snapshot:
        """Everything there is now."""
        return self.world.real.snapshot()

    def tick(self) -> tuple[Call, ...]:
        """Move the clock to the next bell, answer it, and let everybody else react. What the doors answered."""
        clock, bell, answered = self.world.clock, self.world.doorbell, len(self.doors.calls)
        due = min(filter(None, (bell.next_due, self._rings_at)))
        clock.move_to(max(due, clock.now(), _real_time()))
        if clock.now() >= self._rings_at:
            for listed in self.bells:
                bell.ring(listed)
            self._rings_at = clock.now() + SCHEDULE
        for ring in bell.due():
            if ring.bell in self.bells:
                self._wake(ring.bell, ring.body)
        calls = tuple(self.doors.calls[answered:])
        if calls:
            self._boot()
            self.settle()
        return calls

    def settle(self) -> None:
        """Wait until every ReplicaSet has its pods, and the scheduler has bound all that it can."""
        started = changed_at = time.monotonic()
        before: object = None
        while time.monotonic() - started < LONGEST_SECONDS:
            self._kubelets.tick()
            pods, now = self._pods(), time.monotonic()
            state = {pod.key: (pod.spec.node_name, bool(pod.status.conditions)) for pod in pods}
            changed_at, before = (changed_at if state == before else now), state
            is_complete = len(pods) == sum(self._replicas.values()) and all(map(_is_alive, pods))
            if is_complete and all(pod.spec.node_name for pod in pods):
                return
            if is_complete and all(pod.status.conditions for pod in pods) and now - changed_at > QUIET_SECONDS:
                return
            time.sleep(POLL_SECONDS)

    @property
    def evicted(self) -> int:
        """How many pods the eviction API has let go so far."""
        return sum(asked.answer is Eviction.EVICTED for asked in self.world.real.evictions)

    @property
    def errors(self) -> list[str]:
        """What doors failed of."""
        raised = [f"{call.door}: {call.error}" for call in self.doors.calls if call.error]
        refused = [f"{call.door}: {call.result}" for call in self.doors.calls if _outcome(call) == "refused"]
        return raised + refused

    def _wake(self, bell: Bell, body: str) -> None:
        self._messages += 1
        message = record(f"message-{self._messages}", f"joinery-{bell.value}.fifo", json.loads(body))
        self.doors.invoke(bell.value, {"Records": [message]})

    def _boot(self) -> None:
        """Instances that run register their nodes."""
        running = {instance.instance_id for instance in self.world.cloud.instances() if instance.state == "running"}
        claims = [c for c in self.look().node_claims if c.status.provider_id.rpartition("/")[2] in running]
        self._kubelets.boot(claim for claim in claims if not claim.is_deleting and not claim.is_true(INITIALIZED))

    def _pods(self) -> tuple[Pod, ...]:
        return lists.read(self._admin, "/api/v1/pods", Pod).objects

    def _patch(self, path: str, change: object) -> None:
        self._admin.request("PATCH", path, change, content_type=MERGE_PATCH)


@contextmanager
def living(plane: ControlPlane, catalog: Catalog, **settings: str) -> Iterator[Living]:
    """A cluster with Joinery's doors open, emptied again at the end. ``settings``: of the doors, by name."""
    cluster = Living(plane, catalog, **settings)
    try:
        with cluster.doors.open():
            yield cluster
    finally:
        clear(objects.connect(plane))


def _is_alive(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None


def _outcome(call: Call) -> str:
    return str((call.result or {}).get("outcome", "")) if isinstance(call.result, dict) else ""


def _real_time() -> datetime:
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)  # noqa: TID251 - the API server's are real
