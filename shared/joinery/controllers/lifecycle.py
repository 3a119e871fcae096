"""Every claim one step further: launched, registered, initialized, drained, terminated; and what nobody knows, collected.

One run looks at everything once and takes one short step for each object; a bad object never stops the others. While
something is in progress the run rings its own bell, whose queue is delayed, and the chain of ticks ends with the work.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from joinery.apis.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import DeleteClaim, LaunchClaim, UpdateClass, UpdatePool
from joinery.controllers.actor import Actor
from joinery.controllers.launcher import Launcher
from joinery.controllers.supply import read_supply
from joinery.doorbell.gateway import Bell
from joinery.errors import JoineryError
from joinery.gateways import Gateways
from joinery.lifecycle.finalization import finalize_node, is_ours
from joinery.lifecycle.garbage import unknown_instances
from joinery.lifecycle.readiness import readiness
from joinery.lifecycle.step import advance
from joinery.lifecycle.view import Step, View, view
from joinery.observability import REASON, logger, said
from joinery.settings import Settings
from joinery.state.claims import is_managed


class LifecycleController:
    """Woken by its own ticks, by other doors, and once a minute by the schedule."""

    def __init__(self, gateways: Gateways, settings: Settings) -> None:
        self._gateways = gateways
        self._settings = settings

    def reconcile(self) -> Mapping[str, Any]:
        """Read, decide, act. The instances are read first: see ``lifecycle.view``."""
        instances = self._gateways.cloud.instances()
        world = view(self._gateways.cluster.snapshot(), instances)
        for bad in world.snapshot.invalid:
            logger.warning(
                f"{bad.kind} {bad.name} cannot be read and takes no part", extra=said(**{REASON: bad.reason})
            )
        actor = Actor(self._gateways, self._settings, world.snapshot.now)
        changed = self._ready(world, actor)
        steps = self._steps(world, actor)
        given_up = self._act(world, steps, actor)
        # Last of all, for there may be thousands: a pod that is let in late finds its node kept for it.
        actor.carry_out(*unknown_instances(world), *((step.invited,) for step in steps if step.invited))
        in_progress = sum(step.in_progress for step in steps)
        self._ring(in_progress > 0, provisioning=changed or given_up or any(step.is_short for step in steps))
        actor.conclude()
        return {
            "claims": sum(map(is_managed, world.snapshot.node_claims)),
            "in_progress": in_progress,
            "commands": actor.done,
        }

    def _steps(self, world: View, actor: Actor) -> list[Step]:
        """Each object's own step."""
        claims = world.snapshot.node_claims
        steps = [self._step(world, claim, actor) for claim in claims if is_managed(claim)]
        claimed = {claim.status.provider_id for claim in claims}
        going = (node for node in world.snapshot.nodes if node.metadata.deletion_timestamp and is_ours(node))
        return steps + [finalize_node(world, node) for node in going if node.spec.provider_id not in claimed]

    def _step(self, world: View, claim: NodeClaim, actor: Actor) -> Step:
        try:
            return advance(world, claim)
        except Exception as error:  # whatever is wrong with one claim, the others go on; it is raised at the end
            actor.note(f"NodeClaim {claim.metadata.name} could not be decided", error)
            return Step(in_progress=True)

    def _act(self, world: View, steps: Iterable[Step], actor: Actor) -> bool:
        """Carry the steps out; whether some pods have to be planned anew."""
        launches: list[NodeClaim] = []
        is_lost = False
        for step in steps:
            launches += [command.claim for command in step.commands if isinstance(command, LaunchClaim)]
            actor.attempt([command for command in step.commands if not isinstance(command, LaunchClaim)])
            is_lost |= any(isinstance(command, DeleteClaim) for command in step.commands)
        return self._launch(world, launches, actor) or is_lost

    def _launch(self, world: View, claims: list[NodeClaim], actor: Actor) -> bool:
        """Finish what provisioning left behind; whether a claim had to be given up."""
        if not claims or self._settings.observing:
            return False
        snapshot = world.snapshot
        supply = read_supply(self._gateways, snapshot.node_classes, snapshot.now)
        launcher = Launcher(self._gateways, actor, snapshot.now, node_classes=snapshot.node_classes, types=supply.types)
        launcher.launch(claims, snapshot.node_claims, world.instances.values())
        return launcher.given_up

    def _ready(self, world: View, actor: Actor) -> bool:
        """Readiness of pools and classes; whether any has changed."""
        found = {
            each.metadata.name: status for each in world.snapshot.node_classes if (status := self._look(each, actor))
        }
        chains = tuple(readiness(world.snapshot, found))
        actor.carry_out(*chains)
        return any(isinstance(command, UpdatePool | UpdateClass) and _turned(command) for (command,) in chains)

    def _look(self, node_class: EC2NodeClass, actor: Actor) -> EC2NodeClassStatus | None:
        try:
            return self._gateways.cloud.resolve(node_class)
        except JoineryError as error:
            actor.note(f"EC2NodeClass {node_class.metadata.name} could not be resolved", error)
            return None

    def _ring(self, lifecycle: bool, *, provisioning: bool) -> None:
        if lifecycle and not self._settings.observing:
            self._gateways.doorbell.ring(Bell.LIFECYCLE)
        if provisioning and not self._settings.observing:
            self._gateways.doorbell.ring(Bell.PROVISIONING)


def _turned(command: UpdatePool | UpdateClass) -> bool:
    """Whether readiness itself has changed, and not only a figure of the status."""
    before = {found.type: found.status for found in command.before.status.conditions}
    return before != {found.type: found.status for found in command.after.status.conditions}
