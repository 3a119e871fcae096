"""The launcher: NodeClaims that were written get their instances; those planned alike, by one CreateFleet call.

Provisioning launches the claims that it has just written. Lifecycle, and the next run of provisioning, launch those
that a killed run left behind. Repeating a call is safe: the token makes EC2 return the same instances, and an instance
that already carries the token is taken without asking EC2 again.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.announcements import news
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.launching.fleet_calls import outcome_of, outcome_of_earlier_call, refusal_of, request_of
from joinery.controllers.launching.supply import Supply, read_supply
from joinery.controllers.telemetry import REASON, logger
from joinery.decisions.lifecycle.launching.asks import launching
from joinery.decisions.lifecycle.launching.capped_launches import within_caps
from joinery.decisions.lifecycle.launching.fleet_groups import (
    FleetGroup,
    FleetOutcome,
    after_launch,
    fleet_groups,
    insufficient,
    postponed,
    unlaunchable,
)
from joinery.decisions.lifecycle.launching.instance_filters import filtered, partition, tenancy
from joinery.gateways.bundles import Gateways
from joinery.gateways.deadlines import within
from joinery.gateways.ec2.gateway import (
    LONGEST_CALL,
    LaunchRequest,
    LaunchResult,
)
from joinery.objects.actions import Ask, Command, DeleteClaim
from joinery.objects.errors import CapacityError, JoineryError, TimeIsOverError, UnavailableError
from joinery.objects.karpenter.labels import SHARED_TENANCY
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.policies import Caps
from joinery.objects.refusals import request
from joinery.objects.snapshot.claims import types_of
from joinery.objects.snapshot.instance_owners import lost_provider_ids
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.offerings import InstanceType, without
from joinery.objects.snapshot.shortages import as_met_by
from joinery.objects.snapshot.snapshot import Snapshot

_SOLD_OUT = "all requested instance types were unavailable during launch"


@dataclass(frozen=True, slots=True)
class Launched:
    """What came of launching some claims.

    ``served``: the names of the claims that have an instance now. ``is_short``: some were given up, so their pods have
    to be planned anew. A claim that is to be tried again counts as neither.
    """

    served: frozenset[str] = frozenset()
    is_short: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of finishing launches, and what is left of the caps."""

    launched: Launched
    caps: Caps


@dataclass(frozen=True, slots=True)
class _Call:
    """A CreateFleet call, and the claims that it is for."""

    group: FleetGroup
    request: LaunchRequest


@dataclass(frozen=True, slots=True)
class _Result:
    """What comes of one group.

    ``gains`` and ``losses``: chains of commands, for the claims that got their instance and what EC2 was out of, and
    for the others. ``served``: the names of the claims that have an instance now.
    """

    gains: tuple[tuple[Command, ...], ...] = ()
    losses: tuple[tuple[Command, ...], ...] = ()
    served: tuple[str, ...] = ()

    @property
    def is_short(self) -> bool:
        """As ``Launched`` has it. Whoever is woken for a claim that is tried again would try it at once."""
        return any(isinstance(command, DeleteClaim) for chain in self.losses for command in chain)


