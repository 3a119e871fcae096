"""What can be bought: NodePools with their instance types, offerings, DaemonSets and sizes, in arrays. Pure."""
