"""The six gateways a controller may be given, in one bundle: real ones in Lambda, the simulator's everywhere else."""

from dataclasses import dataclass, field

from joinery.cloudprovider.gateway import Cloud
from joinery.cluster.gateway import Cluster, Recorder
from joinery.doorbell.gateway import Doorbell
from joinery.store.gateway import Store
from joinery.unavailable.gateway import UnavailableOfferings
from joinery.workers import OneByOne, Workers


@dataclass(frozen=True)
class Gateways:
    """``workers``: how independent calls of these gateways are made, one by one or several at a time."""

    cluster: Cluster
    recorder: Recorder
    cloud: Cloud
    doorbell: Doorbell
    store: Store
    unavailable: UnavailableOfferings
    workers: Workers = field(default_factory=OneByOne)

    @property
    def may_launch(self) -> bool:
        """Whether the cloud is asked for instances. ``joinery.observing`` says no."""
        return True
