"""Legacy objects of a cluster, where their definitions are installed; a cluster without them has none.

Read by ``joinery plan`` only. The doors do not know these kinds: they would have to write status and claims in an API
that only an older Karpenter answers for. Kinds of v1beta1 are read where v1 is not served: where both are, they are one
object.
"""

from typing import Any

import msgspec

from joinery.apis.legacy import ALPHA_KINDS, BETA_KINDS, Version
from joinery.cluster.lists import NODE_POOLS, read
from joinery.cluster.transport import Transport

Document = dict[str, Any]


def documents(transport: Transport) -> tuple[Document, ...]:
    """Every legacy object, with its version and kind written on it. Raises ``UnavailableError``."""
    kinds = ALPHA_KINDS if is_served(transport, NODE_POOLS.path) else {**ALPHA_KINDS, **BETA_KINDS}
    return tuple(document for version, plural in kinds.items() for document in _documents(transport, version, plural))


def is_served(transport: Transport, path: str) -> bool:
    """Whether the API server knows the kind at all."""
    return transport.ask("GET", f"{path}?limit=1").code != 404


def _documents(transport: Transport, version: Version, plural: str) -> list[Document]:
    api_version, kind = version
    path = f"/apis/{api_version}/{plural}"
    if not is_served(transport, path):
        return []
    objects = read(transport, path, msgspec.Raw).objects
    return [{**msgspec.json.decode(raw), "apiVersion": api_version, "kind": kind} for raw in objects]
