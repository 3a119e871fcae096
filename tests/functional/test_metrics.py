"""What the doors measure: how pods fare, how the cluster stands, and what came and went."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from joinery.controllers.acting.actor import Actor
from joinery.controllers.telemetry import count, metrics
from joinery.decisions.metrics.cluster import PASSING
from joinery.decisions.metrics.definitions import DETAILED, MEASURES, Count, Duration, Gauge, Measurement, Metric
from joinery.objects.actions import MarkUnavailable
from joinery.objects.karpenter.labels import ON_DEMAND_SHARE
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from tests.functional.disrupting import running as running_apart
from tests.functional.stand import Stand

Counted = Callable[[], dict[str, float]]


@pytest.fixture
def sent(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Sends what was measured, and reads the lines in CloudWatch's embedded metric format."""
    metrics.forget()

    def read() -> list[dict[str, Any]]:
        capsys.readouterr()
        metrics.send()
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    yield read
    metrics.with_node_pools = False


def series(lines: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """Each series that CloudWatch would make of the lines: a name, and the values of its dimensions."""
    return {
        (metric["Name"], *(line[key] for key in dimensions))
        for line in lines
        for directive in line["_aws"]["CloudWatchMetrics"]
        for dimensions in directive["Dimensions"]
        for metric in directive["Metrics"]
    }


def test_pods_that_wait_are_counted_and_timed(stand: Stand, counted: Counted) -> None:
    """How many, for how long, and for how many of them nothing can be bought."""
    stand.pods(2)
    stand.world.cluster.add(builders.pod("impossible", cpu="9000"))
    stand.wait(30)
    stand.provision()
    assert counted()["karpenter_scheduler_queue_depth"] == 3
    assert counted()["karpenter_scheduler_unschedulable_pods_count"] == 1
    assert counted()["karpenter_pods_unbound_time_seconds"] == 30


def test_a_node_counts_when_it_has_joined_and_when_it_has_ended(stand: Stand, counted: Counted) -> None:
    """Its end takes as long as from the deletion of its claim."""
    stand.pods(1)
    stand.settle()
    assert counted()["karpenter_nodes_created_total"] == 1
    stand.world.cluster.delete_node_claim(stand.claim)
    for _ in range(20):
        stand.wait(10)
        stand.live()
    assert counted()["karpenter_nodes_terminated_total"] == 1
    assert counted()["karpenter_nodes_termination_duration_seconds"] > 0


def test_nothing_that_observe_mode_would_do_is_counted(stand: Stand, counted: Counted) -> None:
    """A node that did not come has not joined."""
    stand.pods(1)
    stand.provision()
    stand.boot()
    stand.observing().live()
    assert "karpenter_nodes_created_total" not in counted()


def test_capacity_that_is_not_there_is_counted(stand: Stand, counted: Counted) -> None:
    """A launch goes elsewhere, and a person sees that EC2 runs short."""
    pools = [OfferingKey("m7a.large", f"us-east-1{zone}", "spot") for zone in "ab"]
    actor = Actor(stand.gateways, stand.world.clock.now(), stand.invocation())
    actor.carry_out(*((MarkUnavailable(pool, "out of it"),) for pool in pools))
    assert counted()["joinery_offerings_unavailable_total"] == 2


def test_the_cluster_s_nodes_and_price_are_told_in_each_run(stand: Stand, counted: Counted) -> None:
    """What is paid, and what the same nodes would cost on demand: they are spot nodes."""
    running_apart(stand, 2)
    stand.consolidate()
    assert counted()["karpenter_cluster_state_node_count"] == 2
    assert counted()["joinery_nodes_spot_count"] == 2
    assert 0 < counted()["karpenter_nodepools_cost_total"] < counted()["joinery_nodes_list_cost"]


def test_how_much_shares_on_demand_lack_is_measured(stand: Stand, counted: Counted) -> None:
    """Both nodes are spot nodes, and the NodePool has been given a share since."""
    running_apart(stand, 2)
    stand.consolidate()
    assert "joinery_on_demand_share_lacking" not in counted()
    pool = stand.world.cluster.node_pools["default"]
    stand.world.cluster.add(with_metadata(pool, annotations={ON_DEMAND_SHARE: "2"}))
    stand.consolidate()
    assert counted()["joinery_on_demand_share_lacking"] == 2


def test_what_is_sent_by_node_pool_is_asked_for(stand: Stand, sent: Callable[[], list[dict[str, Any]]]) -> None:
    """By default there are few series; a setting adds those of each NodePool."""
    running_apart(stand, 1)
    stand.consolidate()
    assert not {name for name, *labels in series(sent()) if "default" in labels}
    detailed = Stand(stand.world, metrics="node-pools")
    metrics.with_node_pools = True
    detailed.consolidate()
    sent_series = series(sent())
    assert ("karpenter_nodepools_cost_total", "default") in sent_series
    assert ("karpenter_nodepools_usage", "default", "nodes") in sent_series
    assert ("karpenter_nodepools_cost_total",) in sent_series


def test_a_counter_has_a_total_and_what_is_zero_is_not_sent(sent: Callable[[], list[dict[str, Any]]]) -> None:
    """Alarms watch totals. What does not happen costs nothing."""
    count(Count.EVICTIONS, code="429")
    count(Count.EVICTIONS, 2, code="201")
    count(Count.CONFLICTS, 0)
    lines = sent()
    name = "karpenter_pods_eviction_requests_total"
    assert series(lines) == {(name,), (name, "429"), (name, "201")}
    assert sum(sum(line[name]) for line in lines) == 3
    assert sent() == []


def test_many_durations_are_all_sent(sent: Callable[[], list[dict[str, Any]]]) -> None:
    """A line of CloudWatch's format takes a hundred values."""
    metrics.add(*(Measurement(Duration.STARTUP, float(number)) for number in range(250)))
    values = [value for line in sent() for value in line[Duration.STARTUP.value.name]]
    assert sorted(values) == [float(number) for number in range(250)]


def test_who_is_held_is_told_by_a_few_codes() -> None:
    """As many series as the reference says: the codes that a person can do something about."""
    assert len(set(ObjectionCode) - PASSING) == Gauge.STAYING.value.series


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: str(measure))
def test_a_metric_s_name_says_whose_it_is_and_what_it_counts(measure: Count | Gauge | Duration) -> None:
    """Names are Karpenter's or ours. Counters end in total and durations in seconds, as Prometheus has it."""
    metric: Metric = measure.value
    assert metric.name.startswith(("karpenter_", "joinery_"))
    assert not isinstance(measure, Count) or metric.name.endswith("_total")
    assert not isinstance(measure, Duration) or metric.name.endswith("_seconds")
    assert metric.series > 1 or not metric.labels or measure in DETAILED
