"""The packing core: which nodes to buy for which pods. Pure."""
