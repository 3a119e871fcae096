"""Gangs: all of them get nodes, or nothing is bought."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.capping import plan_within_caps
from joinery.decisions.planning import plan
from joinery.decisions.scheduling.packing import Packing, placed_pods
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.reason import ReasonCode
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.policies import Caps
from joinery.objects.snapshot.gangs import COSCHEDULING_GROUP, KUEUE_FAST_ADMISSION, KUEUE_GROUP, KUEUE_TOTAL
from joinery.objects.snapshot.snapshot import Invalid
from simulator import builders
from simulator.builders import instance_type
from tests.properties import examples
from tests.unit.decisions.verification.plans import A, B, problem

#: One pod fills a node of the smaller type.
CPU = "1500m"
POOL = builders.node_pool()


def _members(count: int, gang: str = "train", *, start: int = 1, **spec: Any) -> list[Pod]:
    spec = {"cpu": CPU, "scheduling_group": {"podGroupName": gang}, **spec}
    return [builders.pod(f"{gang}-{number}", **spec) for number in range(start, start + count)]


def _planned(asked: Problem) -> Packing:
    made = plan(asked)
    assert (made.violations, made.warnings) == ((), ())
    return made.packing


def _why(packing: Packing, pod: str = "default/train-1") -> str:
    reasons = {unplaced.pod: unplaced.reasons for unplaced in packing.unplaced}
    assert reasons[pod][0].code is ReasonCode.GANG
    return reasons[pod][0].message


def test_a_gang_gets_all_its_nodes() -> None:
    """Four pods that must be together are bought for together."""
    packing = _planned(problem(POOL, builders.pod_group(), *_members(4)))
    assert len(packing.launches) == 4 or packing.hourly <= 0.4
    assert not packing.unplaced


def test_a_lone_pod_of_a_gang_buys_nothing() -> None:
    """The others are not there yet, and its scheduler would not bind it."""
    packing = _planned(problem(POOL, builders.pod_group(), *_members(1), builders.pod("web")))
    assert [pod for launch in packing.launches for pod in launch.pods] == ["default/web"]
    assert _why(packing) == "PodGroup default/train places 4 pods together, and 1 of them exists"


def test_members_that_run_count() -> None:
    """One of four went with its node: its successor is bought a node."""
    running = _members(3, node="node-1")
    nodes = [builders.node("node-1")]
    packing = _planned(problem(POOL, builders.pod_group(), *nodes, *running, *_members(1, start=4)))
    assert [pod for launch in packing.launches for pod in launch.pods] == ["default/train-4"]


def test_half_a_gang_within_a_limit_is_not_bought() -> None:
    """What the limit leaves goes to whom it serves."""
    pool = builders.node_pool(limits={"cpu": "6"})
    packing = _planned(problem(pool, builders.pod_group(), *_members(4), builders.pod("web", cpu="100m")))
    assert [pod for launch in packing.launches for pod in launch.pods] == ["default/web"]
    assert _why(packing).startswith("PodGroup default/train places 4 pods together, and 3 have a place; default/train-")


def test_members_beyond_the_minimum_may_be_left() -> None:
    """A group of four with a minimum of three is whole with three."""
    pool = builders.node_pool(limits={"cpu": "6"})
    packing = _planned(problem(pool, builders.pod_group(minimum=3), *_members(4)))
    assert len(list(placed_pods(packing.existing, packing.launches))) == 3


def test_of_gangs_that_compete_one_is_whole() -> None:
    """Two gangs have room for one: neither waits for the other."""
    pool = builders.node_pool(limits={"cpu": "8"})
    groups = [builders.pod_group("train"), builders.pod_group("tune")]
    packing = _planned(problem(pool, *groups, *_members(4), *_members(4, "tune")))
    assert sorted(placed_pods(packing.existing, packing.launches)) == [f"default/train-{n}" for n in range(1, 5)]
    assert {unplaced.reasons[0].code for unplaced in packing.unplaced} == {ReasonCode.GANG}


def test_the_more_urgent_of_two_gangs_comes_first() -> None:
    """Whoever has the higher priority gets the room that is there for one."""
    pool = builders.node_pool(limits={"cpu": "8"})
    groups = [builders.pod_group("train"), builders.pod_group("tune")]
    packing = _planned(problem(pool, *groups, *_members(4), *_members(4, "tune", priority=10)))
    assert sorted(placed_pods(packing.existing, packing.launches)) == [f"default/tune-{n}" for n in range(1, 5)]


def test_free_room_counts_for_a_gang() -> None:
    """Half of it fits on a node that is there, and the rest is bought."""
    nodes = [builders.node("node-1"), builders.node_claim(node="node-1")]
    pool = builders.node_pool(limits={"cpu": "8"})
    packing = _planned(problem(pool, builders.pod_group(), *nodes, *_members(4)))
    assert [len(placement.pods) for placement in packing.existing] == [2]
    assert not packing.unplaced


def test_a_gang_may_be_of_several_kinds_of_pods() -> None:
    """A leader that fits nowhere keeps its workers from buying."""
    leader = builders.pod("train-leader", cpu="64", scheduling_group={"podGroupName": "train"})
    packing = _planned(problem(POOL, builders.pod_group(), leader, *_members(3)))
    assert not packing.launches
    assert "default/train-leader has none" in _why(packing)
    own = next(unplaced.reasons for unplaced in packing.unplaced if unplaced.pod == "default/train-leader")
    assert len(own) > 1, "the leader says what it lacks itself"


@pytest.mark.parametrize("others", [(), (builders.pod_group("other"),)])
def test_a_pod_whose_pod_group_is_missing_waits(others: Sequence[PodGroup]) -> None:
    """As kube-scheduler lets it wait, whether or not there are other PodGroups."""
    packing = _planned(problem(POOL, *others, *_members(1)))
    lacking = "is not there (podgroups.scheduling.k8s.io), which says how many pods are placed together"
    assert _why(packing) == f"PodGroup default/train {lacking}"


def test_a_pod_group_of_an_api_that_is_not_served_is_a_word() -> None:
    """Whatever would enforce it cannot be at work, so each pod is planned by itself."""
    asked = problem(POOL, *_members(1))
    unserved = replace(asked.snapshot, unserved=frozenset({"scheduling_groups"}))
    assert not _planned(replace(asked, snapshot=unserved)).unplaced


def test_a_pod_group_that_cannot_be_read_is_called_so() -> None:
    """A pod that names it waits for a number that is none."""
    asked = problem(POOL, *_members(1))
    bad = Invalid("PodGroup", "default/train", "Expected `int`, got `str` - at `$.spec.minMember`")
    packing = _planned(replace(asked, snapshot=replace(asked.snapshot, invalid=(bad,))))
    assert "PodGroup default/train cannot be read (Expected `int`, got `str` - at `$.spec.minMember`)" in _why(packing)


@pytest.mark.parametrize(
    ("totals", "problem_of_it"),
    [
        (["four", "four"], "of pod default/train-1 must be a whole number, 1 or more, is 'four'"),
        (["2", "0"], "of pod default/train-2 must be a whole number, 1 or more, is '0'"),
        (["2", ""], "of pod default/train-2 is missing"),
        (["2", "3"], "of pod default/train-1 is 2, and 3 of another pod"),
    ],
)
def test_a_total_that_kueue_would_not_take_lets_the_group_wait(totals: Sequence[str], problem_of_it: str) -> None:
    """Kueue lets nobody in either; the reason names the annotation, and a pod that has it."""
    labels = {KUEUE_GROUP: "train"}
    pods = [
        *_members(1, labels=labels, annotations={KUEUE_TOTAL: totals[0]}, scheduling_group=None),
        *_members(
            1, start=2, labels=labels, annotations={KUEUE_TOTAL: totals[1]} if totals[1] else {}, scheduling_group=None
        ),
    ]
    packing = _planned(problem(POOL, *pods))
    assert not packing.launches
    assert _why(packing) == f"Kueue pod group default/train is of no known size: {KUEUE_TOTAL} {problem_of_it}"


def test_a_kueue_label_without_any_total_is_a_word() -> None:
    """Kueue's webhook refuses such pods, so it is not at work where they are."""
    assert not _planned(problem(POOL, *_members(1, labels={KUEUE_GROUP: "train"}, scheduling_group=None))).unplaced


