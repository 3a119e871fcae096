"""The public names of Function URLs, for an API server on this machine.

The webhook configuration names ``https://ID.lambda-url.REGION.on.aws``, as in AWS. The API server reaches that through
a proxy (``HTTPS_PROXY``), which leads every name to one TLS server; its authority is all that the API server trusts
(``SSL_CERT_FILE``). What arrives there goes on to ministack, which knows the function by the name.
"""

import http.client
import select
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from tools.controlplane.https import Answer, Call, HttpsServer

_ANSWER_SECONDS = 30
_CHUNK = 65536


@dataclass(frozen=True)
class Front:
    """``proxy``: its URL. ``authority``: the PEM certificate by which the names behind it are trusted."""

    proxy: str
    authority: bytes


@contextmanager
def front(gateway: str, region: str) -> Iterator[Front]:
    """Serve inside the ``with``. ``gateway``: host and port of ministack."""

    def forwarded(call: Call) -> Answer:
        connection = http.client.HTTPConnection(gateway, timeout=_ANSWER_SECONDS)
        try:
            connection.request(call.method, call.path, call.body, {**call.headers, "connection": "close"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    names = (f"*.lambda-url.{region}.on.aws",)
    now = datetime.now(UTC)  # noqa: TID251 - certificates need the real time
    with HttpsServer(forwarded, now=now, names=names) as server, _proxy(server.port) as proxy:
        yield Front(proxy, server.authority)


@contextmanager
def _proxy(port: int) -> Iterator[str]:
    """An HTTP proxy that leads every CONNECT to one port of this machine."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline() not in (b"\r\n", b""):
                pass  # the CONNECT line and its headers: whatever they ask for, there is one place
            with socket.create_connection(("127.0.0.1", port)) as server:
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                _join(self.connection, server)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as proxy:
        proxy.daemon_threads = True
        thread = threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
        proxy.shutdown()
        thread.join()


def _join(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes both ways until either side ends."""
    across = {one: other, other: one}
    while True:
        ready, _, _ = select.select(list(across), [], [])
        for side in ready:
            data = side.recv(_CHUNK)
            if not data:
                return
            across[side].sendall(data)
