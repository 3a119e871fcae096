"""One recorded or sample event through its real handler, and what came of it.

An event needs a cluster in which it means something. That is the story's, driven to a moment at which such an event
would come. The instance or reservation that it names is played by one that the simulated cluster has.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from joinery.gateways.kubernetes.gateway import Event
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from simulator.doors.doors import Call
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.budgets import is_ready
from simulator.story.scenario import load
from simulator.story.simulation import Simulation
from simulator.story.speech import tail

_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
_NO_INSTANCE = "no node plays in it: what it names as instance-id is none, such as i-0123456789abcdef0"
_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}")


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of one event.

    ``call``: the invocation of the door, with its answer and its log.
    ``played``: who plays what the event names; empty where it needs nobody.
    ``rings``: the functions that the door woke, by name and in order.
    ``events``: the Kubernetes Events that it sent.
    ``changes``: what it wrote to the cluster.
    """

    call: Call
    played: str
    rings: tuple[str, ...]
    events: tuple[Event, ...]
    changes: tuple[Change, ...]

    @property
    def decisions(self) -> list[tuple[str, str]]:
        """Each command that the door's log tells of, with its reason."""
        commands = [line for line in self._log() if "command" in line or "node_claim" in line]
        return [(_command(line), str(line.get("reason", ""))) for line in commands]

    @property
    def ignored(self) -> list[str]:
        """Why the door did nothing about a message."""
        return [str(line.get("reason", "")) for line in self._log() if line.get("message") == "event ignored"]

    @property
    def failures(self) -> list[str]:
        """Why the queue would deliver a message again."""
        return [str(line["error"]) for line in self._log() if str(line.get("message", "")).startswith("failed")]

    @property
    def error(self) -> str:
        """All that would have the event delivered again; empty if it was dealt with."""
        return self.call.error or "; ".join(self.failures)

    def _log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.call.log.splitlines() if line.startswith("{")]


@contextmanager
def story_at(door: str, seed: int) -> Iterator[Simulation]:
    """The story at a moment when this door has something to do, with its doors open inside the ``with``."""
    simulation = Simulation(load(), seed=seed)
    with simulation.running():
        moment = _MOMENTS.get(door)
        if moment is not None:
            simulation.engine.run_until(simulation.end, stop=moment(simulation))
        if door == "expiration":
            # By then the oldest node of the story is past its expireAfter; nobody else acts in the time between.
            simulation.world.clock.move_to(simulation.start + timedelta(minutes=15, seconds=1))
        yield simulation


def put_through(simulation: Simulation, door: str, event: dict[str, Any]) -> Replayed:
    """Invoke the door with the event, in a simulation whose doors are open."""
    world = simulation.world
    event, played = cast(event, door, simulation)
    changes: list[Change] = []
    world.cluster.api.watch(changes.append)
    rings_before, events_before = len(world.doorbell.rings), len(world.recorder.events)
    call = simulation.doors.invoke(door, event)
    return Replayed(
        call=call,
        played=played,
        rings=tuple(bell.value for _, bell in world.doorbell.rings[rings_before:]),
        events=tuple(world.recorder.events[events_before:]),
        changes=tuple(changes),
    )


def _command(line: Mapping[str, Any]) -> str:
    return str(line.get("command") or f"CreateClaim {line['node_claim']}")


def _pods_wait(simulation: Simulation) -> Callable[[], bool]:
    pods = simulation.world.cluster.pods
    return lambda: any(
        condition.reason == "Unschedulable" for pod in pods.values() for condition in pod.status.conditions
    )


def _node_joins(simulation: Simulation) -> Callable[[], bool]:
    nodes = simulation.world.cluster.nodes
    return lambda: any(taint.key == keys.UNREGISTERED_TAINT for node in nodes.values() for taint in node.spec.taints)


def _all_run(simulation: Simulation) -> Callable[[], bool]:
    cluster = simulation.world.cluster
    return lambda: len(cluster.nodes) > 1 and all(is_ready(pod) for pod in cluster.pods.values())


#: By door: given the simulation, whether its moment has come. The other doors are called at the story's beginning.
_MOMENTS: Mapping[str, Callable[[Simulation], Callable[[], bool]]] = {
    "webhook": _pods_wait,
    "provisioning": _pods_wait,
    "lifecycle": _node_joins,
    "interruption": _all_run,
    "expiration": _all_run,
    "disruption": _all_run,
}


def cast(event: dict[str, Any], door: str, simulation: Simulation) -> tuple[dict[str, Any], str]:
    """The event about a spot instance of this cluster instead of the one that it names, and a line that says so.

    An event that names a capacity reservation but no instance stays as it is: a node is put into that reservation. The
    line is empty where nothing was replaced: at other doors, and while no spot instance runs.
    """
    claims = simulation.world.cluster.node_claims.values()
    spot = [claim for claim in claims if claim.metadata.labels.get(keys.CAPACITY_TYPE) == keys.SPOT]
    if door != "interruption" or not spot:
        return event, ""
    text = json.dumps(event)
    instance, reservation = _INSTANCE.search(text), _RESERVATION.search(text)
    if instance is None and reservation is not None:
        return event, _reserve(spot[0], reservation[0], simulation)
    if instance is None:
        return event, _NO_INSTANCE if "instance-id" in text else ""
    understudy = spot[0].status.provider_id.rpartition("/")[2]
    renamed: dict[str, Any] = json.loads(text.replace(instance[0], understudy))
    return renamed, f"{instance[0]} is played by {tail(understudy)}, the node of {spot[0].metadata.name}"


def _reserve(claim: NodeClaim, reservation: str, simulation: Simulation) -> str:
    """Put the claim's node into the reservation."""
    labels = {**claim.metadata.labels, keys.RESERVATION_ID: reservation}
    simulation.world.cluster.api.update(with_metadata(claim, labels=labels))
    return f"{reservation} is taken to hold the node of {claim.metadata.name}"
