"""Chains of pod affinity: who is placed before whom."""

from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.firstfit.class_order import LONGEST_CHAIN, depths
from joinery.decisions.scheduling.solve import solve
from joinery.objects.karpenter.labels import ZONE
from simulator import builders
from tests.unit.decisions.verification.plans import problem

FEW = "abcdef"


@given(st.fixed_dictionaries({name: st.lists(st.sampled_from(FEW), unique=True) for name in FEW}))
def test_in_small_plans_the_longest_chain_is_found(ahead_of: Mapping[str, list[str]]) -> None:
    """Through no class twice."""
    expected = {
        name: max(
            length
            for other in permutations(set(FEW) - {name})
            for chain in [(name, *other)]
            for length in range(len(chain))
            if all(after in ahead_of[before] for before, after in zip(chain, chain[1 : length + 1], strict=False))
        )
        for name in FEW
    }
    assert depths(ahead_of) == expected


@pytest.mark.parametrize("layers", [3, 6, 40])
def test_layers_come_one_after_another(layers: int) -> None:
    """However many ways lead through them: here up to thirty to the power of their number."""
    ahead_of = {
        (layer, number): [(layer - 1, other) for other in range(30)] if layer else []
        for layer in range(layers)
        for number in range(30)
    }
    found = depths(ahead_of)
    assert all(found[layer, number] == min(layer, LONGEST_CHAIN - 1) for layer, number in ahead_of)


def test_workloads_that_all_want_to_be_near_each_other_are_planned_at_once() -> None:
    """As those of a chart that says so of each of its parts."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"stack": "shop"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [
        builders.pod(f"part-{number}", cpu=f"{100 + number}m", labels={"stack": "shop"}, affinity=affinity)
        for number in range(30)
    ]
    packing = solve(problem(builders.node_pool(), *pods))
    assert len({launch.offering.zone for launch in packing.launches}) == 1
    assert packing.unplaced == ()
