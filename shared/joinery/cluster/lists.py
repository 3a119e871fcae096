"""Lists of everything, in pages of 500: bytes from the API server straight into structs.

Custom resources are decoded one by one, because a user may have stored one that our models refuse: it is reported and the
others go on. Kubernetes' own objects were validated by the API server.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec
from pydantic import ValidationError

from joinery.apis import core
from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.meta import CustomResource
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodepool import NodePool
from joinery.apis.validation import explain
from joinery.cluster.transport import Answer, Transport, refusal
from joinery.errors import ConfigurationError
from joinery.state.snapshot import Invalid

T = TypeVar("T")
M = TypeVar("M", bound=CustomResource)
PAGE = 500
_EXPIRED = 410  # the continue token is older than etcd remembers


@dataclass(frozen=True, slots=True)
class Custom(Generic[M]):
    """A kind of custom resource: its model, what the API calls it, where it lives, and the snapshot's field for it."""

    model: type[M]
    kind: str
    api_version: str
    plural: str
    field: str

    @property
    def path(self) -> str:
        return f"/apis/{self.api_version}/{self.plural}"


NODE_POOLS = Custom(NodePool, "NodePool", "karpenter.sh/v1", "nodepools", "node_pools")
NODE_CLAIMS = Custom(NodeClaim, "NodeClaim", "karpenter.sh/v1", "nodeclaims", "node_claims")
NODE_CLASSES = Custom(EC2NodeClass, "EC2NodeClass", "karpenter.k8s.aws/v1", "ec2nodeclasses", "node_classes")
CUSTOM: Mapping[str, Custom[Any]] = {found.kind: found for found in (NODE_POOLS, NODE_CLAIMS, NODE_CLASSES)}

#: Kubernetes' own objects of a snapshot: field, path of the list, struct. Nodes come first (scheduling.md 3.1).
CORE: tuple[tuple[str, str, Any], ...] = (
    ("nodes", "/api/v1/nodes", core.Node),
    ("pods", "/api/v1/pods", core.Pod),
    ("daemon_sets", "/apis/apps/v1/daemonsets", core.DaemonSet),
    ("namespaces", "/api/v1/namespaces", core.Namespace),
    ("priority_classes", "/apis/scheduling.k8s.io/v1/priorityclasses", core.PriorityClass),
    ("volume_claims", "/api/v1/persistentvolumeclaims", core.PersistentVolumeClaim),
    ("volumes", "/api/v1/persistentvolumes", core.PersistentVolume),
    ("storage_classes", "/apis/storage.k8s.io/v1/storageclasses", core.StorageClass),
    ("csi_nodes", "/apis/storage.k8s.io/v1/csinodes", core.CSINode),
    ("volume_attachments", "/apis/storage.k8s.io/v1/volumeattachments", core.VolumeAttachment),
    ("disruption_budgets", "/apis/policy/v1/poddisruptionbudgets", core.PodDisruptionBudget),
)


class _ListMeta(msgspec.Struct, rename={"continue_": "continue"}):
    continue_: str = ""


class Page(msgspec.Struct, Generic[T]):
    """One page of a list."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[T] | None = None


class _Named(msgspec.Struct):
    metadata: core.ObjectMeta = core.ObjectMeta()


@cache
def _decoder(struct: Any) -> "msgspec.json.Decoder[Page[Any]]":
    return msgspec.json.Decoder(Page[struct])


def read(transport: Transport, path: str, struct: Any) -> tuple[Any, ...]:
    """All objects at a path, as that struct. Raises ``ConfigurationError`` for a kind that is not installed, ``UnavailableError``."""
    found: list[Any] = []
    token = ""
    while True:
        answer = _page(transport, path, token)
        if answer.code == _EXPIRED and token:
            found, token = [], ""
            continue
        page = _decoder(struct).decode(_body(path, answer))
        found += page.items or []
        token = page.metadata.continue_
        if not token:
            return tuple(found)


def read_custom(transport: Transport, custom: Custom[Any]) -> tuple[tuple[Any, ...], tuple[Invalid, ...]]:
    """All custom resources of a kind that are valid, and what is wrong with the others. Raises as ``read`` does."""
    valid: list[Any] = []
    invalid: list[Invalid] = []
    for raw in read(transport, custom.path, msgspec.Raw):
        try:
            valid.append(custom.model.model_validate_json(bytes(raw)))
        except ValidationError as error:
            name = msgspec.json.decode(raw, type=_Named).metadata.name
            invalid.append(Invalid(custom.kind, name, explain(error)))
    return tuple(valid), tuple(invalid)


def _page(transport: Transport, path: str, token: str) -> Answer:
    query = urlencode({"limit": PAGE, **({"continue": token} if token else {})})
    return transport.ask("GET", f"{path}?{query}")


def _body(path: str, answer: Answer) -> bytes:
    if answer.code == 404:
        raise ConfigurationError(f"{path}: not installed in this cluster: apply the custom resource definitions")
    if answer.code >= 400:
        raise refusal(f"GET {path}", answer)
    return answer.body
