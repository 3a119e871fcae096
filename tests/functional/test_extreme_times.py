"""Times that no clock reaches, which the API server takes all the same: nodes are drained, and no run stops."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace

from joinery.objects.annotations.disruption import encoded, record_of
from joinery.objects.karpenter.labels import (
    DISRUPTION_COMMAND,
    DO_NOT_DISRUPT,
    INTERRUPTED_AT,
    REBOOTED_AT,
    SURGE_BEFORE_EVICTION,
    TERMINATION_TIMESTAMP,
)
from joinery.objects.kubernetes.core import Condition, Node
from simulator import builders
from simulator.kubernetes.resources import with_metadata
from simulator.world import World
from tests.functional.disrupting import disrupt, is_tainted, now, running
from tests.functional.stand import Stand
from tests.functional.surging import Shop

#: The last moment of Kubernetes' times, the first one, and how Go prints a time that was never set.
ENDS_OF_TIME = ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z"]
#: Seconds, as a pod's grace: about a year, 3,000 years, and the largest that there is.
GRACES = [30_000_000, 100_000_000_000, 2**63 - 1]


def _running(world: World) -> Stand:
    """One pod on one node."""
    stand = Stand(world, node_repair="reboot").with_defaults()
    stand.pods(1)
    stand.settle()
    return stand


def _drained(stand: Stand) -> bool:
    """Whether the only node goes within some minutes after its claim is deleted."""
    claim = stand.claim
    stand.world.cluster.delete_node_claim(claim)
    for _ in range(20):
        stand.provision()
        stand.boot()
        stand.live()
        stand.world.cluster.end_grace()
    return claim.metadata.name not in stand.world.cluster.node_claims


@pytest.mark.parametrize("grace", GRACES)
def test_a_pod_with_ages_to_end_is_deleted_where_its_node_has_a_deadline(world: World, grace: int) -> None:
    """Its grace would outlast the deadline, however long it is."""
    stand = Stand(world).with_defaults()
    pool = builders.node_pool(termination_grace_period="1h", requirements=["karpenter.k8s.aws/instance-size=xlarge"])
    world.cluster.add(pool)
    stand.live()
    stand.pods(1, termination_grace_period_seconds=grace)
    stand.settle()
    world.cluster.delete_node_claim(stand.claim)
    stand.wait(20)
    stand.live()
    assert all(pod.metadata.deletion_timestamp for pod in world.cluster.pods.values())


@pytest.mark.parametrize("at", ENDS_OF_TIME)
@pytest.mark.parametrize("key", [TERMINATION_TIMESTAMP, INTERRUPTED_AT, REBOOTED_AT])
def test_moments_that_nobody_meant_stop_no_run(world: World, key: str, at: str) -> None:
    """Somebody edited an annotation of ours; the node is drained as ever."""
    stand = _running(world)
    world.cluster.add(with_metadata(stand.claim, annotations={**stand.claim.metadata.annotations, key: at}))
    assert _drained(stand)


@pytest.mark.parametrize("at", ENDS_OF_TIME)
def test_a_protected_pod_that_started_at_such_a_moment_stops_no_drain(world: World, at: str) -> None:
    """It is said how long it is protected, and the other pods of its node go."""
    stand = Stand(world).with_defaults()
    stand.pods(2)
    stand.settle()
    first, second = world.cluster.pods.values()
    kept = replace(first.metadata, annotations={DO_NOT_DISRUPT: "1h"})
    status = replace(first.status, start_time=msgspec.convert(at, datetime))
    world.cluster.api.update(replace(first, metadata=kept, status=status))
    world.cluster.delete_node_claim(stand.claim)
    for _ in range(8):
        stand.provision()
        stand.boot()
        stand.live()
        world.cluster.end_grace()
    assert second.key not in world.cluster.pods


@pytest.mark.parametrize("at", ENDS_OF_TIME)
def test_a_pod_that_surges_from_a_node_with_such_a_deadline_stops_no_run(at: str) -> None:
    """What is said of surging pods is said of all nodes together."""
    shop = Shop(annotations={SURGE_BEFORE_EVICTION: "true"}).open()
    (claim,) = shop.stand.claims
    marked = with_metadata(claim, annotations={**claim.metadata.annotations, TERMINATION_TIMESTAMP: at})
    shop.world.cluster.add(marked)
    shop.retire()
    shop.stand.live()
    shop.until(shop.moved)


@pytest.mark.parametrize("rebooted", ["", *ENDS_OF_TIME])
@pytest.mark.parametrize("since", ENDS_OF_TIME)
def test_an_unhealthy_node_since_such_a_moment_stops_no_run(world: World, since: str, rebooted: str) -> None:
    """A kubelet says when its conditions changed; the others' nodes must not rely on it."""
    stand = _running(world)
    world.cluster.add(
        with_metadata(stand.claim, annotations={**stand.claim.metadata.annotations, REBOOTED_AT: rebooted})
    )
    node = world.cluster.nodes[stand.claim.status.node_name]
    world.cluster.api.update(_unready(node, since))
    stand.live()
    stand.wait(timedelta(minutes=31).total_seconds())
    stand.live()


def _unready(node: Node, since: str) -> Node:
    bad = msgspec.convert({"type": "Ready", "status": "False", "lastTransitionTime": since}, Condition)
    kept = [condition for condition in node.status.conditions if condition.type != "Ready"]
    return replace(node, status=replace(node.status, conditions=[*kept, bad]))


@pytest.mark.parametrize("replacements", [["nobody"], None], ids=["lost", "unready"])
def test_a_command_that_began_at_a_time_to_come_is_rolled_back(world: World, replacements: list[str] | None) -> None:
    """Or its node would take no pods, and what replaces it would cost money, for good."""
    stand = Stand(world).with_defaults()
    (claim,) = running(stand)
    disrupt(stand, claim)
    record = record_of(now(stand, claim))
    assert record is not None
    far = datetime(9999, 12, 31, tzinfo=UTC)
    named = record.replacements if replacements is None else tuple(replacements)
    edited = replace(record, started=far, deadline=far, replacements=named)
    annotations = {**now(stand, claim).metadata.annotations, DISRUPTION_COMMAND: encoded(edited)}
    world.cluster.add(with_metadata(now(stand, claim), annotations=annotations))
    for _ in range(4):
        stand.live()
        stand.wait(60)
    assert "DisruptionRolledBack" in stand.event_reasons("NodeClaim")
    assert stand.claims == [now(stand, claim)]
    assert not is_tainted(stand, claim)
