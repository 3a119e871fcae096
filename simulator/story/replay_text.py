"""``joinery replay``: an event put through its door, and what the door decided,
ignored, woke, sent and changed, as text.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.text import Text

from joinery.gateways.kubernetes.gateway import Event
from joinery_cli.notices import working
from simulator.doors.wakeups import call as call_for
from simulator.doors.wakeups import read
from simulator.kubernetes.apiserver import Change
from simulator.story import render
from simulator.story.replay import Replayed, put_through, story_at


def replay_as_text(path: Path, seed: int) -> str:
    """Replay the event of a file and print what came of it. Returns ``Replayed.error``.

    Raises ``ConfigurationError`` for a file that holds no event.
    """
    door, event = call_for(read(path), path)
    out = render.console()
    with working("playing the story up to the event"), story_at(door, seed) as simulation:
        replayed = put_through(simulation, door, event)
    show(out, path.name, replayed)
    return replayed.error


def show(out: Console, name: str, replayed: Replayed) -> None:
    """Print all of it. ``name``: the event's, for the heading."""
    _heading(out, name, replayed)
    _list(out, "Decided", [f"{command}: {reason}" for command, reason in replayed.decisions])
    if replayed.ignored:
        _list(out, "Ignored", replayed.ignored)
    if replayed.failures:
        _list(out, "Failed, and delivered again", replayed.failures)
    _list(out, "Woke", replayed.rings)
    _list(out, "Events", [_event_line(event) for event in replayed.events])
    _list(out, "Changed", [_change_line(change) for change in replayed.changes])


def _heading(out: Console, name: str, replayed: Replayed) -> None:
    call = replayed.call
    out.print(Text(f"{name} at the {call.door} door, {call.at:%H:%M:%S}", style="bold"))
    if replayed.played:
        out.print(Text(replayed.played, style="dim"))
    answer = call.error or json.dumps(call.result, sort_keys=True)
    out.print(Text(f"answer: {answer}", style="red" if call.error else "green"))


def _list(out: Console, title: str, lines: Iterable[str]) -> None:
    lines = list(lines)
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


def _event_line(event: Event) -> str:
    """As ``kubectl get events`` lists it."""
    severity = "Warning" if event.warning else "Normal"
    return f"{severity} {event.reason} {event.kind.lower()}/{event.name}: {event.message}"


def _change_line(change: Change) -> str:
    verb = "created" if change.before is None else "removed" if change.after is None else "changed"
    return f"{change.kind} {(change.after or change.before).metadata.name} {verb}{_changed_parts(change)}"


def _changed_parts(change: Change) -> str:
    """Which parts of a changed object differ, in a few words."""
    if change.before is None or change.after is None:
        return ""
    metadata_fields = ("labels", "annotations", "finalizers", "deletion_timestamp", "owner_references")
    before, after = change.before.metadata, change.after.metadata
    parts = [name.replace("_", " ") for name in metadata_fields if getattr(before, name) != getattr(after, name)]
    parts += [name for name in ("spec", "status") if _part(change.before, name) != _part(change.after, name)]
    return f": {', '.join(parts)}"


def _part(item: Any, name: str) -> Any:
    return getattr(item, name, None)
