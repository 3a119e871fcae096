"""How many pods each topology rule counts in each domain, and what those counts allow. Pure."""
