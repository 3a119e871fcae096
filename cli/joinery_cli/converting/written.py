"""NodePools and EC2NodeClasses as a person applies them, with what a conversion changes of their meaning."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from joinery.objects.karpenter import duration, labels
from joinery.objects.karpenter.legacy import (
    DEFAULT_PROFILE,
    EARLIEST_KINDS,
    RENAMED,
    Equivalent,
    called_now,
    equivalents,
    is_legacy,
)
from joinery.objects.karpenter.meta import Origin

Document = dict[str, Any]

#: What a person writes. Claims are written by a controller.
KINDS = ("EC2NodeClass", "NodePool")
#: Written by an API server, a controller or kubectl.
_ANNOTATIONS_OF_OTHERS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    labels.NODE_POOL_HASH, labels.NODE_POOL_HASH_VERSION, labels.NODE_CLASS_HASH, labels.NODE_CLASS_HASH_VERSION,
    "karpenter.sh/stored-version-migrated",
)  # fmt: skip
#: Where the conversion webhook of Karpenter 1.0 kept what v1 has no field for.
_OF_WEBHOOK = ("compatibility.karpenter.sh/", "compatibility.karpenter.k8s.aws/")
_KUBELET = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"


@dataclass(frozen=True)
class Written:
    """One object.

    ``notes``: what has changed of its meaning, or is lost. ``source``: the object of the files that it is made of.
    """

    document: Document
    notes: tuple[str, ...] = ()
    source: Document = field(default_factory=dict)

    @property
    def is_pool(self) -> bool:
        """Whether it is a NodePool or what that was called before, and not a class."""
        return called_now(self.document["kind"]) == "NodePool"

    @property
    def name(self) -> str:
        """Its own, without what it is."""
        return str(self.document["metadata"]["name"])

    @property
    def called(self) -> str:
        """Kind and name."""
        return f"{self.document['kind']} {self.name}"

    @property
    def annotations(self) -> Document:
        """Its own, not those of its nodes."""
        return self.document["metadata"].get("annotations") or {}

    @property
    def expires(self) -> bool:
        """Whether nodes of this NodePool of v1 are replaced for their age."""
        return bool(self.document["spec"]["template"]["spec"].get("expireAfter") != duration.NEVER)

    @property
    def is_of_earliest(self) -> bool:
        """Whether it is made of a Provisioner of v1alpha3 or v1alpha4."""
        return (self.source.get("apiVersion"), self.source.get("kind")) in EARLIEST_KINDS

    @property
    def lines(self) -> Iterator[str]:
        """The notes, each with what it is about."""
        return (f"{self.called}: {note}" for note in self.notes)

    def noting(self, *notes: str) -> "Written":
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes))


def in_v1(documents: Iterable[Document]) -> list[Written]:
    """What they are in v1, classes first. An object of v1 counts instead of a legacy one with its name."""
    listed = list(documents)
    made = [_as_given(one) for one in listed if not is_legacy((one["apiVersion"], one["kind"]))]
    taken = {one.called for one in made}
    legacy = {_origin(one): one for one in listed if is_legacy((one["apiVersion"], one["kind"]))}
    for equivalent in equivalents(legacy.values()):
        if equivalent.document and equivalent.document["kind"] in KINDS:
            written = _written(equivalent, legacy[equivalent.origin])
            made += [written] if written.called not in taken else []
    return sorted(made, key=lambda one: (one.is_pool, one.called))


def _as_given(document: Document) -> Written:
    written = Written(applied(document), source=document)
    if _KUBELET in (document["metadata"].get("annotations") or {}):
        return written.noting(
            f"kubelet settings in the annotation {_KUBELET} are dropped: only Karpenter 1.0 read them there; write "
            "them into spec.kubelet of the EC2NodeClass"
        )
    return written


def _origin(document: Document) -> Origin:
    return Origin(document["apiVersion"], document["kind"], document["metadata"]["name"])


def _written(equivalent: Equivalent, source: Document) -> Written:
    """What an API server of v1 takes, and says as much as the older object did."""
    written = Written(applied(equivalent.document), equivalent.notes, source)
    if not written.is_pool:
        return written
    document, annotations = written.document, written.annotations
    template = document["spec"]["template"]
    node_labels = dict(template.get("metadata", {}).get("labels", {}))
    if node_labels.pop(labels.PROVISIONER_NAME, None):
        template = {**template, "metadata": without_empty({**template["metadata"], "labels": node_labels})}
    if written.expires:
        # Up to v0.37 expired nodes waited for budgets; where the object says otherwise itself, that counts.
        annotations = {labels.EXPIRATION_OBEYS_BUDGETS: "true", **annotations}
    metadata = without_empty({**document["metadata"], "annotations": annotations})
    spec = {**document["spec"], "template": without_empty(template)}
    return replace(written, document={**document, "metadata": metadata, "spec": spec})


def noted_in_v1(written: Written) -> Written:
    """The same with what Karpenter 1 makes of it that the older Karpenter did not."""
    written = noted_without_profile(written)
    if written.is_pool and is_legacy((written.source["apiVersion"], written.source["kind"])):
        written = noted_after_provisioners(written)
        if written.expires and written.annotations.get(labels.EXPIRATION_OBEYS_BUDGETS) == "true":
            return written.noting(
                "expired nodes wait for budgets by an annotation that only Joinery reads; Karpenter 1 drains them at "
                "once"
            )
    return written


def noted_without_profile(written: Written) -> Written:
    """The same with what has to be filled in where Karpenter's settings had the instance profile."""
    if written.document["spec"].get("instanceProfile") == DEFAULT_PROFILE:
        return written.noting(
            f"{DEFAULT_PROFILE} is no profile: write what Karpenter's setting of that name said into "
            "spec.instanceProfile"
        )
    return written


def noted_after_provisioners(written: Written) -> Written:
    """The same with what no later API has of a Provisioner."""
    if written.source.get("kind") == "Provisioner" and written.is_pool:
        written = written.noting(
            f"nodes lose the label {labels.PROVISIONER_NAME}: pods that select by it have to select {labels.NODE_POOL}"
        )
    return noted_after_earliest(written)


def noted_after_earliest(written: Written) -> Written:
    """The same with what no later API has of v1alpha3 and v1alpha4."""
    if written.is_pool and written.is_of_earliest and written.annotations.get(labels.OVERRIDES) == "true":
        return written.noting(
            "what pods select overrides what it lists by an annotation that only Joinery reads; Karpenter layers both"
        )
    return written


def applied(document: Document) -> Document:
    """The document without what an API server or a controller has written into it."""
    metadata = document["metadata"]
    kept = {"name": metadata["name"], "labels": metadata.get("labels") or {}}
    kept["annotations"] = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if RENAMED.get(key, key) not in _ANNOTATIONS_OF_OTHERS and not key.startswith((labels.WRITTEN_AS, *_OF_WEBHOOK))
    }
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "metadata": without_empty(kept),
        "spec": document.get("spec") or {},
    }


def without_empty(given: Document) -> Document:
    """The same without fields that say nothing."""
    return {key: value for key, value in given.items() if value not in ({}, [], None)}
