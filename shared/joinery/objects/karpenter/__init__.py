"""Karpenter's custom resources: NodePool, NodeClaim and EC2NodeClass, and what was before them."""
