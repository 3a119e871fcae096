"""The state of a cluster as lifecycle and its neighbours see it: objects and instances joined, and what follows."""
