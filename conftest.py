"""For tests of every folder: a real Kubernetes API server and control plane, a real browser, and properties without a deadline."""

from hypothesis import settings

pytest_plugins = ("tests.browser.fixtures", "tests.controlplane.fixtures")

# A busy machine is no wrong answer.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