def test_a_member_that_waits_unmarked_beside_others_is_bought_for() -> None:
    """coscheduling lets members that fit wait until the others do: the API server shows nothing of that."""
    marked, unmarked = _members(2), _members(2, start=3, unschedulable=False)
    asked = problem(POOL, builders.pod_group(), *marked, *unmarked, options=Options())
    assert not _planned(asked).unplaced
    assert len(list(placed_pods((), _planned(asked).launches))) == 4


@pytest.mark.parametrize(
    ("labels", "annotations", "field", "spec"),
    [
        ({COSCHEDULING_GROUP: "train"}, {}, "coscheduling_groups", {"minMember": 4}),
        ({}, {"scheduling.k8s.io/group-name": "train"}, "volcano_groups", {"minMember": 4}),
        ({KUEUE_GROUP: "train"}, {KUEUE_TOTAL: "4"}, "", {}),
        ({}, {KUEUE_GROUP: "train", KUEUE_TOTAL: "4"}, "", {}),
    ],
)
def test_the_gangs_of_others_are_gangs(
    labels: Mapping[str, str], annotations: Mapping[str, str], field: str, spec: Mapping[str, Any]
) -> None:
    """coscheduling, Volcano and Kueue mean the same, each in its own words."""

    def asked(count: int) -> Problem:
        pods = _members(count, labels=labels, annotations=annotations, scheduling_group=None)
        found = problem(POOL, *pods)
        group = builders.pod_group(schedulingPolicy={}, **spec)
        groups: dict[str, Any] = {field: (group,)} if field else {}
        return replace(found, snapshot=replace(found.snapshot, **groups))

    assert not _planned(asked(4)).unplaced
    assert _why(_planned(asked(3))).endswith("places 4 pods together, and 3 of them exist")


