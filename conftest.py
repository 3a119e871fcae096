"""Fixtures that tests of every folder may ask for: a real Kubernetes API server and control plane, a real browser."""

pytest_plugins = ("tests.browser.fixtures", "tests.controlplane.fixtures")
