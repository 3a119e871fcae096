"""An API server with admission in front of it: the adapter's own requests,
some of which are refused as servers word it.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.api_errors import Response
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.world import World
from tests.functional.in_process import InProcess
from tests.functional.stand import Stand

Document = dict[str, Any]
Admission = Callable[[Document, bool], tuple[int, str] | None]
"""Of a NodeClaim to be created, and whether that is a dry run,
the code and the message of a refusal; None lets it pass.
"""

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


class Guarded(InProcess):
    """Requests to a simulated API server, NodeClaims by way of admission."""

    def __init__(self, cluster: InMemoryCluster, admission: Admission) -> None:
        super().__init__(cluster)
        self._admission = admission
        self.dry_runs = 0

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        """The answer of admission, or of the server behind it."""
        document = {} if body is None else json.loads(msgspec.json.encode(body))
        where, _, query = path.partition("?")
        if (method, where) == ("POST", CLAIMS):
            self.dry_runs += bool(query)
            refused = self._admission(document, bool(query))
            if refused is not None:
                return Response(refused[0], msgspec.json.encode({"code": refused[0], "message": refused[1]}))
        return super().ask(method, path, body, **options)


def guarded(admission: Admission) -> tuple[Stand, Guarded]:
    """A stand with defaults, in whose cluster this admission judges NodeClaims."""
    world = World()
    transport = Guarded(world.cluster, admission)
    cluster = KubernetesCluster(transport, now=world.clock.now, node_class=EC2NodeClass)
    return Stand(world, gateways=replace(world.gateways, cluster=cluster)).with_defaults(), transport
