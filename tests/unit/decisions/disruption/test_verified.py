"""Which commands verification agrees with, one by one, and together."""

from typing import Any

from joinery.decisions.disruption.decision import DecidedCommand, RejectionCause
from joinery.decisions.disruption.validation.verified import verified
from joinery.decisions.scheduling.packing import ExistingPlacement
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START


def _node(name: str) -> tuple[NodeClaim, Any]:
    claim = builders.node_claim(f"claim-{name}", node=name, provider_id=f"aws:///us-east-1a/i-{name}")
    return claim, builders.node(name, provider_id=f"aws:///us-east-1a/i-{name}", cpu="4", memory="16Gi")


def _cluster(*names: str, pods: tuple[Any, ...] = ()) -> Snapshot:
    claims, nodes = zip(*map(_node, names), strict=True)
    return Snapshot(
        now=START,
        node_pools=(builders.node_pool(),),
        node_classes=(builders.node_class(),),
        node_claims=claims,
        nodes=nodes,
        pods=pods,
    )


def _pod(name: str, node: str, cpu: str = "1") -> Any:
    return builders.pod(name, cpu=cpu, node=node, phase="Running", owner="web")


def _empty(*nodes: str) -> DecidedCommand:
    return DecidedCommand(reason=DisruptionReason.EMPTY, message="", retire=tuple(f"claim-{node}" for node in nodes))


def _moving(source: str, to: str, *pods: str) -> DecidedCommand:
    return DecidedCommand(
        reason=DisruptionReason.UNDERUTILIZED,
        message="",
        retire=(f"claim-{source}",),
        existing=(ExistingPlacement(to, f"claim-{to}", pods),),
        pods=pods,
    )


def _judged(
    snapshot: Snapshot, *commands: DecidedCommand, decided: Snapshot | None = None
) -> tuple[list[Any], list[str]]:
    """What is retired by the commands that hold, and why the others do not."""
    answer = verified(Problem(snapshot=snapshot, instance_types={}), commands, decided or snapshot)
    return [command.retire for command in answer.commands], [str(one.objection) for one in answer.rejected]


def test_commands_that_hold_are_kept_in_their_order() -> None:
    """Nothing has changed, and nothing is wrong."""
    snapshot = _cluster("a", "b", "c", pods=(_pod("web-1", "b"),))
    assert _judged(snapshot, _moving("b", "c", "default/web-1"), _empty("a")) == ([("claim-b",), ("claim-a",)], [])


def test_a_node_that_is_gone_ends_its_command_alone() -> None:
    """The others begin."""
    snapshot = _cluster("b")
    valid, dropped = _judged(snapshot, _empty("a"), _empty("b"), decided=_cluster("a", "b"))
    assert (valid, dropped) == ([("claim-b",)], ["claim-a is gone"])


def test_a_pod_that_came_ends_its_command_alone() -> None:
    """Whatever else it was decided by, it was decided without that pod."""
    now = _cluster("a", "b", pods=(_pod("late", "a", "10m"),))
    valid, dropped = _judged(now, _empty("a"), _empty("b"), decided=_cluster("a", "b"))
    assert (valid, dropped) == ([("claim-b",)], ["pod default/late has come to one of its nodes"])


def test_commands_are_checked_with_those_before_them_in_force() -> None:
    """Each fits by itself; together they would put seven CPUs on a node of four. The first of them wins."""
    pods = (_pod("web-1", "a", "3500m"), _pod("web-2", "b", "3500m"))
    snapshot = _cluster("a", "b", "c", pods=pods)
    valid, dropped = _judged(snapshot, _moving("a", "c", "default/web-1"), _moving("b", "c", "default/web-2"))
    assert valid == [("claim-a",)]
    assert len(dropped) == 1


def test_a_command_whose_target_goes_by_another_one_does_not_hold() -> None:
    """A pod cannot move to a node that is given up."""
    snapshot = _cluster("a", "b", pods=(_pod("web-1", "a"),))
    valid, dropped = _judged(snapshot, _empty("b"), _moving("a", "b", "default/web-1"))
    assert valid == [("claim-b",)]
    assert len(dropped) == 1


def test_a_pod_without_a_place_is_a_mistake() -> None:
    """A command that forgets a pod of its node is not right by itself."""
    snapshot = _cluster("a", "b", pods=(_pod("web-1", "a"), _pod("web-2", "a")))
    valid, dropped = _judged(snapshot, _moving("a", "b", "default/web-1"))
    assert valid == []
    assert "does not mention" in dropped[0]


def test_pods_that_have_ended_are_left_out() -> None:
    """The command goes on for the others."""
    decided = _cluster("a", "b", pods=(_pod("web-1", "a"), _pod("web-2", "a")))
    now = _cluster("a", "b", pods=(_pod("web-2", "a"),))
    command = _moving("a", "b", "default/web-1", "default/web-2")
    (kept,) = verified(Problem(snapshot=now, instance_types={}), [command], decided).commands
    assert (kept.pods, kept.existing[0].pods) == (("default/web-2",), ("default/web-2",))


def test_pods_that_wait_are_no_concern_of_a_command() -> None:
    """Provisioning buys for them."""
    waiting = builders.pod("waits", cpu="1")
    assert _judged(_cluster("a", "b", pods=(waiting,)), _empty("a")) == ([("claim-a",)], [])


def test_it_is_said_whether_nodes_or_places_have_changed() -> None:
    """In Karpenter's words, for Events: its nodes are not what they were (``churn``), or its pods have no place."""
    decided = _cluster("a", "b", "c", pods=(_pod("web-1", "b"),))
    now = _cluster("b", "c", pods=(_pod("web-1", "b"), _pod("large", "c", "3500m")))
    commands = [_empty("a"), _moving("b", "c", "default/web-1")]
    answer = verified(Problem(snapshot=now, instance_types={}), commands, decided)
    assert [one.cause for one in answer.rejected] == [RejectionCause.CHURN, RejectionCause.SCHEDULING]
