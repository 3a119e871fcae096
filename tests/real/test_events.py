"""Every real event, as EC2, Health, SQS and SNS write it, through the real door of interruptions.

The cluster has one node for whatever an event may be about: a spot instance, one in a capacity block, and one of EKS
Auto Mode, which is none of ours. ``OUTCOMES`` says what becomes of each file.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from joinery.objects.karpenter.labels import DISRUPTED_TAINT, RESERVATION_ID, SPOT
from simulator import builders
from simulator.doors.doors import Call, Doors
from simulator.doors.queues import record
from simulator.world import World
from tests.properties import examples

REAL = Path(__file__).parents[1] / "data/real"
QUEUE = "joinery-interruption"
WORKER, BLOCK = "aws:///us-east-1b/i-0a1b2c3d4e5f60718", "aws:///us-east-1a/i-0a46282ba435da783"


@dataclass(frozen=True)
class Outcome:
    """The claims that are retired, what is told of them, and why an event was ignored."""

    retired: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    ignored: str = ""


def retires(claim: str, event: str) -> Outcome:
    """The claim goes, and its Events say why."""
    return Outcome(frozenset({claim}), frozenset({event, "TerminatingOnInterruption"}))


def ignored(reason: str) -> Outcome:
    """Nothing happens but one line in the log."""
    return Outcome(ignored=reason)


def no_node_goes(kind: str, source: str = "aws.ec2") -> Outcome:
    """Nobody acts on it, and the line says on what."""
    return ignored(f"nobody acts on an event {kind!r} of {source!r}")


NOT_OURS = Outcome()
STAYS = "an instance that is {} stays"
FOR_PEOPLE = ignored(
    "AWS_EC2_PLANNED_LIFECYCLE_EVENT is for people: nodes go as NodePools and node classes are changed"
)

OUTCOMES = {
    "asg-launch-lifecycle-action": no_node_goes("EC2 Instance-launch Lifecycle Action", "aws.autoscaling"),
    "asg-terminate-lifecycle-action": no_node_goes("EC2 Instance-terminate Lifecycle Action", "aws.autoscaling"),
    "capacity-block-instance-interruption": retires("block", "CapacityReservationInstanceInterrupted"),
    "capacity-block-delivered": no_node_goes("Capacity Block Reservation Delivered"),
    "capacity-block-expiration-warning-as-documented": retires("block", "CapacityBlockExpiring"),
    "capacity-block-expiration-warning-newer-name": retires("block", "CapacityBlockExpiring"),
    "capacity-block-expiration-warning": retires("block", "CapacityBlockExpiring"),
    "capacity-reservation-interruption-older-spelling": retires("worker", "CapacityReservationInstanceInterrupted"),
    "capacity-reservation-interruption": retires("worker", "CapacityReservationInstanceInterrupted"),
    "capacity-reservation-reclamation-completed": no_node_goes(
        "EC2 Interruptible Capacity Reservation Allocation Reclamation Completed"
    ),
    "future-reservation-active": no_node_goes("EC2 Capacity Reservation Active"),
    "health-abuse": no_node_goes("AWS Health Abuse Event", "aws.health"),
    "health-ebs-volume-lost": ignored("Health speaks of EBS issue, not of a change that EC2 has scheduled"),
    "health-entity-is-arn": retires("worker", "InstanceUnhealthy"),
    "health-instance-store-degraded-backup": ignored(
        "Health speaks of EC2 issue, not of a change that EC2 has scheduled"
    ),
    "health-issue-public": ignored("Health speaks of EC2 issue, not of a change that EC2 has scheduled"),
    "health-other-account-organizational-view": NOT_OURS,
    # Whichever Region's bus it came over: an instance id is one instance's, and going twice is going once.
    "health-other-region-backup-copy": retires("worker", "InstanceUnhealthy"),
    "health-planned-lifecycle-instance-generation": FOR_PEOPLE,
    "health-reboot-two-entities-one-resolved": retires("worker", "InstanceUnhealthy"),
    "health-reserved-instances-entity": ignored(
        "the scheduled change waits for no instance: its entities are resolved, or no instances"
    ),
    "health-retirement-china": retires("worker", "InstanceUnhealthy"),
    "health-retirement-closed": ignored("the scheduled change is closed"),
    "health-retirement-months-ahead": retires("worker", "InstanceUnhealthy"),
    "health-retirement-old-form": retires("worker", "InstanceUnhealthy"),
    "health-retirement-upcoming": retires("worker", "InstanceUnhealthy"),
    "health-scheduled-change-public": ignored("the scheduled change names no instance"),
    "health-scheduled-change-without-entities": FOR_PEOPLE,
    "rebalance-recommendation": Outcome(told=frozenset({"SpotRebalanceRecommendation"})),
    "spot-interruption-hibernate": retires("worker", "SpotInterrupted"),
    "spot-interruption-govcloud": retires("worker", "SpotInterrupted"),
    "spot-interruption": retires("worker", "SpotInterrupted"),
    "state-pending": ignored(STAYS.format("pending")),
    "state-running": ignored(STAYS.format("running")),
    "state-shutting-down": retires("worker", "InstanceTerminating"),
    "state-stopped": retires("worker", "InstanceStopping"),
    "state-stopping": retires("worker", "InstanceStopping"),
    "state-terminated": retires("worker", "InstanceTerminating"),
}

every_event = pytest.mark.parametrize("name", sorted(OUTCOMES))


def read(path: str) -> dict[str, Any]:
    """One of the real files."""
    document: dict[str, Any] = json.loads((REAL / path).read_text())
    return document


def through_sns(event: dict[str, Any]) -> dict[str, Any]:
    """The event as SNS passes it on without raw message delivery."""
    notification = json.loads(read("lambda/sqs-through-sns.json")["Records"][0]["body"])
    return {**notification, "Message": json.dumps(event)}


def batch(*bodies: dict[str, Any]) -> dict[str, Any]:
    """What Lambda gets from the queue."""
    return {"Records": [record(f"message-{number}", QUEUE, body) for number, body in enumerate(bodies)]}


def peopled(world: World) -> World:
    """With the three nodes that the events are about."""
    world.cluster.add(
        builders.node("worker", provider_id=WORKER),
        builders.node("block", provider_id=BLOCK),
        builders.node_claim("worker", node="worker", capacity_type=SPOT, provider_id=WORKER),
        builders.node_claim("block", node="block", provider_id=BLOCK, labels={RESERVATION_ID: "cr-0a1b2c3d4e5f60718"}),
    )
    for path in ("nodes/eks-auto-mode.yaml", "karpenter/nodeclaim-eks-auto-mode.yaml"):
        world.cluster.add_document(yaml.safe_load((REAL / path).read_text()))
    return world


@pytest.fixture
def doors(world: World) -> Iterator[Doors]:
    """The doors, open onto such a cluster."""
    with Doors(peopled(world)).open() as opened:
        yield opened


def lines(call: Call) -> list[dict[str, Any]]:
    """What the door has logged of its messages."""
    lines = [json.loads(line) for line in call.log.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("message") in ("done", "event ignored")]


def outcome(doors: Doors, call: Call) -> Outcome:
    """What came of a call."""
    cluster = doors.world.cluster
    return Outcome(
        frozenset(name for name, claim in cluster.node_claims.items() if claim.is_deleting),
        frozenset(event.reason for event in cluster.events),
        "".join(line.get("reason", "") for line in lines(call)),
    )


def test_the_table_says_what_becomes_of_every_event() -> None:
    """No file is left out, nor is any record of the same events."""
    files = {path.stem for path in (REAL / "eventbridge").glob("*.json")}
    assert files == {path.stem for path in (REAL / "lambda/sqs").glob("*.json")} == set(OUTCOMES)


@every_event
@pytest.mark.parametrize("way", ["eventbridge", "lambda/sqs", "sns"])
def test_every_event_has_its_outcome_however_it_comes(doors: Doors, way: str, name: str) -> None:
    """As EventBridge's target, as Lambda delivers it, and through SNS; always with one line, never a dead letter."""
    if way == "lambda/sqs":
        call = doors.invoke("interruption", read(f"lambda/sqs/{name}.json"))
    else:
        event = read(f"eventbridge/{name}.json")
        call = doors.invoke("interruption", batch(through_sns(event) if way == "sns" else event))
    assert (call.error, call.result) == ("", {"batchItemFailures": []})
    assert outcome(doors, call) == OUTCOMES[name]
    assert len(lines(call)) == 1


