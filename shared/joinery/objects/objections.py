"""Why something is not done now: an ``Objection``. Whoever asks whether it may be done gets ``Objection | None``."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ObjectionCode(StrEnum):
    """Which rule objects. The spelling is part of what users see."""

    # The node itself.
    NOT_INITIALIZED = "NotInitialized"
    LEAVING = "Leaving"
    IN_COMMAND = "InCommand"
    NOMINATED = "Nominated"
    DO_NOT_DISRUPT = "DoNotDisrupt"
    UNPRICED = "Unpriced"
    NOT_REPAID = "NotRepaid"
    # Its NodePool.
    NO_NODE_POOL = "NoNodePool"
    POLICY = "Policy"
    CONSOLIDATE_AFTER = "ConsolidateAfter"
    BUDGET = "Budget"
    STOPPED = "Stopped"
    PAUSED = "Paused"
    LAUNCHES_FAIL = "LaunchesFail"
    ON_DEMAND_SHARE = "OnDemandShare"
    # Its node class.
    CANARY = "Canary"
    # Its pods.
    POD = "Pod"
    POD_DISRUPTION_BUDGET = "PodDisruptionBudget"
    GANG = "Gang"
    # The decision.
    PREFERENCE = "Preference"
    NOT_WORTH_IT = "NotWorthIt"
    NO_PLACE = "NoPlace"
    TIME_LIMIT = "TimeLimit"
    # A command that was decided before: the cluster is not what it was. No node stays for that.
    CHANGED = "Changed"
    # A repair.
    DO_NOT_REPAIR = "DoNotRepair"
    TOO_MANY_BROKEN = "TooManyBroken"


@dataclass(frozen=True, slots=True)
class Objection:
    """``message``: a sentence for people. ``until``: when it ends by itself, if that is known."""

    code: ObjectionCode
    message: str
    until: datetime | None = None

    def __str__(self) -> str:
        """For people."""
        return self.message
