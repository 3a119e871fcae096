"""Makes clusters up: workloads are packed on nodes, and then most of the pods go."""
