"""The end of a node: in which order, who comes first, and how its claim ends."""
