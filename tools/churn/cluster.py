"""The simulated cluster: nodes that are bought and go, pods that come, run and end, as objects of the product.

Objects are the product's own (``joinery.objects``), so its decisions can be asked with ``snapshot``. Times are seconds
since the day began.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from msgspec.structs import replace

from joinery.decisions.scheduling.packing import PlacedOffering
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes import core
from joinery.objects.snapshot.claims import with_status
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.disrupted import joined, launched
from tools.churn.day import Template
from tools.churn.market import Market

#: Midnight of a Tuesday: every schedule of a working day may be in force.
BEGINNING = datetime(2026, 9, 1, tzinfo=UTC)
_MEBIBYTE = 2**20


def moment(second: float) -> datetime:
    return BEGINNING + timedelta(seconds=second)


@dataclass
class Work:
    """What somebody wants to run: a replica of a service, or a job. An evicted pod's successor does the same work.

    owner       the name of the ReplicaSet or Job that makes its pods
    seconds     how long a job runs; None for a replica, which is wanted until it is scaled down
    evictions   when its pods were evicted
    """

    template: Template
    owner: str
    seconds: int | None = None
    evictions: list[int] = field(default_factory=list)


@dataclass
class RunningPod:
    """A pod that waits or runs. ``node``: the name of its machine; empty while it waits. ``bound``: since when."""

    pod: core.Pod
    work: Work
    created: int
    node: str = ""
    bound: int = 0

    @property
    def key(self) -> str:
        return self.pod.key


@dataclass
class Machine:
    """An instance, with its NodeClaim and, once it has joined, its Node.

    offering       what was bought, at what price
    room           millicores and bytes that are allocatable, and how many pods
    used           the same of its pods
    is_closed      it takes no pods any more: a command will retire it
    kept_for       pods that alone it takes as yet, by the names of their templates; None for any
    command        what it was bought for; None for pods that waited
    ended          when its instance was gone; None while it is there
    """

    claim: NodeClaim
    offering: PlacedOffering
    room: tuple[int, int, int]
    launched: int
    node: core.Node | None = None
    used: list[int] = field(default_factory=lambda: [0, 0, 0])
    pods: dict[str, RunningPod] = field(default_factory=dict)
    is_closed: bool = False
    kept_for: Counter[str] | None = None
    command: "Bought | None" = None
    ended: int | None = None

    @property
    def name(self) -> str:
        return self.claim.metadata.name

    def holds(self, template: Template) -> bool:
        """Whether there is room for one more such pod (kube-scheduler NodeResourcesFit)."""
        asked = demands(template)
        return all(used + more <= room for used, more, room in zip(self.used, asked, self.room, strict=True))

    def add(self, pod: RunningPod, now: int) -> None:
        self._count(pod, 1, now)
        self.pods[pod.key] = pod

    def remove(self, pod: RunningPod, now: int) -> None:
        self._count(pod, -1, now)
        del self.pods[pod.key]

    def _count(self, pod: RunningPod, sign: int, now: int) -> None:
        for index, amount in enumerate(demands(pod.work.template)):
            self.used[index] += sign * amount
        self.claim = with_status(self.claim, last_pod_event_time=moment(now))


@dataclass(frozen=True)
class Bought:
    """Why a machine was bought by a disruption command.

    ``at``: when the command began. ``repaid``: from when on its savings have repaid its evictions.
    """

    at: int
    repaid: float


def demands(template: Template) -> tuple[int, int, int]:
    """Millicores, bytes, and one pod."""
    return template.cpu, template.memory * _MEBIBYTE, 1


class Cluster:
    """``machines``: those that are there, by name. ``pods``: those that wait or run, by namespace/name."""

    def __init__(self, market: Market) -> None:
        self.market = market
        self.machines: dict[str, Machine] = {}
        self.pods: dict[str, RunningPod] = {}
        self.waiting: dict[str, RunningPod] = {}
        self._numbers = count()

    # --- pods ---

    def create(self, work: Work, now: int) -> RunningPod:
        """A new pod that waits for a node."""
        made = RunningPod(_pod(work, next(self._numbers), now), work, now)
        self.pods[made.key] = self.waiting[made.key] = made
        return made

    def bind(self, pod: RunningPod, machine: Machine, now: int) -> None:
        pod.pod = replace(
            pod.pod,
            spec=replace(pod.pod.spec, node_name=machine.name),
            status=core.PodStatus(phase="Running", start_time=moment(now), conditions=[_true("Ready")]),
        )
        pod.node, pod.bound = machine.name, now
        del self.waiting[pod.key]
        machine.add(pod, now)

    def remove(self, pod: RunningPod, now: int) -> None:
        """The pod is gone: it ended, was scaled down, or was evicted."""
        del self.pods[pod.key]
        self.waiting.pop(pod.key, None)
        if pod.node:
            self.machines[pod.node].remove(pod, now)

    # --- machines ---

    def launch(self, claim: NodeClaim, offering: PlacedOffering, now: int) -> Machine:
        """A NodeClaim whose instance is on its way."""
        sold = self.market.types[offering.instance_type]
        there = launched(claim, self.market.pool, sold, offering, moment(now))
        allocatable = sold.allocatable
        room = allocatable["cpu"], allocatable["memory"], allocatable["pods"]
        machine = Machine(there, offering, room, now)
        self.machines[machine.name] = machine
        return machine

    def join(self, machine: Machine, now: int) -> None:
        """The machine's Node is there, initialised and Ready."""
        machine.claim, machine.node = joined(machine.claim, moment(now))

    def end(self, machine: Machine, now: int) -> None:
        """The machine's instance is gone."""
        machine.ended = now
        del self.machines[machine.name]

    # --- all of it ---

    def snapshot(self, now: int) -> Snapshot:
        """The cluster as the product reads it."""
        machines = self.machines.values()
        return Snapshot(
            now=moment(now),
            pods=tuple(pod.pod for pod in self.pods.values()),
            nodes=tuple(machine.node for machine in machines if machine.node is not None),
            node_claims=tuple(machine.claim for machine in machines),
            node_pools=(self.market.pool,),
            node_classes=(self.market.node_class,),
        )

    @property
    def hourly(self) -> float:
        """$/h of all machines."""
        return sum(machine.offering.price for machine in self.machines.values())


