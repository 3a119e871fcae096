"""A decision is checked by code that did not make it; what the check refuses is left out, and the figures say so."""

from dataclasses import replace

import pytest

from joinery.apis.disruption import DisruptionReason
from joinery.disruption.disruptions import CurvePoint, Disruption, Disruptions
from joinery.disruption.problem import DisruptionProblem
from joinery.disruption.verified import verified
from joinery.scheduling.packing import ExistingPlacement
from joinery.scheduling.problem import Problem
from joinery.state.snapshot import Snapshot
from simulator.builders import EPOCH, instance_type, node, node_claim, node_class, node_pool, pod

NAMES = ("a", "b", "c")
PROBLEM = DisruptionProblem(
    packing=Problem(
        snapshot=Snapshot(
            now=EPOCH,
            node_pools=(node_pool(),),
            node_classes=(node_class(),),
            nodes=tuple(node(name) for name in NAMES),
            node_claims=tuple(node_claim(f"claim-{name}", node=name) for name in NAMES),
            pods=(pod("small", cpu="1", node="a", owner="web"), pod("large", cpu="3", node="b", owner="web")),
        ),
        instance_types={"default": (instance_type("m7a.xlarge"),)},
    )
)


def _moved(name: str, source: str, target: str) -> Disruption:
    return Disruption(
        reason=DisruptionReason.UNDERUTILIZED,
        message="",
        retire=(f"claim-{source}",),
        existing=(ExistingPlacement(target, f"claim-{target}", (f"default/{name}",)),),
        pods=(f"default/{name}",),
        savings=0.2,
        move_price=0.01,
    )


def _decision(*commands: Disruption) -> Disruptions:
    return Disruptions(
        commands=commands,
        before=0.6,
        after=0.6 - 0.2 * len(commands),
        lower_bound=0.3,
        gap=0.1,
        curve=(CurvePoint(0, 0.6), CurvePoint(1, 0.4), CurvePoint(2, 0.2, is_chosen=True)),
    )


def test_a_right_decision_stays_as_it_is() -> None:
    """Nothing is reckoned anew."""
    decision = _decision(_moved("small", "a", "c"))
    assert verified(PROBLEM, decision).decision is decision


def test_a_command_that_breaks_a_rule_is_left_out_with_its_figures() -> None:
    """Two pods that fit on the third node one by one do not fit together with a third of the same size."""
    crowded = replace(PROBLEM.packing.snapshot, pods=(*PROBLEM.packing.snapshot.pods, pod("own", cpu="2", node="c")))
    problem = replace(PROBLEM, packing=replace(PROBLEM.packing, snapshot=crowded))
    right, wrong = _moved("small", "a", "c"), _moved("large", "b", "c")
    result = verified(problem, _decision(right, wrong))
    assert result.decision.commands == (right,)
    ((refused, why),) = result.refused
    assert refused is wrong
    assert "cpu" in why
    assert result.decision.after == pytest.approx(0.4)
    assert result.decision.gap == pytest.approx((0.4 + 0.01 - 0.3) / 0.3)
    assert [(point.pods, point.is_chosen) for point in result.decision.curve] == [(0, False), (1, True)]


def test_a_decision_of_which_nothing_is_left_changes_nothing() -> None:
    """The bill is what it was."""
    decision = verified(PROBLEM, _decision(_moved("large", "b", "gone"))).decision
    assert decision.commands == ()
    assert decision.after == pytest.approx(decision.before)
    assert [(point.pods, point.is_chosen) for point in decision.curve] == [(0, True)]
