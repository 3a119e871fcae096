"""Who the doors are in a cluster: the groups that their IAM roles are mapped to, and that rbac.yaml names."""

#: The group of all doors.
GROUP = "joinery"
#: Those that talk to the cluster, as the names of their functions begin.
DOORS = ("Provisioning", "Interruption", "Expiration", "Disruption", "Lifecycle")


def groups_of(door: str) -> tuple[str, ...]:
    """The groups of a door: what all doors may do, and what it may do beside."""
    return GROUP, f"{GROUP}-{door.lower()}"
