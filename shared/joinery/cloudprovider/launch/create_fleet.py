"""CreateFleet: pools grouped by the launch template they need, templates made, one CreateFleet.

Types differ by image and by pod count, and both are in the template; so a request for many types becomes a few
templates, each with its own pools, in one call, among which EC2 chooses freely.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from joinery.answers import entries
from joinery.apis import labels
from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.aws import Clients, code, translated
from joinery.cloudprovider.catalog.description import Description
from joinery.cloudprovider.catalog.structs import converted
from joinery.cloudprovider.gateway import Instance, LaunchedInstance, LaunchRequest, LaunchResult, Override
from joinery.cloudprovider.instancetypes.compatibility import image_for
from joinery.cloudprovider.instancetypes.families import FAMILIES
from joinery.cloudprovider.instancetypes.typelabels import type_labels
from joinery.cloudprovider.launch.facts import ClusterFacts
from joinery.cloudprovider.launch.fleet import fleet, result
from joinery.cloudprovider.launch.running import described
from joinery.cloudprovider.launch.templates import Machine, Template, tag_specifications, template
from joinery.cloudprovider.launch.userdata import bootstrap, user_data
from joinery.cloudprovider.nodeclass.kind import of_ec2
from joinery.cloudprovider.nodeclass.tags import instance_tags
from joinery.codes import ALREADY_EXISTS, TEMPLATE_NOT_FOUND, TOKEN_REUSED
from joinery.errors import CapacityError, ConfigurationError, UnavailableError
from joinery.state.offerings import Reservation

_TYPES = "EC2 DescribeInstanceTypes"
Group = tuple[str, int, int, Reservation | None]
"""Image id, pod count, number of EFAs and the capacity reservation, all of which are in the template."""


class CreateFleet:
    """Remembers which templates it has made and what types are, so that a warm launch is one call."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._made: set[str] = set()
        self._described: dict[str, Description] = {}

    def launch(self, request: LaunchRequest, facts: ClusterFacts) -> LaunchResult:
        node_class = of_ec2(request.node_class)
        images = self._images(request, node_class)
        configs = [
            (_template(request, node_class, facts, group, self._clients.region), pools)
            for group, pools in _groups(request.overrides, images).items()
        ]
        if not configs:
            raise ConfigurationError(f"EC2NodeClass {node_class.metadata.name}: no image boots any requested type")
        tags = {**instance_tags(facts.name, node_class, request.node_pool), labels.LAUNCH_TOKEN: request.token}
        asked = fleet(request, [(made.name, pools) for made, pools in configs], tags)
        try:
            answer = self._create_fleet(asked, [made for made, _ in configs])
        except CapacityError as refused:
            # The whole call was refused, so EC2 was out of everything that it was asked for.
            raise CapacityError(str(refused), request.pools) from refused
        if answer is None:
            return LaunchResult(self._launched_before(request.token))
        return self._completed(result(request, answer, images))

    def _completed(self, found: LaunchResult) -> LaunchResult:
        """With the type and zone of instances of which CreateFleet did not say them: a claim finds its node by its zone.

        Raises ``UnavailableError`` where nobody says them yet. The same call again launches nothing more.
        """
        vague = [each.instance_id for each in found.instances if not (each.instance_type and each.zone)]
        if not vague:
            return found
        known = {each.instance_id: each for each in described(self._clients, InstanceIds=vague)}
        whole = [
            _as_described(each, known.get(each.instance_id)) if each.instance_id in vague else each
            for each in found.instances
        ]
        return LaunchResult(tuple(whole), found.failures)

    def _create_fleet(self, asked: dict[str, Any], templates: list[Template]) -> Mapping[str, Any] | None:
        """EC2's answer; None if the token has launched something else already.

        A template that was deleted behind our back is made again, once.
        """
        from botocore.exceptions import ClientError

        with translated("creating a fleet"):
            self._ensure(templates)
            try:
                return self._clients.ec2.create_fleet(**asked)
            except ClientError as refused:
                if code(refused) == TOKEN_REUSED:
                    return None
                if code(refused) not in TEMPLATE_NOT_FOUND:
                    raise
            self._made.clear()
            self._ensure(templates)
            return self._clients.ec2.create_fleet(**asked)

    def _launched_before(self, token: str) -> tuple[LaunchedInstance, ...]:
        """What a launch whose answer was lost has launched, when prices or stock have changed the request since."""
        found = described(self._clients, Filters=[{"Name": f"tag:{labels.LAUNCH_TOKEN}", "Values": [token]}])
        return tuple(
            LaunchedInstance(
                each.instance_id, each.instance_type, each.zone, each.capacity_type, each.image_id, each.reservation
            )
            for each in found
            if not each.is_going
        )

    def _ensure(self, templates: Iterable[Template]) -> None:
        from botocore.exceptions import ClientError

        for each in templates:
            if each.name in self._made:
                continue
            try:
                self._clients.ec2.create_launch_template(
                    LaunchTemplateName=each.name,
                    LaunchTemplateData=each.data,  # type: ignore[arg-type]
                    TagSpecifications=tag_specifications(("launch-template",), each.tags),  # type: ignore[arg-type]
                )
            except ClientError as refused:
                if code(refused) not in ALREADY_EXISTS:
                    raise
            self._made.add(each.name)

    def _images(self, request: LaunchRequest, node_class: EC2NodeClass) -> dict[str, str]:
        """Instance type to the image it would boot; types that no image boots are left out."""
        amis = node_class.status.amis
        if not amis:
            raise ConfigurationError(f"EC2NodeClass {node_class.metadata.name}: status.amis is empty")
        names = list(dict.fromkeys(override.instance_type for override in request.overrides))
        family = FAMILIES[node_class.spec.family]
        found = {
            name: image_for(amis, type_labels(kind, family, self._clients.region))
            for name, kind in self._describe(names).items()
        }
        return {name: image.id for name, image in found.items() if image is not None}

    def _describe(self, names: list[str]) -> dict[str, Description]:
        missing: list[Any] = [name for name in names if name not in self._described]
        with translated("describing instance types"):
            for start in range(0, len(missing), 100):
                answer = self._clients.ec2.describe_instance_types(InstanceTypes=missing[start : start + 100])
                listed = entries(answer, "InstanceTypes", "InstanceType", call=_TYPES, tell=self._clients.tell)
                found = converted(listed, Description, "InstanceType", call=_TYPES, tell=self._clients.tell)
                self._described |= {kind.instance_type: kind for kind in found}
        return {name: self._described[name] for name in names if name in self._described}


