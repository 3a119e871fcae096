"""A placement group, as plans know it (EC2 User Guide, "Placement groups")."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlacementGroup:
    """``strategy``: cluster, spread or partition. ``partitions``: how many it has; 0 for other strategies."""

    id: str
    name: str
    strategy: str
    partitions: int = 0

    @property
    def partition_numbers(self) -> tuple[str, ...]:
        """Of its partitions, as labels have them."""
        return tuple(str(number) for number in range(1, self.partitions + 1))
