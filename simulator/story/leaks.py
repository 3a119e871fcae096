"""What must not be left behind: an instance that nobody knows,
a claim without one, an object that cannot be deleted.
"""

from collections.abc import Iterator

from simulator.story.running import unready
from simulator.story.simulation import Simulation


def leaks(simulation: Simulation) -> tuple[str, ...]:
    """Everything that leaked by now, a sentence each. The product promises that there is nothing."""
    return (*left_behind(simulation), *_messages(simulation))


def causes(simulation: Simulation) -> tuple[str, ...]:
    """What may be the cause of leaks, a sentence each. A scenario's own faults, as a rule: node classes that no node
    can be launched with, or else the last Events of the pods that wait.
    """
    classes = [*filter(None, map(unready, simulation.world.cluster.node_classes.values()))]
    return tuple(classes or dict.fromkeys(_last_events(simulation)))


def left_behind(simulation: Simulation) -> tuple[str, ...]:
    """Every object, instance and pod that is not as it should be once all is quiet, a sentence each."""
    return tuple(
        [
            *unowned_instances(simulation),
            *_claims(simulation),
            *_nodes(simulation),
            *_pods(simulation),
            *_volumes(simulation),
        ]
    )


def unowned_instances(simulation: Simulation) -> Iterator[str]:
    """The instances that cost money and that no NodeClaim knows."""
    claimed = {claim.status.provider_id for claim in simulation.world.cluster.node_claims.values()}
    for instance_id in simulation.instances:
        instance, ends_at = simulation.world.cloud.look(instance_id)
        if ends_at is None and instance.provider_id not in claimed:
            yield f"instance {instance_id} runs without a NodeClaim"


def _claims(simulation: Simulation) -> Iterator[str]:
    seen = [simulation.world.cloud.look(instance_id)[0] for instance_id in simulation.instances]
    alive = {instance.provider_id for instance in seen if not instance.is_going}
    for name, claim in sorted(simulation.world.cluster.node_claims.items()):
        if claim.is_deleting:
            yield f"NodeClaim {name} is being deleted and keeps its finalizers {', '.join(claim.metadata.finalizers)}"
        elif claim.status.provider_id not in alive:
            yield f"NodeClaim {name} has no instance"


def _nodes(simulation: Simulation) -> Iterator[str]:
    claimed = {claim.status.provider_id for claim in simulation.world.cluster.node_claims.values()}
    for name, node in sorted(simulation.world.cluster.nodes.items()):
        if node.metadata.deletion_timestamp is not None:
            yield f"Node {name} is being deleted and keeps its finalizers {', '.join(node.metadata.finalizers)}"
        elif node.spec.provider_id not in claimed:
            yield f"Node {name} has no NodeClaim"


def _pods(simulation: Simulation) -> Iterator[str]:
    cluster = simulation.world.cluster
    for key, pod in sorted(cluster.pods.items()):
        if not pod.spec.node_name:
            yield f"pod {key} has no node"
        elif pod.spec.node_name not in cluster.nodes:
            yield f"pod {key} is on {pod.spec.node_name}, which is gone"


def _volumes(simulation: Simulation) -> Iterator[str]:
    nodes = simulation.world.cluster.nodes
    for name, attachment in sorted(simulation.world.cluster.api.objects("VolumeAttachment").items()):
        if attachment.spec.node_name not in nodes:
            yield f"VolumeAttachment {name} is on a node that is gone"


def _messages(simulation: Simulation) -> Iterator[str]:
    for message in simulation.interruptions.dead_letters:
        yield f"message {message['messageId']} is a dead letter"
    for call in simulation.doors.calls:
        if call.error:
            yield f"the {call.door} door failed at {call.at:%H:%M:%S}: {call.error}"


def _last_events(simulation: Simulation) -> Iterator[str]:
    waiting = [pod for _, pod in sorted(simulation.world.cluster.pods.items()) if not pod.spec.node_name]
    messages = {event.uid: event.message for event in simulation.world.recorder.events if event.kind == "Pod"}
    yield from (messages[pod.metadata.uid] for pod in waiting if pod.metadata.uid in messages)
