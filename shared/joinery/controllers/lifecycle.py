"""Every claim one step further: launched, registered, initialized, drained, terminated. And garbage is collected.

One run looks at everything once and takes one short step for each object. A bad object never stops the others. While
something is in progress the run rings its own bell, whose queue is delayed; the chain of ticks ends with the work.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, islice
from typing import Any

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.announcements import news
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.acting.lease import deciding
from joinery.controllers.acting.owners import read_owners
from joinery.controllers.catalog import current
from joinery.controllers.launching.launcher import Launched, finish_launches
from joinery.controllers.launching.supply import known_shifts
from joinery.controllers.reporting.change_monitor import ChangeMonitor
from joinery.controllers.telemetry import REASON, Count, count, logger, metrics
from joinery.controllers.triggers.backoff import reading
from joinery.decisions.lifecycle.decision import LifecycleDecision, decide
from joinery.decisions.lifecycle.draining.surging import leaving_pods, surges
from joinery.decisions.lifecycle.launching.likely import likely
from joinery.decisions.lifecycle.pools.readiness import unresolved
from joinery.decisions.lifecycle.state.cluster import ClusterState, state_of, unlisted
from joinery.decisions.metrics.pods import Arrivals
from joinery.decisions.scheduling.on_demand_shares import Shares, on_demand_shares
from joinery.decisions.scheduling.pools.overlays import Types
from joinery.gateways.bundles import Gateways
from joinery.gateways.deadlines import within
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.gateway import LONGEST_CALL, Likely
from joinery.gateways.kubernetes import gateway as cluster
from joinery.gateways.workers import both
from joinery.objects.actions import Ask
from joinery.objects.errors import ConflictError, JoineryError, TimeIsOverError
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass, NodeClassStatus
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.policies import NodeRepair, Steering
from joinery.objects.settings import Settings
from joinery.objects.snapshot.claims import awaits_launch
from joinery.objects.snapshot.offerings import LikelyLaunch
from joinery.objects.snapshot.pod_events import Digests
from joinery.objects.snapshot.snapshot import Invalid, Snapshot

#: Seconds that are left after a call to the cloud for calls to the API server: where the cloud is silent, nodes join
#: and drain all the same.
_ACTING_SECONDS = cluster.LONGEST_CALL + 2
#: How often what was made for launches is looked through.
_REMOVING_EVERY = timedelta(minutes=10)
#: How often NodeOverlays are judged that have not changed: the catalogue changes once an hour.
_JUDGED_EVERY = timedelta(hours=1)
#: How many instances a run tags, each by a call of its own, because each has another name. EC2 takes ten calls of
#: CreateTags a second and a hundred at once (EC2 API, "Request throttling"), and others of the account make some, too.
_MOST_TAGGED = 50


class LifecycleController:
    """Woken by its own ticks, by other doors, and once a minute by the schedule."""

    def __init__(self, gateways: Gateways, settings: Settings) -> None:
        self._gateways = gateways
        self._settings = settings
        self._digests = Digests()
        self._monitor = ChangeMonitor()
        self._arrivals = Arrivals()
        self._next_removal: datetime | None = None
        #: As which versions of what they are about NodeOverlays were judged, and until when that holds.
        self._judged = set[tuple[str, str, str]](), datetime.min.replace(tzinfo=UTC)

    def reconcile(self, invocation: Invocation) -> Mapping[str, Any]:
        """Read, decide, act. Raises what failed when everything else is done."""
        state, failure = self._read()
        actor = Actor(self._gateways, state.snapshot.now, invocation, emits_at_the_end=True)
        if failure is not None:
            actor.note("the instances could not be listed; what needs them waits", failure)
        state = self._with_surges(state, actor, invocation)
        statuses = self._resolve(state.snapshot, actor)
        decision = decide(
            state,
            statuses,
            node_repair=NodeRepair(self._settings.node_repair),
            canary=self._settings.canary,
            types=self._types(state.snapshot, actor),
        )
        # In every run anew: an alarm stands for as long as somebody has to look.
        count(Count.CANARIES_FAILED, len(decision.halted))
        shares = on_demand_shares(state.snapshot.pods) if self._settings.on_demand_shares else Shares()
        self._act(decision, shares, actor, invocation)
        self._remove_unused(state, actor)
        metrics.add(*self._arrivals.look(state.snapshot.pods, state.snapshot.now))
        actor.conclude()
        return {
            "claims": len(state.snapshot.managed_claims),
            "in_progress": decision.in_progress,
            "commands": actor.attempted,
        }

    def _read(self) -> tuple[ClusterState, JoineryError | None]:
        """The state, and why it has no instances or not all of them, if EC2 could not be asked."""
        # The instances first: see ``lifecycle.state.cluster``. The shifts at the same time: a silent cloud costs its
        # timeout once.
        cloud = self._gateways.cloud
        listed, shifts = both(self._gateways.workers, cloud.instances, cloud.shifted_zones)
        with reading():
            snapshot = self._gateways.cluster.snapshot()
        _log_invalid(snapshot.invalid, self._monitor, snapshot.now)
        failure = listed if isinstance(listed, JoineryError) else None
        instances = None if isinstance(listed, JoineryError) else listed
        if instances is not None and (unlisted_ids := unlisted(snapshot, instances)):
            try:
                instances += cloud.look_up(unlisted_ids)
            except JoineryError as error:
                failure = error
        state = state_of(
            snapshot,
            instances,
            shifted=known_shifts(shifts),
            digests=self._digests,
            steers=self._settings.steering == Steering.TAINT,
            refusals=self._gateways.refusals.at(snapshot.now),
            are_complete=failure is None,
        )
        return state, failure

    def _with_surges(self, state: ClusterState, actor: Actor, invocation: Invocation) -> ClusterState:
        """The state with what becomes of pods whose successors are to come first."""
        listed = leaving_pods(state, single_replicas=self._settings.surge_single_replicas)
        owners = read_owners(self._gateways, [leaving.pod for leaving in listed], actor, invocation)
        return replace(state, surges=surges(state, listed, owners))

    def _resolve(self, snapshot: Snapshot, actor: Actor) -> Mapping[str, NodeClassStatus]:
        """The status of each class that was looked at, by name."""
        classes = [node_class for node_class in snapshot.node_classes if not actor.waits(_looking_at(node_class))]
        tried = partial(self._likely, snapshot)
        answers = self._gateways.workers.run([partial(self._prepare, each, tried, actor) for each in classes])
        statuses = {}
        for node_class, answer in zip(classes, answers, strict=True):
            name = node_class.metadata.name
            actor.answered(_looking_at(node_class), answer if isinstance(answer, Exception) else None)
            if isinstance(answer, TimeIsOverError):
                actor.leave(1)
            elif isinstance(answer, Exception):
                actor.note(f"{node_class.kind} {name} could not be resolved", answer)
                statuses[name] = unresolved(node_class, answer, actor.now)
            else:
                statuses[name] = answer
        return statuses

    def _types(self, snapshot: Snapshot, actor: Actor) -> Types | None:
        """What nodes may be of, where there are NodeOverlays to judge; None where there are none, where they were
        judged as they are within the hour, or where nobody knows.

        A function that drains a node looks every few seconds, and the types take a call for what is left of
        reservations.
        """
        asked = (*snapshot.node_overlays, *snapshot.node_classes)
        versions = {(one.kind, one.metadata.name, one.metadata.resource_version) for one in asked}
        versions |= {(one.kind, one.metadata.uid, str(one.metadata.generation)) for one in snapshot.node_pools}
        known, until = self._judged
        if not snapshot.node_overlays or (versions == known and snapshot.now < until):
            return None
        with actor.noting("NodeOverlays could not be judged"):
            catalogue = current(self._gateways)
            types = self._gateways.cloud.instance_types(snapshot.node_classes, catalogue, snapshot.now)
            self._judged = versions, snapshot.now + _JUDGED_EVERY
            return types
        return None

    def _likely(self, snapshot: Snapshot, node_class: NodeClass) -> LikelyLaunch | None:
        """What the NodePools of a class would launch; None where nobody knows what there is to buy."""
        pools = [pool for pool in filter(snapshot.serves, snapshot.node_pools) if _names(pool, node_class)]
        try:
            types = self._gateways.cloud.instance_types([node_class], current(self._gateways), snapshot.now)
        except JoineryError as error:
            logger.info("a common instance type is tried", extra={REASON: str(error)})
            return None
        return likely(pools, types.get(node_class.metadata.name, ()))

    def _prepare(self, node_class: NodeClass, tried: Likely, actor: Actor) -> NodeClassStatus | Exception:
        """What the cloud says of the class, or what went wrong, even if the mistake is ours."""
        if not actor.has_time_for(LONGEST_CALL + _ACTING_SECONDS):
            return TimeIsOverError(f"no time is left to look at {node_class.kind} {node_class.metadata.name}")
        try:
            with within(lambda seconds: actor.has_time_for(seconds + _ACTING_SECONDS)):
                return self._gateways.cloud.prepare(node_class, tried)
        except Exception as error:
            return error

    def _act(self, decision: LifecycleDecision, shares: Shares, actor: Actor, invocation: Invocation) -> None:
        """Carry it out, what others wait for first: the time of a run may not be enough for everything.

        Drains come late, because those that get nowhere are there in every run. A pod that is let onto its node waits
        for nothing else, and is let in once. Tags are for people.
        """
        for failure in decision.failures:
            actor.note(failure.what, failure.error)
        let_through = ((update,) for update in shares.let_through)
        actor.carry_out(*decision.readiness, *(step.commands for step in decision.steps), *let_through)
        launched = self._launch(decision.launches, actor, invocation)
        actor.carry_out(*decision.garbage, *((invitation,) for invitation in decision.invitations))
        actor.carry_out(*(step.commands for step in decision.ends))
        untagged = (step.tagging for step in decision.steps if step.tagging and not actor.waits(step.tagging[0]))
        actor.carry_out(*islice(untagged, _MOST_TAGGED), decision.blocked_repairs)
        if decision.in_progress or actor.is_cut_short:
            is_at_rest = decision.rest and not actor.is_cut_short
            actor.ring(Bell.LIFECYCLE, actor.now + decision.rest if is_at_rest else None)
        if decision.wakes_provisioning or launched.is_short:
            actor.ring(Bell.PROVISIONING)
        if decision.wakes_disruption:
            actor.ring(Bell.DISRUPTION)
        # Behind all that matters: these Events are one for each pod of a node that goes.
        actor.emit(news(self._gateways, (*chain.from_iterable(decision.pod_events.values()), *shares.faults)))

    def _remove_unused(self, state: ClusterState, actor: Actor) -> None:
        """Now and then, where everything is known and time is left. Nothing waits for it, so it fails no run."""
        snapshot = state.snapshot
        # A class or claim that cannot be read may name a profile. Nothing else does.
        unread = {one.kind for one in snapshot.invalid} & {NodeClaim.kind, snapshot.node_class_kind.kind}
        is_due = self._next_removal is None or snapshot.now >= self._next_removal
        if unread or not state.are_instances_known or not is_due:
            return
        if not actor.has_time_for(LONGEST_CALL + _ACTING_SECONDS):
            return
        self._next_removal = snapshot.now + _REMOVING_EVERY
        try:
            with within(actor.has_time_for):
                instances = tuple(state.instances.values())
                self._gateways.cloud.remove_unused(snapshot.node_classes, snapshot.node_claims, instances)
        except Exception as error:
            logger.warning("what nobody uses any more was not removed", extra={REASON: str(error)})

    def _launch(self, waiting: Sequence[NodeClaim], actor: Actor, invocation: Invocation) -> Launched:
        """Launch the claims that wait, unless a plan is being written at this moment.

        Claims of one CreateFleet call must be seen together, because their token and their share of the instances
        depend on all of them. So they are read once more, under the Lease: then every plan that is seen has been
        written to the end.
        """
        if not waiting:
            return Launched()
        with actor.noting("claims that were left behind could not be launched"):
            try:
                with deciding(self._gateways.cluster, "lifecycle", invocation):
                    snapshot = self._gateways.cluster.snapshot()
            except ConflictError as error:
                logger.info("launches are left to whoever decides", extra={REASON: str(error)})
                return Launched()
            names = {claim.metadata.name for claim in waiting}
            left_behind = [c for c in snapshot.managed_claims if c.metadata.name in names and awaits_launch(c)]
            if not actor.has_time_for(LONGEST_CALL + _ACTING_SECONDS):
                actor.leave(len(left_behind))
                return Launched()
            # Without knowing the instances nothing is launched: some of these claims may have theirs already.
            instances = self._gateways.cloud.instances()
            return finish_launches(
                self._gateways,
                actor,
                snapshot,
                left_behind,
                instances=instances,
                caps=self._settings.caps,
                invocation=invocation,
            ).launched
        return Launched()


def _names(pool: NodePool, node_class: NodeClass) -> bool:
    return pool.spec.template.spec.node_class_ref.name == node_class.metadata.name


def _looking_at(node_class: NodeClass) -> Ask:
    return Ask(node_class, "a look at what it selects")


def _log_invalid(objects: Iterable[Invalid], monitor: ChangeMonitor, now: datetime) -> None:
    unread = monitor.news(objects, lambda invalid: invalid, lambda invalid: invalid.name.partition("/")[0], now)
    for invalid in unread.lines:
        text = f"{invalid.kind} {invalid.name} cannot be read and takes no part"
        logger.warning(text, extra={REASON: invalid.reason})
    if unread.left:
        logger.warning(f"{unread.left} other objects cannot be read, which later runs say")
