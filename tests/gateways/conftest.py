"""The cluster and AWS for the contract suites of the gateways.

The cluster comes in three forms: the simulator's in the process, the adapter over the simulator's HTTP server, and the
adapter over a real API server under the roles that a user applies. Whatever holds for one must hold for all: this is
what makes a test on the simulator worth something.

AWS is moto in server mode, one server a worker, empty for every test.
"""

import os
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest
from moto.server import ThreadedMotoServer

from simulator.awsserver.account import REGION, Account
from tests.gateways import clusters

_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
_REAL = pytest.mark.xdist_group("api_server")


@pytest.fixture(params=["memory", "served", pytest.param("real", marks=_REAL)])
def form(request: pytest.FixtureRequest) -> Iterator[clusters.Form]:
    """One form of the cluster gateway over an empty cluster."""
    match request.param:
        case "memory":
            yield clusters.InMemory()
        case "served":
            with clusters.served() as over_http:
                yield over_http
        case _:
            with clusters.real(request.getfixturevalue("joinery_api_server")) as over_kubernetes:
                yield over_kubernetes


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
