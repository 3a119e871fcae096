"""The in-memory cloud: EC2 with pools that run out, what its selectors find, what a region sells."""
