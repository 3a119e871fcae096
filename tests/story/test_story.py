"""The story of ``make demo``: a pending pod becomes a node, and a node that goes is replaced first."""

from collections.abc import Callable

import pytest

from joinery.objects.karpenter import labels as keys
from simulator.kubernetes.budgets import is_ready
from simulator.story.leaks import leaks
from tests.story.conftest import PlayedScenario

OVER = "the rush is over"


@pytest.fixture(scope="module")
def story(played: Callable[..., PlayedScenario]) -> PlayedScenario:
    """The story, played once."""
    return played("story")


def test_forty_pods_of_nine_shapes_wait_and_the_webhook_rings(story: PlayedScenario) -> None:
    """kube-scheduler says FailedScheduling, the API server calls the webhook door, which rings one bell."""
    assert story.lines("workloads", "create")[0].subject == "40 pods"
    assert story.lines("scheduler", "waits")[0].subject == "40 pods"
    rings = story.lines("webhook", "rings")[0]
    assert (rings.subject, rings.why) == ("provisioning", "40 FailedScheduling reviews")


def test_provisioning_packs_them_all_within_two_seconds(story: PlayedScenario) -> None:
    """Onto few nodes, each of which says for whom it is and what it costs."""
    packs = story.lines("provisioning", "packs")[0]
    assert packs.subject == "40 pods"
    assert (packs.at - story.lines("workloads", "create")[0].at).total_seconds() < 2
    launches = [entry for entry in story.lines("provisioning", "launches") if entry.at == packs.at]
    assert 2 <= len(launches) <= 10
    assert all("$/h for " in entry.why for entry in launches)


def test_a_node_is_launched_joins_registers_and_completes_in_that_order(story: PlayedScenario) -> None:
    """Each step by whoever takes it."""
    name = story.lines("provisioning", "launches")[0].subject
    steps = [("provisioning", "launches"), ("lifecycle", "registers"), ("lifecycle", "completes")]
    order = [story.index(who, word, name) for who, word in steps]
    assert order == sorted(order)
    assert story.index("kubelet", "joins") < order[1]


def test_all_pods_run_before_anything_is_disturbed(story: PlayedScenario) -> None:
    """The scheduler has bound them, by its own scores, within two minutes."""
    runs = story.lines("kubelet", "all run")[0]
    assert (runs.at - story.entries[0].at).total_seconds() < 120
    assert story.index("kubelet", "all run") < story.index("ec2", "warns")


def test_the_replacement_is_launched_before_the_drain_begins(story: PlayedScenario) -> None:
    """Warning, mark, replacement, drain, gone: in that order, and within EC2's two minutes."""
    rest = story.after(story.index("ec2", "warns"))
    steps = [
        ("ec2", "warns"),
        ("interruption", "retires"),
        ("provisioning", "launches"),
        ("provisioning", "covered"),
        ("lifecycle", "evicts"),
        ("ec2", "stopped"),
        ("lifecycle", "left"),
        ("lifecycle", "closed"),
    ]
    order = [rest.index(who, word) for who, word in steps]
    assert order == sorted(order)
    moments = [rest.entries[number].at for number in order]
    assert (moments[5] - moments[0]).total_seconds() < 150


def test_what_goes_is_replaced_by_one_plan(story: PlayedScenario) -> None:
    """The pods come back under other names while their nodes boot; nothing is bought for them again."""
    warned, retired = story.index("ec2", "warns"), story.index("expiration", "retires")
    over = story.index("story", "scene", OVER)
    for start, end in ((warned, retired), (retired, over)):
        plans = [entry for entry in story.entries[start:end] if (entry.who, entry.word) == ("provisioning", "packs")]
        assert len(plans) == 1, [entry.why for entry in plans]


def test_an_expired_node_is_replaced_and_retired(story: PlayedScenario) -> None:
    """Expiration retires it, provisioning buys for its pods, lifecycle drains it."""
    rest = story.after(story.index("expiration", "retires"))
    assert "expired" in rest.entries[0].why
    steps = [("provisioning", "launches"), ("lifecycle", "evicts"), ("lifecycle", "closed")]
    order = [rest.index(who, word) for who, word in steps]
    assert order == sorted(order)


def test_when_the_rush_is_over_nodes_that_do_not_earn_their_price_go(story: PlayedScenario) -> None:
    """An empty one, and some whose pods have room elsewhere: nothing is bought, no pod waits long, the bill falls."""
    rest = story.after(story.index("story", "scene", OVER))
    before, after = rest.entries[0].hourly, rest.entries[-1].hourly
    given_up = [entry for entry in rest.entries if (entry.who, entry.word) == ("disruption", "gives up")]
    assert len(given_up) >= 2
    assert not [entry for entry in rest.entries if entry.word == "launches"]
    closed = {entry.subject for entry in rest.entries if entry.word == "closed"}
    assert {entry.subject for entry in given_up} <= closed
    assert after < 0.85 * before
    assert rest.entries[-1].word in ("closed", "all run")


def test_nothing_is_given_up_before_the_rush_is_over(story: PlayedScenario) -> None:
    """What was bought for pods that are there is worth its price."""
    over = story.index("story", "scene", OVER)
    assert not [entry for entry in story.entries[:over] if entry.who == "disruption"]


def test_at_the_end_every_pod_runs_where_it_may(story: PlayedScenario) -> None:
    """Among them zone spread, hosts apart, a zonal volume and a toleration."""
    cluster = story.simulation.world.cluster
    assert all(is_ready(pod) for pod in cluster.pods.values())
    placed: dict[str, list[dict[str, str]]] = {}
    for pod in cluster.pods.values():
        labels = cluster.nodes[pod.spec.node_name].metadata.labels
        placed.setdefault(pod.metadata.labels["app"], []).append(labels)
    zones = [labels[keys.ZONE] for labels in placed["storefront"]]
    assert max(map(zones.count, zones)) - min(map(zones.count, zones)) <= 1
    assert len({labels[keys.HOSTNAME] for labels in placed["checkout"]}) == 4
    assert [labels[keys.ZONE] for labels in placed["orders"]] == ["us-east-1b"]
    assert {labels[keys.NODE_POOL] for labels in placed["thumbnails"]} == {"batch"}


def test_nothing_leaks(story: PlayedScenario) -> None:
    """No instance without a claim, no claim without an instance, no finalizer, no failed door, no dead letter."""
    assert leaks(story.simulation) == ()


def test_no_line_tells_of_a_failure(story: PlayedScenario) -> None:
    """No plan was refused, and no run had to be repeated because of an error."""
    assert [entry for entry in story.entries if entry.word == "failed"] == []


def test_the_bill_follows_the_nodes(story: PlayedScenario) -> None:
    """What a line says of the cost is what EC2 charges at that moment."""
    last = story.entries[-1]
    assert last.hourly == pytest.approx(story.simulation.world.cloud.hourly)
    assert min(entry.hourly for entry in story.entries[1:]) > 0
