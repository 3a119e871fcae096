"""Attached volumes as a resource of nodes to be bought: pods ask for some, instance types have so many.

A node that exists says in its CSINode how many volumes each driver attaches there. Of a node to be bought only its
instance type is known, and counting attachments like CPU keeps first-fit, the optimizer and the bound within them.
Claims that several pods use are left out: they take one attachment together, which a sum cannot say.
"""

_PREFIX = "attachable-volumes-csi-"
#: How many attachments a node has where nobody says.
NO_LIMIT = 1 << 20


def attachment(driver: str) -> str:
    """The resource that pods with volumes of this CSI driver ask for (Kubernetes' old name for it)."""
    return _PREFIX + driver


def driver_of(resource: str) -> str | None:
    """The CSI driver whose attachments the resource counts; None for any other resource."""
    return resource.removeprefix(_PREFIX) if resource.startswith(_PREFIX) else None
