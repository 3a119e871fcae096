"""The simulated passing of time."""

from datetime import UTC, datetime, timedelta

import pytest

from simulator.actors.base import Alarm
from simulator.clock import Clock
from simulator.engine import Engine, Turn

SECOND = timedelta(seconds=1)


def test_things_happen_in_order_of_time(engine: Engine) -> None:
    """Whatever the order in which they were asked for."""
    seen: list[str] = []
    engine.after(2 * SECOND, Turn.CLOUD, lambda: seen.append("later"))
    engine.after(SECOND, Turn.SCHEDULES, lambda: seen.append("sooner"))
    engine.run_for(3 * SECOND)
    assert seen == ["sooner", "later"]


def test_at_one_moment_the_world_goes_before_those_who_look_at_it(engine: Engine) -> None:
    """The tie-break is written down: EC2, kubelets, workloads, scheduler, doors, schedules."""
    seen: list[Turn] = []
    for turn in reversed(Turn):
        engine.after(SECOND, turn, lambda turn=turn: seen.append(turn))  # type: ignore[misc]
    engine.run_for(SECOND)
    assert seen == list(Turn)


def test_within_a_turn_first_asked_is_first_served(engine: Engine) -> None:
    """Nothing is left to chance or to the order of a set."""
    seen: list[int] = []
    for number in range(20):
        engine.after(SECOND, Turn.DOORS, lambda number=number: seen.append(number))  # type: ignore[misc]
    engine.run_for(SECOND)
    assert seen == list(range(20))


def test_the_clock_jumps_to_each_moment_and_ends_where_it_was_told(engine: Engine) -> None:
    """An action sees its own moment, and the run ends at its end even if nothing happens there."""
    start, seen = engine.clock.now(), []
    engine.after(SECOND, Turn.CLOUD, lambda: seen.append(engine.clock.now()))
    engine.run_for(5 * SECOND)
    assert seen == [start + SECOND]
    assert engine.clock.now() == start + 5 * SECOND


def test_a_run_may_end_early(engine: Engine) -> None:
    """As soon as the condition holds, before anything else happens."""
    seen: list[int] = []
    for number in range(5):
        engine.after(number * SECOND, Turn.CLOUD, lambda number=number: seen.append(number))  # type: ignore[misc]
    assert engine.run_for(10 * SECOND, stop=lambda: len(seen) == 2)
    assert seen == [0, 1]


def test_what_is_asked_for_the_past_happens_now(engine: Engine) -> None:
    """Time never goes back."""
    seen: list[datetime] = []
    engine.at(engine.clock.now() - SECOND, Turn.CLOUD, lambda: seen.append(engine.clock.now()))
    now = engine.clock.now()
    engine.run_for(SECOND)
    assert seen == [now]


def test_an_alarm_set_twice_rings_once(engine: Engine) -> None:
    """An actor that is woken by forty pods looks once."""
    rung: list[int] = []
    alarm = Alarm(engine, Turn.SCHEDULER, SECOND, lambda: rung.append(1))
    alarm.set()
    alarm.set()
    engine.run_for(5 * SECOND)
    alarm.set()
    engine.run_for(5 * SECOND)
    assert len(rung) == 2


def test_an_actor_s_chance_depends_on_the_seed_and_its_name_alone(engine: Engine) -> None:
    """One more draw of a kubelet does not change what the scheduler does."""
    first = engine.rng("kubelet").random()
    engine.rng("scheduler").random()
    assert engine.rng("kubelet").random() == first
    assert Engine(engine.clock, seed=2).rng("kubelet").random() != first


def test_a_clock_does_not_go_back() -> None:
    """A step back is refused."""
    clock = Clock()
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-SECOND)


def test_a_clock_needs_a_time_zone() -> None:
    """A naive moment is refused, and any zone becomes UTC."""
    with pytest.raises(ValueError, match="time zone"):
        Clock(datetime(2026, 1, 1))  # noqa: DTZ001
    assert Clock(datetime(2026, 1, 1, tzinfo=UTC)).now().tzinfo is UTC
