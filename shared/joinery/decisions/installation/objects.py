"""The objects that a cluster is given, as they are to be, in the order in which they are written.

Definitions come first, because other objects are of their kinds. A policy comes before the right that it fences in, so
that the right is never there alone. Every object carries whose it is: labels by which a later release finds what it no
longer ships, and by which uninstalling finds what to remove.

The ClusterRole ``joinery`` carries the marks of the installation: which stack runs this cluster, and what was applied.
It does because the doors cannot write it.
"""

import copy
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from joinery.objects.karpenter.labels import OWN_GROUP, VERSION
from joinery.objects.kubernetes.references import Document, Reference, reference

Documents = Sequence[Document]

MANAGED_BY, INSTALLER = "app.kubernetes.io/managed-by", "joinery-installer"
#: Which custom resource wrote an object: a ``Part``.
PART = f"{OWN_GROUP}/part"
#: The stack that runs the cluster, by its ARN.
STACK = f"{OWN_GROUP}/stack"
#: What was applied last, as a hash; absent while something is being applied.
APPLIED = f"{OWN_GROUP}/applied"
#: In a manifest: write the object only if a property of the custom resource has a value (``Steering=taint``).
ONLY_IF = f"{OWN_GROUP}/only-if"

#: ValidatingAdmissionPolicy is stable from here on (Kubernetes 1.30). Without it the doors' rights would be unfenced.
LEAST_KUBERNETES = (1, 30)

#: The objects that carry the marks.
MARKED = Reference("ClusterRole", "joinery")
WEBHOOK = Reference("ValidatingWebhookConfiguration", "joinery")
LEASE = Reference("Lease", "joinery-decisions", "kube-system")

#: The kinds in the order in which they are written. They are removed in the opposite order.
ORDER = (
    "CustomResourceDefinition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ClusterRole",
    "Role",
    "ClusterRoleBinding",
    "RoleBinding",
    "Lease",
    "ValidatingWebhookConfiguration",
)


class Part(StrEnum):
    """What a custom resource writes: before the doors, or once they are there."""

    PREPARATION = "preparation"
    CONNECTION = "connection"


def preparation(
    definitions: Iterable[Document],
    rights: Iterable[Document],
    properties: Mapping[str, str],
    *,
    stack: str,
    version: str,
) -> Documents:
    """What is written before the doors exist. ``stack``: the ARN of the stack that runs the cluster."""
    wanted = [_with_annotations(one, {VERSION: version}) for one in definitions]
    wanted += [_defaulted(_without_condition(one)) for one in rights if _is_wanted(one, properties)]
    owned = [_labelled(one, Part.PREPARATION) for one in wanted]
    return _marked(sorted(owned, key=_place), MARKED, {STACK: stack, VERSION: version})


def connection(configuration: Document, url: str, *, version: str) -> Documents:
    """What is written once the doors exist. ``url``: the webhook's address with its secret; without one, nothing."""
    if not url:
        return ()
    wanted = _labelled(configuration, Part.CONNECTION)
    for webhook in wanted["webhooks"]:
        webhook["clientConfig"]["url"] = url
    return _marked([wanted], WEBHOOK, {VERSION: version})


def finished(documents: Documents, mark: Reference) -> Document | None:
    """The object that carries the marks as it is written at the end, with the hash of all that was applied."""
    for document in documents:
        if reference(document) == mark:
            return _with_annotations(document, {APPLIED: fingerprint(documents)})
    return None


def fingerprint(documents: Documents) -> str:
    """What was to be applied, as a hash."""
    return hashlib.sha256(msgspec.json.encode(documents, order="deterministic")).hexdigest()[:32]


def applied(stored: Document | None) -> str:
    """The hash on the object that carries the marks; empty where nothing was applied, or not to the end."""
    return _annotations(stored).get(APPLIED, "")


def stack_of(stored: Document | None) -> str:
    """The stack that runs the cluster by the marks on the stored ClusterRole; empty where none does."""
    return _annotations(stored).get(STACK, "")


def is_ours(stored: Document) -> bool:
    """Whether an installer has written the object."""
    labels = stored["metadata"].get("labels") or {}
    return bool(labels.get(MANAGED_BY) == INSTALLER)


def outdated(stored: Iterable[Document], wanted: Documents) -> Sequence[Reference]:
    """What an installer has written and this release does not ship, in the order in which it is removed.

    Definitions are never among them, because all objects of a definition would go with it.
    """
    kept = {reference(document) for document in wanted}
    gone = [one for one in stored if is_ours(one) and one["kind"] != "CustomResourceDefinition"]
    return [reference(one) for one in sorted(gone, key=_place, reverse=True) if reference(one) not in kept]


def _annotations(stored: Document | None) -> Mapping[str, str]:
    return (stored["metadata"].get("annotations") or {}) if stored else {}


def _place(document: Document) -> tuple[int, Reference]:
    return ORDER.index(document["kind"]), reference(document)


def _is_wanted(document: Document, properties: Mapping[str, str]) -> bool:
    name, _, value = _annotations(document).get(ONLY_IF, "").partition("=")
    return not name or properties.get(name) == value


def _without_condition(document: Document) -> Document:
    clean = copy.deepcopy(document)
    if (annotations := clean["metadata"].get("annotations")) and annotations.pop(ONLY_IF, None) and not annotations:
        del clean["metadata"]["annotations"]
    return clean


def _defaulted(document: Document) -> Document:
    """With what the API server fills in where one field is a whole struct to server-side apply.

    Without it a policy that was applied by hand would conflict with the same policy.
    """
    constraints = document.get("spec", {}).get("matchConstraints")
    if constraints is not None:
        for key, value in (("matchPolicy", "Equivalent"), ("namespaceSelector", {}), ("objectSelector", {})):
            constraints.setdefault(key, value)
        for rule in constraints.get("resourceRules", []):
            rule.setdefault("scope", "*")
    return document


def _labelled(document: Document, part: Part) -> Document:
    labelled = copy.deepcopy(document)
    labelled["metadata"].setdefault("labels", {}).update({MANAGED_BY: INSTALLER, PART: part.value})
    return labelled


def _with_annotations(document: Document, annotations: Mapping[str, str]) -> Document:
    changed = copy.deepcopy(document)
    changed["metadata"].setdefault("annotations", {}).update(annotations)
    return changed


def _marked(documents: Documents, mark: Reference, annotations: Mapping[str, str]) -> Documents:
    return [_with_annotations(one, annotations) if reference(one) == mark else one for one in documents]
