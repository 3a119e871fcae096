"""Claims, nodes and pools of EKS Auto Mode stand beside ours: same kinds, another group.

No decision of ours is about them.
"""

from datetime import timedelta

from joinery.decisions.disruption.expiration import expire
from joinery.decisions.lifecycle.pools.readiness import readiness
from joinery.decisions.lifecycle.state.replacement import replaced
from joinery.decisions.scheduling.packing import Packing
from joinery.objects.actions import UpdateClass, UpdatePool
from joinery.objects.karpenter.labels import INTERRUPTED_AT, RESERVATION_ID
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.kubernetes.decoding import convert
from joinery.objects.snapshot.pods import is_pending, is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START
from tests.real.files import FOLDER, objects

OLD = START - timedelta(days=60)


def auto_mode(**given: object) -> NodeClaim:
    """A claim of EKS Auto Mode that any decision would act upon, were it ours."""
    return builders.foreign(builders.node_claim(created=OLD, **given))  # type: ignore[arg-type]


def test_the_real_claim_of_eks_auto_mode_is_not_ours() -> None:
    """By the group of its class, which is all that tells it apart."""
    (document,) = objects(FOLDER / "karpenter" / "nodeclaim-eks-auto-mode.yaml")
    theirs = NodeClaim.model_validate(document)
    assert Snapshot(now=START, node_claims=(theirs,)).managed_claims == ()


def test_it_does_not_expire_here() -> None:
    """Auto Mode has an expiry of its own, and a drain of its own."""
    assert expire(Snapshot(now=START, node_claims=(auto_mode(),))) == ()


def test_it_is_not_marked_as_replaced() -> None:
    """An annotation of ours would be a change of somebody else's object."""
    leaving = (auto_mode(deleted=START), auto_mode(annotations={INTERRUPTED_AT: START.isoformat()}))
    assert replaced(Snapshot(now=START, node_claims=leaving), Packing(), ()) == ()


def test_it_waits_for_no_launch_and_no_reservation_of_ours() -> None:
    """What it asks EC2 for takes nothing of what we count."""
    rule = {"key": RESERVATION_ID, "operator": "In", "values": ["cr-1"]}
    waiting = auto_mode(conditions=(), requirements=[rule])
    assert Snapshot(now=START, node_claims=(waiting,)).managed_claims == ()


def test_its_node_is_a_node_like_any_other_and_what_it_will_be_is_not_counted_on() -> None:
    """The scheduler may use the node; a claim without one promises us nothing."""
    there, coming = auto_mode(node="theirs"), auto_mode(name="coming", conditions=("Launched",))
    snapshot = Snapshot(now=START, nodes=(builders.node("theirs", node_pool=""),), node_claims=(there, coming))
    (seen,) = snapshot.views
    assert (seen.node, seen.claim, seen.is_initialized) == ("theirs", "", True)


def test_it_keeps_no_class_of_ours() -> None:
    """Its class is of another kind, although it may have the same name."""
    node_class = builders.node_class()
    going = {"finalizers": [node_class.identity().finalizer], "deletion_timestamp": START}
    deleted = node_class.model_copy(update={"metadata": node_class.metadata.model_copy(update=going)})
    snapshot = Snapshot(now=START, node_classes=(deleted,), node_claims=(auto_mode(),))
    (change,) = [command for chain in readiness(snapshot, {}) for command in chain]
    assert isinstance(change, UpdateClass)
    assert change.after.metadata.finalizers == []


def test_its_nodes_and_those_of_fargate_windows_and_hybrid_are_read() -> None:
    """None of them is ours, and each is a node that pods run on."""
    names = (
        "eks-auto-mode",
        "fargate",
        "windows-2022",
        "hybrid",
        "al2-docker-1.16-beta-labels-only",
        "booting-not-ready",
    )
    nodes = tuple(convert(item, Node) for name in names for item in objects(FOLDER / "nodes" / f"{name}.yaml"))
    seen = Snapshot(now=START, nodes=nodes).views
    assert len(seen) == len(names)
    assert all(view.allocatable["memory"] > 0 and view.allocatable["pods"] > 0 for view in seen)


def test_fargates_pods_get_no_node_on_ec2() -> None:
    """Neither while they wait nor when the node goes on which they run: Fargate brings another one."""
    waiting = builders.pod("reports", scheduler_name="fargate-scheduler")
    assert not is_pending(waiting, only_marked=True)
    assert not is_pending(waiting, only_marked=False)
    assert not is_reschedulable(builders.pod("reports", node="fargate-1", scheduler_name="fargate-scheduler"))
    assert is_pending(builders.pod("reports", scheduler_name="our-scheduler"), only_marked=False)


def test_a_pool_counts_no_claim_of_another_provider() -> None:
    """Even one that carries its name as a label."""
    pool, ours, theirs = builders.node_pool(), builders.node_claim(node="a"), auto_mode(name="theirs", node="b")
    snapshot = Snapshot(
        now=START, node_pools=(pool,), node_classes=(builders.node_class(),), node_claims=(ours, theirs)
    )
    commands = [command for chain in readiness(snapshot, {}) for command in chain]
    assert [command.after.status.nodes for command in commands if isinstance(command, UpdatePool)] == [1]
