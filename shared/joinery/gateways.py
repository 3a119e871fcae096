"""The gateways a controller may be given, in bundles: real ones in Lambda, the simulator's everywhere else."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from joinery.account.gateway import Account
from joinery.cloudprovider.gateway import Cloud
from joinery.cluster.gateway import Cluster, Objects, Recorder
from joinery.doorbell.gateway import Doorbell
from joinery.store.gateway import Store
from joinery.unavailable.gateway import RefusedRequests, UnavailableOfferings
from joinery.unavailable.remembered import RememberedRefusals
from joinery.workers import OneByOne, Workers


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
        """Whether the cloud is asked for instances. ``joinery.observing`` says no."""
        return True


@dataclass(frozen=True)
class InstallerGateways:
    """What installs works with. ``objects``: those of a cluster, by its name; nothing is asked before it is used.
    ``sleep`` waits so many seconds, ``now`` tells the time.
    """

    account: Account
    objects: Callable[[str], Objects]
    sleep: Callable[[float], None]
    now: Callable[[], datetime]
