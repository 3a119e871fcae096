"""What interruptions of a plan's spot nodes are expected to be, and what a unit of that risk costs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from joinery.decisions.scheduling.interruptions import HOURS_A_MONTH, Risk, risk_of
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Interruptions
from joinery.objects.karpenter.labels import SPOT
from joinery_cli.view.figures import count, money

_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class InterruptionFigures:
    """``risk``: of the plan. ``weight``: what a dollar of it counted as. ``on_demand``: $/h that its spot nodes would
    cost more on demand, where nobody interrupts them. ``premium``: $/h by which the plan is dearer than the one that is
    made without rates; ``spared``: $/h by which its interruptions cost less.
    """

    risk: Risk
    weight: float
    on_demand: float
    premium: float = 0.0
    spared: float = 0.0

    @property
    def monthly(self) -> float:
        """Dollars that interruptions are expected to cost a month."""
        return self.risk.hourly * HOURS_A_MONTH

    @property
    def each(self) -> float:
        """Dollars that an interruption is expected to cost."""
        return self.monthly / self.risk.interrupted if self.risk.interrupted else 0.0

    @property
    def avoided(self) -> float:
        """Dollars for each interruption that on-demand nodes would avoid."""
        return self.on_demand * HOURS_A_MONTH / self.risk.interrupted if self.risk.interrupted else 0.0

    def lines(self) -> Iterator[str]:
        """``Interruptions: 0.4 of 5 spot nodes a month, with 9.2 pods; $0.092 a month expected, at weight 1``, and what
        a unit of it costs.
        """
        risk = self.risk
        if not risk.nodes:
            yield "Interruptions: none, no new node is on spot"
            return
        rates = f"{risk.interrupted:.2g} of {count(risk.nodes, 'spot node')} a month, with {risk.evicted:.2g} pods"
        yield f"Interruptions: {rates}; {money(self.monthly)} a month expected, at weight {self.weight:g}"
        if risk.interrupted:
            yield f"One costs about {money(self.each)}; to avoid one by on-demand nodes costs {money(self.avoided)}"
        if self.premium or self.spared:
            more = f"{money(self.premium * HOURS_A_MONTH)} a month more than without rates"
            yield f"The plan costs {more}, and its interruptions {money(self.spared * HOURS_A_MONTH)} less"

    def document(self) -> Mapping[str, Any]:
        """As the Plan document has it."""
        risk = self.risk
        return {
            "spotNodes": risk.nodes,
            "monthly": round(risk.interrupted, _DIGITS),
            "podsMonthly": round(risk.evicted, _DIGITS),
            "hourly": round(risk.hourly, _DIGITS + 3),
            "weight": self.weight,
            "each": round(self.each, _DIGITS),
            "avoidedByOnDemand": round(self.avoided, _DIGITS),
            "premium": round(self.premium, _DIGITS + 3),
            "spared": round(self.spared, _DIGITS + 3),
        }


def interruption_figures(
    interruptions: Interruptions, packing: Packing, on_demand: Callable[[Launch], float]
) -> InterruptionFigures:
    """Of a plan's new nodes. ``on_demand``: $/h of a launch, were it on demand."""
    on_spot = [launch for launch in packing.launches if launch.offering.capacity_type == SPOT]
    return InterruptionFigures(
        risk=risk_of(packing.launches, interruptions),
        weight=interruptions.weight,
        on_demand=sum(on_demand(launch) - launch.offering.price for launch in on_spot),
        premium=packing.risk_premium,
        spared=packing.risk_spared,
    )
