"""Static NodePools, as one run of provisioning keeps them at their ``replicas``.

It is a part of provisioning because that is who writes NodeClaims, under the Lease: whoever counts a pool's claims
there sees all of them, so two runs cannot both make up for one missing node. A claim that was written counts, launched
or not. So a run that is killed anywhere has bought nothing twice; the next one launches what it left.

Static NodePools come before the pods that wait, because these may go to the nodes that are launched here. Only where
the caps leave no room for all of their nodes the pods come first: a node that nobody waits for is the least urgent one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.announcements import announce, news
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.acting.lease import deciding
from joinery.controllers.launching.claim_writer import ClaimWriter
from joinery.controllers.launching.refused_claims import known_refusals, without
from joinery.controllers.launching.supply import Supply, read_supply
from joinery.controllers.reporting.record import PlanRecorder
from joinery.controllers.starting_commands import CommandStarter
from joinery.controllers.telemetry import CODE, REASON, logger
from joinery.controllers.telemetry import NODE_POOL as NODE_POOL_FIELD
from joinery.decisions.disruption.scale_down import scale_down
from joinery.decisions.disruption.static_drift import to_replace
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand, as_if_retired
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.scheduling.launch_caps import admit_launches, fits
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.pool_shares import not_kept
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.reason import Reason
from joinery.decisions.scheduling.replicas import replenish
from joinery.decisions.verification.shares import check_shares_by_choice
from joinery.decisions.verification.verify import verify
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.actions import Announce
from joinery.objects.annotations.disruption import Readiness
from joinery.objects.errors import RefusedError
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import CAPACITY_TYPE, NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.settings import Settings
from joinery.objects.snapshot.claims import awaits_launch
from joinery.objects.snapshot.pool_shares import ON_DEMAND_KINDS, is_on_demand
from joinery.objects.snapshot.replicas import static_pools
from joinery.objects.snapshot.snapshot import Snapshot


class StaticCapacity:
    """The static NodePools of one run. It takes the Lease itself.

    ``actor``: who concludes the run concludes this one with it. What went wrong is noted there, and as
    ``RefusedError`` what must not be launched now.
    ``added``, ``removed``: how many nodes were asked for and given up. ``replaced``: how many drifted ones are being
    replaced from now on. ``replenish``: the decision, as a function of the problem.
    """

    def __init__(
        self,
        gateways: Gateways,
        settings: Settings,
        now: datetime,
        invocation: Invocation,
        replenish: Callable[[Problem], Packing] = replenish,
    ) -> None:
        self._gateways = gateways
        self._settings = settings
        self._invocation = invocation
        self._replenish = replenish
        self._recorder = PlanRecorder(gateways.store, "replicas")
        self.actor = Actor(gateways, now, invocation)
        self._is_postponed = False
        self._later: list[Callable[[], None]] | None = None
        self.added = self.removed = self.replaced = 0

    @property
    def outcome(self) -> Mapping[str, int]:
        """The run in figures: nodes of static NodePools."""
        return {"added": self.added, "removed": self.removed, "replaced": self.replaced}

    def adjust(self, snapshot: Snapshot) -> Snapshot:
        """Give up what is too much, and write the claims that are lacking, if the caps have room for all of them.

        Returns the cluster as it is after that. Its new claims wait for their launch. The Lease is taken only where
        there is something to do, and then the cluster is read once more by it; ``ConflictError`` while another has it.
        """
        if not any(pool.lacking for pool in static_pools(snapshot).values()):
            return snapshot
        # Before the Lease: others must not wait for a cloud that is silent.
        supply = read_supply(self._gateways, snapshot) if _is_short(snapshot) else None
        with self._deciding():
            return self._adjusted(self._gateways.cluster.snapshot(), supply)

    @contextmanager
    def _deciding(self) -> Iterator[None]:
        """Hold the Lease. What nobody has to wait for is done when it is given back (``_when_free``)."""
        later: list[Callable[[], None]] = []
        try:
            with deciding(self._gateways.cluster, "provisioning", self._invocation):
                self._later = later
                yield
        finally:
            self._later = None
            for do in later:
                do()

    def _when_free(self, do: Callable[[], None]) -> None:
        """Do it now, or when the Lease is given back."""
        if self._later is None:
            do()
        else:
            self._later.append(do)

    def _adjusted(self, snapshot: Snapshot, supply: Supply | None) -> Snapshot:
        """``supply``: what can be bought; None where nothing was lacking a moment ago."""
        snapshot = self._scaled_down(snapshot)
        if supply is None or not _is_short(snapshot):
            return snapshot
        waiting = sum(map(awaits_launch, snapshot.managed_claims))
        options = Options.of(self._settings, caps=self._settings.caps.after(waiting, 0.0))
        known = known_refusals(snapshot, self._gateways.refusals.at(snapshot.now))
        problem = Problem(snapshot=without(snapshot, known.pools), instance_types=supply.types, options=options)
        packing = self._planned(problem, supply)
        if not fits(packing.launches, problem.options.caps):
            self._is_postponed = True
            return snapshot
        writer = ClaimWriter(self._gateways.cluster, self._gateways.workers, self.actor)
        self._write(problem, packing, supply, writer)
        return writer.rest(problem).snapshot

    def fill_up(self, problem: Problem, supply: Supply, writer: ClaimWriter) -> None:
        """Where the pods came first: write as many claims as the caps have room for beside theirs.

        ``problem``: with the claims that were written for pods, and what these left of the caps. ``writer``: theirs;
        what it has written is launched by the caller.
        """
        if not self._is_postponed:
            return
        # What was written for pods is launched all the same where another run has the Lease now.
        with self.actor.noting("the replicas are left to the next run"), self._deciding():
            current = self._gateways.cluster.claims_snapshot()
            snapshot = replace(problem.snapshot, node_claims=current.node_claims)
            self._fill_up(replace(problem, snapshot=snapshot), supply, writer)

    def _fill_up(self, problem: Problem, supply: Supply, writer: ClaimWriter) -> None:
        packing = self._planned(problem, supply)
        admission = admit_launches(packing.launches, problem.options.caps, {})
        self._write(problem, replace(packing, launches=admission.launches), supply, writer)
        if admission.left_out:
            lacking = Counter(launch.node_pool for launch in admission.left_out)
            text = "the caps leave no room for {} of the nodes that it lacks; the next run tries again"
            self._announce(problem.snapshot, {name: text.format(count) for name, count in lacking.items()})
            error = RefusedError(f"the caps leave out {lacking.total()} nodes of static NodePools")
            self.actor.note("static NodePools do not reach their replicas", error)

    def replace_drifted(self, snapshot: Snapshot, supply: Supply, options: Options) -> None:
        """Start commands that replace the pools' drifted nodes, one for one.

        ``options``: their ``caps`` are what the run may still buy. Nodes that run well are the last to be replaced.
        Lifecycle says which have drifted (``lifecycle.state.drift``), and carries the commands out
        (``lifecycle.disrupting.started_commands``).
        """
        drift = to_replace(snapshot, self._settings.canary, self._settings.terminate_first)
        announce(self._gateways, self._invocation, news(self._gateways, drift.announcements))
        if not drift.candidates and not drift.ending:
            return
        pools = {claim.metadata.labels[NODE_POOL] for claim in drift.candidates}
        node_pools = tuple(pool for pool in snapshot.node_pools if pool.metadata.name in pools)
        retired = as_if_retired(snapshot, (claim.metadata.name for claim in drift.candidates))
        static = replace(retired, node_pools=node_pools)
        problem = Problem(snapshot=static, instance_types=supply.types, options=options)
        packing = self._planned(problem, supply, "its drifted nodes cannot be replaced")
        packing = self._without_shorter_shares(snapshot, problem, packing)
        commands = (*_commands(drift.candidates, claims_of(packing, snapshot)), *map(_ended, drift.ending))
        starter = CommandStarter(self._gateways, self.actor, snapshot, supply, self._invocation)
        with self.actor.noting("drifted nodes are left to the next run"):
            started = starter.start(commands, door="provisioning", caps=options.caps)
            self.replaced = sum(one.record is not None for one in started)
            self._record("decided", problem, packing, supply)
        if self.actor.is_cut_short:
            self.actor.ring(Bell.PROVISIONING)

    def _without_shorter_shares(self, snapshot: Snapshot, problem: Problem, packing: Packing) -> Packing:
        """The replacements but for those of pools that would have too few nodes on demand by them. ``snapshot``: with
        the nodes that are to go.
        """
        worse = {
            violation.subject.name: f"its drifted nodes are not replaced: {violation.message}"
            for violation in check_shares_by_choice(snapshot, problem.snapshot, packing)
            if violation.subject
        }
        self._announce(snapshot, worse, "OnDemandShareNotKept")
        return replace(packing, launches=tuple(one for one in packing.launches if one.node_pool not in worse))

    def _scaled_down(self, snapshot: Snapshot) -> Snapshot:
        chains = scale_down(snapshot)
        if not chains:
            return snapshot
        self.removed = len(chains)
        self.actor.carry_out(*chains)
        self._when_free(partial(self.actor.ring, Bell.LIFECYCLE))
        # The pods of these nodes need another place now, and their room must not be counted on.
        return self._gateways.cluster.snapshot()

    def _planned(self, problem: Problem, supply: Supply, otherwise: str = "it does not reach its replicas") -> Packing:
        """The launches that are lacking, verified; none if verification refuses them.

        ``otherwise``: what it means for a pool that it cannot have them.
        """
        packing = self._replenish(problem)
        for reason in packing.pool_reasons:
            self._report(problem.snapshot, reason, otherwise)
        without_pods = replace(problem, snapshot=replace(problem.snapshot, pods=()))
        violations = verify(without_pods, packing)
        if not violations:
            return packing
        self._record("refused", problem, packing, supply)
        error = RefusedError(f"the plan for static NodePools breaks {len(violations)} rules: {violations[0]}")
        self.actor.note("static NodePools get no nodes", error)
        return replace(packing, launches=())

    def _write(self, problem: Problem, packing: Packing, supply: Supply, writer: ClaimWriter) -> None:
        if not packing.launches:
            return
        written_before, observed_before = len(writer.written), len(writer.observed)
        writer.write(problem, packing)
        added = (*writer.launches[written_before:], *writer.observed[observed_before:])
        self._when_free(partial(self.actor.ring, Bell.LIFECYCLE))
        self.added = len(added)
        self._record("decided", problem, packing, supply)
        short = not_kept(problem.snapshot.pool_shares, packing.launches)
        self._announce(problem.snapshot, short, "OnDemandShareNotKept")
        # Not of claims that were refused: their pool does not reach its replicas.
        self._announce(problem.snapshot, dict(_texts(added)), "ScaledUp")

    def _record(self, what: str, problem: Problem, packing: Packing, supply: Supply) -> None:
        self._when_free(partial(self._recorder.record, what, problem, packing, supply.unavailable, self.actor))

    def _report(self, snapshot: Snapshot, reason: Reason, otherwise: str) -> None:
        """Why a pool does not get the nodes that it should."""
        if reason.subject:
            why = {NODE_POOL_FIELD: reason.subject.name, CODE: reason.code, REASON: reason.message}
            logger.warning(f"a static NodePool gets no nodes: {otherwise}", extra=why)
            self._announce(snapshot, {reason.subject.name: f"{otherwise}: {reason.message}"})

    def _announce(self, snapshot: Snapshot, texts: Mapping[str, str], event: str = "ReplicasNotReached") -> None:
        """Events about NodePools, by name."""
        pools = snapshot.pools_by_name
        events = [Announce(event, text, pools[name]) for name, text in texts.items()]
        self._when_free(partial(announce, self._gateways, self._invocation, events))


def _is_short(snapshot: Snapshot) -> bool:
    return any(pool.lacking > 0 for pool in static_pools(snapshot).values())


def _commands(candidates: Iterable[NodeClaim], replacements: Iterable[NodeClaim]) -> Iterator[NewCommand]:
    """A command for each candidate for which there is a replacement of its pool: on demand for one that is, while there
    are such.
    """
    left: dict[str, list[NodeClaim]] = {}
    for claim in replacements:
        left.setdefault(claim.metadata.labels[NODE_POOL], []).append(claim)
    for candidate in candidates:
        own = left.get(candidate.metadata.labels[NODE_POOL])
        if own:
            was_on_demand = candidate.metadata.labels.get(CAPACITY_TYPE) in ON_DEMAND_KINDS
            alike = next((it for it in own if is_on_demand(it.spec.requirements) is was_on_demand), own[0])
            own.remove(alike)
            yield NewCommand(reason=DisruptionReason.DRIFTED, candidates=(candidate,), replacements=(alike,))


def _ended(candidate: NodeClaim) -> NewCommand:
    """A command that ends the node. The pool is filled up when it is gone, as one that lacks a node."""
    return NewCommand(reason=DisruptionReason.DRIFTED, candidates=(candidate,), waits_for=Readiness.WRITTEN)


def _texts(launches: Iterable[Launch]) -> Iterable[tuple[str, str]]:
    """By NodePool, what is decided for it."""
    by_pool: dict[str, list[Launch]] = {}
    for launch in launches:
        by_pool.setdefault(launch.node_pool, []).append(launch)
    for pool, own in by_pool.items():
        zones = Counter(launch.offering.zone for launch in own)
        where = ", ".join(f"{zones[zone]} in {zone}" for zone in sorted(zones))
        yield pool, f"{len(own)} nodes to reach its replicas ({where}), {own[0].offering.instance_type} or better"
