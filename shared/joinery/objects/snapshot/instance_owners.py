"""Whose an instance is, where the provider IDs of claims do not say it: one names none, or two name the same.

Anybody may edit a status, and a copy or a backup brings a claim without one. What else says it: the tag with the
claim's name, which an instance has once it has joined; the owner reference of its Node; and of two claims their ages.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.instances import INSTANCE_CLAIM_TAG, Instance, instance_id


def lost_provider_ids(
    claims: Iterable[NodeClaim], nodes: Iterable[Node], instances: Iterable[Instance] = ()
) -> Mapping[str, str]:
    """By the name of a claim that has lost its provider ID, the provider ID of its instance."""
    claims = tuple(claims)
    without_id = [claim for claim in claims if not claim.status.provider_id]
    if not without_id:
        return {}
    taken = {instance_id(claim.status.provider_id) for claim in claims}
    by_name = {
        (instance.tags or {}).get(INSTANCE_CLAIM_TAG, ""): instance.provider_id
        for instance in instances
        if instance.serves and instance.instance_id not in taken
    }
    by_uid = {
        owner.uid: node.spec.provider_id
        for node in nodes
        if node.spec.provider_id and instance_id(node.spec.provider_id) not in taken
        for owner in node.metadata.owner_references
        if owner.uid
    }
    found = {
        claim.metadata.name: by_uid.get(claim.metadata.uid) or by_name.get(claim.metadata.name) for claim in without_id
    }
    return {name: provider_id for name, provider_id in found.items() if provider_id}


def copies(claims: Iterable[NodeClaim], nodes: Iterable[Node], instances: Iterable[Instance] = ()) -> frozenset[str]:
    """The names of the claims whose provider ID names an instance that is another claim's."""
    by_instance: dict[str, list[NodeClaim]] = defaultdict(list)
    for claim in claims:
        if claim.status.provider_id:
            by_instance[instance_id(claim.status.provider_id)].append(claim)
    shared = {name: rivals for name, rivals in by_instance.items() if len(rivals) > 1}
    if not shared:
        return frozenset()
    tagged = {instance.instance_id: (instance.tags or {}).get(INSTANCE_CLAIM_TAG) for instance in instances}
    owners = {
        (instance_id(node.spec.provider_id), owner.uid) for node in nodes for owner in node.metadata.owner_references
    }

    def is_less_likely(claim: NodeClaim) -> tuple[bool, bool, str, str]:
        name, of = claim.metadata.name, instance_id(claim.status.provider_id)
        created = claim.metadata.creation_timestamp
        return (
            tagged.get(of) != name,
            (of, claim.metadata.uid) not in owners,
            created.isoformat() if created else "",
            name,
        )

    return frozenset(
        claim.metadata.name for rivals in shared.values() for claim in sorted(rivals, key=is_less_likely)[1:]
    )
