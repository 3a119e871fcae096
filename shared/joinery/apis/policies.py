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
