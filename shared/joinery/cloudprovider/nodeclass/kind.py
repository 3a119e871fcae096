"""The class that a gateway is handed is any cloud's; this one is made for EC2's."""

from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.nodeclass import NodeClass


def of_ec2(node_class: NodeClass) -> EC2NodeClass:
    """The class as what it is here. Raises ``TypeError``: gateways of two clouds were mixed up."""
    if not isinstance(node_class, EC2NodeClass):
        raise TypeError(f"{node_class.kind} {node_class.metadata.name} is no {EC2NodeClass.kind}")
    return node_class
