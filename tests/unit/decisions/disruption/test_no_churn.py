"""Decisions about one cluster come to rest: what one of them bought, the next ones do not throw away.

Decision 60 says why. Nothing but Joinery changes these clusters, so whatever is disrupted is of its own making.
"""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.kubernetes.quantity import texts
from simulator import builders
from simulator.disrupted import carried_out
from tests.properties import examples
from tests.unit.decisions.disruption.clusters import Cluster, on

#: Vaguely as dear as they are large, so that there is a better one for nearly every load.
TYPES = tuple(
    builders.instance_type(name, price=price, spot=None)
    for name, price in (
        ("m7a.medium", 0.10),
        ("m7a.large", 0.20),
        ("m7i.large", 0.21),
        ("m7a.xlarge", 0.40),
        ("c7a.xlarge", 0.33),
        ("r7a.large", 0.25),
        ("m7a.2xlarge", 0.78),
    )
)
_CPU, _MEMORY = (100, 250, 500, 1000, 1500), (256, 512, 1024, 3000)
#: More than any of these clusters needs, and far fewer than a cluster that does not come to rest would take.
_PASSES = 30


def _cluster(random: Random) -> DisruptionProblem:
    """Up to five nodes of any type, each as full as chance has it. Nothing has to be quiet before it may go."""
    pool = builders.node_pool(budgets=[{"nodes": "100%"}], consolidateAfter="0s")
    cluster = Cluster(pools=[pool], types=TYPES)
    for number in range(random.randint(2, 5)):
        kind, name = random.choice(TYPES[1:]), f"n{number}"
        cpu, memory = kind.allocatable["cpu"], kind.allocatable["memory"]
        pods = []
        for index in range(random.randint(0, 6)):
            asked = random.choice(_CPU), random.choice(_MEMORY)
            cpu, memory = cpu - asked[0], memory - asked[1] * 2**20
            if cpu < 0 or memory < 0:
                break
            pods.append(on(f"p{number}-{index}", name, cpu=f"{asked[0]}m", memory=f"{asked[1]}Mi"))
        room = texts(kind.allocatable)
        node = {"cpu": room["cpu"], "memory": room["memory"], "pods": int(room["pods"])}
        cluster.machine(name, pods, instance_type=kind.name, node=node)
    return cluster.problem()


@given(seed=st.integers(0, 2**32))
@examples(10)
def test_a_second_pass_right_after_the_first_finds_nothing(seed: int) -> None:
    """What was bought has still to be repaid, and what was kept is worth its price beside it."""
    problem = _cluster(Random(seed))
    first = decide(problem)
    second = decide(carried_out(problem, first.commands))
    assert second.commands == ()
    assert second.before == pytest.approx(first.after)


@given(seed=st.integers(0, 2**32))
@examples(10)
def test_a_decision_is_the_same_where_its_answers_are_known(seed: int) -> None:
    """A warm process decides as a cold one does; what the optimizer found stays with what was read of the cluster."""
    problem = _cluster(Random(seed))
    cold, warm = decide(problem), decide(problem)
    assert warm == cold


@given(seed=st.integers(0, 2**32), most=st.integers(1, 3), hours=st.integers(0, 1))
@examples(6)
def test_passes_over_an_unchanging_workload_end_and_all_their_moves_are_repaid(
    seed: int, most: int, hours: int
) -> None:
    """Whatever part of its commands a budget lets begin, and whichever of the allowed types EC2 gives.

    ``hours``: between two passes. After an hour, the payback time, nothing holds the nodes that were bought.
    """
    random = Random(seed)
    problem = _cluster(random)
    begun = decide(problem).before
    moved = 0.0
    for _ in range(_PASSES):
        decision = decide(problem)
        if not decision.commands:
            break
        commands = decision.commands[:most]
        moved += sum(command.move_price for command in commands)
        problem = _later(
            carried_out(problem, commands, given=lambda launch: random.choice(launch.instance_types)), hours
        )
        # Savings stay, so they bound the moves of all passes together.
        assert moved <= begun - decide(problem).before + 1e-6
    assert not decide(problem).commands


def _later(problem: DisruptionProblem, hours: int) -> DisruptionProblem:
    snapshot = problem.packing.snapshot
    later = replace(snapshot, now=snapshot.now + timedelta(hours=hours))
    return replace(problem, packing=replace(problem.packing, snapshot=later))
