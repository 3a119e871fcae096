"""CreateFleet: the launch templates that a request needs are made, and one call asks for all its instances.

Image, pod count, adapters and capacity reservation are written in a launch template. So a request for many types
becomes a few templates, each with its own pools. EC2 chooses freely among the pools of all templates of the call.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any

from joinery.gateways.answers import entries
from joinery.gateways.aws import LONGEST_REQUEST, Clients, code, translated
from joinery.gateways.deadlines import in_time
from joinery.gateways.ec2.catalog.description import Description, converted
from joinery.gateways.ec2.gateway import Instance, LaunchedInstance, LaunchRequest, LaunchResult, Override
from joinery.gateways.ec2.instancetypes.capacity import variables
from joinery.gateways.ec2.instancetypes.families import FAMILIES
from joinery.gateways.ec2.instancetypes.typelabels import type_labels
from joinery.gateways.ec2.launch.addresses import Addresses, LaunchSubnets
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.gateways.ec2.launch.fleet import fleet, full_subnets, out_of, result
from joinery.gateways.ec2.launch.launch_templates import LaunchTemplates
from joinery.gateways.ec2.launch.running import described
from joinery.gateways.ec2.launch.templates import FabricAdapter, Template, pools_by_template, template_of
from joinery.gateways.ec2.nodeclass.discovery import free_addresses
from joinery.gateways.ec2.nodeclass.tags import instance_tags
from joinery.objects.codes import CAPACITY, TEMPLATE_NOT_FOUND, TOKEN_REUSED
from joinery.objects.errors import CapacityError, ConfigurationError, NotFoundError, UnavailableError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec, of_ec2
from joinery.objects.karpenter.kubelet.expressions import expressions, reserved
from joinery.objects.kubernetes.cel_tokens import ExpressionError

_TYPES = "EC2 DescribeInstanceTypes"
#: How many types DescribeInstanceTypes may be asked for by name in one call.
_MOST_TYPES = 100
#: How many calls a launch may take where subnets have addresses for some of its instances only: each takes seconds.
_MOST_CALLS = 3
#: After which time DescribeInstances lists what one call has launched, as a rule within seconds (EC2 API, "Eventual
#: consistency"). What it lists later still is nobody's, and is collected as garbage.
_LISTED_WITHIN = timedelta(minutes=1)


@dataclass(frozen=True)
class _Launch:
    """What all calls of a launch have in common.

    ``configs``: launch templates, each with the pools that it may be launched from. ``tags``: of the instances.
    ``images``: by instance type, the id of its image. ``ipv6``: whether the cluster is of that family.
    """

    configs: Sequence[tuple[Template, Sequence[Override]]]
    tags: Mapping[str, str]
    images: Mapping[str, str]
    ipv6: bool


class CreateFleet:
    """Launches for one cluster.

    It remembers the types that it has read, and which templates are there, so that a warm launch is one call. Safe to
    use from several threads.
    """

    def __init__(self, clients: Clients, now: Callable[[], datetime], templates: LaunchTemplates) -> None:
        """``now``: the clock by which what EC2 says gets old. ``templates``: the cluster's."""
        self._clients, self._now = clients, now
        self._templates = templates
        self._addresses = Addresses(partial(free_addresses, clients), now, clients.log)
        self._descriptions: dict[str, Description] = {}
        self._describing = Lock()
        # By token, when EC2 first said that it was used for another call.
        self._repeated: dict[str, datetime] = {}

    def launch(self, request: LaunchRequest, facts: ClusterFacts) -> LaunchResult:
        """What ``Cloud.launch`` promises. ``facts`` are about the cluster that the instances will join."""
        node_class = of_ec2(request.node_class)
        # One launch reads the types, and those beside it find them read.
        with self._describing:
            images = self._images(request, node_class)
        reserved_of = partial(self._reserved, node_class.spec)
        by_template = pools_by_template(request.overrides, images, reserved_of, self._adapters)
        # EC2 says nothing of what it is not asked for.
        request = replace(request, overrides=tuple(chain.from_iterable(by_template.values())))
        configs = [
            (template_of(request, node_class, facts, key, self._clients.region), pools)
            for key, pools in by_template.items()
        ]
        if not configs:
            raise ConfigurationError(f"EC2NodeClass {node_class.metadata.name}: no image boots any requested type")
        tags = {**instance_tags(facts.name, node_class, request.node_pool), labels.LAUNCH_TOKEN: request.token}
        answered = self._call(request, _Launch(configs, tags, images, facts.ipv6))
        return self._launched_before(request) if answered is None else answered

    def _call(self, request: LaunchRequest, launch: _Launch, calls: int = _MOST_CALLS) -> LaunchResult | None:
        """What came of one call, and of another for the rest where its subnets have addresses for some instances only,
        or turn out to be full, and their zones have more.

        ``calls``: how many may be made where nothing is full; the last is for all that is left. None if a token was
        used before for another call.
        """
        places = self._addresses.choose(request, ipv6=launch.ipv6)
        part = replace(request, count=places.count if calls > 1 else request.count)
        answered = self._answered(part, launch, places)
        if answered is None:
            return None
        left = request.count - len(answered.instances)
        full = full_subnets(request, answered, places.subnets)
        is_served = len(answered.instances) == part.count
        if left <= 0 or (full == request.full_subnets and not is_served):
            return answered
        rest = replace(request, count=left, token=f"{request.token}-{len(full)}", full_subnets=full)
        try:
            more = self._call(rest, launch, calls - is_served)
        except CapacityError:
            return answered
        if more is None:
            return None
        failures = dict.fromkeys(answered.failures + more.failures)
        return LaunchResult(answered.instances + more.instances, tuple(failures))

    def _answered(self, request: LaunchRequest, launch: _Launch, places: LaunchSubnets) -> LaunchResult | None:
        """What came of one call into these places. What it does not take of their addresses is given back."""
        asked = tuple(override for override in request.overrides if override.zone not in places.left_out)
        request = replace(request, overrides=asked)
        launched: tuple[LaunchedInstance, ...] = ()
        try:
            configs = [(template.name, pools) for template, pools in launch.configs]
            call = fleet(request, configs, launch.tags, places.subnets)
            answer = self._create_fleet(call, [template for template, _ in launch.configs])
            if answer is None:
                return None
            said = result(request, answer, launch.images, places.subnets)
            if any(failure.code in TEMPLATE_NOT_FOUND for failure in said.failures):
                # EC2 may say so of single pools, too. The next call makes what it needs.
                self._templates.forget()
            answered = self._completed(said)
            launched = answered.instances
            return answered
        except (CapacityError, NotFoundError) as refused:
            if isinstance(refused, NotFoundError) and refused.code not in CAPACITY:
                raise
            # The whole call was refused, so EC2 was out of everything that it was asked for.
            pools = out_of(request, places.subnets, refused.code, str(refused))
            raise CapacityError(str(refused), pools) from refused
        finally:
            self._addresses.release(places, launched)

    def _completed(self, answered: LaunchResult) -> LaunchResult:
        """The result with type and zone of all instances.

        CreateFleet may leave them out, and a claim finds its node by its zone.

        Raises ``UnavailableError`` where DescribeInstances does not say them yet either. Repeating the call launches
        nothing more.
        """
        vague = [
            launched.instance_id for launched in answered.instances if not (launched.instance_type and launched.zone)
        ]
        if not vague:
            return answered
        try:
            instances = {instance.instance_id: instance for instance in described(self._clients, InstanceIds=vague)}
        except NotFoundError:
            instances = {}  # for a moment EC2 does not know what it has just launched
        completed = (
            _as_described(launched, instances.get(launched.instance_id)) if launched.instance_id in vague else launched
            for launched in answered.instances
        )
        return LaunchResult(tuple(completed), answered.failures)

    def _create_fleet(self, call: dict[str, Any], templates: list[Template]) -> Mapping[str, Any] | None:
        """EC2's answer. None if the token was used before for a call with other parameters."""
        from botocore.exceptions import ClientError

        with translated("creating a fleet"):
            self._templates.ensure(templates)
            in_time("creating a fleet", LONGEST_REQUEST)
            try:
                return self._clients.ec2.create_fleet(**call)
            except ClientError as refused:
                if code(refused) == TOKEN_REUSED:
                    return None
                if code(refused) not in TEMPLATE_NOT_FOUND:
                    raise
            # Somebody deleted a template that this process remembers. All are made again, once.
            self._templates.forget()
            self._templates.ensure(templates)
            try:
                return self._clients.ec2.create_fleet(**call)
            except ClientError as refused:
                if code(refused) not in TEMPLATE_NOT_FOUND:
                    raise
                # They are there, and EC2 does not see them everywhere yet (EC2 API, "Eventual consistency").
                raise UnavailableError(f"EC2 CreateFleet: its launch templates are not seen yet: {refused}") from None

    def _launched_before(self, request: LaunchRequest) -> LaunchResult:
        """The instances of another call with this token: its answer was lost, or it is still under way.

        Prices or stock have changed the request since. What it has not launched has to be asked for with another token.
        Raises ``UnavailableError`` as long as it may have launched more than is listed.
        """
        filters = [{"Name": f"tag:{labels.LAUNCH_TOKEN}", "Values": [request.token]}]
        listed, now = described(self._clients, Filters=filters), self._now()
        met = self._repeated.setdefault(request.token, now)
        # One that does not say when it was launched has a moment that never comes.
        since = max((one.launched_at if one.launched_at <= now else met for one in listed), default=met)
        if len(listed) < request.count and now - since < _LISTED_WITHIN:
            raise UnavailableError(
                f"EC2 CreateFleet: the instances of an earlier call ({request.token}) are not all seen yet"
            )
        self._repeated.pop(request.token, None)
        launched = tuple(
            LaunchedInstance(
                instance_id=instance.instance_id,
                instance_type=instance.instance_type,
                zone=instance.zone,
                capacity_type=instance.capacity_type,
                image_id=instance.image_id,
                reservation=instance.reservation,
            )
            for instance in listed
            if instance.serves
        )
        return LaunchResult(launched)

    def _images(self, request: LaunchRequest, node_class: EC2NodeClass) -> dict[str, str]:
        """Instance type to the id of the image that it would boot. Types that no image boots are left out."""
        status = node_class.status
        if not status.amis:
            raise ConfigurationError(f"EC2NodeClass {node_class.metadata.name}: status.amis is empty")
        names = list(dict.fromkeys(override.instance_type for override in request.overrides))
        family = FAMILIES[node_class.spec.family]
        images = {
            name: status.image_for(type_labels(description, family, self._clients.region))
            for name, description in self._describe(names).items()
        }
        return {name: image.id for name, image in images.items() if image is not None}

    def _reserved(self, spec: EC2NodeClassSpec, override: Override) -> str:
        """Raises ``ConfigurationError`` for an expression that has no value for the type."""
        if not any(expressions(spec.kubelet)):
            return ""
        known = variables(self._descriptions[override.instance_type], override.max_pods)
        try:
            return json.dumps(reserved(spec.kubelet, known), sort_keys=True)
        except ExpressionError as error:
            raise ConfigurationError(f"spec.kubelet.{error}") from None

    def _adapters(self, override: Override) -> tuple[FabricAdapter, ...]:
        description = self._descriptions[override.instance_type]
        first, only = 0 if description.efa_on_first_card else 1, description.efa_only_cards
        return tuple(FabricAdapter(card, card in only) for card in range(first, first + override.efa))

    def _describe(self, names: list[str]) -> dict[str, Description]:
        """The types of these names, as far as EC2 knows them."""
        missing: list[Any] = [name for name in names if name not in self._descriptions]
        with translated("describing instance types"):
            for start in range(0, len(missing), _MOST_TYPES):
                batch = missing[start : start + _MOST_TYPES]
                answer = self._clients.ec2.describe_instance_types(InstanceTypes=batch)
                listed = entries(answer, "InstanceTypes", "InstanceType", call=_TYPES, log=self._clients.log)
                for description in converted(listed, Description, "InstanceType", call=_TYPES, log=self._clients.log):
                    self._descriptions[description.instance_type] = description
        return {name: self._descriptions[name] for name in names if name in self._descriptions}


def _as_described(launched: LaunchedInstance, instance: Instance | None) -> LaunchedInstance:
    """The launched instance with what DescribeInstances says of it, where CreateFleet did not."""
    instance_type = launched.instance_type or (instance.instance_type if instance else "")
    zone = launched.zone or (instance.zone if instance else "")
    if not (instance_type and zone):
        raise UnavailableError(
            f"EC2 CreateFleet: {launched.instance_id} has no InstanceType or no AvailabilityZone yet"
        )
    return replace(launched, instance_type=instance_type, zone=zone)
