"""Nodes on their way: what can be bought, NodeClaims that are written, and the instances that EC2 starts for them."""
