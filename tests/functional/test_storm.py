"""Storms of spot warnings through the queue, with the doors' real handlers and every call charged."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from joinery.objects.errors import UnavailableError
from joinery.objects.snapshot.offerings import OfferingKey
from simulator.story.storm import NOTICE, Storm

MINUTE = timedelta(minutes=1)
LATE, TWICE = timedelta(seconds=7), timedelta(seconds=3)


def half_is_out(storm: Storm) -> None:
    """EC2 has nothing left of every other offering."""
    offerings = storm.world.cloud.catalog().offerings[::2]
    storm.world.cloud.run_out(*(OfferingKey(o.instance_type, o.zone, o.capacity_type) for o in offerings))


def api_server_is_overloaded(storm: Storm) -> None:
    """For ten seconds in the middle, nothing is read or written."""
    begin = storm.world.clock.now() + timedelta(seconds=60)

    def refused(*_: Any) -> None:
        if begin <= storm.world.clock.now() < begin + timedelta(seconds=10):
            raise UnavailableError("the API server answered 429")

    for method in ("claims_snapshot", "snapshot", "update_node", "update_node_claim", "delete_node_claim", "evict"):
        storm.latency.answers[f"cluster.{method}"] = refused


def nothing_else(storm: Storm) -> None:
    """Only the warnings."""


@pytest.mark.parametrize("trouble", [nothing_else, half_is_out])
def test_every_warned_node_is_replaced_before_it_is_drained(trouble: Callable[[Storm], None]) -> None:
    """Half of the nodes within a minute: no eviction before EC2 has accepted an instance for the pod, none too late,
    none bought twice, and no message among the dead letters.
    """
    storm = Storm(nodes=60, warnings=30, over=MINUTE)
    trouble(storm)
    storm.run()
    assert (storm.uncovered, storm.late, storm.queue.dead_letters) == (0, [], [])
    assert storm.launched == 30
    assert storm.longest_wait < NOTICE / 8
    assert not [call for call in storm.calls if call.error]


def test_an_api_server_that_is_overloaded_in_a_storm_costs_a_node_no_pod() -> None:
    """The warnings come again, and the doors do not wait for the next minute. A node may be drained before its
    replacement is there, because it has two minutes alone.
    """
    storm = Storm(nodes=60, warnings=30, over=MINUTE)
    api_server_is_overloaded(storm)
    storm.run()
    assert (storm.late, storm.queue.dead_letters, storm.launched) == ([], [], 30)
    assert storm.longest_wait < NOTICE / 2


def test_warnings_that_come_twice_and_late_among_those_of_others_change_nothing() -> None:
    """EventBridge and SQS promise at least once, and in no order; rules hear of the whole account's instances."""
    storm = Storm(nodes=60, warnings=30, over=MINUTE, foreign=20, copies=(TWICE, LATE))
    storm.run()
    assert (storm.uncovered, storm.late, storm.queue.dead_letters) == (0, [], [])
    assert storm.launched == 30


def test_warnings_of_one_moment_come_in_batches() -> None:
    """A run of the door reads the claims once, whatever its batch holds."""
    storm = Storm(nodes=60, warnings=60, over=timedelta(0))
    storm.run()
    batches = [call for call in storm.calls if call.door == "interruption" and "Records" in call.event]
    assert [len(call.event["Records"]) for call in batches] == [10] * 6
    assert storm.late == []


def test_reads_are_counted_until_ec2_has_taken_the_last_instance() -> None:
    """Also those after the last drain: an API server answers them all."""
    storm = Storm(nodes=10, warnings=5, over=timedelta(seconds=10))
    storm.run()
    assert storm.reads["cluster.snapshot"] > storm.reads_until_empty["cluster.snapshot"] > 0