def test_a_pod_group_that_kueue_lets_in_one_by_one_is_no_gang() -> None:
    """Its first pod makes the others, and would wait for them for ever."""
    annotations = {KUEUE_TOTAL: "4", KUEUE_FAST_ADMISSION: "true"}
    pods = _members(1, labels={KUEUE_GROUP: "train"}, annotations=annotations, scheduling_group=None)
    assert not _planned(problem(POOL, *pods)).unplaced


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_member_whose_work_is_done_counts_for_kueue_alone(phase: str) -> None:
    """kube-scheduler forgets a pod that has ended, and lets the rest wait."""
    done: dict[str, Any] = {"node": "node-1", "phase": phase}
    kueue: dict[str, Any] = {
        "labels": {KUEUE_GROUP: "train"},
        "annotations": {KUEUE_TOTAL: "2"},
        "scheduling_group": None,
    }
    ended, waiting = _members(1, **done, **kueue), _members(1, start=2, **kueue)
    assert bool(_planned(problem(POOL, *ended, *waiting)).launches) is (phase == "Succeeded")
    ended, waiting = _members(1, **done), _members(1, start=2)
    assert not _planned(problem(POOL, builders.pod_group(minimum=2), *ended, *waiting)).launches


def _zones(packing: Packing) -> set[str]:
    return {launch.offering.zone for launch in packing.launches}


