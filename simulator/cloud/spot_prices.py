"""Spot prices that move: slowly, each pool's by itself, and never above the price on demand.

EC2 sets them by long-term trends in supply and demand, so they change gradually (EC2 User Guide, "Spot Instances"); one
pays the price that is in effect at each hour of an instance ("Billing for Spot Instances").
"""

import math
import random
from dataclasses import dataclass
from datetime import datetime

import msgspec

from joinery.gateways.ec2.catalog.document import Catalog
from joinery.objects.karpenter.labels import ON_DEMAND, SPOT

_HOUR = 3600


@dataclass(frozen=True)
class SpotPrices:
    """``seed``: the same one moves the same prices alike. ``swing``: the most that a price is above or below what was
    recorded, as a share of it.
    """

    seed: int = 0
    swing: float = 0.3

    def factor(self, instance_type: str, zone: str, now: datetime) -> float:
        """What a pool's recorded price is multiplied with. It is the same for an hour."""
        chance = random.Random(f"{self.seed} {instance_type} {zone}")  # noqa: S311 - no secret
        period, phase = chance.uniform(24, 14 * 24), chance.uniform(0, 2 * math.pi)
        hours = int(now.timestamp()) // _HOUR
        return 1 + self.swing * math.sin(phase + 2 * math.pi * hours / period)

    def of(self, catalog: Catalog, now: datetime) -> Catalog:
        """The catalogue at the spot prices of that moment."""
        most = {(o.instance_type, o.zone): o.price for o in catalog.offerings if o.capacity_type == ON_DEMAND}
        return msgspec.structs.replace(
            catalog,
            offerings=tuple(
                offering
                if offering.capacity_type != SPOT
                else msgspec.structs.replace(
                    offering,
                    price=min(
                        offering.price * self.factor(offering.instance_type, offering.zone, now),
                        most.get((offering.instance_type, offering.zone), math.inf),
                    ),
                )
                for offering in catalog.offerings
            ),
        )
