"""The bill: what every instance cost from the story's start to its end,
exactly, because prices are constant in time.
"""

from dataclasses import dataclass
from datetime import datetime

from simulator.cloud.cloud import InMemoryCloud


@dataclass(frozen=True, slots=True)
class Item:
    """What one instance cost.

    ``hours``: how long it ran within the story. ``hourly``: its price in $/h. ``still``: whether it still runs at the
    end.
    """

    instance_id: str
    node_pool: str
    instance_type: str
    zone: str
    capacity_type: str
    hours: float
    hourly: float
    still: bool

    @property
    def cost(self) -> float:
        return self.hours * self.hourly


def bill(cloud: InMemoryCloud, instance_ids: list[str], start: datetime) -> tuple[Item, ...]:
    """An item for each instance, in order of launch. EC2 charges until an instance begins to shut down."""
    return tuple(_item(cloud, instance_id, start) for instance_id in instance_ids)


def _item(cloud: InMemoryCloud, instance_id: str, start: datetime) -> Item:
    instance, ends_at = cloud.look(instance_id)
    now = cloud.clock.now()
    until = min(ends_at, now) if ends_at else now
    hours = max(0.0, (until - max(start, instance.launched_at)).total_seconds() / 3600)
    return Item(
        instance_id=instance_id,
        node_pool=(instance.tags or {}).get("karpenter.sh/nodepool", ""),
        instance_type=instance.instance_type,
        zone=instance.zone,
        capacity_type=instance.capacity_type,
        hours=hours,
        hourly=cloud.price(instance_id),
        still=ends_at is None or ends_at > now,
    )
