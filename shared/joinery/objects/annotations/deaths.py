"""Instances that died at launch, as their node class remembers it (``joinery.dev/died-at-launch``).

Of each cause, by EC2's code: which images died of it, how often and when last. It counts as long as the class is what
it was. A node that joins with one of the images ends it; where instances have died soon after they had joined, one that
has served. Lifecycle writes it before the claims go; users may edit it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from joinery.objects.annotations.marks import is_believable
from joinery.objects.karpenter.labels import DIED_AT_LAUNCH
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.kubernetes.decoding import decode_each, with_entries
from joinery.objects.snapshot.claims import REGISTERED, has_joined
from joinery.objects.snapshot.instances import Instance
from joinery.objects.wording import MOST_QUOTED, shortened

#: From so many deaths on launches wait.
_TOO_MANY = 2
#: A node that has been there for so long has not died of its launch.
SERVED = timedelta(minutes=10)
_FIRST_WAIT, _LONGEST_WAIT, _MOST_DOUBLINGS = timedelta(minutes=2), timedelta(hours=1), 5


class Deaths(msgspec.Struct, frozen=True, omit_defaults=True):
    """What died of one cause.

    ``code``, ``why``: EC2's code, and its words with it. ``images``: what the instances booted. ``tries``: attempts in
    a row that ended so; until launches wait, each death is one. ``at``: when the last one did, ``claim``: whose it
    was. ``spec``: the class's static hash. ``joined``: whether one had joined.
    """

    code: str
    why: str
    images: tuple[str, ...]
    tries: int
    at: datetime
    claim: str
    spec: str
    joined: bool = False

    @property
    def is_cause(self) -> bool:
        """Whether launches wait for it."""
        return self.tries >= _TOO_MANY

    @property
    def until(self) -> datetime:
        """Until when nothing is launched: after each attempt for twice as long, up to an hour."""
        doublings = min(max(self.tries - _TOO_MANY, 0), _MOST_DOUBLINGS)
        return self.at + min(_FIRST_WAIT * (1 << doublings), _LONGEST_WAIT)


def deaths_of(node_class: NodeClass, now: datetime) -> tuple[Deaths, ...]:
    """What the class remembers, as far as it can be read and says something of what the class is now."""
    listed = decode_each(node_class.metadata.annotations.get(DIED_AT_LAUNCH, "[]"), Deaths)
    return tuple(one for one in listed if one.spec == node_class.static_hash and is_believable(one.at, now))


def with_deaths(
    node_class: NodeClass, claims: Iterable[NodeClaim], died: Mapping[str, Instance], now: datetime
) -> NodeClass:
    """The class with what it has to remember. ``claims``: all of it. ``died``: by claim, instances that died."""
    known = {one.code: one for one in deaths_of(node_class, now)}
    of_class = sorted(claims, key=lambda claim: claim.metadata.name)
    for claim in of_class:
        instance = died.get(claim.metadata.name)
        if instance is not None:
            known[instance.reason_code] = _after(known.get(instance.reason_code), claim, instance, node_class, now)
    lasting = [one for _, one in sorted(known.items()) if not any(_is_over(one, claim, now) for claim in of_class)]
    annotations = with_entries(node_class.metadata.annotations, DIED_AT_LAUNCH, lasting)
    return with_metadata(node_class, annotations=annotations)


def _after(before: Deaths | None, claim: NodeClaim, instance: Instance, node_class: NodeClass, now: datetime) -> Deaths:
    """What is remembered after a death. One that is read again, or of an attempt that is counted, changes nothing."""
    at, why, name = _end(claim, now), shortened(instance.why, MOST_QUOTED), claim.metadata.name
    joined = has_joined(claim)
    if before is None:
        return Deaths(instance.reason_code, why, (instance.image_id,), 1, at, name, node_class.static_hash, joined)
    images = tuple(sorted({*before.images, instance.image_id}))
    is_counted = name == before.claim or at <= before.at or (before.is_cause and at < before.until)
    if is_counted:
        return msgspec.structs.replace(before, images=images, joined=joined or before.joined)
    return msgspec.structs.replace(
        before, images=images, why=why, tries=before.tries + 1, at=at, claim=name, joined=joined or before.joined
    )


def has_served(claim: NodeClaim, now: datetime) -> bool:
    """Whether its node was there for so long that its end says nothing of its launch."""
    since = _joined_at(claim)
    return has_joined(claim) if since is None else _end(claim, now) - since >= SERVED


def has_joined_since(deaths: Deaths, claim: NodeClaim) -> bool:
    """Whether a node with one of the images has joined since the last death."""
    since = _joined_at(claim)
    return since is not None and since > deaths.at and claim.status.image_id in deaths.images


def _is_over(deaths: Deaths, claim: NodeClaim, now: datetime) -> bool:
    return has_joined_since(deaths, claim) and (not deaths.joined or has_served(claim, now))


def _joined_at(claim: NodeClaim) -> datetime | None:
    registered = claim.condition(REGISTERED)
    return registered.last_transition_time if registered and registered.status == "True" else None


def _end(claim: NodeClaim, now: datetime) -> datetime:
    """When it ended, or now."""
    return claim.metadata.deletion_timestamp or now
