"""The roles of an event: the instance or reservation that it names is played by one that the simulated cluster has."""

import json
import re
from typing import Any

from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from simulator.story.simulation import Simulation
from simulator.story.speech import tail

_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
_NO_INSTANCE = "no node plays in it: what it names as instance-id is none, such as i-0123456789abcdef0"
_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}")


def cast(event: dict[str, Any], door: str, simulation: Simulation) -> tuple[dict[str, Any], str]:
    """The event about a spot instance of this cluster instead of the one that it names, and a line that says so.

    An event that names a capacity reservation but no instance stays as it is: a node is put into that reservation. The
    line is empty where nothing was replaced: at other doors, and while no spot instance runs.
    """
    claims = simulation.world.cluster.node_claims.values()
    spot = [claim for claim in claims if claim.metadata.labels.get(keys.CAPACITY_TYPE) == keys.SPOT]
    if door != "interruption" or not spot:
        return event, ""
    text = json.dumps(event)
    instance, reservation = _INSTANCE.search(text), _RESERVATION.search(text)
    if instance is None and reservation is not None:
        return event, _reserve(spot[0], reservation[0], simulation)
    if instance is None:
        return event, _NO_INSTANCE if "instance-id" in text else ""
    understudy = spot[0].status.provider_id.rpartition("/")[2]
    renamed: dict[str, Any] = json.loads(text.replace(instance[0], understudy))
    return renamed, f"{instance[0]} is played by {tail(understudy)}, the node of {spot[0].metadata.name}"


def _reserve(claim: NodeClaim, reservation: str, simulation: Simulation) -> str:
    """Put the claim's node into the reservation."""
    labels = {**claim.metadata.labels, keys.RESERVATION_ID: reservation}
    simulation.world.cluster.api.update(with_metadata(claim, labels=labels))
    return f"{reservation} is taken to hold the node of {claim.metadata.name}"
