"""The cluster while it runs: the real control plane, the deployed functions, and kubelets played by this process.

Time is the machine's. Nothing here wakes a function: that is what the deployment is tested for.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.snapshot import Snapshot
from tests.controlplane import objects
from tests.controlplane.kubelet import Kubelets
from tools.standin.world import StandIn

#: A quiet machine needs forty seconds for the slowest of it. A busy one is no failure.
PATIENCE_SECONDS = 300
POLL_SECONDS = 0.2


def now() -> datetime:
    """The machine's time, which the functions have too."""
    return datetime.now(UTC)  # noqa: TID251 - functions run in other processes


class Living:
    """``admin``: requests as an administrator. ``until`` lives on; the other methods ask once."""

    def __init__(self, standin: StandIn) -> None:
        self.standin = standin
        self.admin = objects.connect(standin.plane)
        self._cluster = KubernetesCluster(self.admin, now=now, node_class=EC2NodeClass)
        self._kubelets = Kubelets(self.admin, now())
        self._booted: set[str] = set()

    def until(self, question: Callable[[Snapshot], Any], *, seconds: float = PATIENCE_SECONDS) -> tuple[Any, float]:
        """Live on until the answer is true. The answer, and how many seconds that took. Fails at the deadline."""
        began = time.monotonic()
        while not (answer := question(self.look())):
            assert time.monotonic() - began < seconds, f"not true after {seconds:.0f} s: {self.state()}"
            self.tick()
            time.sleep(POLL_SECONDS)
        return answer, time.monotonic() - began

    def until_over(self, is_over: Callable[[], bool]) -> None:
        """The same while the definitions go, so that no snapshot can be read: pods end, and no node joins."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        over = False
        while not over:
            assert time.monotonic() < deadline, f"not over; logs are in {self.standin.folder}"
            # Once more after the end, for Nodes of instances that ended just before it.
            over = is_over()
            self._kubelets.tick()
            self._remove_ended()
            time.sleep(POLL_SECONDS)

    def look(self) -> Snapshot:
        """Everything in the cluster now."""
        return self._cluster.snapshot()

    def tick(self) -> None:
        """What kubelets would have done by now: running instances register, pods start and end."""
        running = self.instances("running")
        for claim in self.look().node_claims:
            instance = instance_of(claim)
            if instance in running - self._booted:
                self._booted.add(instance)
                self._kubelets.boot([claim])
        self._kubelets.tick()
        self._remove_ended()

    def _remove_ended(self) -> None:
        """What the cloud controller manager does: a Node whose instance has ended goes, also one that registered late.
        Those with a finalizer are Joinery's to remove.
        """
        ended = self.instances("shutting-down", "terminated")
        for node in self._kubelets.nodes():
            if node.spec.provider_id.rpartition("/")[2] in ended and not node.metadata.finalizers:
                self._kubelets.send("DELETE", f"/api/v1/nodes/{node.metadata.name}", None)

    def instances(self, *states: str) -> set[str]:
        """The ids of the instances in these states, whoever launched them."""
        reservations = self.standin.client("ec2").describe_instances()["Reservations"]
        instances = [instance for reservation in reservations for instance in reservation["Instances"]]
        return {i["InstanceId"] for i in instances if i["State"]["Name"] in states}

    def state(self) -> str:
        """What there is, for the message of a failure."""
        seen = self.look()
        pods = [f"{pod.key} {pod.status.phase} on {pod.spec.node_name or '-'}" for pod in seen.pods]
        claims = [f"{c.metadata.name} {[x.type for x in c.status.conditions]}" for c in seen.node_claims]
        events = json.loads(self.admin.get("/apis/events.k8s.io/v1/events"))["items"]
        told = [f"{event.get('reason')}: {event.get('note')}" for event in events][-10:]
        return f"{pods} {claims} {told}; logs are in {self.standin.folder}"


def instance_of(claim: NodeClaim) -> str:
    """The id of a claim's instance, or nothing."""
    return claim.status.provider_id.rpartition("/")[2]


def all_run(count: int) -> Callable[[Snapshot], Snapshot | None]:
    """A question: the snapshot, once that many pods run and no other is there."""

    def answer(seen: Snapshot) -> Snapshot | None:
        ready = [pod for pod in seen.pods if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None]
        return seen if len(ready) == len(seen.pods) == count else None

    return answer
