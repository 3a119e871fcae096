"""A consolidation that was in vain: the room that it had planned for pods was taken, and a node was bought for them."""

import pytest

from joinery.objects.annotations.displacement import displacement_of
from joinery.objects.karpenter.nodeclaim import NodeClaim
from simulator import builders
from simulator.world import World
from tests.functional.disrupting import others, running
from tests.functional.stand import Stand

HOUR = 3600


@pytest.fixture
def stand(world: World) -> Stand:
    """Two nodes with one small pod of ``web`` each. One node would do."""
    stand = Stand(world).with_defaults()
    size = "karpenter.k8s.aws/instance-size=xlarge"
    pool = builders.node_pool(requirements=[size], budgets=[{"nodes": "100%"}], consolidateAfter="0s")
    stand.world.cluster.add(pool)
    nodes = [claim.status.node_name for claim in running(stand, 2)]
    _end(stand, "pod-")
    for name, node in zip("ab", nodes, strict=True):
        stand.world.cluster.add(builders.pod(f"web-{name}", node=node, owner="web", cpu="900m"))
    stand.wait(2 * HOUR)
    stand.live()
    return stand


def _end(stand: Stand, prefix: str) -> None:
    for pod in list(stand.world.cluster.pods.values()):
        if pod.metadata.name.startswith(prefix):
            stand.world.cluster.api.delete(pod)


def _drained(stand: Stand) -> NodeClaim:
    """The node that goes does. Returns the claim of the other."""
    stand.live()
    (stays,) = [claim for claim in stand.claims if not claim.is_deleting]
    stand.provision()  # finds that the pod has another place, so that the drain may begin
    for _ in range(5):
        stand.wait(30)
        stand.world.cluster.end_grace()
        stand.live()
    assert [claim.metadata.name for claim in stand.claims] == [stays.metadata.name]
    return stays


def _in_vain(stand: Stand, name: str) -> NodeClaim | None:
    """Disruption looks once. If a node goes, others take the room that its pod was to have, until a node is bought.

    Returns that one's claim; None where nothing was worth its moves.
    """
    before = stand.claims
    if not stand.consolidate()["commands"]:
        return None
    stays = _drained(stand)
    filler = builders.pod(f"filler-{name}", node=stays.status.node_name, owner="api", cpu="2500m")
    stand.world.cluster.add(filler, builders.pod(f"web-{name}", owner="web", cpu="900m"))
    stand.settle()
    (bought,) = others(stand, before)
    _end(stand, "filler-")
    return bought


def test_what_is_bought_for_pods_that_were_moved_says_so(stand: Stand) -> None:
    """With their owner and its price."""
    bought = _in_vain(stand, "c")
    displacement = displacement_of(bought) if bought else None
    assert displacement is not None
    assert displacement.owners == ("uid-replicaset-web",)
    assert displacement.price > 0


def test_what_is_in_vain_is_tried_ever_less_often(stand: Stand) -> None:
    """Each hour the room seems to be there, and whenever a node is given up for it, it is not. Without a memory that
    would be a node and an eviction an hour.
    """
    attempts = []
    for hour in range(210):
        if _in_vain(stand, str(hour)):
            attempts.append(hour)
        stand.wait(HOUR)
        stand.live()
    pauses = [later - earlier for earlier, later in zip(attempts, attempts[1:], strict=False)]
    assert len(attempts) > 3
    assert min(pauses[1:]) > 6
    assert pauses[-1] > 48
    assert pauses == sorted(pauses)


@pytest.mark.parametrize("minutes", [1, 15])
def test_a_workload_that_grows_after_a_consolidation_can_be_consolidated_again(stand: Stand, minutes: int) -> None:
    """Thirty pods within ten minutes of a consolidation that moved one are no displaced pods: of the nodes that were
    bought for them those go whose pods end, as they do when the thirty come later.
    """
    assert stand.consolidate()["commands"] == 1
    _drained(stand)
    stand.wait(60 * minutes)
    stand.live()
    stand.world.cluster.add(*(builders.pod(f"web-{number}", owner="web", cpu="900m") for number in range(30)))
    stand.settle()
    assert [claim for claim in stand.claims if displacement_of(claim)] == []
    kept = {""}
    for pod in list(stand.world.cluster.pods.values()):
        if pod.spec.node_name in kept:
            stand.world.cluster.api.delete(pod)
        kept.add(pod.spec.node_name)
    assert len(stand.claims) == 8
    stand.live()
    stand.wait(HOUR)
    stand.live()
    assert stand.consolidate()["commands"] == 6