class Launcher:
    """Launches claims of one snapshot, out of what can be bought at that moment.

    The calls are made side by side (``Gateways.workers``): CreateFleet takes seconds, and a plan may need dozens.
    """

    def __init__(
        self, gateways: Gateways, actor: Actor, snapshot: Snapshot, supply: Supply, invocation: Invocation
    ) -> None:
        self._gateways = gateways
        self._invocation = invocation
        self._actor = actor
        self._snapshot = snapshot
        self._now = snapshot.now
        self._node_classes = snapshot.classes_by_name
        self._types, self._unavailable = supply.types, supply.unavailable

    def launch(
        self, wanted: Iterable[NodeClaim], claims: Iterable[NodeClaim], instances: Iterable[Instance] = ()
    ) -> Launched:
        """Launch the wanted claims. Failures are noted with the actor, and the other calls go on.

        ``claims`` are all that may share a call with a wanted one, launched or not: the token depends on the whole
        group. ``instances`` are those that EC2 already has; none for claims that nobody can have launched before.
        """
        by_token: dict[str, list[Instance]] = {}
        for instance in instances:
            by_token.setdefault(instance.launch_token, []).append(instance)
        results: list[_Result] = []
        calls: list[_Call] = []
        for group in fleet_groups(wanted, claims):
            step = self._without_asking(group, by_token.get(group.token, ()))
            calls.append(step) if isinstance(step, _Call) else results.append(step)
        calls = self._due(calls)
        answers = self._gateways.workers.run([partial(self._ask, call.request) for call in calls])
        results += [self._answered(call, answer) for call, answer in zip(calls, answers, strict=True)]
        # Instances are written to their claims before any claim is given up: a repeated call finds them taken.
        self._actor.carry_out(*(chain for result in results for chain in result.gains))
        self._actor.carry_out(*(chain for result in results for chain in result.losses))
        served = frozenset(name for result in results for name in result.served)
        return Launched(served, is_short=any(result.is_short for result in results))

    def _due(self, calls: Iterable["_Call"]) -> "list[_Call]":
        """The calls that may be made now: of those that ask for what was refused, one tries whether it still is."""
        due, tried = [], set[str]()
        for call in calls:
            asked = {request(ask) for ask in self._asks(call) if self._actor.was_refused(ask)}
            if tried.isdisjoint(asked) and not any(map(self._actor.waits, self._asks(call))):
                due.append(call)
                tried |= asked
        return due

    def _asks(self, call: "_Call") -> tuple[Ask, Ask]:
        return launching(call.group.waiting[0], self._snapshot)

    def _without_asking(self, group: FleetGroup, launched_before: Iterable[Instance]) -> "_Result | _Call":
        """What can be done for a group without EC2, or the call that it needs."""
        node_class = self._node_classes.get(group.claims[0].spec.node_class_ref.name)
        # Whatever has become of the class since: what was launched is there, and would be bought anew.
        if node_class is not None and (free := group.free(launched_before)):
            result = self._settle(group, outcome_of_earlier_call(free), node_class)
            # A list may leave some of them out. The others wait for the next run, whose call gives them the same ones.
            ended = sum(not instance.serves for instance in free)
            return replace(result, losses=result.losses[:ended])
        if node_class is None or unlaunchable(group.claims[0], node_class, self._now):
            chains = (unlaunchable(claim, node_class, self._now) for claim in group.waiting)
            return _Result(losses=tuple(chains))
        filtered_types = filtered(group.claims[0], self._on_sale(group, node_class), group.requests)
        if filtered_types is None:
            return _Result(losses=tuple(insufficient(claim, _SOLD_OUT) for claim in group.waiting))
        return _Call(group, request_of(group, node_class, filtered_types, self._unavailable))

    def _types_of(self, group: FleetGroup) -> Sequence[InstanceType]:
        return types_of(group.claims[0], self._types) or ()

    def _on_sale(self, group: FleetGroup, node_class: NodeClass) -> Sequence[InstanceType]:
        """The types without what EC2 is out of in the partition, or on the hardware, that the claims ask for."""
        types, asked = self._types_of(group), (tenancy(group.claims[0]), partition(group.claims[0]))
        if asked == (SHARED_TENANCY, ""):
            return types
        return without(types, as_met_by(node_class, self._unavailable, tenancy=asked[0], partition=asked[1]))

    def _ask(self, request: LaunchRequest) -> LaunchResult:
        """One CreateFleet call, beside others; none where it might not end in time.

        A launch is several requests, of which others may wait for the first.
        """
        if not self._invocation.has_time_for(LONGEST_CALL):
            raise TimeIsOverError("no time is left for a CreateFleet call")
        try:
            with within(self._invocation.has_time_for):
                return self._gateways.cloud.launch(request)
        except JoineryError:
            raise
        except Exception as error:  # also a mistake of our own stops no other call, and nothing that follows
            raise UnavailableError(f"a mistake of Joinery's own: {error!r}") from error

    def _answered(self, call: "_Call", answer: LaunchResult | JoineryError) -> "_Result":
        """What comes of a call. Claims are left for another try if EC2 was not asked, or its answer is not known."""
        self._note(call, answer)
        if isinstance(answer, CapacityError):
            outcome = FleetOutcome(out_of=answer.pools, shortage=str(answer))
        elif isinstance(answer, TimeIsOverError):
            self._actor.leave(len(call.group.waiting))
            return _Result()
        elif isinstance(answer, JoineryError):
            return self._postponed(call.group, answer)
        elif not answer.was_asked:
            return _Result()
        else:
            outcome = outcome_of(answer, self._now)
        return self._settle(call.group, outcome, call.request.node_class)

    def _note(self, call: "_Call", answer: LaunchResult | JoineryError) -> None:
        """Take note whether it was refused: as a whole, or all that it names."""
        whole, alike = self._asks(call)
        failure = answer if isinstance(answer, JoineryError) else None
        self._actor.answered(whole, failure)
        if isinstance(answer, LaunchResult) and answer.was_asked:
            self._actor.answered(alike, refusal_of(answer))
            with suppress(JoineryError):  # it ends by itself
                self._gateways.unavailable.forget(call.request.served_by(answer))

    def _settle(self, group: FleetGroup, outcome: FleetOutcome, node_class: NodeClass) -> "_Result":
        types = {instance_type.name: instance_type for instance_type in self._types_of(group)}
        gains, losses = after_launch(group, outcome, node_class, types, self._now)
        served = group.waiting[: len(group.free(outcome.instances))]
        names = tuple(claim.metadata.name for claim in served)
        return _Result(gains, losses, names)

    def _postponed(self, group: FleetGroup, error: JoineryError) -> "_Result":
        # The token stays. EC2 remembers it of requests that succeeded (EC2 API, "Ensuring idempotency"): a refused call
        # can be repeated with it, one without an answer must be. And whoever launches these claims at this moment, from
        # an older snapshot, does so with this token, so that both get the same instances.
        self._actor.note("a launch failed", error)
        chains = (postponed(claim, "LaunchFailed", str(error), self._now) for claim in group.waiting)
        return _Result(losses=tuple(chains))


