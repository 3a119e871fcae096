"""Annotations of ours that somebody has edited: whatever they hold, no run stops, and other nodes are served."""

import pytest

from joinery.objects.karpenter import labels
from joinery.objects.karpenter.nodeclaim import NodeClaim
from simulator.kubernetes.resources import with_metadata
from simulator.world import World
from tests.functional.disrupting import running
from tests.functional.stand import Stand

KEYS = sorted(
    {
        labels.DISRUPTION_COMMAND, labels.DRAIN_STALLED, labels.INTERRUPTED_AT, labels.LAUNCH_TOKEN,
        labels.PLANNED_NEEDS, labels.PLANNED_PODS, labels.REBALANCE_RECOMMENDED_AT, labels.REBOOTED_AT,
        labels.REPLACEMENT_LAUNCHED, labels.REPLACES, labels.RETIRED_FOR, labels.SURGED_PODS, labels.UNSERVED_NEEDS,
    }
)  # fmt: skip
#: By what they are: JSON nested deeper than any parser goes, numbers that are none, and what is none of ours.
VALUES = {
    "nested lists": "[" * 50_000,
    "nested objects": '{"id": 1, "other": ' + '{"a":' * 50_000,
    "infinite": '{"pods": Infinity, "since": "2026-01-01T00:00:00Z", "asked": "2026-01-01T00:00:00Z"}',
    "empty": "",
    "long": "x" * 200_000,
    "list": "[1, null, {}, [Infinity]]",
    "object": '{"/": [0, -1, true, 1.5], "x/y": 1}',
}


def _edited(stand: Stand, claim: NodeClaim, key: str, value: str) -> None:
    annotations = {**claim.metadata.annotations, key: value}
    stand.world.cluster.add(with_metadata(claim, annotations=annotations))


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_an_edited_claim_goes_as_any_other(world: World, value: str) -> None:
    """One node for each annotation, which somebody has edited, and one more: all are deleted, and all are drained."""
    stand = Stand(world, node_repair="reboot", rebalance="replace").with_defaults()
    *edited, untouched = running(stand, len(KEYS) + 1)
    keys = {claim.metadata.name: key for claim, key in zip(edited, KEYS, strict=True)}
    for claim, key in zip(edited, KEYS, strict=True):
        _edited(stand, claim, key, value)
    for claim in (*edited, untouched):
        world.cluster.delete_node_claim(world.cluster.node_claims[claim.metadata.name])
    for _ in range(8):
        stand.provision()
        stand.boot()
        stand.live()
        stand.expire()
        stand.wait(10)
        world.cluster.end_grace()
    left = set(world.cluster.node_claims)
    assert {key for name, key in keys.items() if name in left} == set()
    assert untouched.metadata.name not in left


def test_an_edited_node_pool_stops_nothing(world: World) -> None:
    """What became of its last launches is forgotten."""
    stand = Stand(world).with_defaults()
    (pool,) = world.cluster.node_pools.values()
    value = VALUES["nested lists"]
    annotations = {
        labels.REGISTRATIONS: value,
        labels.DISRUPTION_RATE: "1 node per 1h",
        labels.DISRUPTED_LATELY: value,
        labels.MOVED_LATELY: value,
    }
    world.cluster.add(with_metadata(pool, annotations=annotations))
    stand.pods(1)
    stand.settle()
    assert len(stand.alive) == 1
