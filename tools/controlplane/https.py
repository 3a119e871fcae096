"""An HTTPS server on this machine that an API server trusts:
what an admission webhook needs and Lambda's URL is elsewhere.
"""

import datetime
import ipaddress
import ssl
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ADDRESS = "127.0.0.1"
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Call:
    """One request: path with its leading slash, headers in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = tuple[int, bytes]


class HttpsServer:
    """Serves ``answer`` (status code and JSON body) by threads, inside a ``with``."""

    def __init__(self, answer: Callable[[Call], Answer], *, now: datetime.datetime, names: Sequence[str] = ()) -> None:
        """``names``: DNS names that its certificate is good for, beside this machine's address."""
        key, certificate = _self_signed(now, names)
        #: PEM: what the ``caBundle`` of a webhook configuration holds, before base64.
        self.authority = certificate
        self._server = _Server((ADDRESS, 0), _handler(answer))
        self._server.daemon_threads = True
        self._server.socket = _context(key + certificate).wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"https://{ADDRESS}:{self.port}"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> "HttpsServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hung up, at its own timeout or end, is no error of ours."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _handler(answer: Callable[[Call], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:  # noqa: N802
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            code, payload = answer(Call("POST", self.path, headers, body))
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: object) -> None:
            """The API server's calls are the caller's to record."""

    return Handler


def _context(chain: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.pem"
        path.write_bytes(chain)
        context.load_cert_chain(path)
    return context


def _self_signed(now: datetime.datetime, names: Sequence[str]) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ADDRESS)])
    reached_as = [x509.IPAddress(ipaddress.ip_address(ADDRESS)), *(x509.DNSName(each) for each in names)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectAlternativeName(reached_as), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, certificate.public_bytes(serialization.Encoding.PEM)