@every_event
def test_a_node_that_goes_is_tainted_and_no_other(doors: Doors, name: str) -> None:
    """Nothing new is scheduled onto it while its pods are replaced."""
    doors.invoke("interruption", batch(read(f"eventbridge/{name}.json")))
    tainted = {
        node.metadata.name
        for node in doors.world.cluster.nodes.values()
        if any(taint.key == DISRUPTED_TAINT for taint in node.spec.taints)
    }
    assert tainted == OUTCOMES[name].retired


def test_a_wrapped_event_is_unwrapped(doors: Doors) -> None:
    """A topic between EventBridge and the queue changes nothing."""
    call = doors.invoke("interruption", read("lambda/sqs-through-sns.json"))
    assert outcome(doors, call) == OUTCOMES["spot-interruption"]


def test_a_mixed_batch_is_answered_message_by_message(doors: Doors) -> None:
    """A warning, two events of no consequence and no event at all: each has its line, and none comes again."""
    call = doors.invoke("interruption", read("lambda/sqs-batch-mixed.json"))
    assert (call.error, call.result) == ("", {"batchItemFailures": []})
    assert outcome(doors, call).retired == {"worker"}
    # What needs nothing is answered before the cluster is read for the rest.
    assert [line.get("reason") for line in lines(call)] == [
        FOR_PEOPLE.ignored,
        "the message is not JSON",
        STAYS.format("running"),
        None,
    ]