def test_a_gang_is_gathered_in_one_domain() -> None:
    """Two kinds of pods, of which each alone would be anywhere."""
    group = builders.pod_group(minimum=6, topology=ZONE)
    packing = _planned(problem(POOL, group, *_members(4), *_members(2, start=5, cpu="700m")))
    assert not packing.unplaced
    assert len(_zones(packing)) == 1
    for launch in packing.launches:
        assert next(rule.values for rule in launch.requirements if rule.key == ZONE) == [launch.offering.zone]


def test_a_gang_goes_where_its_pods_run() -> None:
    """Its other pods have chosen the zone."""
    nodes = [builders.node("node-1", zone=B)]
    group = builders.pod_group(topology=ZONE)
    packing = _planned(problem(POOL, group, *nodes, *_members(2, node="node-1"), *_members(2, start=3)))
    assert (_zones(packing), packing.unplaced) == ({B}, ())


def test_a_gang_whose_pods_run_apart_is_left() -> None:
    """kube-scheduler binds no further pod of it either."""
    nodes = [builders.node("node-1", zone=A), builders.node("node-2", zone=B)]
    running = [*_members(1, node="node-1"), *_members(1, start=2, node="node-2")]
    packing = _planned(problem(POOL, builders.pod_group(topology=ZONE), *nodes, *running, *_members(2, start=3)))
    assert "wants all pods in one topology.kubernetes.io/zone" in _why(packing, "default/train-3")


def test_a_gang_goes_to_the_domain_that_has_room_for_all() -> None:
    """Zone A sells a type for the workers alone, cheaper; zone B has one for the leader too."""
    types = (
        instance_type("c7a.large", price=0.05, spot=None, zones=[A]),
        instance_type("m7a.large", price=0.1, spot=None, zones=[B]),
        instance_type("m7a.4xlarge", price=0.8, spot=None, zones=[B]),
    )
    leader = builders.pod("train-leader", cpu="12", scheduling_group={"podGroupName": "train"})
    group = builders.pod_group(topology=ZONE)
    packing = _planned(problem(POOL, group, leader, *_members(3), types=types))
    assert (_zones(packing), packing.unplaced) == ({B}, ())


def test_a_gang_goes_to_the_domain_that_is_cheapest_for_all_of_it() -> None:
    """The cheapest type for one pod is in zone A; zone B has one that is cheaper for several."""
    types = (
        instance_type("m7a.large", price=0.1, spot=None, zones=[A]),
        instance_type("m6a.xlarge", price=0.12, spot=None, zones=[B]),
    )
    group = builders.pod_group(minimum=6, topology=ZONE)
    packing = _planned(problem(POOL, group, *_members(4), *_members(2, start=5, cpu="700m"), types=types))
    assert (_zones(packing), len(packing.launches)) == ({B}, 2)


def test_gangs_that_are_alike_choose_their_domain_together() -> None:
    """However many they are, and though each alone is as cheap where it is."""
    types = (
        instance_type("m7a.large", price=0.1, spot=None, zones=[A]),
        instance_type("m6a.4xlarge", price=0.7, spot=None, zones=[B]),
    )
    names = [f"gang{number}" for number in range(40)]
    groups = [builders.pod_group(name, minimum=2, topology=ZONE) for name in names]
    pods = [pod for name in names for pod in _members(2, name, labels={"job-name": name})]
    packing = _planned(problem(POOL, *groups, *pods, types=types))
    assert (_zones(packing), len(packing.launches), packing.unplaced) == ({B}, 8, ())


def test_a_gang_that_no_domain_has_room_for_says_what_fits_at_most() -> None:
    """In the words of its PodGroup, with the zone that has room for most of it, and what its NodePool lacks."""
    types = (
        instance_type("c7a.large", price=0.05, spot=None, zones=[A]),
        instance_type("m7a.4xlarge", price=0.8, spot=None, zones=[B]),
    )
    leader = builders.pod("train-0", cpu="12", scheduling_group={"podGroupName": "train"})
    group = builders.pod_group(minimum=7, topology=ZONE)
    packing = _planned(problem(builders.node_pool(limits={"cpu": "16"}), group, leader, *_members(6), types=types))
    assert _why(packing) == (
        f"PodGroup default/train places 7 pods together in one {ZONE}, and 6 have a place at most, in {A}; "
        "default/train-0 has none"
    )


