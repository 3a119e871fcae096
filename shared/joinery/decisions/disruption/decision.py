"""What ``decide`` answers: which nodes go, what replaces them, in which order, and which nodes stay and why."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from joinery.decisions.scheduling.packing import ExistingPlacement, Launch
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection


@dataclass(frozen=True, slots=True)
class StayingNode:
    """A node that stays though something speaks for disrupting it, or that might have been looked at.

    ``node_claim``: its name. ``objection``: why it stays. ``disruption``: what it is kept from; None where it is kept
    from all.
    """

    node_claim: str
    objection: Objection
    disruption: DisruptionReason | None = None


#: A command needs at least so much saving for what it disturbs: 1 / k, where Karpenter fixes k at 2.
THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Balance:
    """A command in the eyes of one Balanced pool.

    ``savings``: the share of the pool's cost that it saves. ``disturbance``: the share of the pool that it disturbs.
    """

    pool: str
    savings: float
    disturbance: float

    @property
    def score(self) -> float:
        """The one over the other: 0 where nothing is saved, without end where nothing is disturbed."""
        if self.savings <= 0:
            return 0.0
        return self.savings / self.disturbance if self.disturbance > 0 else math.inf

    @property
    def is_approved(self) -> bool:
        """Whether the pool agrees."""
        return self.score >= THRESHOLD

    def __str__(self) -> str:
        """Both shares and the score, for people."""
        shares = f"{self.savings:.1%} of its cost saved for {self.disturbance:.1%} of its disruption"
        return f"{shares}, a score of {self.score:.2f}"


@dataclass(frozen=True, kw_only=True)
class DecidedCommand:
    """A command: nodes that go together, because their pods share what replaces them. Right by itself.

    reason       why
    message      the same in a sentence, with what it saves
    retire       names of the NodeClaims that go
    launches     nodes to buy first
    existing     where moved pods go on nodes that stay
    pods         those that are evicted (namespace/name)
    savings      $/h; negative where it is dearer (drift only)
    move_price   dollars that its evictions count as
    terminates_first   whether its nodes end before ``launches`` are bought, in their place
    balances     what the Balanced NodePools whose nodes it takes say of it: all agree
    """

    reason: DisruptionReason
    message: str
    retire: tuple[str, ...]
    launches: tuple[Launch, ...] = ()
    existing: tuple[ExistingPlacement, ...] = ()
    pods: tuple[str, ...] = ()
    savings: float = 0.0
    move_price: float = 0.0
    terminates_first: bool = False
    balances: tuple[Balance, ...] = ()


class RejectionCause(StrEnum):
    """What is not right with a command, in Karpenter's words for the first three (disruption, `ValidationError`)."""

    CHURN = "churn"
    """Its nodes or their pods are not as they were."""
    BUDGET = "budget"
    """How many nodes may go, or a node is kept for a pod."""
    SCHEDULING = "scheduling"
    """Where its pods were to go."""
    MISTAKE = "mistake"
    """The same, in the snapshot that it was decided from: a mistake of Joinery's own, which somebody should see."""
    REPLACEMENT = "replacement"
    """What would be bought in place of its nodes."""
    BALANCE = "balance"
    """What it saves, for what it disturbs."""
    PREFERENCE = "preference"
    """What its pods prefer."""
    TIME = "time"
    """Nothing, as far as there was time to see."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A command that may not start."""

    command: DecidedCommand
    cause: RejectionCause
    objection: Objection


@dataclass(frozen=True)
class Validation:
    """The commands that may start, in their order, and those that may not."""

    commands: tuple[DecidedCommand, ...] = ()
    rejected: tuple[Rejection, ...] = ()


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """After so many evictions (``pods``), ``hourly``: $/h that the cluster costs; ``moves``: $/h that they count as.
    ``is_chosen``: the decision's own.
    """

    pods: int
    hourly: float
    moves: float = 0.0
    is_chosen: bool = False


@dataclass(frozen=True, kw_only=True)
class DisruptionDecision:
    """A whole decision.

    commands      in the order in which they should be carried out: the most saving per dollar of moves first. After
                  any prefix of them every rule holds
    staying       the nodes that stay for a reason, by name of their claims
    mistakes      commands that would have been among them, and break a rule. Their nodes stay
    before, after $/h of all nodes that can be priced
    moves         $/h that the evictions count as, spread over the payback time: ``after`` and these are what
                  ``lower_bound`` is a bound of
    lower_bound   $/h: no final state that can be reached by retiring, keeping and launching costs less, its moves
                  spread over the payback time
    within_budgets  $/h: the same of states that budgets let it reach now; 0 where they keep no command from starting
    gap           how far price and moves may be above that bound: 0.02 is 2 %
    curve         the cheapest for growing numbers of evictions
    method        how it was decided
    limit_struck  whether the time limit ended the search
    prices        $/h by name of the NodeClaim: the summands of ``before``
    eligible      how many nodes might go for each reason, budgets apart
    """

    commands: tuple[DecidedCommand, ...] = ()
    staying: tuple[StayingNode, ...] = ()
    mistakes: tuple[Rejection, ...] = ()
    before: float = 0.0
    after: float = 0.0
    moves: float = 0.0
    lower_bound: float = 0.0
    within_budgets: float = 0.0
    gap: float = 0.0
    curve: tuple[CurvePoint, ...] = field(default_factory=tuple)
    method: str = "none"
    limit_struck: bool = False
    prices: Mapping[str, float] = field(default_factory=dict)
    eligible: Mapping[DisruptionReason, int] = field(default_factory=dict)

    @property
    def cost_of_budgets(self) -> float:
        """$/h of the distance to ``lower_bound`` that is due to budgets: they put it off to later decisions."""
        return max(0.0, self.within_budgets - self.lower_bound)

    @property
    def gap_within_budgets(self) -> float:
        """How far price and moves may be above the best that budgets let it reach now, as a share of that."""
        return (self.after + self.moves) / self.within_budgets - 1 if self.within_budgets > 0 else self.gap
