"""VerticalPodAutoscaler (``autoscaling.k8s.io/v1``), as far as it says what pods will request when they are made."""

from joinery.objects.kubernetes.core import ObjectMeta, _Object

#: The modes in which pods are made with what is recommended. In Off nobody acts on it.
ACTING_MODES = frozenset({"Initial", "Recreate", "Auto", "InPlaceOrRecreate"})
#: The container policy that speaks for all containers without one of their own.
ANY_CONTAINER = "*"


class TargetRef(_Object, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class UpdatePolicy(_Object, frozen=True):
    update_mode: str = ""


class ContainerPolicy(_Object, frozen=True):
    """``mode``: ``Off`` leaves the container as it is written. ``controlled_resources``: None for CPU and memory."""

    container_name: str = ""
    mode: str = ""
    controlled_resources: list[str] | None = None


class ResourcePolicy(_Object, frozen=True):
    container_policies: list[ContainerPolicy] = []


class VerticalSpec(_Object, frozen=True):
    target_ref: TargetRef = TargetRef()
    update_policy: UpdatePolicy = UpdatePolicy()
    resource_policy: ResourcePolicy = ResourcePolicy()


class ContainerRecommendation(_Object, frozen=True):
    """``target``: what the container is to request, within its policy's bounds already."""

    container_name: str = ""
    target: dict[str, str | int | float] = {}


class Recommendation(_Object, frozen=True):
    container_recommendations: list[ContainerRecommendation] = []


class VerticalStatus(_Object, frozen=True):
    recommendation: Recommendation = Recommendation()


class VerticalPodAutoscaler(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VerticalSpec = VerticalSpec()
    status: VerticalStatus = VerticalStatus()

    @property
    def acts(self) -> bool:
        """Whether pods are made with what is recommended. A mode that is not written is Auto."""
        return (self.spec.update_policy.update_mode or "Auto") in ACTING_MODES

    def target_of(self, container: str) -> dict[str, str | int | float]:
        """What a container of that name is to request; nothing where it is left as it is written."""
        policies = {one.container_name: one for one in self.spec.resource_policy.container_policies}
        policy = policies.get(container, policies.get(ANY_CONTAINER, ContainerPolicy()))
        listed = self.status.recommendation.container_recommendations
        target = next((one.target for one in listed if one.container_name == container), {})
        if policy.mode == "Off":
            return {}
        controlled = policy.controlled_resources
        return {name: amount for name, amount in target.items() if controlled is None or name in controlled}
