"""``joinery simulate --top``: a scenario, looked at."""

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path

from joinery_cli.output.top_lines import Look, lines
from joinery_cli.view.top_view import Phase
from simulator.story.bill import bill
from simulator.story.scenario import find, load
from simulator.story.show import run
from simulator.story.simulation import Simulation
from simulator.story.top import view_of
from tools.session import PICTURE, STEPS, WIDTH

_CLOCK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")
#: A node or a NodeClaim, and its instance type.
_NODE = re.compile(r"  [a-z][a-z0-9.-]+ +[a-z0-9]+\.[a-z0-9]+ ")


def test_who_looks_on_changes_nothing() -> None:
    """The story costs the same, and its nodes are seen to boot and then to stay."""
    looked_at, alone = (Simulation(load(find(Path("slow-drain"))), seed=1) for _ in range(2))
    phases: set[Phase] = set()
    with looked_at.running():
        while looked_at.world.clock.now() < looked_at.end:
            looked_at.engine.run_until(min(looked_at.world.clock.now() + timedelta(minutes=2), looked_at.end))
            phases |= {node.phase for node in view_of(looked_at).nodes}
    run(alone)
    assert {Phase.LEAVING, Phase.STAYS} <= phases
    bills = [bill(one.world.cloud, one.instances, one.start) for one in (looked_at, alone)]
    assert bills[0] == bills[1]


def test_room_that_a_buffer_keeps_is_no_pod() -> None:
    """It waits from the moment its schedule opens, then it is there and has a price, and no pod is counted for it."""
    simulation = Simulation(load(find(Path("headroom"))))
    seen: list[tuple[int, int, int]] = []
    with simulation.running():
        for minutes in (4, 5, 7):
            simulation.engine.run_until(simulation.start + timedelta(minutes=minutes))
            view = view_of(simulation)
            kept = sum(view.seen.headroom.chunks.values()) if view.seen.headroom else 0
            seen.append((view.room, kept, view.waiting))
    assert seen == [(0, 0, 0), (4, 0, 0), (0, 4, 0)]


def test_the_session_in_the_pages_is_what_the_story_shows() -> None:
    """Each line about a node is the screen's of that moment. Where this fails: ``make session``, and look at it."""
    frames = [[*_rows(frame)] for frame in PICTURE.read_text().split('<g class="f f')[1:]]
    assert len(frames) == sum(1 for _, _, title in STEPS if title)
    simulation = Simulation(load(find(Path("story"))))
    with simulation.running():
        for rows in frames:
            (shown,) = (clock for row in rows if (clock := _CLOCK.search(row)))
            simulation.engine.run_until(datetime.fromisoformat(shown[0]))
            screen = {line.text.plain.rstrip() for line in lines(view_of(simulation), Look(width=WIDTH - 1))}
            nodes = [row for row in rows if _NODE.match(row)]
            assert nodes
            assert set(nodes) <= screen


def _rows(frame: str) -> Iterator[str]:
    """The lines of a frame, as they were on the screen, without its last column: how far one has come."""
    at = defaultdict[str, str](str)
    for y, text in re.findall(r'<text class="[^"]*-r\d+"[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', frame):
        at[y] += unescape(text).replace("\xa0", " ")
    return (row[: WIDTH - 1].rstrip() for row in at.values())
