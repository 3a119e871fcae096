"""AWS for the adapters: moto in server mode, one server a worker, empty for every test."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.request import Request, urlopen

import pytest
from moto.server import ThreadedMotoServer

REGION = "us-east-1"
ACCOUNT = "123456789012"
NOW = datetime(2026, 8, 24, 9, 0, tzinfo=UTC)

_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}


@pytest.fixture(scope="session")
def moto_server() -> Iterator[str]:
    """The address of a moto server of this worker's own, which boto3 finds through the environment."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    before = dict(os.environ)
    os.environ.update(_CREDENTIALS, AWS_ENDPOINT_URL=address)
    yield address
    os.environ.clear()
    os.environ.update(before)
    server.stop()


@pytest.fixture
def aws(moto_server: str) -> str:
    """An empty account. The server's address."""
    with urlopen(Request(f"{moto_server}/moto-api/reset", method="POST")):
        return moto_server
