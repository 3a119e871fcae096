"""From the node class that the gateway's Protocol names to the one that this cloud has made."""

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.nodeclass import NodeClass


def of_ec2(node_class: NodeClass) -> EC2NodeClass:
    """The class, which is an EC2NodeClass.

    Raises ``TypeError`` if it is not: then gateways of two clouds were mixed up.
    """
    if not isinstance(node_class, EC2NodeClass):
        raise TypeError(f"{node_class.kind} {node_class.metadata.name} is no {EC2NodeClass.kind}")
    return node_class
