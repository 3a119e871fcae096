"""Bells: "look now", without data. A lost, late or repeated bell costs time, never correctness."""

from enum import Enum
from typing import Protocol


class Bell(Enum):
    """Which door to wake; the value is the queue's message group."""

    PROVISIONING = "provisioning"
    LIFECYCLE = "lifecycle"


class Doorbell(Protocol):
    def ring(self, bell: Bell) -> None:
        """Wake a door. Rings within one second (one delay slot, for lifecycle) are one. ``UnavailableError``."""
        ...
