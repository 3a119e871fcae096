"""A server that gives out recorded answers in order."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.connection import connection
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from simulator.clock import Clock


@dataclass
class Script:
    """Answers in order, the last one for ever; what was asked; how long the adapter waited in between."""

    answers: list[tuple[int, dict[str, str], bytes]]
    asked: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    url: str = ""

    @property
    def transport(self) -> Transport:
        """A transport to the server, which waits in no time."""
        return Transport(connection(self.url), sleep=self.waits.append)

    @property
    def cluster(self) -> KubernetesCluster:
        """The adapter over it."""
        return KubernetesCluster(self.transport, now=Clock().now, node_class=EC2NodeClass)


def says(code: int, document: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One answer."""
    return code, headers, json.dumps(document or {}).encode()


def refuses(code: int, message: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """A refusal as the API server words it."""
    return says(code, {"kind": "Status", "status": "Failure", "message": message, "code": code}, **headers)


@contextmanager
def scripted(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[Script]:
    """A server that gives these answers. One with a ``Content_Length`` of more than it has never ends."""
    script = Script(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            script.asked.append(f"{self.command} {self.path}")
            code, headers, body = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            if "Content_Length" not in headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def page(*names: str, more: str = "") -> tuple[int, dict[str, str], bytes]:
    """One page of a list of pods."""
    return says(200, {"metadata": {"continue": more}, "items": [{"metadata": {"name": name}} for name in names]})
