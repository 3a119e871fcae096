"""The steps about nodes: nobody buys any more, and then every node ends or is handed over."""

from collections.abc import Callable, Sequence

from joinery.decisions.installation.objects import MARKED, WEBHOOK
from joinery.decisions.installation.removal import CLAIMS, UNINSTALLING, Nodes, in_progress, named, of_ours, unmarked
from joinery.objects.errors import ConfigurationError, NotFoundError
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclass import NodeClassKind
from joinery.objects.kubernetes.references import Document, reference
from joinery_cli.uninstall.members import refuse_a_home, switch_off
from joinery_cli.uninstall.place import Place

#: What goes on until the nodes are done: who drains them, and who hears EC2's warnings.
_UNTIL_THE_END = frozenset({"LifecycleBells", "LifecycleSchedule", "Interruptions"})
#: The functions with queues that end first.
_BUYING = ("provisioning", "disruption")
_MAPPING, _SCHEDULE = "AWS::Lambda::EventSourceMapping", "AWS::Scheduler::Schedule"
#: What UpdateSchedule takes of GetSchedule: whatever is left out is reset (EventBridge Scheduler API UpdateSchedule).
_OF_A_SCHEDULE = (
    "Name", "GroupName", "ScheduleExpression", "ScheduleExpressionTimezone", "StartDate", "EndDate", "Description",
    "KmsKeyArn", "Target", "FlexibleTimeWindow", "ActionAfterCompletion",
)  # fmt: skip


def say_what_becomes_of_nodes(place: Place) -> str:
    """The installer refuses to be deleted while there are nodes of which nobody has said anything.

    Raises ``ConfigurationError`` where nodes that only were observed are to be retired, and for a home with members.
    """
    refuse_a_home(place)
    if place.nodes is Nodes.RETIRE and place.parameters().get("Mode") == "observe":
        raise ConfigurationError(
            f"stack {place.stack} only observes, so the nodes are another controller's: keep them (NODES=keep, "
            "or --nodes keep). Nothing was changed"
        )
    if place.objects is None or place.objects.read(MARKED) is None:
        return "there is no installation in the cluster"
    place.objects.patch(MARKED, {"metadata": {"annotations": {UNINSTALLING: str(place.nodes)}}})
    return str(place.nodes)


def stop_the_webhook(place: Place) -> str:
    """Nobody rings any more."""
    if place.objects is None:
        return "there is no cluster"
    return "removed" if place.objects.remove(WEBHOOK) else "was gone"


def stop_buying(place: Place) -> str:
    """Everything that may launch a node, or find one to end, is switched off."""
    done = _switched_off(place, lambda name: name not in _UNTIL_THE_END)
    return switch_off(place, _BUYING) or done


def stop_everything(place: Place) -> str:
    """What drained the nodes is switched off too."""
    done = _switched_off(place, lambda name: True)
    return switch_off(place, (*_BUYING, "interruption", "lifecycle")) or done


def settle_nodes(place: Place) -> str:
    """Every node has ended, or has come to rest, as the user chose."""
    if place.objects is None:
        return "there is no cluster"
    if place.nodes is Nodes.KEEP:
        place.until(lambda: _restless(place))
        return f"{len(_claims(place))} nodes stay"
    place.until(lambda: _retired(place))
    return "no NodeClaim is left"


def hand_nodes_over(place: Place) -> str:
    """NodeClaims and Nodes as Karpenter knows them: its finalizers and labels are on them anyway, our marks go."""
    if place.objects is None or place.nodes is not Nodes.KEEP:
        return "nothing to hand over"
    changed = 0
    for document in (*_claims(place), *place.objects.labelled("Node")):
        if patch := unmarked(document):
            changed += place.objects.patch(reference(document), patch)
    return f"{len(_claims(place))} NodeClaims are Karpenter's from now on, {changed} objects changed"


