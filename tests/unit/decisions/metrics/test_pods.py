"""How long pods wait, by two looks at them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from joinery.decisions.metrics.definitions import Duration
from joinery.decisions.metrics.pods import Arrivals
from joinery.objects.kubernetes.core import Condition, Pod
from simulator import builders

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def pod(name: str, *, created: float, node: str = "", phase: str = "Pending", **conditions: float) -> Pod:
    """A pod of so many seconds before NOW; conditions that are true, each with its seconds before NOW."""
    built = builders.pod(name)
    true = [
        Condition(type=kind, status="True", last_transition_time=NOW - at * SECOND) for kind, at in conditions.items()
    ]
    metadata = msgspec.structs.replace(built.metadata, uid=name, creation_timestamp=NOW - created * SECOND)
    spec = msgspec.structs.replace(built.spec, node_name=node)
    status = msgspec.structs.replace(built.status, phase=phase, conditions=true)
    return msgspec.structs.replace(built, metadata=metadata, spec=spec, status=status)


def looked(arrivals: Arrivals, *pods: Pod, ago: float = 0) -> dict[Any, list[float]]:
    """What a look measures, by metric."""
    durations: dict[Any, list[float]] = {}
    for measurement in arrivals.look(pods, NOW - ago * SECOND):
        durations.setdefault(measurement.measure, []).append(measurement.value)
    return durations


def test_a_pod_counts_when_it_gets_a_node_and_when_it_runs() -> None:
    """From its creation, until the moments that it says itself."""
    arrivals = Arrivals()
    assert looked(arrivals, pod("a", created=60), ago=30) == {}
    bound = pod("a", created=60, node="n", PodScheduled=20)
    assert looked(arrivals, bound, ago=15) == {Duration.BOUND: [40.0]}
    running = pod("a", created=60, node="n", phase="Running", PodScheduled=20, Ready=5)
    assert looked(arrivals, running) == {Duration.STARTUP: [55.0]}
    assert looked(arrivals, running) == {}


def test_a_pod_that_came_and_ran_between_two_looks_counts() -> None:
    """A warm image starts within a second."""
    arrivals = Arrivals()
    looked(arrivals, ago=30)
    quick = pod("a", created=10, node="n", phase="Running", PodScheduled=9, Ready=7)
    assert looked(arrivals, quick) == {Duration.BOUND: [1.0], Duration.STARTUP: [3.0]}


def test_a_pod_that_becomes_ready_again_does_not_count_again() -> None:
    """Its probe failed for a while; it did not start."""
    arrivals = Arrivals()
    ran = pod("a", created=9000, node="n", phase="Running", PodScheduled=8999)
    assert looked(arrivals, ran, ago=30) == {}
    again = pod("a", created=9000, node="n", phase="Running", PodScheduled=8999, Ready=1)
    assert looked(arrivals, again) == {}


def test_the_first_look_measures_nothing() -> None:
    """A cold function does not know who waited. What it missed is not guessed."""
    running = pod("a", created=60, node="n", phase="Running", PodScheduled=20, Ready=5)
    assert looked(Arrivals(), running) == {}


def test_a_pod_that_runs_and_is_not_ready_counts_to_this_moment() -> None:
    """Nobody says when its containers began."""
    arrivals = Arrivals()
    looked(arrivals, pod("a", created=60, node="n", PodScheduled=50), ago=30)
    assert looked(arrivals, pod("a", created=60, node="n", phase="Running", PodScheduled=50)) == {
        Duration.STARTUP: [60.0]
    }
