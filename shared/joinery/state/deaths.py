"""Instances that died at launch, as their node class remembers it (``joinery.dev/died-at-launch``).

Of each cause, by EC2's code: which images died of it, how often and when last. It counts as long as the class is what
it was. A node that joins with one of the images ends it. Lifecycle writes it before the claims go; users may edit it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from joinery.apis.decoding import decode_each, with_entries
from joinery.apis.labels import DIED_AT_LAUNCH
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodeclass import NodeClass
from joinery.state.claims import REGISTERED
from joinery.state.instances import Instance
from joinery.state.marks import is_believable

#: From so many deaths on launches wait.
_TOO_MANY = 2
_FIRST_WAIT, _LONGEST_WAIT, _MOST_DOUBLINGS = timedelta(minutes=2), timedelta(hours=1), 5
#: EC2's words may be a page; an annotation is not for that.
_MESSAGE_CHARS = 300


class Deaths(msgspec.Struct, frozen=True, omit_defaults=True):
    """What died of one cause.

    ``code``, ``why``: EC2's code, and its words with it. ``images``: what the instances booted. ``tries``: attempts in
    a row that ended so; until launches wait, each death is one. ``at``: when the last one did, ``claim``: whose it
    was. ``spec``: the class's static hash.
    """

    code: str
    why: str
    images: tuple[str, ...]
    tries: int
    at: datetime
    claim: str
    spec: str

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
    lasting = [one for _, one in sorted(known.items()) if not any(_has_joined_since(one, claim) for claim in of_class)]
    annotations = with_entries(node_class.metadata.annotations, DIED_AT_LAUNCH, lasting)
    metadata = node_class.metadata.model_copy(update={"annotations": annotations})
    return node_class.model_copy(update={"metadata": metadata})


def _after(before: Deaths | None, claim: NodeClaim, instance: Instance, node_class: NodeClass, now: datetime) -> Deaths:
    """What is remembered after a death. One that is read again, or of an attempt that is counted, changes nothing."""
    at, why, name = claim.metadata.deletion_timestamp or now, instance.why[:_MESSAGE_CHARS], claim.metadata.name
    if before is None:
        return Deaths(instance.reason_code, why, (instance.image_id,), 1, at, name, node_class.static_hash)
    images = tuple(sorted({*before.images, instance.image_id}))
    is_counted = name == before.claim or at <= before.at or (before.is_cause and at < before.until)
    if is_counted:
        return msgspec.structs.replace(before, images=images)
    return msgspec.structs.replace(before, images=images, why=why, tries=before.tries + 1, at=at, claim=name)


def _has_joined_since(deaths: Deaths, claim: NodeClaim) -> bool:
    registered = claim.condition(REGISTERED)
    if registered is None or registered.status != "True" or claim.status.image_id not in deaths.images:
        return False
    return registered.last_transition_time is not None and registered.last_transition_time > deaths.at
