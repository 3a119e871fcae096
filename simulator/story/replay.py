"""One recorded or sample event through its real handler, and what came of it.

An event needs a world in which it means something: the story, driven to a moment when such an event comes. An instance
that the event names is played by one that runs there; so is what is in a capacity reservation that it names.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.text import Text

from joinery.apis import labels as keys
from joinery.apis.nodeclaim import NodeClaim
from joinery.cluster.gateway import Event
from joinery.state.claims import with_metadata
from simulator.doors.doors import Call
from simulator.doors.wakeups import call as call_for
from simulator.doors.wakeups import read
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.budgets import is_ready
from simulator.story import render
from simulator.story.scenario import load
from simulator.story.simulation import Simulation
from simulator.story.speech import tail

_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}")


def replay(path: Path, seed: int) -> str:
    """Print what was decided and what changed.

    Returns the error that would have the event delivered again, if there is one.
    """
    door, event = call_for(read(path), path)
    out, simulation = render.console(), Simulation(load(), seed=seed)
    with simulation.running():
        _drive(simulation, door)
        event, played = _cast(event, door, simulation)
        changes: list[Change] = []
        simulation.world.cluster.api.watch(changes.append)
        rung, told = len(simulation.world.doorbell.rings), len(simulation.world.recorder.events)
        call = simulation.doors.invoke(door, event)
        rings = [bell.value for _, bell in simulation.world.doorbell.rings[rung:]]
    _print(out, path, call, played)
    _list(out, "Decided", [f"{command}: {reason}" for command, reason in decisions(call)])
    if reasons := ignored(call):
        _list(out, "Ignored", reasons)
    if errors := failed(call):
        _list(out, "Failed, and delivered again", errors)
    _list(out, "Rang", rings)
    _list(out, "Events", [_said(event) for event in simulation.world.recorder.events[told:]])
    _list(out, "Changed", [_described(change) for change in changes])
    return call.error or "; ".join(errors)


def decisions(call: Call) -> list[tuple[str, str]]:
    """What the handler's log says that it decided, with the reasons."""
    found = [line for line in _lines(call) if "command" in line or "node_claim" in line]
    return [(_command(line), str(line.get("reason", ""))) for line in found]


def ignored(call: Call) -> list[str]:
    """Why the handler did nothing about a message."""
    return [str(line.get("reason", "")) for line in _lines(call) if line.get("message") == "event ignored"]


def failed(call: Call) -> list[str]:
    """Why the queue delivers a message again."""
    return [str(line["error"]) for line in _lines(call) if str(line.get("message", "")).startswith("failed")]


def _lines(call: Call) -> list[dict[str, Any]]:
    return [json.loads(line) for line in call.log.splitlines() if line.startswith("{")]


def _command(line: Mapping[str, Any]) -> str:
    return str(line.get("command") or f"CreateClaim {line['node_claim']}")


def _drive(simulation: Simulation, door: str) -> None:
    """To the moment when such a door has something to do."""
    moment = _MOMENTS.get(door)
    if moment is not None:
        simulation.engine.run_until(simulation.end, stop=moment(simulation))
    if door == "expiration":
        simulation.world.clock.move_to(simulation.start + timedelta(minutes=15, seconds=1))


def _pods_wait(simulation: Simulation) -> Callable[[], bool]:
    pods = simulation.world.cluster.pods
    return lambda: any(found.reason == "Unschedulable" for pod in pods.values() for found in pod.status.conditions)


def _node_joins(simulation: Simulation) -> Callable[[], bool]:
    nodes = simulation.world.cluster.nodes
    return lambda: any(found.key == keys.UNREGISTERED_TAINT for node in nodes.values() for found in node.spec.taints)


def _all_run(simulation: Simulation) -> Callable[[], bool]:
    cluster = simulation.world.cluster
    return lambda: len(cluster.nodes) > 1 and all(is_ready(pod) for pod in cluster.pods.values())


_MOMENTS: Mapping[str, Callable[[Simulation], Callable[[], bool]]] = {
    "webhook": _pods_wait,
    "provisioning": _pods_wait,
    "lifecycle": _node_joins,
    "interruption": _all_run,
    "expiration": _all_run,
}


def _cast(event: dict[str, Any], door: str, simulation: Simulation) -> tuple[dict[str, Any], str]:
    """The event about a running spot instance of this world, in the part of what it names; and who plays what."""
    claims = simulation.world.cluster.node_claims.values()
    spot = [claim for claim in claims if claim.metadata.labels.get(keys.CAPACITY_TYPE) == keys.SPOT]
    if door != "interruption" or not spot:
        return event, ""
    text = json.dumps(event)
    instance, reservation = _INSTANCE.search(text), _RESERVATION.search(text)
    if instance is None and reservation is not None:
        return event, _reserved(spot[0], reservation[0], simulation)
    if instance is None:
        return event, ""
    actor = spot[0].status.provider_id.rpartition("/")[2]
    changed: dict[str, Any] = json.loads(text.replace(instance[0], actor))
    return changed, f"{instance[0]} is played by {tail(actor)}, the node of {spot[0].metadata.name}"


def _reserved(claim: NodeClaim, reservation: str, simulation: Simulation) -> str:
    """Put the claim's node into the reservation."""
    labels = {**claim.metadata.labels, keys.RESERVATION_ID: reservation}
    simulation.world.cluster.api.update(with_metadata(claim, labels=labels))
    return f"{reservation} is taken to hold the node of {claim.metadata.name}"


def _print(out: Console, path: Path, call: Call, played: str) -> None:
    out.print(Text(f"{path.name} at the {call.door} door, {call.at:%H:%M:%S}", style="bold"))
    if played:
        out.print(Text(played, style="dim"))
    answer = call.error or json.dumps(call.result, sort_keys=True)
    out.print(Text(f"answer: {answer}", style="red" if call.error else "green"))


def _list(out: Console, title: str, lines: list[str]) -> None:
    out.print(Text(f"{title}: nothing" if not lines else f"{title}:", style="bold"))
    for line in lines:
        wrapped = wrap(
            line,
            out.width,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        out.print(Text("\n".join(wrapped)), soft_wrap=True)


def _said(event: Event) -> str:
    """As ``kubectl get events`` lists them."""
    kind = "Warning" if event.warning else "Normal"
    return f"{kind} {event.reason} {event.kind.lower()}/{event.name}: {event.message}"


def _described(change: Change) -> str:
    verb = "created" if change.before is None else "removed" if change.after is None else "changed"
    return f"{change.kind} {(change.after or change.before).metadata.name} {verb}{_what(change)}"


def _what(change: Change) -> str:
    """Which parts of an object differ, in a few words."""
    if change.before is None or change.after is None:
        return ""
    meta = ("labels", "annotations", "finalizers", "deletion_timestamp", "owner_references")
    before, after = change.before.metadata, change.after.metadata
    parts = [name.replace("_", " ") for name in meta if getattr(before, name) != getattr(after, name)]
    parts += [name for name in ("spec", "status") if _part(change.before, name) != _part(change.after, name)]
    return f": {', '.join(parts)}"


def _part(item: Any, name: str) -> Any:
    return getattr(item, name, None)
