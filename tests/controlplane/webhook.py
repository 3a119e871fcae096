"""A Lambda Function URL for a real API server: its admission reviews become events of a handler.

::

    with function_url(handler) as url, webhooks(plane, url, token):
        ...  # the API server now calls the handler
"""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

from tests.controlplane.objects import MANIFESTS
from tools.controlplane.https import Answer, Call, HttpsServer
from tools.controlplane.plane import ControlPlane

Handler = Callable[[dict[str, Any]], dict[str, Any]]


class Served(Protocol):
    """Somewhere that answers over HTTPS: its address, and the PEM certificate to trust it by."""

    @property
    def url(self) -> str: ...
    @property
    def authority(self) -> bytes: ...


def event(call: Call) -> dict[str, Any]:
    """The Function URL event (payload format 2.0) of a request."""
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": call.path.partition("?")[0],
        "rawQueryString": call.path.partition("?")[2],
        "headers": dict(call.headers),
        "requestContext": {
            "http": {"method": call.method, "path": call.path.partition("?")[0], "sourceIp": "127.0.0.1"}
        },
        "body": call.body.decode(),
        "isBase64Encoded": False,
    }


@contextmanager
def function_url(handler: Handler) -> Iterator[HttpsServer]:
    """Serve a handler of Function URL events over HTTPS. What it raises becomes a 502, as in Lambda."""

    def answer(call: Call) -> Answer:
        try:
            given = handler(event(call))
        except Exception as error:  # Lambda's own boundary: whatever the handler raises
            return 502, json.dumps({"Message": f"Internal Server Error: {error}"}).encode()
        body = given.get("body", "")
        return int(given.get("statusCode", 200)), body.encode() if isinstance(body, str) else json.dumps(body).encode()

    with HttpsServer(answer, now=datetime.now(UTC)) as server:  # noqa: TID251 - certificates need the real time
        yield server


@contextmanager
def webhooks(plane: ControlPlane, server: Served, token: str) -> Iterator[None]:
    """Apply ``manifests/webhook.yaml`` for that server, and take it away afterwards."""
    authority = base64.b64encode(server.authority).decode()
    url = f"{server.url}/{token}"
    manifest = (MANIFESTS / "webhook.yaml").read_text()
    here = manifest.replace("url: https://FUNCTION-URL-HOST/TOKEN", f"url: {url}\n      caBundle: {authority}")
    plane.kubectl("apply", "-f", "-", stdin=here)
    try:
        yield
    finally:
        plane.kubectl("delete", "-f", "-", stdin=here)
