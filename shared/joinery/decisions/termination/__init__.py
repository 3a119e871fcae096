"""How a node is emptied: the order of its pods, their grace, its deadline, its volumes. Pure decisions."""
