"""Joinery at work on a real control plane: a cluster in time, and what is noted of it.

Kubernetes is real: API server, scheduler, controllers, admission, eviction. EC2, SQS and the kubelets are played. The
doors are the real handlers, and each reaches the cluster as a user of its own, who may do what ``manifests/rbac.yaml``
says.

Two clocks meet here. The API server stamps what it stores with the real time; the doors read the driven clock, which
starts an hour behind and moves as fast as real time while anybody waits for the real scheduler, and jumps to the next
bell otherwise.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from joinery.gateways.bundles import Gateways
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.events import KubernetesRecorder
from joinery.gateways.kubernetes.gateway import Eviction
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.claims import INITIALIZED
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.doors.doors import TOKEN, Doors
from simulator.doors.queues import record
from simulator.world import World
from tests.controlplane import objects
from tests.controlplane.door import Review, WebhookDoor, webhook_door
from tests.controlplane.kubelet import Kubelets
from tests.controlplane.webhook import webhooks
from tools.controlplane.plane import DOORS, JOINERY, ControlPlane

SAMPLES = objects.MANIFESTS.parent / "events"
PATIENCE_SECONDS = 90
BEHIND = timedelta(hours=1)
DEPLOYMENTS, REPLICA_SETS = (f"/apis/apps/v1/namespaces/default/{kind}" for kind in ("deployments", "replicasets"))
EVENTS = "/apis/events.k8s.io/v1/events"


@dataclass(frozen=True)
class Asked:
    """One call of the eviction API, and its answer. ``at``: the doors' clock."""

    at: datetime
    pod: str
    answer: Eviction


class NotedCluster(KubernetesCluster):
    """The adapter, with a note of every eviction that was asked for."""

    def __init__(self, transport: Transport, *, now: Callable[[], datetime]) -> None:
        super().__init__(transport, now=now, node_class=EC2NodeClass)
        self.evictions: list[Asked] = []

    def evict(self, pod: Pod) -> Eviction:
        """As the adapter does it."""
        answer = super().evict(pod)
        self.evictions.append(Asked(self._now(), pod.key, answer))
        return answer


class RealWorld(World):
    """A world whose cluster is a real API server; its EC2, queues, bucket and table are the simulator's."""

    def __init__(self, transport: Transport, start: datetime) -> None:
        super().__init__(start=start)
        self.real = NotedCluster(transport, now=self.clock.now)
        self.told = KubernetesRecorder(transport, now=self.clock.now)

    @property
    def gateways(self) -> Gateways:
        return replace(super().gateways, cluster=self.real, recorder=self.told)


