"""``joinery simulate --top``: a scenario, looked at."""

from datetime import timedelta
from pathlib import Path

from joinery_cli.view.top_view import Phase
from simulator.story.bill import bill
from simulator.story.scenario import find, load
from simulator.story.show import run
from simulator.story.simulation import Simulation
from simulator.story.top import view_of
from tools.session import PICTURE, recorded


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


def test_the_session_in_the_pages_is_what_the_screen_shows() -> None:
    """Where this fails, look at the new one, and write it: ``python -m tools.session``."""
    assert PICTURE.read_text() == recorded()


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
