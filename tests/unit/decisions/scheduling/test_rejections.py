"""Why a NodePool takes no part in a plan."""

from dataclasses import replace

from joinery.decisions.scheduling.solve import solve
from joinery.objects.snapshot.snapshot import Invalid
from simulator.builders import node_pool, pod
from tests.unit.decisions.verification.plans import problem


def test_an_unreadable_class_is_named_beside_an_unreadable_pool_of_its_name() -> None:
    """Both are often called default. The user must hear of the class that is there, and not look for a missing one."""
    asked = problem(node_pool("other"), pod("web-1"))
    unreadable = (
        Invalid("NodePool", "default", "spec.weight: too large"),
        Invalid("EC2NodeClass", "default", "spec.role: too short"),
    )
    packing = solve(replace(asked, snapshot=replace(asked.snapshot, node_classes=(), invalid=unreadable)))
    (message,) = (reason.message for reason in packing.pool_reasons if str(reason.subject) == "NodePool other")
    assert message == "EC2NodeClass default is invalid: spec.role: too short"
