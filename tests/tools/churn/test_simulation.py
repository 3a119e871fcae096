"""The simulated day: what comes is bound, what is evicted comes back, and what is bought is paid for."""

from collections.abc import Sequence

import pytest

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.karpenter.disruption import DisruptionReason
from tools.churn.day import HOUR, Day, Job, Service, Template
from tools.churn.karpenter import Karpenter
from tools.churn.market import Market, Terms, market
from tools.churn.rules import Joinery, Never, Rule, WhenEmpty
from tools.churn.scheduler import Scoring
from tools.churn.simulation import Setup, Simulation

_SMALL = Template("small", 500, 1024)
_LARGE = Template("large", 3000, 6144)


@pytest.fixture(scope="module")
def sold() -> Market:
    """Without budgets, so that one node may go of one."""
    return market(Terms(budget="100%", cpus=(2, 4)))


def _day(*services: Service, jobs: Sequence[Job] = (), hours: float = 2) -> Day:
    return Day(services, tuple(jobs), round(hours * HOUR))


def _play(day: Day, sold: Market, rule: Rule) -> Simulation:
    simulation = Simulation(day, sold, rule, Setup(every=300))
    simulation.play()
    return simulation


def test_one_day_under_one_rule_comes_to_one_result(sold: Market) -> None:
    """Nothing is drawn while a day is played."""
    day = _day(Service(_SMALL, ((0, 6), (HOUR, 2))), jobs=[Job(_LARGE, 600, 900)])
    assert _play(day, sold, Joinery()).figures == _play(day, sold, Joinery()).figures


def test_pods_run_from_the_time_their_node_is_there(sold: Market) -> None:
    """Provisioning waits ten seconds for more of them, and a node takes a minute."""
    figures = _play(_day(Service(_SMALL, ((0, 2),))), sold, Never()).figures
    assert figures.waited == 2 * 70
    assert figures.ran == 2 * (2 * HOUR - 70)
    assert figures.launched == 1


def test_an_empty_node_is_paid_for_until_it_is_gone(sold: Market) -> None:
    """After its only job has ended, under the rule for empty nodes; without a rule for ever."""
    day = _day(jobs=[Job(_SMALL, 0, 600)])
    kept, gone = (_play(day, sold, rule).figures for rule in (Never(), WhenEmpty()))
    assert gone.gone[DisruptionReason.EMPTY] == 1
    assert gone.dollars < kept.dollars / 4


@pytest.mark.parametrize("rule", [Joinery, Karpenter])
def test_after_a_scale_down_nodes_go_and_every_pod_runs_on(sold: Market, rule: type[Joinery] | type[Karpenter]) -> None:
    """Evicted pods have successors, which are bound as well."""
    day = _day(Service(_SMALL, ((0, 24), (HOUR, 4))))
    kept, played = _play(day, sold, Never()).figures, _play(day, sold, rule())
    assert played.figures.dollars < kept.dollars
    assert len(played.cluster.pods) == 4
    assert all(pod.node for pod in played.cluster.pods.values())


class _Once(Never):
    """Retires every node, once."""

    is_over = False

    def decide(self, problem: DisruptionProblem) -> Sequence[DecidedCommand]:
        """All of them in one command."""
        names = () if self.is_over else tuple(one.claim.metadata.name for one in candidates(problem).candidates)
        self.is_over = self.is_over or bool(names)
        reason = DisruptionReason.UNDERUTILIZED
        command = DecidedCommand(
            reason=reason, retire=names, launches=(), existing=(), savings=0.1, move_price=0.01, message=""
        )
        return [command] if names else []


def test_an_evicted_job_begins_anew(sold: Market) -> None:
    """What it had done is counted as lost, and it runs for its whole time after that."""
    played = _play(_day(jobs=[Job(_SMALL, 0, 3000)]), sold, _Once())
    figures = played.figures
    assert figures.evictions == 1
    assert figures.lost > 0
    assert figures.ran == 3000 + figures.lost
    assert not played.cluster.pods


@pytest.mark.parametrize(("scoring", "nodes"), [(Scoring.LEAST_ALLOCATED, 2), (Scoring.MOST_ALLOCATED, 1)])
def test_scoring_spreads_or_gathers(sold: Market, scoring: Scoring, nodes: int) -> None:
    """Two nodes have the same room, and two more pods come."""
    day = _day(
        Service(Template("one", 2500, 1024), ((0, 1),)),
        Service(Template("other", 2500, 1024), ((0, 1),)),
        Service(Template("late", 200, 256), ((HOUR, 2),)),
    )
    simulation = Simulation(day, sold, Never(), Setup(scoring=scoring))
    simulation.play()
    late = [pod.node for pod in simulation.cluster.pods.values() if pod.work.template.name == "late"]
    assert len(set(late)) == nodes


def test_karpenter_takes_back_at_once_what_it_has_bought(sold: Market) -> None:
    """Only the product asks whether a node has paid for itself."""
    day = _day(Service(_SMALL, ((0, 12), (1200, 1))), hours=0.6)
    assert _play(day, sold, Karpenter()).figures.young > 0
