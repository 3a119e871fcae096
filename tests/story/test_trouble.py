"""Scenarios in which something goes wrong: nothing is lost but time."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.conditions import find as find_condition
from joinery.objects.karpenter.labels import CAPACITY_TYPE
from simulator.kubernetes.budgets import is_ready
from simulator.story.leaks import leaks
from simulator.story.scenario import find, load
from simulator.story.simulation import Simulation
from tests.story.conftest import PlayedScenario

CASES = (
    "spot-storm", "out-of-stock", "slow-drain", "story", "surge", "on-demand-share", "on-demand-nodes",
    "share-sold-out",
)  # fmt: skip
#: What `make test` plays with another seed, too.
_SHORT = ("out-of-stock", "slow-drain", "surge")
#: Those that no other test here sees to the end.
_PLAYED = ("spot-storm", "out-of-stock", "slow-drain", "surge", "on-demand-share")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """All cases in `make soak`."""
    if "other_seed" in metafunc.fixturenames:
        metafunc.parametrize("other_seed", CASES if metafunc.config.getoption("soak") else _SHORT)


@pytest.mark.soak
def test_whatever_the_seed_everything_runs_in_the_end_and_nothing_leaks(
    other_seed: str, pytestconfig: pytest.Config
) -> None:
    """Boot times, ties of the scheduler and identities differ; the promise does not."""
    for seed in range(1, 11 if pytestconfig.getoption("soak") else 2):
        simulation = Simulation(load(find(Path(other_seed))), seed=seed)
        with simulation.running():
            simulation.engine.run_until(simulation.end)
        _ended_well(simulation, seed)


@pytest.mark.parametrize("name", _PLAYED)
def test_everything_runs_in_the_end_and_nothing_leaks(name: str, played: Callable[..., PlayedScenario]) -> None:
    """The same of the scenarios as they are played below."""
    _ended_well(played(name).simulation)


def _ended_well(simulation: Simulation, seed: int = 0) -> None:
    assert leaks(simulation) == (), seed
    assert all(is_ready(pod) for pod in simulation.world.cluster.pods.values()), seed


def test_a_share_of_a_workload_is_on_demand_before_and_after_a_storm(played: Callable[..., PlayedScenario]) -> None:
    """Two, and of the ten others three, are bound to on-demand nodes by what they ask for themselves; nobody wakes
    provisioning for pods at the gate.
    """
    share = played("on-demand-share")
    pods = share.simulation.world.cluster.pods.values()
    nodes = share.simulation.world.cluster.nodes
    asking = [pod for pod in pods if pod.spec.required_node_affinity]
    assert (len(pods), len(asking)) == (12, 5)
    assert {nodes[pod.spec.node_name].metadata.labels[CAPACITY_TYPE] for pod in asking} == {"on-demand"}
    first = share.lines("provisioning", "launches")[0].at - share.lines("workloads", "create")[0].at
    assert first.total_seconds() < 10


def test_a_share_of_a_node_pool_holds_whatever_comes_and_goes() -> None:
    """Looked at every ten seconds: pods come, their nodes are consolidated, and EC2 takes every spot instance back. A
    plan that moves pods elsewhere counts with all that it buys.
    """
    simulation = Simulation(load(find(Path("on-demand-nodes"))))
    seen, moment = set[tuple[int, int]](), simulation.world.clock.now()
    with simulation.running():
        while (moment := moment + timedelta(seconds=10)) <= simulation.end:
            simulation.engine.run_until(moment)
            share = simulation.world.cluster.snapshot().pool_shares["default"]
            assert not share.lacking, moment
            seen.add((share.nodes, share.on_demand))
    assert seen >= {(6, 4), (20, 8), (8, 4)}
    kinds = [node.metadata.labels[CAPACITY_TYPE] for node in simulation.world.cluster.nodes.values()]
    assert (kinds.count("on-demand"), kinds.count("spot")) == (4, 4)
    _ended_well(simulation)


def test_a_plan_that_ec2_carries_out_in_part_leaves_a_share_short_until_the_next_nodes() -> None:
    """Three of eight nodes come. With spot back nobody waits for the share: the other five pods get spot nodes, the
    NodePool says what is lacking, and an Event why. Of the four nodes that come later three make up for it.
    """
    simulation = Simulation(load(find(Path("share-sold-out"))))
    seen = []
    with simulation.running():
        for minutes in (1, 11, 24):
            simulation.engine.run_until(simulation.start + timedelta(minutes=minutes))
            (pool,) = simulation.world.cluster.node_pools.values()
            share = simulation.world.cluster.snapshot().pool_shares["default"]
            short = find_condition(pool.status.conditions, "joinery.dev/OnDemandShareNotKept")
            seen.append((share.nodes, share.on_demand, short.message if short else ""))
        simulation.engine.run_until(simulation.end)
    asked = "3 of 8 nodes are on demand, and joinery.dev/on-demand (6) asks for 6"
    assert seen == [(3, 3, ""), (8, 3, asked), (12, 6, "")]
    said = [event.message for event in simulation.world.recorder.events if event.reason == "OnDemandShareNotKept"]
    assert said
    assert said[-1].startswith(asked)
    assert leaks(simulation) == ()


def test_a_drift_that_fails_leaves_its_nodes_alone_and_is_tried_ever_less_often_until_it_is_mended() -> None:
    """With user data with which nodes never join, then with some with which they are never Ready: one replacement at a
    time, each given up after ten minutes, the next one a quarter, then half of an hour later. A change ends the wait at
    once, and what was launched before it says nothing of it. Not a pod moves before a replacement is ready.
    """
    simulation = Simulation(load(find(Path("failing-drift"))))
    cluster, recorder = simulation.world.cluster, simulation.world.recorder
    launched, health = list[int](), list[str]()
    with simulation.running():
        for minutes in range(130):
            before = len(simulation.world.cloud.requests)
            simulation.engine.run_until(simulation.start + timedelta(minutes=minutes + 1))
            launched += [minutes] * (len(simulation.world.cloud.requests) - before)
            assert len(cluster.nodes) <= 4
            if minutes in (50, 85, 129):
                (pool,) = cluster.node_pools.values()
                health += [one.status for one in pool.status.conditions if one.type == "NodeRegistrationHealthy"]
            if minutes == 120:
                assert not [event for event in recorder.events if event.reason == "Evicted"]
    assert launched == [0, 10, 35, 75, 86, 111, 122, 123, 124]
    assert health == ["False", "Unknown", "True"]
    said = [event.message for event in recorder.events if event.message.startswith("drift of NodePool")]
    assert said == [
        "drift of NodePool default waits until 2026-08-24T09:35:10Z: its last launch did not join the cluster (Failed "
        "to register node)",
        "drift of NodePool default waits until 2026-08-24T10:15:10Z: its last 2 launches did not join the cluster "
        "(Failed to register node)",
        "drift of NodePool default waits until 2026-08-24T10:51:10Z: its last launch did not become ready (the kubelet "
        "is not ready)",
    ]
    assert len(cluster.nodes) == 3
    assert leaks(simulation) == ()


def test_in_a_storm_every_replacement_is_launched_before_its_node_drains(played: Callable[..., PlayedScenario]) -> None:
    """All spot instances are warned at once."""
    storm = played("spot-storm")
    rest = storm.after(storm.index("ec2", "warns"))
    assert (
        rest.index("provisioning", "launches")
        < rest.index("provisioning", "covered")
        < rest.index("lifecycle", "evicts")
    )
    assert len(rest.lines("ec2", "stopped")) == len(rest.lines("ec2", "warns")) > 3


def test_pools_that_are_out_of_stock_are_avoided_by_the_next_plan(played: Callable[..., PlayedScenario]) -> None:
    """Without spot, on-demand is bought; with spot back, three minutes later, spot again."""
    dry = played("out-of-stock")
    assert dry.index("provisioning", "avoids") < dry.index("lifecycle", "registers")
    bought = [entry.why for entry in dry.lines("provisioning", "launches") if "$/h" in entry.why]
    assert "on-demand" in bought[0]
    assert "spot" in bought[-1]


def test_a_budget_slows_a_drain_down_to_one_pod_at_a_time(played: Callable[..., PlayedScenario]) -> None:
    """The next pod goes when the one before runs elsewhere."""
    slow = played("slow-drain")
    evicted = slow.lines("lifecycle", "evicts")
    assert [entry.why for entry in evicted] == ["1 quorum"] * 3
    assert slow.index("lifecycle", "closed") > slow.index("lifecycle", "evicts")


def test_without_a_webhook_the_schedule_finds_the_pods(played: Callable[..., PlayedScenario]) -> None:
    """A lost bell costs a minute, never a pod."""
    quiet = played("out-of-stock", has_webhook=False)
    created = quiet.lines("workloads", "create")[0].at
    packs = quiet.lines("provisioning", "packs")[0].at
    assert 2 < (packs - created).total_seconds() <= 61
    assert all(pod.spec.node_name for pod in quiet.simulation.world.cluster.pods.values())


def test_observing_changes_nothing(played: Callable[..., PlayedScenario]) -> None:
    """Decisions are made, recorded, and said in Events; no claim is written and nothing is launched."""
    seen = played("out-of-stock", mode="observe").simulation
    assert not seen.world.cluster.node_claims
    assert seen.world.cloud.requests == []
    assert seen.world.store.documents
    assert any(event.reason == "Observed" for event in seen.world.recorder.events)


def test_a_door_that_is_off_does_nothing(played: Callable[..., PlayedScenario]) -> None:
    """It completes what wakes it."""
    off = played("out-of-stock", switched_off="provisioning").simulation
    assert not off.world.cluster.node_claims
    assert not any(call.error for call in off.doors.calls)


def test_a_plan_over_the_cap_is_refused_loudly(played: Callable[..., PlayedScenario]) -> None:
    """Nothing is launched, and a person is told why."""
    capped = played("out-of-stock", max_hourly="0.01")
    assert not capped.simulation.world.cluster.node_claims
    refusal = capped.lines("provisioning", "failed")[0]
    assert "MaxHourly" in refusal.why


@pytest.mark.parametrize("operation", ["launch", "instances", "terminate", "resolve"])
def test_a_call_that_fails_is_made_again(operation: str) -> None:
    """EC2 throttles each kind of call three times: it costs time, and nothing leaks."""
    simulation = Simulation(load(find(Path("spot-storm"))))
    for _ in range(3):
        simulation.world.cloud.fail_next(operation, UnavailableError("EC2 is throttling"))
    with simulation.running():
        simulation.engine.run_until(simulation.end)
    _ended_well(simulation)


def test_a_successor_is_told_before_what_it_replaces_ends(played: Callable[..., PlayedScenario]) -> None:
    """The restart of the Deployment is a line of its own, and what its rollout ends is no eviction."""
    surge = played("surge")
    words = [entry.word for entry in surge.entries]
    assert words.index("restarts") < words.index("end")
    assert "evicts" not in words
    bought = [entry.why for entry in surge.entries if entry.word == "launches"]
    assert len(bought) == 2
    assert all(why.endswith("for its NodePool's replicas") for why in bought)
