"""The values of settings that say how much Joinery does of its own accord, and how strictly."""

from enum import StrEnum


class NodeRepair(StrEnum):
    """What becomes of a node that has been unhealthy for too long (``joinery.lifecycle.repair``).

    ``OFF``: nothing. ``REPLACE``: it is replaced. ``REBOOT``: its instance is rebooted once; if that does not help, it
    is replaced.
    """

    OFF = "off"
    REPLACE = "replace"
    REBOOT = "reboot"


class Rebalance(StrEnum):
    """What is done about EC2's rebalance recommendations (``joinery.interruption.rebalance``).

    ``OFF``: they are told. ``DRAIN``: they are treated as a spot warning. ``REPLACE``: a replacement is bought first,
    and the node goes once that is initialised.
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
