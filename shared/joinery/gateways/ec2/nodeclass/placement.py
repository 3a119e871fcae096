"""A placement group, as plans know it (EC2 User Guide, "Placement groups")."""

from dataclasses import dataclass

#: How many partitions a group may have in a zone (EC2 User Guide, "Placement strategies").
MOST_PARTITIONS = 7


@dataclass(frozen=True, slots=True)
class PlacementGroup:
    """``id``, ``strategy`` (cluster, spread or partition): empty where EC2 was not asked. ``partitions``: how many it
    has; 0 for other strategies.
    """

    id: str
    name: str
    strategy: str
    partitions: int = 0

    @property
    def partition_numbers(self) -> tuple[str, ...]:
        """Of its partitions, as labels have them."""
        return tuple(str(number) for number in range(1, self.partitions + 1))
