"""Which nodes to retire of our own will. Pure decisions."""
