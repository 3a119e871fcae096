"""What fails for good is tried once a minute; what passes by itself is tried again at once."""

import json
from datetime import timedelta
from math import log2
from typing import Any

import pytest

from joinery.controllers.triggers.backoff import FIRST_DELAY, LONGEST_DELAY, QUICK_TRIES, reading
from joinery.controllers.triggers.dispatcher import Dispatcher
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import (
    ConfigurationError,
    ConflictError,
    DeniedError,
    JoineryError,
    RefusedError,
    UnavailableError,
    together,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.settings import Settings
from simulator import builders
from simulator.aws import InMemoryDoorbell
from simulator.clock import START, Clock
from simulator.doors.doors import Doors
from simulator.doors.queues import BellQueues
from simulator.engine import Engine, Turn
from simulator.world import World

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
DOORS = ("provisioning", "lifecycle", "disruption")
#: What the real API server, EKS and the network answer to a role that is refused or an endpoint without a route.
FOR_GOOD = [
    UnavailableError("GET /api/v1/nodes: HTTP 401 Unauthorized"),
    UnavailableError("GET /api/v1/nodes: connect timeout"),
    DeniedError("the right to list nodes is missing (403)"),
    ConfigurationError("EKS DescribeCluster blue: AccessDeniedException"),
]


class _Unreadable:
    """A cluster that cannot be read."""

    def __init__(self, error: JoineryError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


class _Hour:
    """An hour of schedules and bells, in which somebody rings provisioning every second: pods still fit nowhere."""

    def __init__(self, error: JoineryError) -> None:
        world = World()
        world.cluster = _Unreadable(error)  # type: ignore[assignment]
        doors, engine = Doors(world), Engine(world.clock)
        with doors.open():
            BellQueues(engine, world.doorbell, doors).start()
            engine.every(SECOND, Turn.WORKLOADS, lambda: world.doorbell.ring(Bell.PROVISIONING))
            engine.run_until(START + HOUR)
        self._calls = doors.calls

    def runs(self, door: str) -> int:
        """How often the door has tried."""
        return sum(call.door == door and call.result != {"outcome": "backing off"} for call in self._calls)

    def lines(self, door: str) -> list[dict[str, Any]]:
        """What its runs have logged, metrics aside."""
        lines = [json.loads(line) for call in self._calls if call.door == door for line in call.log.splitlines()]
        return [line for line in lines if "level" in line]


@pytest.mark.parametrize("error", FOR_GOOD, ids=lambda error: str(error)[-30:])
def test_what_fails_for_good_is_tried_once_a_minute(error: JoineryError) -> None:
    """Rung again without end, provisioning tried 3,600 times an hour, lifecycle 720 times and disruption 360 times."""
    hour = _Hour(error)
    for door in DOORS:
        assert 60 <= hour.runs(door) <= HOUR / LONGEST_DELAY + QUICK_TRIES + log2(LONGEST_DELAY / FIRST_DELAY) + 1


def test_each_try_is_one_line_without_a_traceback() -> None:
    """It says what is wrong; that is the same an hour long."""
    hour = _Hour(FOR_GOOD[0])
    for door in DOORS:
        lines = hour.lines(door)
        assert len(lines) == hour.runs(door)
        assert not any("exception" in line for line in lines)
        assert all("401" in line["error"] for line in lines)


class _Run:
    """Runs that fail as they are told to, one after the other, and how the bell was answered."""

    def __init__(self) -> None:
        self.clock = Clock(START)
        self.doorbell = InMemoryDoorbell(self.clock)
        self._answering = Dispatcher(self.doorbell, lambda: Settings(cluster="blue"), now=self.clock.now)

    def outcome(
        self, error: Exception | None = None, *, at_the_start: bool = False, bell: Bell = Bell.LIFECYCLE
    ) -> str:
        """What came of one run. ``at_the_start``: it failed at its first read."""

        def run() -> dict[str, Any]:
            if at_the_start and error is not None:
                with reading():
                    raise error
            if error is not None:
                raise error
            return {}

        return str(self._answering.answer({}, bell, run)["outcome"])


def test_what_passes_by_itself_is_tried_again_at_once() -> None:
    """A throttled read, twice; then the cluster answers, and it begins anew."""
    run, throttled = _Run(), UnavailableError("429")
    for _ in range(5):
        assert run.outcome(throttled, at_the_start=True) == "rung again"
        assert run.outcome(throttled, at_the_start=True) == "rung again"
        assert run.outcome() == "done"


def test_the_schedule_is_always_answered() -> None:
    """It rings once a minute, a little earlier or later, and finds out when the trouble is over."""
    run = _Run()
    while run.outcome(UnavailableError("401"), at_the_start=True) != "failed":
        run.clock.advance(LONGEST_DELAY)
    rings = len(run.doorbell.rings)
    run.clock.advance(LONGEST_DELAY - SECOND)
    assert run.outcome() == "backing off"
    assert len(run.doorbell.rings) == rings
    run.clock.advance(SECOND)
    assert run.outcome() == "done"
    assert run.outcome(UnavailableError("401"), at_the_start=True) == "rung again"


@pytest.mark.parametrize("seconds", [1, 5, 10, 25])
def test_a_trouble_costs_about_as_long_again_as_it_lasts(seconds: int) -> None:
    """Bells are held off for two seconds at first, and are rung again meanwhile: no schedule is waited for."""
    run, over = _Run(), START + seconds * SECOND
    run.doorbell.ring(Bell.PROVISIONING)
    answered = False
    while not answered and (due := run.doorbell.next_due):
        run.clock.move_to(due)
        run.doorbell.due()
        error = UnavailableError("429") if due < over else None
        answered = run.outcome(error, at_the_start=True, bell=Bell.PROVISIONING) == "done"
    assert answered
    assert run.clock.now() <= over + (over - START) + 3 * SECOND


@pytest.mark.parametrize(
    "error", [together([UnavailableError("EC2 is busy")]), RefusedError("above the cap"), ConfigurationError("pool x")]
)
def test_a_run_that_failed_in_a_part_is_answered_as_ever(error: JoineryError) -> None:
    """It has launched nodes for others, and will for whoever comes next."""
    run = _Run()
    for _ in range(2 * QUICK_TRIES):
        run.outcome(error)
    assert run.outcome() == "done"


def test_a_part_that_fails_for_good_does_not_ring_for_good() -> None:
    """EC2 cannot be reached: what needs it is tried by the schedule, the rest goes on by bells of its own."""
    run = _Run()
    for _ in range(10):
        run.outcome(together([UnavailableError("EC2: connect timeout")]))
    assert len(run.doorbell.rings) == QUICK_TRIES - 1


def test_doors_do_not_hold_each_other_off() -> None:
    """Each bell has a count of its own."""
    run = _Run()
    for _ in range(QUICK_TRIES):
        run.outcome(UnavailableError("401"), at_the_start=True)
    assert run.outcome(bell=Bell.PROVISIONING) == "done"


def test_a_clock_that_was_set_back_holds_nothing_off() -> None:
    """Otherwise nothing were decided until it catches up."""
    run = _Run()
    for _ in range(QUICK_TRIES):
        run.outcome(UnavailableError("401"), at_the_start=True)
    run.clock = Clock(START - HOUR)
    run._answering._now = run.clock.now
    assert run.outcome() == "done"


def test_claims_that_conflict_for_good_are_not_written_again_every_second() -> None:
    """Whatever it is that answers 409 to each: 2,588 were tried in ten minutes. A few show it, in each run."""
    world, tried = World(), list[str]()
    world.cluster.add(builders.node_class(), builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=large"]))
    world.cluster.add(*(builders.pod(f"pod-{number}", cpu="1500m") for number in range(20)))

    def conflicting(claim: NodeClaim, *, dry_run: bool = False) -> NodeClaim:
        tried.append(claim.metadata.name)
        raise ConflictError("HTTP 409 AlreadyExists")

    world.cluster.create_node_claim = conflicting  # type: ignore[method-assign]
    doors, engine = Doors(world), Engine(world.clock)
    with doors.open():
        BellQueues(engine, world.doorbell, doors).start()
        engine.run_until(START + timedelta(minutes=10))
    assert 3 <= len(tried) <= 10 * (10 + QUICK_TRIES + 1)


def test_who_waits_for_another_s_lease_tries_ever_less_often() -> None:
    """It is held for seconds by whoever decides, and for a minute and a half by whoever was killed."""
    run, free = _Run(), START + timedelta(seconds=90)
    run.doorbell.ring(Bell.PROVISIONING)
    outcomes = list[str]()
    while "done" not in outcomes and run.clock.now() < free + LONGEST_DELAY:
        run.clock.move_to(run.doorbell.next_due or run.clock.now() + LONGEST_DELAY)
        run.doorbell.due()
        held = ConflictError("held by another") if run.clock.now() < free else None
        outcomes.append(run.outcome(held, at_the_start=True, bell=Bell.PROVISIONING))
    assert outcomes[-1] == "done"
    assert len(outcomes) - outcomes.count("backing off") < 12
