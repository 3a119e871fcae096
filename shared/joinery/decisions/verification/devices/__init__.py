"""Devices that pods claim: whether what the plan puts on a node gets what it claims there. Pure."""