def _as_described(launched: LaunchedInstance, found: Instance | None) -> LaunchedInstance:
    kind = launched.instance_type or (found.instance_type if found else "")
    zone = launched.zone or (found.zone if found else "")
    if not (kind and zone):
        raise UnavailableError(
            f"EC2 CreateFleet: {launched.instance_id} has no InstanceType or no AvailabilityZone yet"
        )
    return replace(launched, instance_type=kind, zone=zone)


def _groups(overrides: Iterable[Override], images: Mapping[str, str]) -> dict[Group, list[Override]]:
    """The pools of each template, one a type and zone: EC2 refuses the same pool twice."""
    found: dict[Group, list[Override]] = {}
    seen: set[tuple[str, str]] = set()
    for override in overrides:
        pool = (override.instance_type, override.zone)
        if override.instance_type in images and pool not in seen:
            seen.add(pool)
            group = images[override.instance_type], override.max_pods, override.efa, override.reservation
            found.setdefault(group, []).append(override)
    return found


def _template(
    request: LaunchRequest, node_class: EC2NodeClass, facts: ClusterFacts, group: Group, region: str
) -> Template:
    image, max_pods, efa, reservation = group
    told = bootstrap(
        facts,
        labelled=request.labels,
        taints=request.taints,
        capacity_type=request.capacity_type,
        max_pods=max_pods,
    )
    machine = Machine(
        image_id=image,
        user_data=user_data(node_class.spec, told),
        capacity_type=request.capacity_type,
        region=region,
        ipv6=facts.ipv6,
        reservation=reservation,
        efa=efa,
        tenancy=request.tenancy,
    )
    return template(node_class, machine, instance_tags(facts.name, node_class, request.node_pool))
