"""AWS's price list, which moto does not have: GetProducts over HTTP,
with the on-demand prices of the sample catalogue.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joinery.objects.karpenter.labels import ON_DEMAND
from simulator.cloud.market import sample


@contextmanager
def price_list(host: str = "127.0.0.1") -> Iterator[str]:
    """Serve inside the ``with``; gives the URL for ``AWS_ENDPOINT_URL_PRICING``."""
    server = ThreadingHTTPServer((host, 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield "http://{}:{}".format(*server.server_address[:2])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def products(asked: dict[str, Any]) -> dict[str, Any]:
    """The answer to GetProducts. All products are of shared tenancy, so for another tenancy the list is empty."""
    fields = {condition["Field"]: condition["Value"] for condition in asked.get("Filters", [])}
    prices = {o.instance_type: o.price for o in sample().offerings if o.capacity_type == ON_DEMAND}
    documents = [product(name, price) for name, price in sorted(prices.items())]
    return {"FormatVersion": "aws_v1", "PriceList": documents if fields.get("tenancy") == "Shared" else []}


def product(instance_type: str, price: float) -> str:
    """An instance type in the price list. ``price``: $/h on demand."""
    dimensions = {"hour": {"unit": "Hrs", "pricePerUnit": {"USD": f"{price:.10f}"}}}
    terms = {"OnDemand": {"term": {"priceDimensions": dimensions}}}
    return json.dumps({"product": {"attributes": {"instanceType": instance_type}}, "terms": terms})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: N802
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        payload = json.dumps(products(asked)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
