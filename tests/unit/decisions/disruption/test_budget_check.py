"""Which of a decision's commands the budgets of NodePools let start."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.budget_check import BudgetCheck, admit
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.nodes import NodeView
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster

DRIFTED, EMPTY, UNDERUTILIZED = DisruptionReason.DRIFTED, DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED


def _asked(*pools: Any, nodes: int = 10, **options: Any) -> tuple[DisruptionProblem, tuple[NodeView, ...]]:
    """A problem with so many nodes in each pool, named after it and their number."""
    cluster = Cluster(pools=list(pools))
    for pool in pools:
        for index in range(nodes):
            cluster.machine(f"{pool.metadata.name}-{index}", pool=pool.metadata.name)
    problem = cluster.problem(**options)
    return problem, candidates(problem).nodes


def _command(*nodes: str, reason: DisruptionReason = EMPTY) -> DecidedCommand:
    return DecidedCommand(reason=reason, message="", retire=tuple(f"claim-{node}" for node in nodes))


def _admitted(asked: tuple[DisruptionProblem, tuple[NodeView, ...]], *commands: DecidedCommand) -> list[int]:
    """The numbers of the commands that are admitted."""
    admitted = admit(commands, *asked)
    return [commands.index(command) for command in admitted.commands]


def test_commands_are_admitted_in_their_order_while_the_budget_lasts() -> None:
    """Two of ten by a budget of 20 %; the others are held, with the budget's words."""
    asked = _asked(builders.node_pool(budgets=[{"nodes": "20%"}]))
    commands = [_command(f"default-{index}") for index in range(3)]
    admitted = admit(commands, *asked)
    assert admitted.commands == tuple(commands[:2])
    budget = "the budget 20% allows 2 of 10 nodes, and 0 are leaving or not ready"
    message = f"NodePool default: {budget}; commands before it take 2"
    (rejected,) = admitted.rejected
    assert (rejected.command, rejected.objection) == (commands[2], Objection(ObjectionCode.BUDGET, message))


def test_a_command_is_admitted_whole_or_not_and_a_smaller_one_after_it_may_be() -> None:
    """Each is right by itself, so one without room does not hold up the others."""
    asked = _asked(builders.node_pool(budgets=[{"nodes": "3"}]))
    commands = [
        _command("default-0", "default-1"),
        _command("default-2", "default-3"),
        _command("default-4"),
        _command("default-5"),
    ]
    assert _admitted(asked, *commands) == [0, 2]
    rejected = admit(commands, *asked).rejected
    assert [one.command for one in rejected] == [commands[1], commands[3]]
    assert rejected[0].objection.message.endswith("; commands before it take 2; its command takes 2")


def test_every_pool_of_a_command_must_have_room() -> None:
    """What is not admitted takes nothing from the pools that would have had some."""
    asked = _asked(builders.node_pool("a", budgets=[{"nodes": "1"}]), builders.node_pool("b", budgets=[{"nodes": "0"}]))
    assert _admitted(asked, _command("a-0", "b-0"), _command("a-1"), _command("b-1")) == [1]


def test_a_node_that_goes_uses_up_the_budgets_of_all_reasons() -> None:
    """Karpenter counts what is disrupted, whatever the cause; a budget limits its own reasons only."""
    asked = _asked(
        builders.node_pool(budgets=[{"nodes": "1", "reasons": ["Drifted"]}, {"nodes": "3", "reasons": ["Empty"]}])
    )
    commands = [
        _command("default-0"),
        _command("default-1", reason=DRIFTED),
        _command("default-2", reason=UNDERUTILIZED),
        _command("default-3"),
        _command("default-4", reason=UNDERUTILIZED),
    ]
    assert _admitted(asked, *commands) == [0, 2, 3, 4]


def test_nodes_that_are_disrupted_already_count() -> None:
    """Those that leave, and those that are not ready."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "3"}])])
    cluster.machine("leaving", deleted=START)
    cluster.machine("broken", node={"ready": False})
    for name in "ab":
        cluster.machine(name)
    problem = cluster.problem()
    assert _admitted((problem, candidates(problem).nodes), _command("a"), _command("b")) == [0]


def test_who_ignores_budgets_may_do_everything() -> None:
    """That asks what the cluster could cost."""
    pool = builders.node_pool(budgets=[{"nodes": "0"}])
    assert _admitted(_asked(pool), _command("default-0")) == []
    assert _admitted(_asked(pool, ignore_budgets=True), _command("default-0", "default-1")) == [0]


def test_a_command_may_be_fitted_to_what_is_left() -> None:
    """Whoever makes commands may ask how large one can be."""
    budgets = BudgetCheck(*_asked(builders.node_pool(budgets=[{"nodes": "3"}])))
    assert budgets.left("default", EMPTY) == 3
    budgets.take(_command("default-0", "default-1"))
    assert budgets.left("default", UNDERUTILIZED) == 1
    budgets.take(_command("default-2", "default-3"))
    assert budgets.left("default", EMPTY) == 0
    assert budgets.left("gone", EMPTY) == 0


#: Names of nodes of two pools, by numbers; a command takes some of them, for a reason.
_NODES = [f"{pool}-{index}" for pool in "ab" for index in range(6)]
_COMMANDS = st.lists(
    st.tuples(st.sets(st.sampled_from(_NODES), min_size=1, max_size=4), st.sampled_from([EMPTY, DRIFTED])), max_size=8
)


@given(wanted=_COMMANDS, share=st.integers(0, 100), drift=st.integers(0, 6))
def test_no_sequence_of_commands_exceeds_a_budget_and_none_is_held_that_had_room(
    wanted: list[tuple[set[str], DisruptionReason]], share: int, drift: int
) -> None:
    """After every prefix, whatever the commands are; a node is in one command."""
    seen: set[str] = set()
    commands = []
    for names, reason in wanted:
        if fresh := sorted(names - seen):
            commands.append(_command(*fresh, reason=reason))
            seen |= names
    pools = [
        builders.node_pool("a", budgets=[{"nodes": f"{share}%"}]),
        builders.node_pool("b", budgets=[{"nodes": "4"}, {"nodes": str(drift), "reasons": ["Drifted"]}]),
    ]
    admitted = admit(commands, *_asked(*pools, nodes=6)).commands
    most = {("a", EMPTY): -(-6 * share // 100), ("a", DRIFTED): -(-6 * share // 100)}
    most |= {("b", EMPTY): 4, ("b", DRIFTED): min(4, drift)}
    taken: Counter[str] = Counter()
    for command in commands:
        asked = Counter(name.split("-")[1] for name in command.retire)
        has_room = all(taken[pool] + count <= most[pool, command.reason] for pool, count in asked.items())
        assert (command in admitted) == has_room
        taken.update(asked if has_room else {})


def test_a_node_that_has_not_drifted_needs_room_of_its_own_in_a_command_for_drift() -> None:
    """It goes along because its pods share what is bought, and budgets for consolidation protect it all the same."""
    closed = {"nodes": "0", "reasons": ["Underutilized"]}
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "3"}, closed])])
    for name in ("a", "b"):
        cluster.machine(name, drifted=True)
    cluster.machine("along")
    problem = cluster.problem()
    asked = problem, candidates(problem).nodes
    assert _admitted(asked, _command("a", "b", reason=DRIFTED)) == [0]
    (rejected,) = admit([_command("a", "along", reason=DRIFTED)], *asked).rejected
    assert rejected.objection.code is ObjectionCode.BUDGET
    assert "the budget 0 for Underutilized allows 0 of 3 nodes" in rejected.objection.message
