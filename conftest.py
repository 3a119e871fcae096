"""Fixtures that tests of every folder may ask for: a real Kubernetes API server and control plane."""

pytest_plugins = ("tests.controlplane.fixtures",)
