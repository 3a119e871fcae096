"""The gateways a controller may be given, in bundles: real ones in Lambda, the simulator's everywhere else."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from joinery.gateways.doorbell.gateway import Doorbell
from joinery.gateways.ec2.gateway import Cloud
from joinery.gateways.kubernetes.gateway import Cluster, Objects, Recorder
from joinery.gateways.memory.bucket import Store
from joinery.gateways.memory.unavailable import RefusedRequests, RememberedRefusals, UnavailableOfferings
from joinery.gateways.workers import OneByOne, Workers

if TYPE_CHECKING:
    from joinery.gateways.account.gateway import Account
    from joinery.gateways.memory.members import Register


@dataclass(frozen=True)
class Gateways:
    """What decides about nodes works with.

    ``workers``: how independent calls of these gateways are made, one by one or several at a time. ``refusals``: what
    they refused.
    """

    cluster: Cluster
    recorder: Recorder
    cloud: Cloud
    doorbell: Doorbell
    store: Store
    unavailable: UnavailableOfferings
    workers: Workers = field(default_factory=OneByOne)
    refusals: RefusedRequests = field(default_factory=RememberedRefusals)

    @property
    def may_launch(self) -> bool:
        """Whether the cloud is asked for instances. ``joinery.gateways.observing`` says no."""
        return True


@dataclass(frozen=True)
class InstallerGateways:
    """What installs works with. ``objects``: those of a cluster, by its name; nothing is asked before it is used.
    ``sleep`` waits so many seconds, ``now`` tells the time. ``register``: of the members of this stack. ``as_member``:
    the same as another role, which is a member's own: of its ARN, and that of its webhook's secret.
    """

    account: "Account"
    objects: Callable[[str], Objects]
    sleep: Callable[[float], None]
    now: Callable[[], datetime]
    register: "Register"
    as_member: Callable[[str, str], "InstallerGateways"]
