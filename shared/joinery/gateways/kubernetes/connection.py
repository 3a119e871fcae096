"""What a request to an API server needs to know: where it is, how it proves itself, and who asks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from joinery.gateways.workers import MOST_WORKERS

if TYPE_CHECKING:
    from urllib3 import PoolManager

#: Connections that a pool keeps: as many as there are threads that ask. urllib3 throws away what is beyond, with its
#: handshake.
CONNECTIONS = MOST_WORKERS


def _nobody() -> None:
    return None


@dataclass(frozen=True)
class Connection:
    """How to reach an API server.

    ``host``: scheme, name and port, to which paths are appended. ``new_pool`` makes a pool of connections, which holds
    the TLS and proxy settings. ``authorization`` gives the value of the Authorization header, or None for a client that
    needs none (a certificate, a server without TLS); it is asked for each request, because tokens expire.
    """

    host: str
    new_pool: "Callable[[], PoolManager]"
    authorization: Callable[[], str | None] = _nobody


def connection(
    host: str, *, authority: str | None = None, authorization: Callable[[], str | None] = _nobody
) -> Connection:
    """A connection without a proxy or a client certificate.

    ``authority``: the certificates, as PEM, of which one must have signed the server's; the machine's own without it.
    """

    def new_pool() -> "PoolManager":
        from urllib3 import PoolManager

        return PoolManager(maxsize=CONNECTIONS, ca_cert_data=authority)

    return Connection(host, new_pool, authorization)
