"""Lists of everything, in pages of 500: bytes from the API server straight into structs.

A page is decoded as a whole; only one that holds what does not fit is taken apart. An object that cannot be read is
reported, and the others go on: neither a newer API server nor one odd object may stop every decision. Custom resources
are decoded one by one, because a user may have stored some that our models refuse.

A kind that we have no right to list fails the snapshot, because a decision made without it would be wrong. A few kinds
can be done without (``DISPENSABLE``): they are reported as if none of their objects could be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from pydantic import ValidationError

from joinery.gateways.kubernetes.api_errors import MESSAGE_CHARS, Response, object_of
from joinery.gateways.kubernetes.transport import Transport
from joinery.gateways.kubernetes.watches import ListMeta
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ProvisioningRequest
from joinery.objects.errors import ConfigurationError, DeniedError, UnavailableError
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.meta import CustomResource
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.stored import is_foreign, part, salvage
from joinery.objects.karpenter.validation import explain
from joinery.objects.kubernetes import core, dynamic_resources
from joinery.objects.kubernetes.decoding import decode, decode_model, decoder, without_nulls
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.kubernetes.verticalautoscaler import VerticalPodAutoscaler
from joinery.objects.kubernetes.workloads import Workload
from joinery.objects.snapshot.claims import moment
from joinery.objects.snapshot.snapshot import ALL, Invalid

T = TypeVar("T")
M = TypeVar("M", bound=CustomResource)
PAGE = 500
_EXPIRED = 410  # the continue token is older than etcd remembers
_FORBIDDEN = 403
_NOT_FOUND = 404


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

    def path_of(self, namespace: str, name: str) -> str:
        """Of one object. ``namespace``: empty for a kind that has none."""
        within = f"namespaces/{namespace}/" if namespace else ""
        return f"/apis/{self.api_version}/{within}{self.plural}/{name}"


NODE_POOLS = Custom(NodePool, "NodePool", "karpenter.sh/v1", "nodepools", "node_pools")
NODE_OVERLAYS = Custom(NodeOverlay, "NodeOverlay", "karpenter.sh/v1alpha1", "nodeoverlays", "node_overlays")
CAPACITY_BUFFERS = Custom(
    CapacityBuffer, "CapacityBuffer", "autoscaling.x-k8s.io/v1beta1", "capacitybuffers", "capacity_buffers"
)
PROVISIONING_REQUESTS = Custom(
    ProvisioningRequest,
    "ProvisioningRequest",
    "autoscaling.x-k8s.io/v1",
    "provisioningrequests",
    "provisioning_requests",
)
NODE_CLAIMS = Custom(NodeClaim, "NodeClaim", "karpenter.sh/v1", "nodeclaims", "node_claims")


def node_classes(model: type[NodeClass]) -> Custom[NodeClass]:
    """The kind of node class that our cloud brings."""
    return Custom(model, model.kind, model.api_version, model.plural, "node_classes")


#: Kubernetes' own objects of a snapshot: field, path of the list, struct. Nodes come first.
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
    ("csi_drivers", "/apis/storage.k8s.io/v1/csidrivers", core.CSIDriver),
    ("storage_capacities", "/apis/storage.k8s.io/v1/csistoragecapacities", core.CSIStorageCapacity),
    ("volume_attachments", "/apis/storage.k8s.io/v1/volumeattachments", core.VolumeAttachment),
    ("disruption_budgets", "/apis/policy/v1/poddisruptionbudgets", core.PodDisruptionBudget),
)


#: What pods are made from (``objects.snapshot.successors``): read where some may come back different.
OWNERS: tuple[tuple[str, str, Any], ...] = (
    ("replica_sets", "/apis/apps/v1/replicasets", Workload),
    ("stateful_sets", "/apis/apps/v1/statefulsets", Workload),
    ("jobs", "/apis/batch/v1/jobs", Workload),
    ("replication_controllers", "/api/v1/replicationcontrollers", Workload),
)

#: What selects pods, and with its owner says which are spread together (``objects.snapshot.default_spreads``): read
#: where the setting DefaultSpread asks for it.
SERVICES = ("services", "/api/v1/services", core.Service)

#: What pods will request when they are made: read where some pod was set by one.
VERTICAL_AUTOSCALERS = (
    "vertical_autoscalers",
    "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers",
    VerticalPodAutoscaler,
)

#: What says how many pods are placed together (``objects.snapshot.gangs``): read where some pod names such a group, in
#: the first version that the cluster serves.
POD_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "scheduling_groups",
        tuple(f"/apis/scheduling.k8s.io/{version}/podgroups" for version in ("v1beta1", "v1alpha3", "v1alpha2")),
    ),
    ("coscheduling_groups", ("/apis/scheduling.x-k8s.io/v1alpha1/podgroups",)),
    ("volcano_groups", ("/apis/scheduling.volcano.sh/v1beta1/podgroups",)),
)

#: What pods claim of devices: read where some pod has a claim.
DEVICES: tuple[tuple[str, str, Any], ...] = (
    ("resource_claims", "/apis/resource.k8s.io/v1/resourceclaims", dynamic_resources.ResourceClaim),
    (
        "resource_claim_templates",
        "/apis/resource.k8s.io/v1/resourceclaimtemplates",
        dynamic_resources.ResourceClaimTemplate,
    ),
    ("device_classes", "/apis/resource.k8s.io/v1/deviceclasses", dynamic_resources.DeviceClass),
    ("resource_slices", "/apis/resource.k8s.io/v1/resourceslices", dynamic_resources.ResourceSlice),
)

#: The kinds without which decisions are a little worse, and not wrong. The API server has written its PriorityClass's
#: value into every pod that is stored (admission plugin Priority). Without their owners and autoscalers pods count as
#: they are, and without PodGroups each by itself. Without
#: CSINodes we do not know how many volumes a node takes, and without CSIDrivers and CSIStorageCapacities not where a
#: driver can make one; kube-scheduler does, and sends no pod where it has no place. Without NodeOverlays AWS's prices
#: count; a cluster may lack the kind, which Karpenter has behind a feature gate. Without CapacityBuffers and
#: ProvisioningRequests no room is kept, and without devices the pods that claim some wait.
DISPENSABLE = frozenset(
    {
        "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/storage.k8s.io/v1/csinodes",
        "/apis/storage.k8s.io/v1/csidrivers", "/apis/storage.k8s.io/v1/csistoragecapacities", NODE_OVERLAYS.path,
        CAPACITY_BUFFERS.path, PROVISIONING_REQUESTS.path, VERTICAL_AUTOSCALERS[1],
        *(path for _, path, _ in (*OWNERS, *DEVICES)), *(path for _, paths in POD_GROUPS for path in paths),
    }
)  # fmt: skip


class NotInstalledError(ConfigurationError):
    """The cluster has no such kind."""


class Page(msgspec.Struct, Generic[T]):
    """One page of a list."""

    metadata: ListMeta | None = None
    items: list[T] | None = None


class ObjectList(NamedTuple):
    """What a list holds: the objects that could be read, and what is wrong with the others.

    ``version``: the resource version of the list. Its pages all show the cluster as it was then.
    """

    objects: tuple[Any, ...]
    invalid: tuple[Invalid, ...] = ()
    version: str = ""


def read(transport: Transport, path: str, struct: Any) -> ObjectList:
    """All objects at a path, as that struct.

    Raises ``ConfigurationError`` for a kind that is needed and not installed, ``DeniedError`` for one that we may not
    list, ``UnavailableError``.
    """
    objects: list[Any] = []
    invalid: list[Invalid] = []
    token: str | None = ""
    meta = ListMeta()
    while token is not None:
        answer = _page(transport, path, token)
        if answer.code == _EXPIRED and token:
            objects, invalid, token = [], [], ""
            continue
        if answer.code == _FORBIDDEN and path in DISPENSABLE:
            return ObjectList((), (Invalid(struct.__name__, ALL, str(_denied(path, answer))),))
        if answer.code == _NOT_FOUND and path in DISPENSABLE:
            return ObjectList(())
        page, unread = _decoded(path, _body(path, answer), struct)
        objects += page.items or []
        invalid += unread
        meta = page.metadata or ListMeta()
        token = meta.more or None
    return ObjectList(tuple(objects), tuple(invalid), meta.version)


def _decoded(path: str, body: bytes, struct: Any) -> tuple[Page[Any], list[Invalid]]:
    """A page as structs; object by object where one of them does not fit as it is."""
    try:
        return decoder(Page[struct]).decode(body), []
    except msgspec.ValidationError:
        page: Page[Any] = decoder(Page[msgspec.Raw]).decode(body)
    except msgspec.DecodeError as error:
        raise UnavailableError(f"GET {path}: the answer is not JSON: {error}") from error
    invalid: list[Invalid] = []
    objects = []
    for raw in page.items or ():
        try:
            objects.append(decode(raw, struct))
        except msgspec.ValidationError as error:
            invalid.append(unreadable(msgspec.json.decode(raw), struct.__name__, str(error)))
    page.items = objects
    return page, invalid


def with_pods(owner: Workload) -> tuple[Workload | None, None]:
    """The owner of pods; nothing in place of one without any, as a Deployment keeps its older ReplicaSets."""
    has_ended = any(one.type in ("Complete", "Failed") and one.status == "True" for one in owner.status.conditions)
    return None if has_ended or owner.spec.replicas == owner.status.replicas == 0 else owner, None


def usable(node: core.Node) -> tuple[core.Node, Invalid | None]:
    """The node as decisions may use it, and what is wrong with it, if anything is.

    One whose resources cannot be read keeps its pods and has no room for more.
    """
    why = _unreadable_amounts(node)
    if not why:
        return node, None
    without_room = replace(node, status=replace(node.status, capacity={}, allocatable={}))
    return without_room, Invalid("Node", node.metadata.name, why)


def _unreadable_amounts(node: core.Node) -> str:
    for field in ("capacity", "allocatable"):
        try:
            amounts(getattr(node.status, field))
        except ValueError as error:
            return f"status.{field}: {error}"
    return ""


def as_stored(raw: msgspec.Raw | bytes, custom: Custom[M], group: str) -> M | Invalid | None:
    """One custom resource, or what is wrong with it.

    ``group``: the API group of our cloud's node classes. None if it is another provider's and does not fit our model:
    we do not know that provider's rules.
    """
    try:
        return decode_model(raw, custom.model)
    except ValidationError as error:
        document = without_nulls(msgspec.json.decode(raw))
        salvaged = salvage(document, error) if custom.model is NodeClaim else None
        if isinstance(salvaged, custom.model):
            return salvaged
        return None if is_foreign(document, group) else unreadable(document, custom.kind, explain(error))


def unreadable(document: Mapping[str, Any], kind: str, reason: str) -> Invalid:
    """An object that could not be read, with what could be read of it all the same."""
    metadata = part(document, "metadata")
    namespace, name = _text(metadata.get("namespace")), _text(metadata.get("name"))
    return Invalid(
        kind,
        f"{namespace}/{name}" if namespace else name,
        reason,
        provider_id=_text(part(document, "status").get("providerID")),
        node_name=_text(part(document, "status").get("nodeName")),
        node_pool=_text(part(metadata, "labels").get(NODE_POOL)),
        node_class=_text(part(document, "spec", "nodeClassRef").get("name")),
        created=moment(_text(metadata.get("creationTimestamp"))),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _page(transport: Transport, path: str, token: str) -> Response:
    query = urlencode({"limit": PAGE, **({"continue": token} if token else {})})
    return transport.ask("GET", f"{path}?{query}")


def _body(path: str, answer: Response) -> bytes:
    if answer.code == _NOT_FOUND:
        raise NotInstalledError(f"{path}: not installed in this cluster: apply the custom resource definitions")
    if answer.code == _FORBIDDEN:
        raise _denied(path, answer)
    return object_of(f"GET {path}", answer)


def _denied(path: str, answer: Response) -> DeniedError:
    """The error that names the right that is missing, as a ClusterRole would: the resource and its API group."""
    *_, group, _, plural = path.split("/")
    resource = plural if path.startswith("/api/") else f"{plural}.{group}"
    said = answer.status.message[:MESSAGE_CHARS]
    return DeniedError(f"the right to list {resource} is missing: deploy again, or apply manifests/rbac.yaml ({said})")
