"""What the installer decides: which objects a cluster is given, in which order, and what is said about it."""
