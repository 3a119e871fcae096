"""The real handlers, woken in the simulator as AWS would wake them."""

import json
import os
from datetime import timedelta
from typing import Any

from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.kubernetes.gateway import Event
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.labels import REPORTER
from simulator import builders
from simulator.actors.admission import Admission
from simulator.doors.doors import Doors
from simulator.doors.queues import TRIES, VISIBILITY, BellQueues, InterruptionQueue, record
from simulator.engine import Engine
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.resources import with_fields, with_metadata
from simulator.world import World

SECOND = timedelta(seconds=1)


def failed_scheduling() -> Event:
    """What kube-scheduler emits about a pod that fits nowhere."""
    return Event(
        "FailedScheduling", "0/0 nodes are available", "Pod", "pod-1", uid="uid", namespace="default", warning=True
    )


def woken(doors: Doors, but: str = "") -> list[str]:
    """The doors that were called, in order."""
    return [call.door for call in doors.calls if call.door != but]


def test_the_environment_is_as_it_was_afterwards(world: World) -> None:
    """Settings last as long as the simulation."""
    before = dict(os.environ)
    with Doors(world, mode="observe").open():
        assert os.environ["JOINERY_MODE"] == "observe"
    assert dict(os.environ) == before


def test_every_door_answers_in_an_empty_cluster(world: World) -> None:
    """Nothing to do is no error."""
    with Doors(world).open() as doors:
        bell = {"Records": [record("1", "queue", {})]}
        rung = [(bell_of.value, bell) for bell_of in Bell]
        for door, event in (*rung, ("expiration", {}), ("catalog", {})):
            assert doors.invoke(door, event).result["outcome"] == "done"


def test_a_failed_scheduling_event_rings_provisioning(world: World, engine: Engine, cluster: InMemoryCluster) -> None:
    """API server, webhook door, queue, provisioning door."""
    doors = Doors(world)
    Admission(engine, cluster, doors)
    BellQueues(engine, world.doorbell, doors)
    with doors.open():
        cluster.emit(failed_scheduling(), reporter="default-scheduler")
        engine.run_for(3 * SECOND)
    assert woken(doors) == ["webhook", "provisioning"]


def test_our_own_events_do_not_reach_the_webhook(world: World, engine: Engine, cluster: InMemoryCluster) -> None:
    """Or every decision would ring for the next one."""
    doors = Doors(world)
    Admission(engine, cluster, doors)
    with doors.open():
        cluster.emit(failed_scheduling(), reporter=REPORTER)
        engine.run_for(3 * SECOND)
    assert woken(doors) == []


def test_forty_events_of_one_second_are_one_bell(world: World, engine: Engine, cluster: InMemoryCluster) -> None:
    """The queue drops what has the same deduplication id."""
    doors = Doors(world)
    Admission(engine, cluster, doors)
    BellQueues(engine, world.doorbell, doors)
    with doors.open():
        for _ in range(40):
            cluster.emit(failed_scheduling(), reporter="default-scheduler")
        engine.run_for(3 * SECOND)
    assert woken(doors, but="webhook") == ["provisioning"]


def test_a_heartbeat_does_not_reach_the_webhook(world: World, engine: Engine, cluster: InMemoryCluster) -> None:
    """The configuration's conditions keep it inside the API server; readiness and taints do get out."""
    cluster.add(builders.node())
    doors = Doors(world)
    Admission(engine, cluster, doors)
    with doors.open():
        node = cluster.api.update(with_metadata(cluster.nodes["node-1"], annotations={"beat": "1"}))
        engine.run_for(SECOND)
        assert woken(doors) == []
        cluster.api.update(with_fields(node, spec=with_fields(node.spec, unschedulable=True)))
        engine.run_for(SECOND)
    assert woken(doors) == ["webhook"]


def test_every_bell_rings_once_a_minute(world: World, engine: Engine) -> None:
    """Whatever was lost costs a minute."""
    doors = Doors(world)
    BellQueues(engine, world.doorbell, doors).start()
    with doors.open():
        engine.run_for(timedelta(seconds=119))
    assert {door: woken(doors).count(door) for door in ("provisioning", "lifecycle", "disruption", "expiration")} == {
        "provisioning": 2, "lifecycle": 2, "disruption": 2, "expiration": 2,
    }  # fmt: skip


def test_a_bell_that_fails_is_rung_again(world: World, engine: Engine) -> None:
    """Its message is completed, and the next slot brings another."""
    doors = Doors(world)
    BellQueues(engine, world.doorbell, doors)
    with doors.open():
        world.cloud.fail_next("instances", UnavailableError("EC2 is throttling"))
        world.doorbell.ring(Bell.LIFECYCLE)
        engine.run_for(timedelta(seconds=12))
    assert [call.result["outcome"] for call in doors.calls] == ["rung again", "done"]
    assert not any(call.error for call in doors.calls)


def warning(detail: dict[str, Any]) -> dict[str, Any]:
    """A spot interruption warning."""
    return {
        "version": "0",
        "source": "aws.ec2",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "detail": detail,
    }


def test_an_event_of_an_unknown_kind_is_completed(world: World, engine: Engine) -> None:
    """Delivering it again would not make it known."""
    doors = Doors(world)
    queue = InterruptionQueue(engine, doors)
    with doors.open():
        queue.send({"detail-type": "Something else", "detail": {}})
        engine.run_for(10 * VISIBILITY)
    assert len(doors.calls) == 1
    assert queue.dead_letters == []


def test_a_message_that_fails_is_delivered_again_and_then_rests_with_the_dead(world: World, engine: Engine) -> None:
    """Five times, half a minute apart: the instance may be that of a claim that waits for its own."""
    doors = Doors(world)
    queue = InterruptionQueue(engine, doors)
    sent = world.clock.now() + timedelta(minutes=1)
    world.cluster.add(builders.node_claim(conditions=(), created=world.clock.now()))
    with doors.open():
        queue.send({**warning({"instance-id": "i-0a1b2c3d4e5f60718"}), "time": sent.isoformat()})
        engine.run_for((TRIES + 1) * VISIBILITY)
    assert len(doors.calls) == TRIES
    assert len(queue.dead_letters) == 1


def test_a_call_keeps_what_the_door_logged(world: World) -> None:
    """The log is where a decision says why."""
    with Doors(world).open() as doors:
        call = doors.invoke("expiration", {"schedule": "2026-01-01T00:00:00Z"})
    assert any(json.loads(line).get("message") == "done" for line in call.log.splitlines())
