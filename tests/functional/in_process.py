"""The adapter's own requests to a simulated API server, without a socket."""

from typing import Any

import msgspec

from joinery.gateways.kubernetes.api_errors import Response
from joinery.gateways.kubernetes.transport import Transport
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.kubeapi import KubernetesApi


class InProcess(Transport):
    """A transport whose lists take no bytes: each counts as short, so that nothing is watched."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self._api = KubernetesApi(cluster)
        self.clock = lambda: 0.0
        self.bytes_read = 0

    def apart(self) -> Transport:
        """There are no connections to keep apart."""
        return self

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        """The answer of the server."""
        document = {} if body is None else msgspec.json.decode(msgspec.json.encode(body))
        code, answer = self._api.answer(method, path, document)
        return Response(code, msgspec.json.encode(answer))
