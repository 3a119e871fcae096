"""From an instance to a node that has its pods, or is given up."""
