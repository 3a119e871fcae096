"""Whoever may create a pod may not keep others from getting nodes: every kind of hostile pods, in small.

`make hostile` measures the same kinds in sizes that hurt.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.decisions.planning import Plan, plan
from joinery.decisions.scheduling.packing import placed_pods
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.solve import GRACE, solve
from joinery.decisions.verification.verify import verify
from simulator import builders
from simulator.builders import instance_type
from simulator.hostile import BYSTANDERS, KINDS, Cluster, cluster
from simulator.hostile.pods import Document
from simulator.kubernetes.resources import from_document
from tests.unit.decisions.verification import plans

#: How often the stopwatch is asked while pods are placed: for each class and node that is tried.
_LOOKS = 1000
_TYPES = tuple(map(instance_type, ("m7a.large", "m7a.2xlarge", "c7a.xlarge", "r7a.xlarge")))


@pytest.mark.parametrize("kind", KINDS)
def test_pods_of_others_are_placed_beside_hostile_ones(kind: str) -> None:
    """Each pod of others has a place, and each hostile pod a place or a reason, though the time is up at once and what
    is left of it passes with the work.
    """
    made = cluster(KINDS[kind].make(KINDS[kind].small))
    planned = _planned(made.documents)
    placed = set(placed_pods(planned.packing.existing, planned.packing.launches))
    left = {unplaced.pod: unplaced.reasons for unplaced in planned.packing.unplaced}
    assert placed >= set(made.names(BYSTANDERS))
    assert placed | left.keys() == set(_pods(made))
    assert all(left.values())
    assert not planned.violations
    assert not planned.warnings


@pytest.mark.parametrize(
    "kind",
    [
        "node-affinity-exclusions", "hard-spreads", "anti-affinity-terms", "host-ports", "distinct-labels", "repelling",
        "spread-over-all", "shared-claim", "volumes-of-zones", "volumes-for-one", "ephemeral-and-free",
        "immediate-claims", "rooms", "volumes-of-segments",
    ],
)  # fmt: skip
def test_the_check_of_a_plan_takes_no_more_than_its_size(kind: str) -> None:
    """Four times as many rules or pods are four times the work, and a little for larger sets."""
    few, many = (_work_of_the_check(kind, times * KINDS[kind].small) for times in (1, 4))
    assert many < 6 * few


@pytest.mark.parametrize(
    "kind",
    [
        "volumes-of-hosts", "volumes-of-zones", "volumes-of-segments", "volumes-for-one", "ephemeral-and-free",
        "immediate-claims", "rooms", "rooms-of-two-labels",
    ],
)  # fmt: skip
def test_to_choose_volumes_takes_no_more_than_volumes_and_claims(kind: str) -> None:
    """Four times as many of both are four times the work, and a little for pods that are placed one by one."""
    few, many = (_work_of_placing(kind, times * 2 * KINDS[kind].small) for times in (1, 4))
    assert many < 8 * few


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_are_decided_about_beside_hostile_pods(kind: str) -> None:
    """Every node with hostile pods on it goes or is held for a reason, though the time is up at once; an empty one
    goes.
    """
    made = cluster(KINDS[kind].make(KINDS[kind].small), running=True)
    packing = _problem(made.documents, builders.node("empty"), builders.node_claim("empty", node="empty"))
    decision = _decided(packing)
    retired = {name for command in decision.commands for name in command.retire}
    held = {one.node_claim for one in decision.staying if one.objection.message}
    assert "empty" in retired
    assert retired | held == {claim.metadata.name for claim in packing.snapshot.node_claims}
    assert not decision.mistakes


@pytest.mark.parametrize("kind", ["distinct-requests", "hopeless-selectors", "spread-each", "node-names", "many-ports"])
def test_a_decision_about_nodes_takes_no_more_than_its_size(kind: str) -> None:
    """Four times as many pods that run are four times the work, where time is up at once."""
    few, many = (_problem(cluster(KINDS[kind].make(times * 20), running=True).documents) for times in (1, 4))
    assert _calls(lambda: _decided(many)) < 6 * _calls(lambda: _decided(few))


def _decided(packing: Problem) -> DisruptionDecision:
    asked = DisruptionProblem(packing=packing, options=DisruptionOptions(time_limit=0.001))
    return decide(asked, stopwatch=lambda: GRACE / 2)


def _work_of_the_check(kind: str, size: int) -> int:
    problem = _problem(cluster(KINDS[kind].make(size)).documents)
    problem = replace(problem, options=replace(problem.options, time_limit=None, first_fit_only=True))
    packing = solve(problem)
    return _calls(lambda: verify(problem, packing))


def _work_of_placing(kind: str, size: int) -> int:
    problem = _problem(cluster(KINDS[kind].make(size)).documents)
    problem = replace(problem, options=replace(problem.options, time_limit=None, first_fit_only=True))
    return _calls(lambda: solve(problem))


def _calls(act: Callable[[], Any]) -> int:
    """How many functions are called, those of the interpreter among them."""
    calls = 0

    def note(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def _planned(documents: Iterable[Document]) -> Plan:
    looks = count()
    return plan(_problem(documents), stopwatch=lambda: GRACE * next(looks) / _LOOKS)


def _problem(documents: Iterable[Document], *more: Any) -> Problem:
    objects = [*more, *(from_document(one["kind"], one) for one in documents if one["kind"] != "EC2NodeClass")]
    return plans.problem(*objects, types=_TYPES, options=Options(only_marked_unschedulable=False, time_limit=0.001))


def _pods(made: Cluster) -> list[str]:
    pods = (one["metadata"] for one in made.documents if one["kind"] == "Pod")
    return [f"{meta['namespace']}/{meta['name']}" for meta in pods]
