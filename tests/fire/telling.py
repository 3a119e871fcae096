"""A story told to its end: the simulation with its real handlers, through wires on which calls may go wrong.

What ends a story is that nothing is in progress any more. What is compared then is the world without names and moments,
so that a telling in which something went wrong must end as the undisturbed one does.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from joinery.gateways.bundles import Gateways
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.settings import Settings
from simulator import world as simulated
from simulator.engine import Turn
from simulator.kubernetes.budgets import is_ready
from simulator.story.leaks import left_behind, unowned_instances
from simulator.story.scenario import Market, Running, Scenario, Spec
from simulator.story.simulation import Simulation
from tests.fire.faults import Wires
from tests.functional.fuse import wired

#: How long a story may take, and how long nothing may change for it to be over: every schedule has rung since.
LONGEST, QUIET = timedelta(minutes=40), timedelta(seconds=65)
_STEP = timedelta(seconds=15)
_current: list[Wires] = []

Document = dict[str, Any]
Picture = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Story:
    """What there is, and what happens to it.

    ``objects``: documents, Deployments and StatefulSets among them. ``running``: nodes that are there at the start.
    ``begin``: what happens one second later. ``settings``: of the doors. ``is_over``: whether that has come to what it
    must lead to; for what shows in no object that is left unfinished, because nobody may be in a hurry about it.
    """

    name: str
    begin: Callable[[Simulation], object]
    objects: tuple[Document, ...] = ()
    running: tuple[Running, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    is_over: Callable[[Simulation], bool] = lambda _: True

    @property
    def scenario(self) -> Scenario:
        """The story without its beginning, as the simulator reads it."""
        small = Market(families=("m6a",), zones=("us-east-1a", "us-east-1b"))
        spec = Spec(title=self.name, length="40m", seed=3, market=small, objects=self.objects, running=self.running)
        return Scenario({"name": self.name}, spec)


class Telling:
    """One telling of a story. ``wires`` are those of its doors; ``launched``: every instance that ever was."""

    def __init__(self, story: Story, wires: Wires | None = None, **settings: str) -> None:
        self.story = story
        self.wires = wires or Wires()
        ours = {"gateways": f"{__name__}:gateways", **story.settings, **settings}
        self.simulation = Simulation(story.scenario, **ours)  # type: ignore[arg-type]
        self._stack = ExitStack()

    def __enter__(self) -> "Telling":
        _current.append(self.wires)
        self._stack.callback(_current.pop)
        self._stack.enter_context(self.simulation.running())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def launched(self) -> int:
        return len(self.simulation.instances)

    def begin(self, length: timedelta = timedelta(seconds=1)) -> None:
        """Let happen what the story is about, and what follows in that time."""
        engine = self.simulation.engine
        engine.after(timedelta(seconds=1), Turn.SCENARIO, lambda: self.story.begin(self.simulation))
        engine.run_for(timedelta(seconds=1) + length)

    def finish(self) -> "Telling":
        """Go on until nothing is in progress. Fails if that does not come."""
        engine = self.simulation.engine
        end = engine.clock.now() + LONGEST
        while True:
            before = picture(self.simulation)
            if not self._unfinished():
                engine.run_for(QUIET)
                if not self._unfinished() and picture(self.simulation) == before:
                    return self
            assert engine.clock.now() < end, f"it does not end: {self._unfinished()}"
            engine.run_for(_STEP)

    def _unfinished(self) -> list[str]:
        untold = [] if self.story.is_over(self.simulation) else ["what the story is about has not come yet"]
        return untold + unfinished(self.simulation)

    def tell(self) -> "Telling":
        """From the beginning to the end."""
        with self:
            self.begin()
            return self.finish()

    @property
    def end(self) -> Picture:
        """What matters of the world once all is quiet."""
        return {
            **picture(self.simulation),
            "launched": self.launched,
            "unowned": list(unowned_instances(self.simulation)),
            "dead letters": len(self.simulation.interruptions.dead_letters),
        }


def gateways(settings: Settings) -> Gateways:
    """What ``JOINERY_GATEWAYS`` names: a new process's gateways, through the wires of the telling."""
    wires = _current[-1]
    wires.start_process()
    return wired(simulated.gateways(settings), wires.through)


def now() -> datetime:
    """The clock beside them: what a door remembers of failures is over when the story says so, not a real minute."""
    return simulated.now()


def unfinished(simulation: Simulation) -> list[str]:
    """What is in progress still."""
    cluster = simulation.world.cluster
    return [
        *left_behind(simulation),
        *(f"pod {pod.key} is not ready" for pod in cluster.pods.values() if not is_ready(pod)),
        *(f"claim {name} is not ready" for name, claim in cluster.node_claims.items() if not claim.is_true("Ready")),
    ]


def picture(simulation: Simulation) -> Picture:
    """Pods, Nodes and claims without their names and moments, and how many there are of each."""
    cluster = simulation.world.cluster
    nodes = cluster.nodes
    return {
        "pods": Counter(_pod(pod, nodes) for pod in cluster.pods.values()),
        "nodes": Counter(_node(node) for node in nodes.values()),
        "claims": Counter(_claim(claim) for claim in cluster.node_claims.values()),
    }


def _pod(pod: Pod, nodes: Mapping[str, Node]) -> tuple[Any, ...]:
    owner = pod.metadata.owner_references[0].name if pod.metadata.owner_references else pod.metadata.name
    return (owner, pod.status.phase, is_ready(pod), pod.spec.node_name in nodes)


def _labels(labels: Mapping[str, str]) -> tuple[str, ...]:
    """The keys, without those that describe an instance type: which type EC2 has left may differ."""
    return tuple(sorted(key for key in labels if not key.startswith("karpenter.k8s.aws/instance-")))


def _node(node: Node) -> tuple[Any, ...]:
    meta = node.metadata
    return (
        meta.labels.get("karpenter.sh/nodepool"),
        meta.labels.get("karpenter.sh/capacity-type"),
        tuple(sorted((taint.key, taint.effect) for taint in node.spec.taints)),
        _labels(meta.labels),
        tuple(sorted(meta.annotations)),
        tuple(meta.finalizers),
    )


def _claim(claim: NodeClaim) -> tuple[Any, ...]:
    meta = claim.metadata
    return (
        meta.labels.get("karpenter.sh/nodepool"),
        meta.labels.get("karpenter.sh/capacity-type"),
        _labels(meta.labels),
        tuple(sorted(meta.annotations)),
        tuple(meta.finalizers),
        tuple(sorted((condition.type, condition.status) for condition in claim.status.conditions)),
    )