def by_template(pods: Iterable[str], known: Mapping[str, RunningPod]) -> Counter[str]:
    """How many of these pods (namespace/name) there are of each template."""
    return Counter(known[pod].work.template.name for pod in pods if pod in known)


def _pod(work: Work, number: int, now: int) -> core.Pod:
    template = work.template
    is_job = work.seconds is not None
    owner = core.OwnerReference(
        api_version="batch/v1" if is_job else "apps/v1",
        kind="Job" if is_job else "ReplicaSet",
        name=work.owner,
        uid=f"uid-{work.owner}",
        controller=True,
    )
    requests: dict[str, str | int | float] = {"cpu": f"{template.cpu}m", "memory": f"{template.memory}Mi"}
    return core.Pod(
        metadata=core.ObjectMeta(
            name=f"{work.owner}-{number:06d}",
            namespace="default",
            uid=f"uid-pod-{number}",
            labels={"app": template.name},
            creation_timestamp=moment(now),
            owner_references=[owner],
        ),
        spec=core.PodSpec(
            containers=[core.Container(name="main", resources=core.ResourceRequirements(requests=requests))],
            restart_policy="Never" if is_job else "Always",
        ),
        status=core.PodStatus(phase="Pending"),
    )


def _true(kind: str) -> core.Condition:
    return core.Condition(type=kind, status="True")


def _condition(kind: str, now: int) -> Condition:
    return Condition(type=kind, status="True", reason=kind, last_transition_time=moment(now), observed_generation=1)
