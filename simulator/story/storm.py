"""A storm of spot warnings over a large cluster, through the queue, with every call charged.

The doors, their queues and the latency of their calls are as deployed; of the cluster only what a drain needs is there:
a pod that is asked to go is gone after its grace, and its owner makes another. No node of a replacement ever joins, so
what is evicted stays pending, which is the most that provisioning can have to plan.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from joinery.objects.kubernetes.core import Pod
from simulator import builders
from simulator.actors.ec2 import warning
from simulator.doors.doors import Call, Doors
from simulator.doors.large import fill, instance
from simulator.doors.queues import TRANSIT, BellQueues, InterruptionQueue
from simulator.engine import Engine, Turn
from simulator.kubernetes.apiserver import Change
from simulator.latency import Latency
from simulator.world import World

#: From a spot warning until EC2 takes the instance.
NOTICE = timedelta(minutes=2)
#: A full node: ten pods of this size on four CPUs, so each warned node needs one more.
PODS, CPU = 10, "390m"
_WARM_UP = timedelta(seconds=30)
_RECREATED = timedelta(milliseconds=200)


@dataclass
class _Node:
    """``warned``: when. ``evicted``: when its first pod was asked to go. ``pods``: how many were not yet."""

    warned: datetime
    pods: int = PODS
    evicted: datetime | None = None
    emptied: datetime | None = None


@dataclass
class Storm:
    """``warnings`` for as many of the ``nodes``, evenly over so long.

    ``copies``: what the queue makes of each, as its ``journeys``. ``foreign``: warnings for instances of others.
    Once it has ``run``: ``launched``, instances; ``uncovered``, evictions for which EC2 had accepted no instance yet;
    ``late``, nodes that still had pods when EC2 took them; ``reads``, how often each method of a gateway was called in
    all; ``reads_until_empty``, until the last of the nodes had no pods; ``lasted``, how long that was.
    """

    nodes: int
    warnings: int
    over: timedelta
    foreign: int = 0
    copies: Sequence[timedelta] = (TRANSIT,)
    world: World = field(default_factory=World)
    uncovered: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        fill(self.world, nodes=self.nodes, pods=PODS, cpu=CPU, budgets=[{"nodes": "0"}])
        self.latency = self.world.latency = Latency(self.world.gateways)
        self.engine, self.doors = Engine(self.world.clock), Doors(self.world)
        self.queue = InterruptionQueue(self.engine, self.doors)
        self.queue.journeys = lambda: self.copies
        self.reads: Counter[str] = Counter()
        self.reads_until_empty: Counter[str] = Counter()
        self.lasted = timedelta()
        self.calls: Sequence[Call] = ()
        self._warned: dict[str, _Node] = {}
        self.launched = 0
        self._evicted = 0

    def run(self) -> None:
        """Until EC2 has taken the last of the instances."""
        with self.doors.open():
            BellQueues(self.engine, self.world.doorbell, self.doors).start()
            self.engine.run_for(_WARM_UP)
            self._before, self._begun = Counter(self.latency.calls), self.world.clock.now()
            first = len(self.doors.calls)
            self.world.cluster.api.watch(self._notice)
            self.world.cloud.watch(self._launch)
            self.engine.every(timedelta(seconds=1), Turn.KUBELET, self.world.cluster.end_grace)
            total = self.warnings + self.foreign
            for number in range(total):
                self.engine.after(self.over * number / total, Turn.CLOUD, partial(self._warn, number))
            self.engine.run_for(self.over + NOTICE + timedelta(seconds=1))
            self.reads, self.calls = self.latency.calls - self._before, self.doors.calls[first:]

    @property
    def late(self) -> list[str]:
        """Nodes that had pods left when their two minutes were over."""
        return [name for name, node in self._warned.items() if not node.emptied or node.emptied > node.warned + NOTICE]

    @property
    def longest_wait(self) -> timedelta:
        """The longest from a warning until the first of the node's pods was asked to go."""
        return max(node.evicted - node.warned for node in self._warned.values() if node.evicted)

    def _warn(self, number: int) -> None:
        # Whose instance it is goes round, so that those of others come between our own.
        total = self.warnings + self.foreign
        ours, then = (count * self.warnings // total for count in (number, number + 1))
        is_ours = then > ours
        if is_ours:
            self._warned[f"node-{ours:04}"] = _Node(self.world.clock.now())
        instance_id = instance(ours) if is_ours else instance(10**6 + number)
        self.queue.send(warning(instance_id, f"warning-{number}", self.world.clock.now()))

    def _launch(self, _: str) -> None:
        self.launched += 1

    def _notice(self, change: Change) -> None:
        pod, before = change.after, change.before
        if change.kind != "Pod" or pod is None or not pod.metadata.deletion_timestamp:
            return
        if before is None or before.metadata.deletion_timestamp:
            return
        self._evicted += 1
        self.uncovered += self._evicted > self.launched * PODS
        self._empty(pod.spec.node_name)
        self.engine.after(_RECREATED, Turn.WORKLOADS, partial(self._recreate, pod))

    def _empty(self, name: str) -> None:
        node, now = self._warned[name], self.world.clock.now()
        node.pods -= 1
        node.evicted = node.evicted or now
        if not node.pods:
            node.emptied = now
            self.reads_until_empty, self.lasted = self.latency.calls - self._before, now - self._begun

    def _recreate(self, pod: Pod) -> None:
        (owner,) = pod.metadata.owner_references
        self.world.cluster.add(builders.pod(f"{pod.metadata.name}-again", cpu=CPU, owner=owner.name))
