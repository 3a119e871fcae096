"""Decisions about disruption for tests of what becomes of them: plain ones, which say what the test wants."""

from collections.abc import Iterable

from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.lifecycle.disrupting.new_commands import as_if_retired, for_moves
from joinery.decisions.lifecycle.state.budgets import PoolNodes, allowed_by_budgets, pool_nodes
from joinery.decisions.planning import plan
from joinery.decisions.scheduling.packing import ExistingPlacement, Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot


def emptying(problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision:
    """Every node without pods goes, one command for each, as far as the budgets of its NodePool allow."""
    snapshot = problem.packing.snapshot
    nodes = snapshot.views
    counted = pool_nodes(nodes)
    commands: list[DecidedCommand] = []
    for name, pool in snapshot.pools_by_name.items():
        room = allowed_by_budgets(pool, DisruptionReason.EMPTY, counted.get(name, PoolNodes()), snapshot.now).allowed
        empty = [node for node in nodes if node.pool == name and _may_go(node) and not _pods_of(node)]
        commands += [_command(DisruptionReason.EMPTY, [node.claim]) for node in empty[:room]]
    return DisruptionDecision(commands=tuple(commands), method="emptying")


class Retiring:
    """The nodes of these claims go together, as soon as all of them may: what their pods need is bought.

    ``reason``: of the command.
    """

    def __init__(self, *names: str, reason: DisruptionReason = DisruptionReason.UNDERUTILIZED) -> None:
        self._names = names
        self._reason = reason

    def __call__(self, problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision:
        snapshot = problem.packing.snapshot
        retired = [node for node in snapshot.views if node.claim in self._names and _may_go(node)]
        if len(retired) < len(self._names):
            return DisruptionDecision()
        after = Problem(
            snapshot=as_if_retired(snapshot, self._names),
            instance_types=problem.packing.instance_types,
            options=problem.packing.options,
        )
        packing = plan(after).packing
        command = _command(
            self._reason, self._names, packing, snapshot, [p for node in retired for p in _pods_of(node)]
        )
        return DisruptionDecision(commands=(command,), method="retiring")


def _may_go(node: NodeView) -> bool:
    return bool(node.claim) and node.is_initialized and not node.is_leaving and not node.replaces


def _pods_of(node: NodeView) -> list[str]:
    return [pod.key for pod in node.pods if is_reschedulable(pod)]


def _command(
    reason: DisruptionReason,
    names: Iterable[str],
    packing: Packing | None = None,
    snapshot: Snapshot | None = None,
    pods: Iterable[str] = (),
) -> DecidedCommand:
    names, moved = tuple(names), tuple(pods)
    if packing is None or snapshot is None:
        return DecidedCommand(reason=reason, message=f"{reason.value}: {', '.join(names)}", retire=names)
    placements = (
        ExistingPlacement(placement.node, placement.node_claim, tuple(pod for pod in placement.pods if pod in moved))
        for placement in packing.existing
    )
    return DecidedCommand(
        reason=reason,
        message=f"{reason.value}: {', '.join(names)}",
        retire=names,
        launches=for_moves(packing, snapshot, names).launches,
        existing=tuple(placement for placement in placements if placement.pods),
        pods=moved,
    )
