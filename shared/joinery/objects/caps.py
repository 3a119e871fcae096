"""The caps of a run: what keeps a Deployment that runs away from becoming a bill."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Caps:
    """What one run may buy, and what it has bought so far.

    max_launches   how many nodes; None for any number
    max_hourly     for how many $/h; None for any price
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
