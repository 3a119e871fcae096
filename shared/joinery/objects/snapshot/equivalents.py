"""Objects of the older APIs among those of a snapshot: from here on they are NodePools, NodeClaims and node classes.

An object of v1 counts instead of a legacy one with its name: halfway through a move both are there, and the newer one
is meant. Up to v0.37 how old a node may become was its pool's business. So a claim of a pool that was made here takes
the pool's age, whatever it was when the claim was written. Where there are legacy objects, pods and nodes are read by
their older annotations too (``karpenter.sh/do-not-evict``); without, an older annotation says nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace as replace_fields
from typing import Any, TypeVar

from msgspec.structs import replace
from pydantic import ValidationError

from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.legacy import RENAMED, Equivalent, equivalents, modernized
from joinery.objects.karpenter.meta import CustomResource
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import explained
from joinery.objects.kubernetes.core import Node, ObjectMeta, Pod
from joinery.objects.snapshot.snapshot import ClaimsSnapshot, Invalid

S = TypeVar("S", bound=ClaimsSnapshot)
#: By kind, the snapshot's field and the model.
Models = Mapping[str, tuple[str, type[CustomResource]]]


class NotReadableError(ValueError):
    """The legacy object is no object of v1. ``problems``: all that is wrong, field first."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(self.problems))


class LegacyReader:
    """Makes objects of v1 of legacy ones, again and again: what has not changed is the same object as before.

    ``node_class``: the model of our cloud's node classes. ``default_profile``: see
    ``objects.karpenter.legacy.equivalents``.
    """

    def __init__(self, node_class: type[NodeClass], *, default_profile: str | None = None) -> None:
        self._models: Models = {
            NodePool.kind: ("node_pools", NodePool),
            NodeClaim.kind: ("node_claims", NodeClaim),
            node_class.kind: ("node_classes", node_class),
        }
        self._default_profile = default_profile
        self._made: dict[tuple[str, str], tuple[Equivalent, CustomResource]] = {}

    def made(self, documents: Iterable[Mapping[str, Any]]) -> tuple[tuple[Equivalent, CustomResource | None, str], ...]:
        """Every equivalent, the object, and why there is none."""
        converted = equivalents((dict(document) for document in documents), self._default_profile)
        before, self._made = self._made, {}
        return tuple((equivalent, *self._read(equivalent, before)) for equivalent in converted)

    def adopted(self, snapshot: S, documents: Iterable[Mapping[str, Any]]) -> S:
        """The snapshot with the equivalents of legacy objects; those that have none are ``invalid``."""
        documents = tuple(documents)
        if not documents:
            return snapshot
        of_v1 = {
            field: {one.metadata.name for one in getattr(snapshot, field, ())} for field, _ in self._models.values()
        }
        added: dict[str, dict[str, CustomResource]] = {field: {} for field in of_v1}
        invalid = list(snapshot.invalid)
        for equivalent, made, problem in self.made(documents):
            kind, name = equivalent.missed_as
            if made is None:
                field = self._models[kind][0] if kind in self._models else ""
                invalid += [] if name in of_v1.get(field, ()) else [Invalid(kind, name, problem)]
                continue
            field = self.field_of(made)
            if made.metadata.name not in of_v1[field]:
                added[field].setdefault(made.metadata.name, made)
        pools = {name: pool for name, pool in added["node_pools"].items() if isinstance(pool, NodePool)}
        fields: dict[str, Any] = {
            field: (*getattr(snapshot, field), *made.values())
            for field, made in added.items()
            if hasattr(snapshot, field)
        }
        return by_older_rules(replace_fields(snapshot, invalid=tuple(invalid), **fields), pools)

    def field_of(self, made: CustomResource) -> str:
        """The snapshot's field for objects of that kind."""
        return self._models[made.kind][0]

    def _read(
        self, equivalent: Equivalent, before: Mapping[tuple[str, str], tuple[Equivalent, CustomResource]]
    ) -> tuple[CustomResource | None, str]:
        if equivalent.problem:
            return None, equivalent.problem
        key = equivalent.document["kind"], equivalent.document["metadata"].get("name", "")
        known, made = before.get(key, (None, None))
        if made is None or known != equivalent:
            try:
                made = self.decoded(equivalent)
            except NotReadableError as error:
                return None, str(error)
        self._made[key] = equivalent, made
        return made, ""

    def decoded(self, equivalent: Equivalent) -> CustomResource:
        """The object. Raises ``NotReadableError``."""
        if equivalent.problem:
            raise NotReadableError([equivalent.problem])
        kind = equivalent.document["kind"]
        try:
            made = self._models[kind][1].model_validate(equivalent.document)
        except ValidationError as error:
            became = "" if equivalent.origin.kind == kind else f"as {kind}: "
            raise NotReadableError(f"{became}{problem}" for problem in explained(error)) from error
        return made.made_from(equivalent.origin)


def by_older_rules(snapshot: S, pools: Mapping[str, NodePool]) -> S:
    """The snapshot with claims as old as their pools allow, and with new annotations of pods and nodes beside old ones.

    ``pools``: by name, those that were made of legacy objects.
    """
    fields: dict[str, Any] = {"node_claims": tuple(_as_old_as(claim, pools) for claim in snapshot.node_claims)}
    for field in ("pods", "nodes"):
        listed: tuple[Pod | Node, ...] = getattr(snapshot, field, ())
        fields |= {field: tuple(_with_new_annotations(one) for one in listed)} if listed else {}
    return replace_fields(snapshot, **fields)


def _as_old_as(claim: NodeClaim, pools: Mapping[str, NodePool]) -> NodeClaim:
    pool = pools.get(claim.metadata.labels.get(NODE_POOL, ""))
    if pool is None or claim.spec.expire_after == pool.spec.template.spec.expire_after:
        return claim
    spec = claim.spec.model_copy(update={"expire_after": pool.spec.template.spec.expire_after})
    return claim.model_copy(update={"spec": spec})


def _with_new_annotations(item: Any) -> Any:
    metadata: ObjectMeta = item.metadata
    if not metadata.annotations or RENAMED.keys().isdisjoint(metadata.annotations):
        return item
    return replace(item, metadata=replace(metadata, annotations=modernized(metadata.annotations)))
