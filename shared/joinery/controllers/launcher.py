"""The launcher: claims that were written get their instances, one CreateFleet call for all that were planned alike.

Provisioning does it right after it wrote the claims; lifecycle does it for claims that whoever wrote them left behind. Both
may repeat a call: the token makes EC2 return the same instances, and an instance that carries the token already is taken
without asking again.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.labels import LAUNCH_TOKEN, NO_EXECUTE, NODE_POOL, UNREGISTERED_TAINT
from joinery.apis.meta import Taint
from joinery.apis.nodeclaim import NodeClaim
from joinery.cloudprovider.gateway import LaunchedInstance, LaunchRequest, LaunchResult, Override, capacity_pools
from joinery.controllers.actor import Actor
from joinery.errors import CapacityError, JoineryError, UnavailableError
from joinery.gateways import Gateways
from joinery.lifecycle.fleet_groups import (
    FleetGroup,
    FleetOutcome,
    fleet_groups,
    insufficient,
    postponed,
    settle,
    unlaunchable,
)
from joinery.lifecycle.instance_filters import FilteredTypes, filtered, tenancy
from joinery.state.instances import Instance
from joinery.state.offerings import EFA, InstanceType

_UNREGISTERED = Taint(key=UNREGISTERED_TAINT, effect=NO_EXECUTE)
_SOLD_OUT = "all requested instance types were unavailable during launch"


class Launcher:
    """``types`` are what each EC2NodeClass gives, without what EC2 was out of lately; ``now`` the snapshot's moment."""

    def __init__(
        self,
        gateways: Gateways,
        actor: Actor,
        now: datetime,
        *,
        node_classes: Iterable[EC2NodeClass],
        types: Mapping[str, tuple[InstanceType, ...]],
    ) -> None:
        self._gateways = gateways
        self._actor = actor
        self._now = now
        self._classes = {node_class.metadata.name: node_class for node_class in node_classes}
        self._types = types
        self.served: set[str] = set()
        self.given_up = False

    def launch(
        self, wanted: Iterable[NodeClaim], claims: Iterable[NodeClaim], instances: Iterable[Instance] = ()
    ) -> None:
        """Launch the wanted ones of all claims. ``instances`` are those that EC2 already has."""
        known = tuple(instances)
        for group in fleet_groups(wanted, claims):
            self._launch(group, tuple(i for i in known if (i.tags or {}).get(LAUNCH_TOKEN) == group.token))

    def _launch(self, group: FleetGroup, found: tuple[Instance, ...]) -> None:
        name = group.claims[0].spec.node_class_ref.name
        node_class = self._classes.get(name)
        hindrance = unlaunchable(group.claims[0], node_class, self._now)
        if hindrance or node_class is None:
            return self._give_up(unlaunchable(claim, node_class, self._now) for claim in group.waiting)
        types = {kind.name: kind for kind in self._types.get(name, ())}
        outcome = FleetOutcome(instances=found) if group.free(found) else self._ask(group, node_class)
        if outcome is None:
            return None
        self._settle(group, outcome, node_class, types)
        return None

    def _settle(
        self, group: FleetGroup, outcome: FleetOutcome, node_class: EC2NodeClass, types: Mapping[str, InstanceType]
    ) -> None:
        served = len(group.free(outcome.instances))
        self.served.update(claim.metadata.name for claim in group.waiting[:served])
        self.given_up |= served < len(group.waiting)
        self._actor.carry_out(*settle(group, outcome, node_class, types, self._now))

    def _give_up(self, chains: Iterable[Iterable[object]]) -> None:
        self.given_up = True
        self._actor.carry_out(*chains)  # type: ignore[arg-type]

    def _ask(self, group: FleetGroup, node_class: EC2NodeClass) -> FleetOutcome | None:
        """One call. None if nothing can be said yet: the claims say why, and are tried again."""
        filtered_types = filtered(group.claims[0], self._types.get(node_class.metadata.name, ()), group.requests)
        if filtered_types is None:
            self._give_up(insufficient(claim, _SOLD_OUT) for claim in group.waiting)
            return None
        try:
            result = self._gateways.cloud.launch(_request(group, node_class, filtered_types))
        except CapacityError as error:
            return FleetOutcome(out_of=error.pools, shortage=str(error))
        except JoineryError as error:
            self._postpone(group, error)
            return None
        return _outcome(result, self._now)

    def _postpone(self, group: FleetGroup, error: JoineryError) -> None:
        """Refused: the next call must be another one. No answer: it must be the same one."""
        renew = not isinstance(error, UnavailableError)
        self._actor.note("a launch failed", error)
        self._actor.carry_out(
            *(postponed(claim, "LaunchFailed", str(error), self._now, renew=renew) for claim in group.waiting)
        )


def _request(group: FleetGroup, node_class: EC2NodeClass, filtered_types: FilteredTypes) -> LaunchRequest:
    claim = group.waiting[0]
    return LaunchRequest(
        token=group.token,
        count=len(group.claims),
        node_pool=claim.metadata.labels.get(NODE_POOL, ""),
        node_class=node_class,
        capacity_type=filtered_types.capacity_type,
        overrides=_overrides(filtered_types, with_efa=group.requests.get(EFA, 0) > 0),
        tenancy=tenancy(claim),
        labels=claim.metadata.labels,
        taints=(*claim.spec.taints, *claim.spec.startup_taints, _UNREGISTERED),
    )


def _overrides(filtered_types: FilteredTypes, *, with_efa: bool) -> tuple[Override, ...]:
    """``with_efa``: some pod asks for Elastic Fabric Adapters, so the instance gets all that its type has."""
    return tuple(
        Override(
            kind.name,
            offering.zone,
            offering.price,
            kind.capacity.get("pods", 0),
            offering.reservation,
            kind.capacity.get(EFA, 0) if with_efa else 0,
        )
        for kind in filtered_types.types
        for offering in sorted(kind.offerings, key=lambda each: (each.price, each.zone))
    )


def _outcome(result: LaunchResult, now: datetime) -> FleetOutcome:
    problems = sorted({f"{f.code}: {f.message}" for f in result.failures if not f.is_capacity})
    # One sentence a code: each pool has its own, which differ in names alone.
    shortages = {f.code: f.message for f in reversed(result.failures) if f.is_capacity}
    problem = "; ".join(problems) or ("" if result.failures else "EC2 returned too few instances and no error")
    return FleetOutcome(
        instances=tuple(_instance(launched, now) for launched in result.instances),
        out_of=capacity_pools(result.failures),
        shortage="; ".join(f"{code}: {shortages[code]}" for code in sorted(shortages)),
        problem=problem,
    )


def _instance(launched: LaunchedInstance, now: datetime) -> Instance:
    return Instance(
        instance_id=launched.instance_id,
        instance_type=launched.instance_type,
        zone=launched.zone,
        capacity_type=launched.capacity_type,
        state="pending",
        launched_at=now,
        image_id=launched.image_id,
        reservation=launched.reservation,
    )
