"""What the stack of a cluster is called."""


def stack_name(cluster: str) -> str:
    """One stack a cluster. EKS allows underscores in a cluster's name, CloudFormation none in a stack's."""
    return f"joinery-{cluster.replace('_', '-')}"
