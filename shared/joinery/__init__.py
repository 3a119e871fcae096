"""Just-in-time nodes for Amazon EKS, decided outside the cluster."""