def test_a_gang_that_no_domain_has_room_for_says_what_lacks_in_the_largest() -> None:
    """Though the packing had begun with the other rack, which is smaller."""
    pools = [
        builders.node_pool(name, limits={"cpu": cpu}, labels={"example.com/rack": name})
        for name, cpu in (("r1", "4"), ("r2", "8"))
    ]
    group = builders.pod_group(minimum=6, topology="example.com/rack")
    packing = _planned(problem(*pools, group, *_members(6)))
    assert "and 4 have a place at most, in r2; default/train-" in _why(packing)
    said = {str(reason) for unplaced in packing.unplaced for reason in unplaced.reasons[1:]}
    assert any(one.startswith("NodePool r2: its limits (cpu 8, of which 0 are left)") for one in said), said
    assert not any("topology constraint" in one for one in said), said


def test_the_reason_of_a_gang_that_shares_nodes_is_not_what_the_nodes_of_both_cost() -> None:
    """It may fit under the cap by itself, when the other has its nodes."""
    pool = builders.node_pool(requirements=["node.kubernetes.io/instance-type=m7a.xlarge"])
    groups = [builders.pod_group("train", minimum=3), builders.pod_group("tune", minimum=3)]
    packing = _capped(problem(pool, *groups, *_members(3), *_members(3, "tune")), 2)
    assert _gangs_placed(packing) == {"train": 3}
    assert {unplaced.reasons[0].message for unplaced in packing.unplaced} == {
        "its node would exceed MaxLaunches (2 a run) beside those that come first; the next run tries again"
    }


def test_a_gang_without_a_domain_is_explained_in_the_words_of_its_pod_group() -> None:
    """Nobody wrote a pod affinity. All members have the reason, not only the first that lacks a place."""
    group = builders.pod_group(minimum=2, topology="example.com/rack")
    packing = _planned(problem(POOL, group, *_members(2)))
    said = {tuple(map(str, unplaced.reasons[1:])) for unplaced in packing.unplaced}
    assert said == {(
        "NodePool default: no node can be added without breaking the topology constraint of PodGroup default/train "
        "(all pods in one example.com/rack): no node of it has the label example.com/rack",
    )}  # fmt: skip


def test_a_gang_on_one_host_shares_it() -> None:
    """One node for both, though two small ones cost as much."""
    group = builders.pod_group(minimum=2, topology="kubernetes.io/hostname")
    packing = _planned(problem(POOL, group, *_members(2)))
    assert [len(launch.pods) for launch in packing.launches] == [2]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["", ZONE])), min_size=1, max_size=4),
    st.integers(0, 12),
    st.integers(0, 2),
    st.sampled_from([None, 1, 2, 3]),
)
@examples(40)
def test_a_plan_never_buys_for_half_a_gang(
    gangs: Sequence[tuple[int, int, str]], limit: int, others: int, most: int | None
) -> None:
    """Whatever the limits are, and whoever else waits."""
    pods: list[Pod] = [builders.pod(f"web-{number}") for number in range(others)]
    groups: list[PodGroup] = []
    for number, (minimum, members, topology) in enumerate(gangs):
        name = f"gang{number}"
        groups.append(builders.pod_group(name, minimum=minimum, topology=topology))
        pods += _members(members, name, cpu=f"{300 * (number + 1)}m")
    asked = problem(builders.node_pool(limits={"cpu": str(limit)}), *groups, *pods)
    packing = _capped(asked, most)
    assert not verify(asked, packing)
    placed = set(placed_pods(packing.existing, packing.launches))
    for number, (minimum, _, _) in enumerate(gangs):
        there = sum(pod.startswith(f"default/gang{number}-") for pod in placed)
        assert there == 0 or there >= minimum


