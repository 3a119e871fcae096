"""Pods that fit nowhere get nodes: read the cluster, plan, write the NodeClaims, launch them.

One run serves all that ask for nodes: first static NodePools (``controllers.static_capacity``), then the pods that wait
(``controllers.pod_capacity``). What the caps leave is for nodes that EC2 recommends to rebalance
(``controllers.rebalancing``), and for drifted nodes of static NodePools. Of a plan that exceeds the caps the most
urgent part is carried out; the run still ends in ``RefusedError``, because a person should look at it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.acting.lease import deciding
from joinery.controllers.launching.claim_writer import ClaimWriter
from joinery.controllers.launching.launcher import Launched, Launcher, finish_launches
from joinery.controllers.pod_capacity import Decision, PodCapacity
from joinery.controllers.rebalancing import replace_risky_nodes
from joinery.controllers.reporting.change_monitor import ChangeMonitor
from joinery.controllers.reporting.plan import report
from joinery.controllers.reporting.record import PlanRecorder
from joinery.controllers.static_capacity import StaticCapacity
from joinery.controllers.telemetry import COST, PAID, metrics
from joinery.controllers.triggers.backoff import reading
from joinery.decisions.headroom.requests import request_statuses
from joinery.decisions.headroom.resolve import for_real_pods
from joinery.decisions.headroom.status import buffer_statuses
from joinery.decisions.lifecycle.joining.steering import planned_onto
from joinery.decisions.lifecycle.launching.incomplete_gangs import given_back, useless
from joinery.decisions.lifecycle.state.replacement import replaced
from joinery.decisions.metrics.pods import waiting
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.reason import ReasonCode
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import RefusedError
from joinery.objects.policies import Caps
from joinery.objects.settings import Settings
from joinery.objects.snapshot.claims import awaits_launch
from joinery.objects.snapshot.snapshot import Snapshot


class ProvisioningController:
    """Woken by its bell. One run plans all pods that wait, so rings that come meanwhile need no run of their own."""

    def __init__(self, gateways: Gateways, settings: Settings) -> None:
        self._gateways = gateways
        self._settings = settings
        self._monitor = ChangeMonitor()
        self._recorder = PlanRecorder(gateways.store, "provisioning")

    def reconcile(self, invocation: Invocation) -> Mapping[str, Any]:
        """Read, decide, act. Static NodePools and what a killed run left come first. What is proven of the plan, and
        its record, come last, when no pod waits for them.

        Raises ``ConflictError`` if another decides, ``RefusedError`` for a plan that must not be acted upon, and, when
        everything else is done, for launches that the caps left out.
        """
        with reading():
            snapshot = self._gateways.cluster.snapshot()
        static = StaticCapacity(self._gateways, self._settings, snapshot.now, invocation)
        read = static.adjust(snapshot)
        snapshot, caps = self._finish_launches(read, invocation)

        pods = PodCapacity(self._gateways, self._settings, invocation, self._recorder)
        decision, writer = pods.plan_and_write(snapshot, caps)
        static.fill_up(writer.rest(decision.problem), decision.supply, writer)

        launched = self._launch(decision, writer, invocation)
        real = for_real_pods(decision.packing, decision.snapshot)
        report(self._gateways, invocation, decision.snapshot, real, writer, self._monitor)
        options = writer.rest(decision.problem).options
        writer.actor.carry_out(
            *buffer_statuses(decision.snapshot, decision.buffers, decision.packing),
            *request_statuses(decision.snapshot, decision.requests, decision.packing, decision.lacking),
        )
        caps = replace_risky_nodes(self._gateways, options, decision.snapshot, invocation, writer.actor)
        static.replace_drifted(decision.snapshot, decision.supply, replace(options, caps=caps))
        decision = decision.proven()
        self._record(decision, writer)
        metrics.add(*waiting(read, real))
        _note_pods_left_out(real, writer.actor)
        writer.actor.conclude(static.actor)
        paid = {PAID: round(decision.packing.paid, 4)} if decision.problem.commitments else {}
        headroom = {"headroom": sum(len(buffer.pods) for buffer in decision.buffers)} if decision.buffers else {}
        return {**_outcome(real, writer, launched), **headroom, **paid, **static.outcome}

    def _finish_launches(self, snapshot: Snapshot, invocation: Invocation) -> tuple[Snapshot, Caps]:
        """Launch the claims that wait: those that a killed run left behind, and those that static NodePools lacked.

        Returns the cluster as it is after that, and what is left of the caps. Only then is it known how much room their
        nodes have. Another run may be launching the same claims at this moment: both calls have one token, and get the
        same instances.
        """
        caps = self._settings.caps
        if not self._gateways.may_launch or not any(map(awaits_launch, snapshot.managed_claims)):
            return snapshot, caps
        # Claims of one call must be seen together, as in lifecycle. So they are read once more, under the Lease.
        with deciding(self._gateways.cluster, "provisioning", invocation):
            snapshot = self._gateways.cluster.snapshot()
        left_behind = [claim for claim in snapshot.managed_claims if awaits_launch(claim)]
        actor = Actor(self._gateways, snapshot.now, invocation)
        # A failure is logged, and not raised: the claim is tried again, and the other pods should be served now.
        with actor.noting("claims that waited could not be launched"):
            instances = self._gateways.cloud.instances()
            finished = finish_launches(
                self._gateways, actor, snapshot, left_behind, instances=instances, caps=caps, invocation=invocation
            )
            caps = finished.caps
            if finished.launched.is_short:
                self._gateways.doorbell.ring(Bell.PROVISIONING)
        return self._gateways.cluster.snapshot(), caps

    def _launch(self, decision: Decision, writer: ClaimWriter, invocation: Invocation) -> Launched:
        """Ask EC2 for the instances, and mark the claims that go whose pods all have a place by now."""
        snapshot, packing, actor = decision.snapshot, decision.packing, writer.actor
        # The others wait for the next run, which reads all claims there are.
        given_up = tuple(useless(writer.launchable, snapshot, packing))
        names = {delete.claim.metadata.name for (delete,) in given_up}
        claims = tuple(claim for claim in writer.launchable if claim.metadata.name not in names)
        launcher = Launcher(self._gateways, actor, snapshot, decision.supply, invocation)
        launched = launcher.launch(claims, claims)
        planned = {pod for launch in (*writer.launches, *packing.launches) for pod in launch.pods}
        housed = {pod for written in writer.written if written.name in launched.served for pod in written.launch.pods}
        marks = replaced(snapshot, packing, planned - housed, launched.served)
        of_gangs = (*given_up, *given_back(snapshot, packing))
        actor.carry_out(*((update,) for update in (*marks, *planned_onto(snapshot, packing))), *of_gangs)
        if writer.written or marks or of_gangs:
            actor.ring(Bell.LIFECYCLE)
        if launched.is_short or actor.is_cut_short:
            actor.ring(Bell.PROVISIONING)
        return launched

    def _record(self, decision: Decision, writer: ClaimWriter) -> None:
        """Record the decision if it changes something."""
        if decision.packing.launches:
            unavailable = decision.supply.unavailable
            self._recorder.record("decided", decision.problem, decision.packing, unavailable, writer.actor)


def _note_pods_left_out(packing: Packing, actor: Actor) -> None:
    """Note a ``RefusedError`` if the caps left pods out. Their owners read Events; this is for who runs Joinery."""
    reasons = [reason for unplaced in packing.unplaced for reason in unplaced.reasons if reason.code is ReasonCode.CAPS]
    if reasons:
        error = RefusedError(f"the caps leave {len(reasons)} pods without a node: {reasons[0]}")
        actor.note("the plan was carried out in part", error)


def _outcome(packing: Packing, writer: ClaimWriter, launched: Launched) -> Mapping[str, Any]:
    """The run in figures: nodes, pods, and $/h."""
    return {
        "launches": len(writer.written) + len(writer.observed),
        "launched": len(launched.served),
        "placed": sum(len(node.pods) for node in packing.existing)
        + sum(len(launch.pods) for launch in packing.launches),
        "unplaced": len(packing.unplaced),
        COST: round(packing.hourly, 4),
    }
