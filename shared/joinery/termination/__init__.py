"""How a node is emptied: order, budgets, grace, deadlines. Pure decisions."""
