"""The services that moto does not have, over HTTP: the price list and Savings Plans."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from simulator.awsserver import savingsplans
from simulator.awsserver.account import Account
from simulator.awsserver.pricelist import products

_Answers = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]


@contextmanager
def lacking(account: Account, host: str = "127.0.0.1") -> Iterator[Mapping[str, str]]:
    """Serve inside the ``with``; gives the environment in which clients find it."""
    answers: _Answers = {
        "/": products,
        "/DescribeSavingsPlans": partial(savingsplans.plans, account.savings_plans),
        "/DescribeSavingsPlanRates": partial(savingsplans.rates, account.savings_plans),
    }
    server = ThreadingHTTPServer((host, 0), type("Handler", (_Handler,), {"answers": answers}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    url = "http://{}:{}".format(*server.server_address[:2])
    try:
        yield {"AWS_ENDPOINT_URL_PRICING": url, "AWS_ENDPOINT_URL_SAVINGSPLANS": url}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: _Answers

    def do_POST(self) -> None:  # noqa: N802
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        payload = json.dumps(self.answers[self.path](asked)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
