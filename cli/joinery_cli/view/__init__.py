"""A plan as a person looks at it, whatever it is shown on: kinds of nodes, workloads, costs, figures."""