class Cluster:
    """The cluster while it runs: ``until`` something is true, time passes and everybody does his work."""

    def __init__(self, plane: ControlPlane, door: WebhookDoor) -> None:
        now = _real_time()
        self.admin = objects.connect(plane)
        self.joinery = objects.connect_as(plane, lambda: DOORS.get(self.doors.active, JOINERY))
        self.world = RealWorld(self.joinery, now - BEHIND)
        self.doors = Doors(self.world)
        self.reviews: list[Review] = []
        #: By budget, how many more pods were healthy than it demands, at the worst moment.
        self.least_spare: dict[str, int] = {}
        self._kubelets = Kubelets(self.admin, now)
        self._door = door
        self._booted: set[str] = set()
        self._passed = time.monotonic()
        self._messages = 0

    def until(self, question: Callable[[Snapshot], Any]) -> Any:
        """Live on until the answer is true, and return it. Fails after a minute and a half."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (answer := question(self.look())):
            assert time.monotonic() < deadline, f"never came true: {self.state()}"
            self._step()
        return answer

    def look(self) -> Snapshot:
        """Everything there is now."""
        return self.world.real.snapshot()

    def interrupt(self, claim: NodeClaim) -> None:
        """EC2 takes the claim's spot instance back: two minutes' notice, through the interruption queue."""
        instance = claim.status.provider_id.rpartition("/")[2]
        self.world.cloud.interrupt(instance)
        sample = json.loads((SAMPLES / "interruption_spot_warning.json").read_text())
        warning = json.loads(sample["Records"][0]["body"])
        self.send(
            "interruption",
            "joinery-interruptions",
            warning | {"detail": {**warning["detail"], "instance-id": instance}},
        )

    def expire(self, claim: NodeClaim, age: timedelta) -> None:
        """Let time pass until the claim is that old by every clock, and the expiration schedule ring."""
        created = claim.metadata.creation_timestamp
        assert created is not None
        self.world.clock.move_to(max(_real_time(), created + age))
        moment = self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        self.doors.invoke("expiration", {"schedule": moment})

    def send(self, door: str, queue: str, body: dict[str, Any], group: str = "") -> None:
        """Deliver a message of that queue."""
        self._messages += 1
        message = record(f"message-{self._messages}", queue, body, group=group)
        self.doors.invoke(door, {"Records": [message]})

    def events(self, reason: str) -> list[dict[str, Any]]:
        """The Events with that reason that the API server has."""
        events = json.loads(self.admin.get(EVENTS))["items"]
        return [event for event in events if event.get("reason") == reason]

    def state(self) -> str:
        """What there is, for the message of a failure."""
        seen = self.look()
        pods = [f"{pod.key} on {pod.spec.node_name or '-'} ({pod.status.nominated_node_name})" for pod in seen.pods]
        claims = [f"{c.metadata.name} {[x.type for x in c.status.conditions]}" for c in seen.node_claims]
        errors = [f"{call.door}: {call.error}" for call in self.doors.calls if call.error]
        return f"{self.world.clock.now()} {pods} {claims} {errors}"

    def _step(self) -> None:
        self._pass_time()
        self._answer_bells()
        self._boot()
        self._kubelets.tick()
        self._note_budgets()

    def _pass_time(self) -> None:
        """Real time, or a jump to the next bell where nobody waits for the real scheduler."""
        elapsed, self._passed = time.monotonic() - self._passed, time.monotonic()
        moment = self.world.clock.now() + timedelta(seconds=elapsed)
        due = self.world.doorbell.next_due
        if due is not None and due > moment and not _is_scheduling(self.look()):
            moment = due
        self.world.clock.move_to(moment)
        time.sleep(0.05)

    def _answer_bells(self) -> None:
        """Whatever was rung, by the webhook's process or by a door, reaches its door after the queue's delay."""
        fresh = self._door.take()
        self.reviews += fresh
        for review in fresh:
            for bell in review.bells:
                self.world.doorbell.ring(bell)
        for ring in self.world.doorbell.due():
            self.send(ring.bell.value, f"joinery-{ring.bell.value}.fifo", json.loads(ring.body), "real")

    def _boot(self) -> None:
        """An instance that runs registers its node, once."""
        running = {instance.instance_id for instance in self.world.cloud.instances() if instance.state == "running"}
        for claim in self.look().node_claims:
            instance = claim.status.provider_id.rpartition("/")[2]
            if instance in running - self._booted:
                self._booted.add(instance)
                self._kubelets.boot([claim])

    def _note_budgets(self) -> None:
        for budget in json.loads(self.admin.get("/apis/policy/v1/poddisruptionbudgets"))["items"]:
            name, status = budget["metadata"]["name"], budget["status"]
            if status.get("expectedPods"):
                spare = status["currentHealthy"] - status["desiredHealthy"]
                self.least_spare[name] = min(spare, self.least_spare.get(name, spare))


def _is_scheduling(seen: Snapshot) -> bool:
    """Whether a pod waits although no node is on its way: then it is the real scheduler's turn."""
    waits = any(not pod.spec.node_name or pod.status.phase == "Pending" for pod in seen.pods)
    return waits and bool(seen.node_claims) and all(claim.is_true(INITIALIZED) for claim in seen.node_claims)


def _real_time() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)  # noqa: TID251 - the API server's timestamps are real


@contextmanager
def living(plane: ControlPlane) -> Iterator[Cluster]:
    """A cluster with Joinery's doors open, empty at first, and emptied again at the end."""
    with webhook_door() as door, webhooks(plane, door, TOKEN):
        cluster = Cluster(plane, door)
        objects.sweep(cluster.admin)
        try:
            with cluster.doors.open():
                yield cluster
        finally:
            clear(cluster.admin)


def clear(admin: Transport) -> None:
    """Remove everything, controllers first, until nothing is recreated any more."""
    for place in (DEPLOYMENTS, REPLICA_SETS):
        admin.request("DELETE", place)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while json.loads(admin.get("/api/v1/pods"))["items"] or json.loads(admin.get(REPLICA_SETS))["items"]:
        assert time.monotonic() < deadline, "pods keep coming back"
        objects.sweep(admin)
    objects.sweep(admin)
