"""A mistake of the packing core costs a better plan or a place, never the whole plan, and is never silent."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from joinery.decisions.planning import Plan, PlanWarning, WarningCode, checked, plan
from joinery.decisions.scheduling.packing import ExistingPlacement, Packing, Unplaced, Unproven
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve, solve_unproven
from joinery.decisions.verification.verify import verify
from joinery.decisions.verification.violation import ViolationCode
from simulator.builders import instance_type, node, node_pool, pod
from tests.unit.decisions.verification.plans import A, problem

REFUSED = "refused by the check: "


@pytest.fixture
def asked() -> Problem:
    """Two pods of one sort and another one, and a node that none of them may use."""
    taint = {"key": "rare", "value": "yes", "effect": "NoSchedule"}
    pods = [pod(name, cpu="1", labels={"app": name[:3]}) for name in ("web-1", "web-2", "job-1")]
    return problem(node_pool(), node("closed", zone=A, taints=[taint]), *pods, types=(instance_type("m7a.large"),))


def _spoiled(packing: Packing, *names: str) -> Packing:
    """The plan, but these pods are on the node that they do not tolerate."""
    there = tuple(name for launch in packing.launches for name in launch.pods if name in names)
    launches = tuple(replace(x, pods=tuple(n for n in x.pods if n not in names)) for x in packing.launches)
    placed = (ExistingPlacement("closed", "", there),) if there else ()
    return replace(packing, launches=tuple(x for x in launches if x.pods), existing=placed, lower_bound=0.0)


def _checked(
    asked: Problem,
    solver: Callable[[Problem, Mapping[str, Unplaced]], Packing],
    is_late: Callable[[], bool] = lambda: False,
) -> Plan:
    """What becomes of a solver's packings, of which nothing is proven."""

    def unproven(given: Problem, refused: Mapping[str, Unplaced]) -> Unproven:
        packing = solver(given, refused).without_proof()
        return Unproven(packing, lambda: packing)

    return checked(asked, unproven, is_late=is_late)


def test_a_right_plan_needs_no_warning(asked: Problem) -> None:
    """The usual case: one packing, checked once."""
    assert plan(asked).proven() == Plan(packing=solve(asked))


def test_a_launch_is_named_past_all_the_nodes_that_have_its_pools_name() -> None:
    """Whoever names machines himself may have called 1,500 of them so."""
    nodes = [node(f"worker-{number}", cpu="100m") for number in range(1, 1501)]
    launches = plan(problem(node_pool("worker"), *nodes, pod("web", cpu="1"))).packing.launches
    assert [launch.name for launch in launches] == ["worker-1501"]


def test_first_fit_stands_in_for_an_optimised_plan_that_is_refused(asked: Problem) -> None:
    """It costs a little more, and everybody has a place."""

    def solver(given: Problem, refused: Mapping[str, Unplaced]) -> Packing:
        packing = solve(given, refused=refused)
        return packing if given.options.first_fit_only else _spoiled(packing, "default/job-1")

    made = _checked(asked, solver)
    assert (made.violations, made.packing.unplaced, made.packing.method) == ((), (), "first-fit")
    assert verify(asked, made.packing) == ()
    (warning,) = made.warnings
    assert warning.code is WarningCode.PLAN_REFUSED
    assert ViolationCode.TAINTS in [violation.code for violation in warning.violations]
    assert "pod default/job-1 on closed: does not tolerate rare=yes:NoSchedule" in str(warning)


def test_pods_that_are_planned_wrongly_twice_are_left_out(asked: Problem) -> None:
    """They and all that are like them, with what was wrong as the reason; the others are planned."""
    made = _checked(asked, lambda given, refused: _spoiled(solve(given, refused=refused), "default/web-1"))
    assert made.violations == ()
    assert [unplaced.pod for unplaced in made.packing.unplaced] == ["default/web-1", "default/web-2"]
    assert all(str(unplaced.reasons[0]).startswith(REFUSED) for unplaced in made.packing.unplaced)
    assert [launch.pods for launch in made.packing.launches] == [("default/job-1",)]
    assert made.warnings[-1] == PlanWarning(code=WarningCode.PODS_LEFT_OUT, pods=("default/web-1", "default/web-2"))


def test_after_the_time_limit_nothing_is_planned_anew(asked: Problem) -> None:
    """What is at fault is given up with its nodes, and the rest of the plan stays."""
    calls: list[Problem] = []

    def solver(given: Problem, refused: Mapping[str, Unplaced]) -> Packing:
        calls.append(given)
        return _spoiled(solve(given, refused=refused), "default/web-1")

    made = _checked(asked, solver, is_late=lambda: True)
    assert (len(calls), made.violations) == (1, ())
    assert [unplaced.pod for unplaced in made.packing.unplaced] == ["default/web-1", "default/web-2"]
    assert [launch.pods for launch in made.packing.launches] == [("default/job-1",)]
    assert verify(asked, made.packing) == ()


def test_after_the_time_limit_a_node_that_is_given_up_leaves_all_its_pods_with_a_reason(asked: Problem) -> None:
    """Where nothing is right, nothing is bought, and each pod says why."""

    def solver(given: Problem, refused: Mapping[str, Unplaced]) -> Packing:
        packing = solve(given, refused=refused)
        launches = (replace(launch, requests={"cpu": 1}) for launch in packing.launches)
        return replace(packing, launches=tuple(launches))

    made = _checked(asked, solver, is_late=lambda: True)
    assert (made.violations, made.packing.launches) == ((), ())
    assert all(unplaced.reasons for unplaced in made.packing.unplaced)
    assert len(made.packing.unplaced) == 3


def test_a_wrong_bound_is_left_out_of_a_right_plan(asked: Problem) -> None:
    """It is acted upon before anything is proven of it, and keeps what it buys."""

    def solver(given: Problem, refused: Mapping[str, Unplaced]) -> Unproven:
        unproven = solve_unproven(given, refused=refused)
        return replace(unproven, prove=lambda: replace(unproven.packing, lower_bound=99.0))

    made = checked(asked, solver).proven()
    assert (made.violations, made.packing.lower_bound, len(made.packing.launches) > 0) == ((), 0.0, True)
    assert len(made.warnings) == 1


@pytest.mark.parametrize("is_late", [False, True])
def test_a_plan_that_stays_wrong_keeps_its_violations(asked: Problem, *, is_late: bool) -> None:
    """Nobody acts upon it: there is no pod that could be left out, and no warning of such pods."""
    made = _checked(asked, lambda given, refused: Packing(), is_late=lambda: is_late)
    assert {reason.code for reason in made.violations} == {"PodMissing"}
    assert {warning.code for warning in made.warnings} == {WarningCode.PLAN_REFUSED}
    assert all(map(str, made.warnings))
