"""Objects of the cluster by name, and their place in the Kubernetes API: the kinds that the installer deals with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: An object as it is written in a manifest.
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A kind's place in the API. ``name``: with a version that is not the usual one. ``api``: the path of its group and
    version. ``plural``: its path segment.
    """

    name: str
    api: str
    plural: str
    namespaced: bool = False

    @property
    def definition(self) -> str:
        """The name of the CustomResourceDefinition that brings it into a cluster."""
        return f"{self.plural}.{self.api.split('/')[2]}"


_RBAC, _ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
KINDS: Mapping[str, ApiResource] = {
    kind.name: kind
    for kind in (
        ApiResource("CustomResourceDefinition", "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
        ApiResource("ValidatingAdmissionPolicy", _ADMISSION, "validatingadmissionpolicies"),
        ApiResource("ValidatingAdmissionPolicyBinding", _ADMISSION, "validatingadmissionpolicybindings"),
        ApiResource("ValidatingWebhookConfiguration", _ADMISSION, "validatingwebhookconfigurations"),
        ApiResource("ClusterRole", _RBAC, "clusterroles"),
        ApiResource("ClusterRoleBinding", _RBAC, "clusterrolebindings"),
        ApiResource("Role", _RBAC, "roles", namespaced=True),
        ApiResource("RoleBinding", _RBAC, "rolebindings", namespaced=True),
        ApiResource("Lease", "/apis/coordination.k8s.io/v1", "leases", namespaced=True),
        ApiResource("Namespace", "/api/v1", "namespaces"),
        ApiResource("Node", "/api/v1", "nodes"),
        ApiResource("NodePool", "/apis/karpenter.sh/v1", "nodepools"),
        # What NodePools were before, and where v1 is served too the same objects once more.
        ApiResource("NodePool.v1beta1", "/apis/karpenter.sh/v1beta1", "nodepools"),
        ApiResource("Provisioner", "/apis/karpenter.sh/v1alpha5", "provisioners"),
        ApiResource("NodeOverlay", "/apis/karpenter.sh/v1alpha1", "nodeoverlays"),
        ApiResource("NodeClaim", "/apis/karpenter.sh/v1", "nodeclaims"),
        # What NodeClaims were before. Where v1 is served too, v1beta1 has the same objects once more.
        ApiResource("NodeClaim.v1beta1", "/apis/karpenter.sh/v1beta1", "nodeclaims"),
        ApiResource("Machine", "/apis/karpenter.sh/v1alpha5", "machines"),
        ApiResource("EC2NodeClass", "/apis/karpenter.k8s.aws/v1", "ec2nodeclasses"),
    )
}


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """One object by name. ``kind``: one of ``KINDS``. ``namespace`` is empty for what lies in none."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind} {self.name}{place}"

    @property
    def path(self) -> str:
        """Where the API server has it."""
        return f"{collection(self.kind, self.namespace)}/{self.name}"


def collection(kind: str, namespace: str = "") -> str:
    """Where the API server has all of a kind; without a namespace, those of all namespaces."""
    place = KINDS[kind]
    return f"{place.api}/namespaces/{namespace}/{place.plural}" if namespace else f"{place.api}/{place.plural}"


def reference(document: Mapping[str, Any]) -> Reference:
    """The name of a document's object."""
    metadata = document["metadata"]
    return Reference(document["kind"], metadata["name"], metadata.get("namespace", ""))


#: How the installer names itself to the API server.
FIELD_MANAGER = "joinery-installer"


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """``manager``: who has set the field (``kubectl-edit``, ``argocd-controller``). ``field``: its path."""

    manager: str
    field: str


def conflict_message(conflicts: Mapping[Reference, Sequence[FieldConflict]]) -> str:
    """What is in the way, and what to do about it, in plain words."""
    edits = "; ".join(f"{name}: {_fields(conflicts[name])}" for name in sorted(conflicts))
    return (
        f"Somebody else has changed what this release wants to write. {edits}. Nothing was changed in the cluster. "
        "Either undo these edits, or deploy with the parameter ForceConflicts=true, which overwrites them."
    )


def _fields(conflicts: Sequence[FieldConflict]) -> str:
    by_manager: dict[str, list[str]] = {}
    for conflict in conflicts:
        by_manager.setdefault(conflict.manager, []).append(conflict.field)
    return ", ".join(f"{_some(fields)} by {manager}" for manager, fields in sorted(by_manager.items()))


def _some(fields: Sequence[str]) -> str:
    shown = sorted(fields)
    return shown[0] if len(shown) == 1 else f"{shown[0]} and {len(shown) - 1} more fields"