def test_a_warning_that_cannot_be_read_is_completed_beside_others(doors: Doors) -> None:
    """It says of no instance what happens to it; the messages beside it are done."""
    broken = read("eventbridge/spot-interruption.json")
    broken["detail"]["instance-id"] = None
    call = doors.invoke(
        "interruption", batch(read("eventbridge/state-running.json"), broken, read("eventbridge/state-stopped.json"))
    )
    assert call.result == {"batchItemFailures": []}
    assert outcome(doors, call).retired == {"worker"}


@pytest.mark.parametrize("name", sorted(name for name, outcome in OUTCOMES.items() if "worker" in outcome.retired))
def test_nodes_of_auto_mode_are_auto_mode_s(doors: Doors, name: str) -> None:
    """The same events about an instance that EKS manages:
    its claim is neither marked nor deleted, its node not tainted.
    """
    text = json.dumps(read(f"eventbridge/{name}.json")).replace("i-0a1b2c3d4e5f60718", "i-0d1e2f3a4b5c6d7e8")
    before = dict(doors.world.cluster.node_claims), dict(doors.world.cluster.nodes)
    call = doors.invoke("interruption", batch(json.loads(text)))
    assert (dict(doors.world.cluster.node_claims), dict(doors.world.cluster.nodes)) == before
    assert outcome(doors, call) == NOT_OURS


@pytest.mark.parametrize("state", [None, "", "open", "OPEN", "upcoming"])
def test_a_scheduled_change_that_says_no_state_is_to_come(doors: Doors, state: str | None) -> None:
    """Whoever leaves the state empty says as little as whoever leaves it out: a lost warning costs a node."""
    event = read("eventbridge/health-retirement-upcoming.json")
    event["detail"]["statusCode"] = state
    assert outcome(doors, doors.invoke("interruption", batch(event))).retired == {"worker"}


def test_a_warning_as_the_documentation_has_it_is_read(doors: Doors) -> None:
    """EC2's guide shows ``resources`` of an interruptible reservation's warning as a text,
    and ARNs without an account.
    """
    event = read("eventbridge/capacity-reservation-interruption.json")
    event |= {"resources": "arn:aws:ec2:us-east-1b:instance/i-0a1b2c3d4e5f60718"}
    assert outcome(doors, doors.invoke("interruption", batch(event))).retired == {"worker"}


@pytest.mark.parametrize("field", ["detail-type", "source", "instance-id"])
def test_what_no_stream_can_write_has_its_line_all_the_same(doors: Doors, field: str) -> None:
    """JSON may hold half of a surrogate pair."""
    event = read("eventbridge/spot-interruption.json")
    (event["detail"] if field == "instance-id" else event)[field] = "i-\ud800"
    call = doors.invoke("interruption", batch(event))
    assert call.result == {"batchItemFailures": []}
    assert len(lines(call)) == 1
    assert call.log.encode()


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", 0, -1, 1.5, True, [], [None], ["i-0a1b2c3d4e5f60718"], [{}], {}, {"a": None}, "\ud800", "0"]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document has a value, the document itself included."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """A copy with another value there; without the field where ``odd`` is Ellipsis."""
    if not path:
        return {} if odd is ... else odd
    pairs = dict(value.items() if isinstance(value, dict) else enumerate(value))
    if len(path) == 1 and odd is ...:
        del pairs[path[0]]
    else:
        pairs[path[0]] = replaced(pairs[path[0]], path[1:], odd)
    return pairs if isinstance(value, dict) else list(pairs.values())


@examples(150, suppress=(HealthCheck.function_scoped_fixture,))
@given(data=st.data(), name=st.sampled_from(sorted(OUTCOMES)), wrapped=st.booleans())
def test_whatever_an_event_lacks_its_neighbours_are_answered(data: st.DataObject, name: str, wrapped: bool) -> None:
    """A field is missing, null or something odd: the door answers, and at most that one message comes again."""
    event = read(f"eventbridge/{name}.json")
    event = through_sns(event) if wrapped else event
    path = data.draw(st.sampled_from(list(places(event))))
    odd = replaced(event, path, data.draw(st.just(...) | ODD))
    with Doors(peopled(World(seed=1))).open() as doors:
        call = doors.invoke("interruption", batch(odd, read("eventbridge/spot-interruption.json")))
        assert call.error == ""
        assert call.result["batchItemFailures"] in ([], [{"itemIdentifier": "message-0"}])
        assert "worker" in outcome(doors, call).retired
        assert len(lines(call)) == 2 - len(call.result["batchItemFailures"])
