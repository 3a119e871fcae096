"""A cluster that has nothing to gain is known before anything is solved, and no other is taken for one."""

from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.disruption.candidates import Candidate, Candidates, candidates
from joinery.decisions.disruption.consolidation.at_rest import is_at_rest
from joinery.decisions.disruption.consolidation.choosing import chosen
from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.optimizer.effort import Effort
from joinery.objects.objections import ObjectionCode
from simulator import builders
from tests.properties import examples
from tests.unit.decisions.disruption.clusters import Cluster, on

#: 4 vCPUs for $0.40/h, and half of that for half the price.
LARGE = builders.instance_type("m7a.xlarge", price=0.40, spot=None)
SMALL = builders.instance_type("m7a.large", price=0.20, spot=None)
#: All that a node of 4 vCPUs has for pods.
ALL_MILLICORES = 4000


def _cluster(*millicores: int, drifted: bool = False) -> Cluster:
    """A node of 4 vCPUs for each, whose pod asks for so much."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])], types=(LARGE, SMALL))
    for number, cpu in enumerate(millicores):
        name = f"n{number}"
        pods = [on(f"p-{name}", name, cpu=f"{cpu}m", memory="1Gi")] if cpu else []
        cluster.machine(name, pods, drifted=drifted)
    return cluster


def _going(problem: DisruptionProblem) -> tuple[Candidates, list[Candidate]]:
    found = candidates(problem)
    return found, [candidate for candidate in found.candidates if candidate.reasons]


def _is_at_rest(cluster: Cluster) -> bool:
    problem = cluster.problem()
    return is_at_rest(problem, *_going(problem), Effort())


def test_full_nodes_at_the_price_of_new_ones_are_at_rest() -> None:
    """Nothing is bought or moved, the bound is what stands, and each node is said to be worth its price."""
    cluster = _cluster(*[ALL_MILLICORES] * 3)
    decision = decide(cluster.problem())
    assert _is_at_rest(cluster)
    assert not decision.commands
    assert decision.lower_bound == decision.before
    assert {node.objection.code for node in decision.staying} == {ObjectionCode.NOT_WORTH_IT}


def test_room_for_a_whole_node_is_something_to_gain() -> None:
    """However little the others leave unused."""
    assert not _is_at_rest(_cluster(ALL_MILLICORES, 1900, 1900))


def test_an_empty_node_is_something_to_gain() -> None:
    """Nobody needs it."""
    assert not _is_at_rest(_cluster(ALL_MILLICORES, 0))


def test_a_drifted_node_must_go_however_full_it_is() -> None:
    """What that costs is another question."""
    assert not _is_at_rest(_cluster(ALL_MILLICORES, drifted=True))


def test_what_a_few_nodes_could_gain_all_of_hundreds_can() -> None:
    """So a few are looked at first."""
    assert not _is_at_rest(_cluster(*[1900] * 250))
    assert not _is_at_rest(_cluster(*[ALL_MILLICORES] * 230, 500, *[ALL_MILLICORES] * 20, 500))
    assert _is_at_rest(_cluster(*[ALL_MILLICORES] * 250))


@given(millicores=st.lists(st.integers(1, ALL_MILLICORES), min_size=1, max_size=5))
@examples(60)
def test_what_is_at_rest_the_search_leaves_as_it_is(millicores: list[int]) -> None:
    """Whatever the pods ask for."""
    problem = _cluster(*millicores).problem()
    found, going = _going(problem)
    if is_at_rest(problem, found, going, Effort()):
        assert chosen(problem, found, going, Effort(), Effort()).choice.keep.all()
