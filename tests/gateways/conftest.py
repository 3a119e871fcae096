"""AWS for the adapters: moto in server mode, one server a worker, empty for every test."""

import os
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest
from moto.server import ThreadedMotoServer

from simulator.awsserver.account import REGION, Account

_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[str, Account]]:
    """A moto server of this worker's own, which boto3 finds through the environment: its address and its account."""
    account = Account()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ.update(_CREDENTIALS, AWS_ENDPOINT_URL=f"http://{host}:{port}")
    with account.corrected():
        yield f"http://{host}:{port}", account
    os.environ.clear()
    os.environ.update(before)
    server.stop()


@pytest.fixture
def aws(served: tuple[str, Account]) -> str:
    """An empty account. The server's address."""
    address, account = served
    account.reset()
    with urlopen(Request(f"{address}/moto-api/reset", method="POST")):
        return address


@pytest.fixture
def account(aws: str, served: tuple[str, Account]) -> Account:
    """The empty account itself, to fill and to run out of."""
    return served[1]
