"""The values of settings and annotations that say how much Joinery does of its own accord, and how strictly."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum


class NodeRepair(StrEnum):
    """What becomes of a node that has been unhealthy for too long (``joinery.decisions.lifecycle.repair``).

    ``OFF``: nothing. ``REPLACE``: it is replaced. ``REBOOT``: its instance is rebooted once; if that does not help, it
    is replaced.
    """

    OFF = "off"
    REPLACE = "replace"
    REBOOT = "reboot"


class Steering(StrEnum):
    """How the pods that a new node was bought for get there (``joinery.decisions.lifecycle.joining.steering``).

    ``TAINT``: the node is kept for them by a taint that only they tolerate. ``OFF``: kube-scheduler decides by its own
    scores, and Joinery needs no right to patch pods.
    """

    TAINT = "taint"
    OFF = "off"


class Rebalance(StrEnum):
    """What is done about EC2's rebalance recommendations (``joinery.decisions.interruption.rebalance``).

    ``OFF``: their nodes get an Event. ``DRAIN``: they are treated as a spot warning. ``REPLACE``: a replacement is
    bought first, and the node goes once that is initialised.
    """

    OFF = "off"
    DRAIN = "drain"
    REPLACE = "replace"


class PreferencePolicy(StrEnum):
    """What pods' preferences count (Karpenter settings, PREFERENCE_POLICY).

    ``RESPECT``: they are kept where that is possible. ``IGNORE``: money comes first.
    """

    RESPECT = "Respect"
    IGNORE = "Ignore"


class MinValuesPolicy(StrEnum):
    """What becomes of minValues that cannot be met (Karpenter settings, MIN_VALUES_POLICY).

    ``STRICT``: nothing is bought. ``BEST_EFFORT``: they are lowered to what is possible.
    """

    STRICT = "Strict"
    BEST_EFFORT = "BestEffort"


class OnDemandPrices(StrEnum):
    """Where on-demand prices come from: AWS's price list, or those of us-east-1 that come with the release."""

    LISTED = "listed"
    ESTIMATED = "estimated"


class MetricsDetail(StrEnum):
    """Of what there are metrics (``joinery.decisions.metrics.definitions``).

    ``CLUSTER``: of the cluster. ``NODE_POOLS``: of its NodePools too.
    """

    CLUSTER = "cluster"
    NODE_POOLS = "node-pools"


class TerminateFirst(StrEnum):
    """Where a drifted node is ended before its replacement is launched
    (``joinery.decisions.disruption.terminate_first``).

    ``STATIC``: in a static NodePool whose ``limits.nodes`` has no room for a node more. ``RESERVED``: in a capacity
    reservation that has no room for a node more. ``SCARCE``: where its pods have no other place.
    """

    STATIC = "static"
    RESERVED = "reserved"
    SCARCE = "scarce"


def terminate_first_of(text: str) -> frozenset[TerminateFirst]:
    """``off``, or some of the words above, separated by commas. Raises ``ValueError`` for anything else."""
    words = [word.strip() for word in text.split(",")]
    if words == ["off"]:
        return frozenset()
    unknown = [word for word in words if word not in list(TerminateFirst)]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is neither off nor one of {', '.join(TerminateFirst)}")
    return frozenset(map(TerminateFirst, words))


@dataclass(frozen=True, kw_only=True)
class Caps:
    """What one run may buy, and what it has bought so far.

    max_launches   how many nodes; None for any number
    max_hourly     for how many $/h by AWS's list; None for any price
    launched       how many nodes the run has launched, or written claims for, so far
    hourly         what these cost, in $/h
    """

    max_launches: int | None = None
    max_hourly: float | None = None
    launched: int = 0
    hourly: float = 0.0

    def after(self, instances: int, hourly: float) -> "Caps":
        """The same caps once so many more instances are bought, for so many $/h together."""
        return replace(self, launched=self.launched + instances, hourly=self.hourly + hourly)


@dataclass(frozen=True)
class OnDemandShare:
    """How many pods of a workload run on demand at least, or how many nodes of a NodePool are, in the words of EC2 Auto
    Scaling's instances distribution.

    base       so many of them first
    percent    of those beyond the base, so many in a hundred, rounded up
    """

    base: int
    percent: int

    def of(self, count: int) -> int:
        """How many of so many are on demand."""
        beyond = max(0, count - self.base)
        return min(count, self.base) + -(-self.percent * beyond // 100)

    def __str__(self) -> str:
        """As it is written."""
        parts = [str(self.base)] if self.base or not self.percent else []
        return " + ".join([*parts, f"{self.percent}%"] if self.percent else parts)


def on_demand_share_of(text: str) -> OnDemandShare:
    """``2``, ``30%`` or ``2 + 30%``. Raises ``ValueError`` for anything else."""
    match = _ON_DEMAND_SHARE.fullmatch(text.strip())
    share = OnDemandShare(int(match[1] or 0), int(match[2] or match[3] or 0)) if match else None
    if share is None or share.percent > 100:
        raise ValueError(f"{text!r} is neither a number, such as 2, nor a percentage, such as 30%, nor both: 2 + 30%")
    return share


SIZES = ("cheapest", "balanced", "small")
CHEAPEST, BALANCED = SIZES[:2]
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?)%")
_ON_DEMAND_SHARE = re.compile(r"([0-9]{1,6})(?: *\+ *([0-9]{1,3})%)?|([0-9]{1,3})%")


def share_of(text: str) -> float:
    """``25%`` as 0.25. Raises ``ValueError`` for what is no share between 0 and 100 percent."""
    match = _PERCENT.fullmatch(text.strip())
    share = float(match[1]) / 100 if match else 0.0
    if not 0 < share <= 1:
        raise ValueError(f"{text!r} is no share: expected a percentage above 0% and up to 100%")
    return share
