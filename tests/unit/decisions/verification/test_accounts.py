"""Who is in a plan: every pending pod once, and nobody else."""

from dataclasses import replace

from joinery.decisions.scheduling.packing import Unplaced
from joinery.decisions.scheduling.problem import Options
from joinery.decisions.verification.verify import verify
from simulator.builders import EPOCH, node, node_claim, node_pool, owner, pod
from tests.unit.decisions.verification.plans import launch, packing, problem, violated

ONE = problem(node_pool(), pod("web"))


def test_a_plan_that_launches_a_node_for_its_pod_is_right() -> None:
    """A pending pod on a node that its pool may buy leaves nothing to refuse."""
    assert verify(ONE, packing(launch(ONE, "default/web"))) == ()


def test_a_pod_that_the_plan_forgets_is_named() -> None:
    """Silence about a pending pod is refused."""
    (violation,) = verify(ONE, packing())
    assert (violation.code, violation.where) == ("PodMissing", "pod default/web")


def test_a_pod_that_is_given_up_needs_a_reason() -> None:
    """An unschedulable pod without a reason tells its owner nothing."""
    assert violated(ONE, packing(left=("default/web",))) == set()
    assert violated(ONE, replace(packing(), unplaced=(Unplaced("default/web", ()),))) == {"NoReason"}


def test_a_pod_placed_twice_is_refused() -> None:
    """Two nodes for one pod would both be paid for."""
    twice = packing(launch(ONE, "default/web"), launch(ONE, "default/web", name="default-2"))
    assert "PodDuplicate" in violated(ONE, twice)


def test_a_pod_that_does_not_exist_is_refused() -> None:
    """A plan may not invent pods."""
    plan = packing(launch(ONE, "default/web"), left=("default/ghost",))
    assert violated(ONE, plan) == {"PodUnknown"}


def test_a_running_pod_is_not_the_plans_to_move() -> None:
    """A pod that runs on a node that stays is not pending."""
    asked = problem(node_pool(), node("n1"), pod("web", node="n1"))
    assert "PodNotPending" in violated(asked, packing(launch(asked, "default/web")))


def test_a_gated_pod_is_not_pending() -> None:
    """A pod with scheduling gates waits for somebody else."""
    asked = problem(node_pool(), pod("web", scheduling_gates=[{"name": "quota"}]))
    assert violated(asked, packing(left=("default/web",))) == {"PodNotPending"}


def test_a_pod_of_a_daemon_set_is_not_pending() -> None:
    """DaemonSet pods follow nodes; no node is bought for one."""
    asked = problem(node_pool(), pod("agent", owner=owner("DaemonSet", "agent")))
    assert violated(asked, packing()) == set()


def test_against_a_cluster_only_marked_pods_are_pending() -> None:
    """Until the scheduler has said Unschedulable, it may still place the pod itself."""
    asked = problem(node_pool(), pod("web", unschedulable=False), options=Options())
    assert violated(asked, packing()) == set()


def test_pods_on_a_leaving_node_must_find_another() -> None:
    """A node whose claim is being deleted takes its pods along unless the plan moves them."""
    claim = node_claim("c1", node="n1", deleted=EPOCH)
    asked = problem(node_pool(), node("n1"), claim, pod("web", node="n1"))
    assert violated(asked, packing()) == {"PodMissing"}
    assert violated(asked, packing(launch(asked, "default/web"))) == set()


def test_a_leaving_node_takes_no_pods() -> None:
    """A pod planned onto a node that is going would have to move again."""
    asked = problem(node_pool(), node("n1"), node_claim("c1", node="n1", deleted=EPOCH), pod("web"))
    assert violated(asked, packing(on={"n1": ("default/web",)})) == {"NodeLeaving"}


def test_a_node_that_does_not_exist_is_refused() -> None:
    """Pods cannot run on a name."""
    assert "NodeUnknown" in violated(ONE, packing(on={"n9": ("default/web",)}))


def test_a_bound_above_the_cost_is_no_bound() -> None:
    """The lower bound can never exceed what the plan pays."""
    plan = replace(packing(launch(ONE, "default/web")), lower_bound=5.0)
    assert violated(ONE, plan) == {"Cost"}
