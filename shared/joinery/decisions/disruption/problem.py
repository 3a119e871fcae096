"""What ``decide`` is asked: a cluster, what can be bought, and what an eviction is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.disruption import CanaryRule
from joinery.objects.policies import TerminateFirst
from joinery.objects.snapshot.offerings import Offering


@dataclass(frozen=True, kw_only=True)
class DisruptionOptions:
    """Policies of a decision about which nodes are deleted or replaced.

    move_price        dollars for the eviction of an ordinary pod; 0 asks what the cluster could cost
    payback           what a command saves must repay its moves within this time
    new_nodes_repay   whether nodes that Joinery launched stay until they have paid for themselves (``repayment``); a
                      NodePool may say otherwise
    ignore_budgets    budgets of NodePools, stops and trials of images do not bind, for asking what the cluster could
                      cost
    spot_to_spot      whether a spot node may be replaced by a cheaper spot node (Karpenter SpotToSpotConsolidation)
    spot_types        from how many instance types such a replacement must be able to choose
    terminate_first   where drifted nodes end before they are replaced, for NodePools that do not say
    canary            how a new image is tried before all nodes move to it, for node classes that do not say; None: not
    time_limit        seconds after which the best decision so far counts; None for no limit
    curve             whether to look also at what other prices of a move would lead to, for people
    """

    move_price: float = 0.01
    payback: timedelta = timedelta(hours=1)
    new_nodes_repay: bool = True
    ignore_budgets: bool = False
    spot_to_spot: bool = True
    spot_types: int = 15
    terminate_first: frozenset[TerminateFirst] = frozenset()
    canary: CanaryRule | None = field(default_factory=lambda: CanaryRule(timedelta(minutes=10)))
    time_limit: float | None = None
    curve: bool = True


@dataclass(frozen=True, kw_only=True)
class DisruptionProblem:
    """What is to be decided.

    packing      the snapshot, what can be bought, and the policies of packing
    options      the policies of disruption
    replicas     how many pods workloads keep, by ``Kind namespace/name``, as far as that is known. Workloads are in no
                 snapshot; against a live cluster their pods are counted (``disruption.moves.replicas_of``)
    sold         the catalogue's offerings of each type: what nodes cost whose node class is not there
    covered      by node, what part of its price commitments pay (``disruption.paid``)
    """

    packing: Problem
    options: DisruptionOptions = field(default_factory=DisruptionOptions)
    replicas: Mapping[str, int] = field(default_factory=dict)
    sold: Mapping[str, Sequence[Offering]] = field(default_factory=dict)
    covered: Mapping[str, float] = field(default_factory=dict)
