"""What ``explain`` answers: rule by rule, what each NodePool and the nodes had to offer one pod."""

from dataclasses import dataclass

from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, PlacedOffering
from joinery.decisions.scheduling.reason import Reason
from joinery.objects.snapshot.pool_shares import PoolShare


@dataclass(frozen=True, slots=True)
class RuleCount:
    """One rule, in the words of the object that has it,
    and how many instance types or nodes it and those before leave.
    """

    rule: str
    left: int


@dataclass(frozen=True, slots=True)
class PoolExplanation:
    """What a NodePool could do for the pod.

    ``types``: how many instance types its node class gives; ``rules``: in the order in which they are asked, up to the
    first that leaves none. ``offering``: the cheapest node for this pod alone; None where there is none, for these
    ``reasons``.
    """

    node_pool: str
    weight: int
    types: int
    rules: tuple[RuleCount, ...]
    offering: PlacedOffering | None
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class NodesExplanation:
    """What nodes could do for the pod with the plan in place.

    ``nodes``: how many there are; ``fitting``: names of those that keep all rules that must hold. ``preferences``: what
    the pod prefers besides, with how many of those nodes keep it; only where some does not.
    """

    nodes: int
    rules: tuple[RuleCount, ...]
    fitting: tuple[str, ...]
    preferences: tuple[RuleCount, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Where one pod went and what else would have done, or why nothing did.

    ``launch`` or ``existing``: where it is; neither for a pod that stays pending, for these ``reasons``. ``dropped``:
    preferences that were given up for it. ``standing``: the other nodes and claims that exist; ``planned``: the other
    ones of this plan. ``rejected``: NodePools that take no part in the plan at all. ``share``: on demand, of the
    NodePool of its new node, with the plan in place; None where that asks for none.
    """

    pod: str
    launch: Launch | None
    existing: ExistingPlacement | None
    reasons: tuple[Reason, ...]
    dropped: tuple[str, ...]
    standing: NodesExplanation
    planned: NodesExplanation
    pools: tuple[PoolExplanation, ...]
    rejected: tuple[Reason, ...]
    share: PoolShare | None = None
