"""Why a node is disrupted: the reasons that stand in annotations, conditions, Events and metrics."""

from enum import StrEnum


class DisruptionReason(StrEnum):
    """Why a node goes. The first three are what budgets of NodePools name (Karpenter ``DisruptionReason``)."""

    EMPTY = "Empty"
    UNDERUTILIZED = "Underutilized"
    DRIFTED = "Drifted"
    EXPIRED = "Expired"
    INTERRUPTED = "Interrupted"
    REBALANCE = "Rebalance"
    UNHEALTHY = "Unhealthy"
    #: A replacement whose command was rolled back, and that nobody uses.
    ABANDONED = "Abandoned"
