"""The six gateways a controller may be given, in one bundle: real ones in Lambda, the simulator's everywhere else."""

from dataclasses import dataclass

from joinery.cloudprovider.gateway import Cloud
from joinery.cluster.gateway import Cluster, Recorder
from joinery.doorbell.gateway import Doorbell
from joinery.store.gateway import Store
from joinery.unavailable.gateway import UnavailableOfferings


@dataclass(frozen=True)
class Gateways:
    cluster: Cluster
    recorder: Recorder
    cloud: Cloud
    doorbell: Doorbell
    store: Store
    unavailable: UnavailableOfferings

    @property
    def may_launch(self) -> bool:
        """Whether the cloud is asked for instances. ``joinery.observing`` says no."""
        return True