def release_node_classes(place: Place) -> str:
    """EC2NodeClasses without our finalizer, because nobody is left who would remove it when one is deleted.

    Karpenter's is the same: where nodes stay, it stays.
    """
    if place.objects is None or place.nodes is Nodes.KEEP:
        return "they stay as they are"
    ours, released = NodeClassKind(keys.AWS_GROUP, "EC2NodeClass").finalizer, 0
    for document in place.objects.labelled("EC2NodeClass"):
        finalizers = document["metadata"].get("finalizers") or []
        if ours in finalizers:
            kept = [finalizer for finalizer in finalizers if finalizer != ours]
            released += place.objects.patch(reference(document), {"metadata": {"finalizers": kept}})
    return f"{released} without a finalizer now"


def end_instances(place: Place) -> str:
    """Instances of the cluster's NodePools that no NodeClaim knows, for instance because the cluster is gone."""
    if place.nodes is Nodes.KEEP:
        return "they stay"
    filters = [
        {"Name": f"tag:kubernetes.io/cluster/{place.cluster}", "Values": ["owned"]},
        # Those of EKS Auto Mode have neither, and those of Karpenter up to v0.31 the second alone.
        {"Name": "tag-key", "Values": [keys.NODE_CLASS, keys.MANAGED_BY]},
        {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
    ]
    reservations = place.aws.ask("ec2", "describe_instances", Filters=filters)["Reservations"]
    ids = sorted(one["InstanceId"] for reservation in reservations for one in reservation["Instances"])
    if ids:
        place.aws.ask("ec2", "terminate_instances", InstanceIds=ids)
    return f"{len(ids)} ended" if ids else "none is left"


def _claims(place: Place) -> Sequence[Document]:
    objects = place.objects
    return of_ours(claim for kind in CLAIMS for claim in objects.labelled(kind)) if objects else ()


def _retired(place: Place) -> str:
    """Ask for the end of every NodeClaim of ours, and say which are left."""
    claims = _claims(place)
    for claim in claims:
        if "deletionTimestamp" not in claim["metadata"] and place.objects:
            place.objects.remove(reference(claim))
    return f"{len(claims)} NodeClaims are draining or ending: {named(claims)}" if claims else ""


def _restless(place: Place) -> str:
    """What is still in the middle of something. Commands that have not begun are taken back: lifecycle rolls back."""
    claims = _claims(place)
    for claim in claims:
        if in_progress(claim) == "being disrupted" and place.objects:
            none = {"metadata": {"annotations": {keys.DISRUPTION_COMMAND: None}}}
            place.objects.patch(reference(claim), none)
    busy = [claim for claim in claims if in_progress(claim)]
    return "; ".join(f"{named([claim])} is {in_progress(claim)}" for claim in busy)


def _switched_off(place: Place, is_due: Callable[[str], bool]) -> str:
    due = [one for one in place.resources() if is_due(one["LogicalResourceId"])]
    mappings = [one["PhysicalResourceId"] for one in due if one["ResourceType"] == _MAPPING]
    schedules = [one["PhysicalResourceId"] for one in due if one["ResourceType"] == _SCHEDULE]
    for uuid in mappings:
        if _mapping_state(place, uuid) in ("Enabled", "Enabling"):
            place.aws.ask("lambda", "update_event_source_mapping", UUID=uuid, Enabled=False)
    for name in schedules:
        _disable(place, name)
    place.until(lambda: _still_on(place, mappings))
    return f"{len(mappings)} queues and {len(schedules)} schedules wake nobody"


def _mapping_state(place: Place, uuid: str) -> str:
    """That of an event source mapping; empty if it is gone."""
    try:
        return str(place.aws.ask("lambda", "get_event_source_mapping", UUID=uuid)["State"])
    except NotFoundError:  # CloudFormation lists what it has deleted, while the rest of the stack is left
        return ""


def _disable(place: Place, name: str) -> None:
    """Switch off a schedule, if it is there and on."""
    try:
        schedule = place.aws.ask("scheduler", "get_schedule", Name=name)
    except NotFoundError:
        return
    if schedule["State"] == "ENABLED":
        kept = {key: schedule[key] for key in _OF_A_SCHEDULE if key in schedule}
        place.aws.ask("scheduler", "update_schedule", **kept, State="DISABLED")


def _still_on(place: Place, mappings: Sequence[str]) -> str:
    states = {_mapping_state(place, uuid) for uuid in mappings}
    return "waiting for queues to be let go" if states - {"Disabled", ""} else ""
