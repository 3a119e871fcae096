"""What the tests on real answers stand on."""

import pytest

from joinery.aws import Clients


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Clients:
    """Clients with credentials that nobody checks."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    return Clients("us-east-1")
