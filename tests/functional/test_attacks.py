"""What somebody tries who may create pods, or objects of ours by hand, and nothing else."""

from typing import Any

import pytest

from simulator import builders
from simulator.world import World
from tests.functional.stand import Stand

HOSTILE = ["x'; touch /tmp/P; echo '", "$(reboot)", "a\nb", "-", "x" * 64, "ä", ""]


def prefers(key: str, value: str) -> dict[str, object]:
    """A pod's wish for nodes with that label."""
    terms = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": terms}]}}


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("key", ["team", "karpenter.sh/nodepool"])
def test_a_pod_that_wishes_for_what_no_label_can_be_starves_nobody(key: str, value: str, world: World) -> None:
    """The API server takes such a preference with a warning. It is copied into no claim, and all pods are served."""
    stand = Stand(world).with_defaults()
    stand.pods(3)
    stand.world.cluster.add(builders.pod("hostile", affinity=prefers(key, value)))
    stand.provision()
    assert len(stand.alive) >= 1
    assert {"pod-0", "pod-1", "pod-2"} <= set(stand.messages("Nominated"))
    for claim in stand.claims:
        assert value == "" or value not in claim.metadata.labels.values()


@pytest.mark.parametrize(("caps", "launched"), [({"max_launches": 0}, 0), ({"max_hourly": 0.0}, 0), ({}, 1)])
def test_a_claim_that_somebody_has_made_by_hand_does_not_pass_the_caps(
    caps: dict[str, Any], launched: int, world: World
) -> None:
    """Lifecycle launches what is written and not launched; with a cap of nothing, nothing."""
    stand = Stand(world, **caps).with_defaults()
    made = builders.node_claim("u7i", conditions=(), requirements=["node.kubernetes.io/instance-type=m7a.large"])
    stand.world.cluster.add(made)
    for _ in range(3):
        stand.live()
        stand.wait(120)
    assert len(stand.alive) == launched
