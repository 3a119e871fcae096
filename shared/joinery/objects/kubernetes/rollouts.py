"""Deployments and their ReplicaSets, as far as a restart of a Deployment needs them (apps/v1)."""

from joinery.objects.kubernetes.core import ObjectMeta, _Object


class PodTemplate(_Object, frozen=True):
    """A pod template without the pods' spec, which a restart leaves as it is."""

    metadata: ObjectMeta = ObjectMeta()


class RollingUpdate(_Object, frozen=True):
    """Counts of pods, or percentages such as ``25%``, which is what Kubernetes writes where nothing is given."""

    max_surge: str | int = "25%"
    max_unavailable: str | int = "25%"


class DeploymentStrategy(_Object, frozen=True):
    """``type``: ``RollingUpdate`` or ``Recreate``."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(_Object, frozen=True):
    replicas: int = 1
    paused: bool = False
    strategy: DeploymentStrategy = DeploymentStrategy()
    template: PodTemplate = PodTemplate()


class DeploymentStatus(_Object, frozen=True):
    """``observed_generation``: which generation of the spec its controller has seen. The rest are counts of pods.

    ``updated_replicas``: those of the newest template.
    """

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0


class Deployment(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSet(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
