"""What the tests on real shapes stand on: the command line as its own tests call it, and AWS clients."""

import pytest

from joinery.gateways.aws import Clients
from tests.cli.conftest import run, write
from tests.functional.conftest import stand

__all__ = ["clients", "run", "stand", "write"]


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Clients:
    """Clients with credentials that nobody checks."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    return Clients("us-east-1")
