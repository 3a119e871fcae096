"""Shares on demand: lifecycle lets pods through the gate, where the setting asks for it."""

from dataclasses import replace

import pytest

from joinery.objects.karpenter.labels import ON_DEMAND_SHARE
from tests.functional.stand import Stand

GATES = [{"name": ON_DEMAND_SHARE}]


def _wait_at_the_gate(stand: Stand, share: str) -> None:
    stand.pods(4, owner="web-1", unschedulable=False, annotations={ON_DEMAND_SHARE: share}, scheduling_gates=GATES)


def _gated(stand: Stand) -> list[bool]:
    return [bool(pod.spec.scheduling_gates) for pod in stand.world.cluster.pods.values()]


@pytest.mark.parametrize("is_on", [True, False])
def test_pods_are_let_through_where_the_setting_is_on(stand: Stand, is_on: bool) -> None:
    """Off, which is the default, Joinery has no right to, and touches no pod."""
    stand.settings = replace(stand.settings, on_demand_shares=is_on)
    _wait_at_the_gate(stand, "1 + 30%")
    stand.live()
    assert _gated(stand) == [not is_on] * 4
    narrowed = [pod for pod in stand.world.cluster.pods.values() if pod.spec.required_node_affinity]
    assert len(narrowed) == (2 if is_on else 0)


def test_a_share_that_is_none_is_said_once(stand: Stand) -> None:
    """The pods stay where they are, and their Event shows what to write."""
    stand.settings = replace(stand.settings, on_demand_shares=True)
    _wait_at_the_gate(stand, "some")
    stand.live()
    stand.live()
    assert _gated(stand) == [True] * 4
    said = [event.message for event in stand.world.cluster.events if event.reason == "InvalidOnDemandShare"]
    assert len(said) == 4
    assert "'some' is neither a number, such as 2, nor a percentage, such as 30%, nor both: 2 + 30%" in said[0]


def test_observing_lets_nobody_through(stand: Stand) -> None:
    """With ``Mode=observe`` nothing is written."""
    stand.settings = replace(stand.settings, on_demand_shares=True)
    _wait_at_the_gate(stand, "1")
    stand.observing().live()
    assert _gated(stand) == [True] * 4