def _capped(asked: Problem, most: int | None) -> Packing:
    capped = replace(asked, options=replace(asked.options, caps=Caps(max_launches=most)))
    made = plan_within_caps(capped)
    assert (made.violations, made.warnings) == ((), ())
    return made.packing


def _gangs_placed(packing: Packing) -> Counter[str]:
    pods = placed_pods(packing.existing, packing.launches)
    return Counter(pod.removeprefix("default/").partition("-")[0] for pod in pods)


def test_a_cap_lets_whole_gangs_through() -> None:
    """Five launches are one gang of three, or of two: of two gangs the first, and what is left for the rest."""
    pool = builders.node_pool(requirements=["node.kubernetes.io/instance-type=m7a.large"])
    groups = [builders.pod_group("train", minimum=3), builders.pod_group("tune", minimum=3)]
    waiting = [*_members(3), *_members(3, "tune"), builders.pod("web", cpu=CPU)]
    packing = _capped(problem(pool, *groups, *waiting), 5)
    assert sorted(_gangs_placed(packing).items()) == [("train", 3), ("web", 1)]
    assert {unplaced.reasons[0].code for unplaced in packing.unplaced} == {ReasonCode.CAPS}


def test_a_gang_that_is_larger_than_a_cap_keeps_nobody_waiting() -> None:
    """The pods beside it get nodes of their own, and it says why it has none."""
    pool = builders.node_pool(requirements=["node.kubernetes.io/instance-type=m7a.large"])
    waiting = [*_members(4), *(builders.pod(f"web-{number}", cpu="300m") for number in range(3))]
    packing = _capped(problem(pool, builders.pod_group(), *waiting), 3)
    assert _gangs_placed(packing) == {"web": 3}
    reasons = {unplaced.reasons[0].message for unplaced in packing.unplaced}
    assert reasons == {"PodGroup default/train needs 4 nodes together, more than MaxLaunches lets a run launch (3)"}


def test_a_gang_that_is_dearer_than_a_cap_says_what_it_costs() -> None:
    """Beside what a run may buy for."""
    pool = builders.node_pool(requirements=["node.kubernetes.io/instance-type=m7a.large"])
    asked = problem(pool, builders.pod_group(), *_members(4))
    packing = plan_within_caps(replace(asked, options=replace(asked.options, caps=Caps(max_hourly=0.3)))).packing
    reasons = {unplaced.reasons[0].message for unplaced in packing.unplaced}
    text = "the nodes of PodGroup default/train cost 0.40 $/h together, more than MaxHourly lets a run buy (0.30 $/h)"
    assert reasons == {text}


def test_gangs_whose_pods_are_apart_or_together_are_proven_as_one_would_be() -> None:
    """Many gangs that differ in their names alone: each has a rule over hosts of its own."""
    apart = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
    spread = [
        member
        for gang in "abc"
        for member in _members(
            2, gang, labels={"job": gang}, spread=[{**apart, "labelSelector": {"matchLabels": {"job": gang}}}]
        )
    ]
    gathered = [member for gang in "def" for member in _members(2, gang)]
    groups = [builders.pod_group(gang, minimum=2, topology="" if gang < "d" else HOSTNAME) for gang in "abcdef"]
    packing = _planned(problem(POOL, *groups, *spread, *gathered))
    hosts = {pod.removeprefix("default/"): launch.name for launch in packing.launches for pod in launch.pods}
    assert {gang: hosts[f"{gang}-1"] == hosts[f"{gang}-2"] for gang in "abcdef"} == {
        gang: gang >= "d" for gang in "abcdef"
    }
    assert packing.gap == pytest.approx(0, abs=1e-6)