def finish_launches(
    gateways: Gateways,
    actor: Actor,
    snapshot: Snapshot,
    left_behind: Iterable[NodeClaim],
    *,
    instances: Collection[Instance],
    caps: Caps,
    invocation: Invocation,
) -> Finished:
    """Launch claims that a killed run left behind, as far as the caps allow.

    It may have asked EC2 for them already. Therefore ``instances``, all that this cluster owns, are looked through
    first. Where nothing may be launched, nothing is decided about them. A claim that has only lost its provider ID is
    left to lifecycle, which gives it back (``lifecycle.joining.membership``).
    """
    if not gateways.may_launch:
        return Finished(Launched(), caps)
    supply = read_supply(gateways, snapshot)
    known = lost_provider_ids(snapshot.node_claims, snapshot.nodes, instances)
    wanted = (claim for claim in left_behind if claim.metadata.name not in known)
    groups = fleet_groups(wanted, snapshot.node_claims)
    tokens = {instance.launch_token for instance in instances}
    capped = within_caps(groups, caps, snapshot=snapshot, types=supply.types, launched=tokens)
    if capped.announcements:
        logger.error("a cap leaves out launches", extra={REASON: capped.announcements[0].message})
        actor.emit(news(gateways, capped.announcements))
    launcher = Launcher(gateways, actor, snapshot, supply, invocation)
    return Finished(launcher.launch(capped.admitted, snapshot.node_claims, instances), capped.caps)
