"""What Joinery does of its own accord only where a user asks for it: the values of those settings."""

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
