"""Instances of ours, as EC2 reports them. With the snapshot they are what a claim's lifecycle is decided from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from joinery.objects.karpenter.labels import CORE_GROUP, LAUNCH_TOKEN, MANAGED_BY
from joinery.objects.snapshot.offerings import OfferingKey

#: The tag that names an instance's claim, once it has joined the cluster.
INSTANCE_CLAIM_TAG = f"{CORE_GROUP}/nodeclaim"
#: Our code, beside EC2's, for why an instance is as good as dead: EC2 has never known it.
NEVER_LISTED = "NeverListed"
#: What provider IDs of EC2 begin with.
AWS = "aws"
#: EC2's words for an instance that is stopped, on which nothing runs, and for one that is no more.
STOPPED, TERMINATED = "stopped", "terminated"
#: Its words for an instance that is on its way out.
GOING = ("shutting-down", TERMINATED)
#: EC2's words for why an instance ends (EC2 API `StateReason`), where that is nobody's fault: a person or Joinery ended
#: it, EC2 took it back, or was out of it after all. Of the codes only these beginnings.
_ENDED_BY_SOMEBODY = ("Client.UserInitiated", "Server.ScheduledStop")
_OUT_OF_STOCK = ("Server.Spot", "Server.InsufficientInstanceCapacity")


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance that this cluster owns, as EC2 has it now.

    ``capacity_type``: reserved, spot or on-demand. ``state``: EC2's word for it (``pending``, ``running``, ...).
    ``launched_at``: in UTC. ``image_id``: of its AMI. ``reservation``: the id of the capacity reservation in which it
    was launched, empty if there was none. ``provider``: what provider IDs of its cloud begin with.

    ``placement_group_id``, ``placement_group``: id and name of the placement group that it is in.

    ``reason_code``, ``reason``: EC2's code and words for why it ends or has ended; empty where EC2 does not say.

    ``subnet_id``, ``security_groups`` (ids): of its primary network interface. ``instance_profile``: the profile's
    name. They are empty where EC2 does not say, as of an instance that is terminated.
    """

    instance_id: str
    instance_type: str
    zone: str
    capacity_type: str
    state: str
    launched_at: datetime
    image_id: str = ""
    tags: Mapping[str, str] | None = None
    reservation: str = ""
    provider: str = AWS
    subnet_id: str = ""
    security_groups: frozenset[str] = frozenset()
    instance_profile: str = ""
    placement_group_id: str = ""
    placement_group: str = ""
    partition: str = ""
    reason_code: str = ""
    reason: str = ""

    @property
    def is_of_older_karpenter(self) -> bool:
        """Whether Karpenter up to v0.37 has launched it."""
        return MANAGED_BY in (self.tags or {})

    @property
    def provider_id(self) -> str:
        return f"{self.provider}:///{self.zone}/{self.instance_id}"

    @property
    def offering(self) -> OfferingKey:
        """The capacity pool that it is of."""
        return OfferingKey(self.instance_type, self.zone, self.capacity_type, self.reservation)

    @property
    def launch_token(self) -> str:
        """The token of the call that launched it; empty without the tag."""
        return (self.tags or {}).get(LAUNCH_TOKEN, "")

    @property
    def is_going(self) -> bool:
        """Whether it is shutting down or gone."""
        return self.state in GOING

    @property
    def serves(self) -> bool:
        """Whether it is, or will be, of use. One that is stopped is not: its claim is given up as if it were gone."""
        return self.state not in (*GOING, "stopping", STOPPED)

    @property
    def why(self) -> str:
        """EC2's code and words for why it ends."""
        return ": ".join(filter(None, (self.reason_code, self.reason))) or "EC2 does not say why"

    @property
    def is_out_of_stock(self) -> bool:
        """Whether EC2 ends it because it needs the capacity itself, or has none after all."""
        return self.is_going and self.reason_code.startswith(_OUT_OF_STOCK)

    @property
    def has_died(self) -> bool:
        """Whether EC2 says that it ends for what it was made of, or for a fault of EC2's: nobody wanted that."""
        has_reason = bool(self.reason_code) and not self.reason_code.startswith((*_ENDED_BY_SOMEBODY, *_OUT_OF_STOCK))
        return has_reason and not self.serves


@dataclass(frozen=True, slots=True)
class InstanceStatus:
    """What EC2 says is wrong with an instance, its own or somebody else's of the account (EC2 API `InstanceStatus`).

    ``instance_failed``, ``system_failed``: since when EC2's check of the instance, or of the host below it, has failed;
    None if it has not. ``events``: the codes of what EC2 has scheduled for the instance and not done yet. ``starts``:
    when the first of these begins; None if one does not say.
    """

    instance_id: str
    instance_failed: datetime | None = None
    system_failed: datetime | None = None
    events: tuple[str, ...] = ()
    starts: datetime | None = None


def instance_id(provider_id: str) -> str:
    """The instance id in a provider ID (``aws:///zone/i-…``); empty for a claim that has none yet."""
    return provider_id.rpartition("/")[2]
