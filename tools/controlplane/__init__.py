"""A real Kubernetes control plane on this machine, for tests and measurements: no kubelet, no container."""
