"""One stack serves several clusters: each is looked at by itself, with what was chosen for it."""

import json
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from joinery import bootstrap
from joinery.controllers.dealing import Dealing
from joinery.controllers.triggers.dispatcher import Handle
from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.gateways.workers import Threads
from joinery.objects.errors import UnavailableError
from joinery.objects.member import Member
from simulator import builders
from simulator.doors.doors import TOKEN, Call, Doors
from simulator.doors.queues import STATUS_POLL, record
from simulator.latency import Latency
from simulator.world import World

EVENTS = Path(__file__).parents[2] / "events"
ROLES = dict.fromkeys(
    ("provisioning", "lifecycle", "disruption", "interruption", "expiration"), "arn:aws:iam::1:role/green"
)


@pytest.fixture
def home() -> World:
    """The stack's own cluster, without a pod."""
    return peopled(World(seed=1), pods=0)


@pytest.fixture
def green(home: World) -> World:
    """A member with a pod that fits nowhere."""
    return member(home, "green")


@pytest.fixture
def doors(home: World, green: World) -> Iterator[Doors]:
    """The functions, which serve both."""
    with Doors(home, settings="Members=true").open() as opened:
        yield opened


def peopled(world: World, pods: int = 1) -> World:
    """A cluster with a NodePool and pods that fit nowhere."""
    world.cluster.add(builders.node_class(), builders.node_pool())
    world.cluster.add(*(builders.pod(f"pod-{number}", cpu="1") for number in range(pods)))
    return world


def member(home: World, name: str, **registered: Any) -> World:
    """A member of that name, with a pod that fits nowhere."""
    home.register.put(Member(name, ROLES, **{"mode": "act", **registered}))
    return peopled(World(seed=1, home=home, name=name))


def bell(function: str, *clusters: str, **body: Any) -> dict[str, Any]:
    """A batch with a bell of each cluster."""
    return {"Records": [record(f"bell-{name}", f"joinery-{function}.fifo", body, group=name) for name in clusters]}


def result(call: Call) -> dict[str, Any]:
    """What the door answered."""
    assert not call.error, call.error
    answered: dict[str, Any] = call.result
    return answered


def test_a_members_bell_has_its_pods_get_nodes(doors: Doors, home: World, green: World) -> None:
    """The bell's message group is called like its cluster."""
    assert result(doors.invoke("provisioning", bell("provisioning", "green")))["launched"] == 1
    assert [len(green.cloud.instances()), len(home.cloud.instances())] == [1, 0]
    assert len(green.cluster.node_claims) == 1
    assert not home.cluster.node_claims


def test_a_members_schedule_names_it(doors: Doors, green: World) -> None:
    """In the body: its message group is the schedule's."""
    event = bell("provisioning", "green-schedule", cluster="green", schedule="2026-11-28T10:00:00Z")
    assert result(doors.invoke("provisioning", event))["launched"] == 1


@pytest.mark.parametrize(
    "body", [{"schedule": "2026-11-28T10:00:00Z", "door": "provisioning"}, {"door": "provisioning"}]
)
def test_the_stacks_own_schedule_and_a_bell_by_hand_are_its_own_clusters(
    doors: Doors, home: World, body: dict[str, Any]
) -> None:
    """Whatever message group they are in."""
    home.cluster.add(builders.pod("pod", cpu="1"))
    assert result(doors.invoke("provisioning", bell("provisioning", "by-hand", **body)))["launched"] == 1
    assert len(home.cloud.instances()) == 1
    assert not home.register.reads


def test_a_bell_of_an_unknown_cluster_is_completed(doors: Doors, home: World) -> None:
    """Its stack is gone. One line says so, and nothing is rung again."""
    call = doors.invoke("provisioning", bell("provisioning", "gone"))
    assert result(call) == {"outcome": "off"}
    assert call.log.count("no stack has registered this cluster") == 1
    assert '"cluster":"gone"' in call.log
    assert not home.doorbell.rings


def test_of_a_batch_of_several_clusters_one_is_answered_and_the_others_are_rung_again(
    doors: Doors, home: World, green: World
) -> None:
    """None waits for another's run."""
    doors.invoke("provisioning", bell("provisioning", "green", "simulated"))
    assert len(green.cluster.node_claims) == 1
    assert [bell.value for _, bell in home.doorbell.rings] == ["provisioning"]


def test_a_mode_that_was_changed_is_in_force_with_the_next_run(doors: Doors, home: World, green: World) -> None:
    """The register is read at the start of each run."""
    home.register.put(Member("green", ROLES, mode="observe"))
    doors.invoke("provisioning", bell("provisioning", "green"))
    assert not green.cluster.node_claims
    home.register.put(Member("green", ROLES, mode="act"))
    doors.invoke("provisioning", bell("provisioning", "green"))
    assert len(green.cluster.node_claims) == 1


def test_a_register_that_is_silent_has_the_bell_rung_again(doors: Doors, home: World, green: World) -> None:
    """Nothing is done in a mode that nobody has confirmed."""
    home.register.failure = UnavailableError("throttled")
    assert result(doors.invoke("provisioning", bell("provisioning", "green")))["outcome"] == "rung again"
    assert [bell.value for _, bell in green.doorbell.rings] == ["provisioning"]
    assert not green.cluster.node_claims


def test_a_setting_that_is_wrong_is_that_members_alone(doors: Doors, home: World, green: World) -> None:
    """A person must act, and others are served meanwhile."""
    home.cluster.add(builders.pod("pod", cpu="1"))
    home.register.put(Member("green", ROLES, "MaxLaunches=many", "act"))
    assert result(doors.invoke("provisioning", bell("provisioning", "green")))["outcome"] == "refused"
    assert result(doors.invoke("provisioning", bell("provisioning", "simulated")))["launched"] == 1


def test_settings_are_each_members_own(doors: Doors, home: World, green: World) -> None:
    """What was chosen for one holds for no other."""
    home.cluster.add(builders.pod("pod", cpu="1"))
    home.register.put(Member("green", ROLES, "MaxLaunches=0", "act"))
    doors.invoke("provisioning", bell("provisioning", "green"))
    doors.invoke("provisioning", bell("provisioning", "simulated"))
    assert (len(green.cloud.instances()), len(home.cloud.instances())) == (0, 1)


def test_a_members_failure_is_in_its_own_metrics_and_sets_off_the_stacks_alarm(doors: Doors, green: World) -> None:
    """The alarms are the stack's."""
    breaks(green, "cluster.snapshot")
    call = doors.invoke("provisioning", bell("provisioning", "green"))
    measured = [json.loads(line) for line in call.log.splitlines() if "_aws" in line]
    spaces = [
        one["_aws"]["CloudWatchMetrics"][0]["Namespace"] for one in measured if "joinery_runs_failed_total" in one
    ]
    assert sorted(spaces) == ["Joinery/green", "Joinery/simulated"]
    assert {json.loads(line).get("cluster") for line in call.log.splitlines() if "level" in line} == {"green"}


def test_a_stack_without_members_looks_at_no_register(home: World, green: World) -> None:
    """And answers every bell for its own cluster, as ever."""
    home.cluster.add(builders.pod("pod", cpu="1"))
    with Doors(home).open() as doors:
        doors.invoke("provisioning", bell("provisioning", "green"))
    assert len(home.cluster.node_claims) == 1
    assert not green.cluster.node_claims
    assert not home.register.reads


def test_a_function_keeps_the_members_warm_that_it_served_last() -> None:
    """So many at most; the one that waited longest is forgotten, and is looked at anew when it rings."""
    kept = bootstrap.Members("provisioning", most=2, is_full=lambda: False)
    first = kept.door("a")
    for name in ("b", "a", "c"):
        kept.door(name)
    assert kept.warm == ("a", "c")
    assert kept.door("a") is first


def test_a_function_that_runs_out_of_memory_forgets_a_member_at_each_run() -> None:
    """But never the one that it works for."""
    kept = bootstrap.Members("provisioning", most=9, is_full=lambda: len(kept.warm) > 1)
    for name in ("a", "b", "c", "b", "b"):
        kept.door(name)
    assert kept.warm == ("c", "b")


# --- the webhook ---


def review(cluster: str, token: str = TOKEN) -> dict[str, Any]:
    """A call of an API server about a pod that fits nowhere."""
    sample: dict[str, Any] = json.loads((EVENTS / "webhook_failed_scheduling.json").read_text())
    return sample | {"rawPath": f"/{cluster}/{token}"}


def test_a_members_api_server_rings_its_own_bell(doors: Doors, home: World, green: World) -> None:
    """By the path of its webhook, which names it."""
    assert result(doors.invoke("webhook", review("green")))["statusCode"] == 200
    assert [bell.value for _, bell in green.doorbell.rings] == ["provisioning"]
    assert not home.doorbell.rings


def test_a_call_for_an_unknown_cluster_is_refused(doors: Doors, home: World) -> None:
    """Whoever calls learns nothing, not even which clusters there are."""
    unknown = result(doors.invoke("webhook", review("gone")))
    assert unknown == result(doors.invoke("webhook", review("green", "a-token-that-nobody-has-given-to-anybody")))
    assert unknown["statusCode"] == 403


def test_strangers_do_not_have_the_register_read_for_every_call(doors: Doors, home: World) -> None:
    """A read costs money and time. Of a member that has just come a call is answered ten seconds later at most."""
    for number in range(20):
        doors.invoke("webhook", review(f"guess-{number}"))
    assert home.register.reads == ["*"]
    member(home, "late")
    assert result(doors.invoke("webhook", review("late")))["statusCode"] == 403
    home.clock.advance(timedelta(seconds=10))
    assert result(doors.invoke("webhook", review("late")))["statusCode"] == 200


def test_a_member_whose_webhook_is_switched_off_rings_nothing(doors: Doors, home: World, green: World) -> None:
    """The setting is its own, and is in force within minutes."""
    doors.invoke("webhook", review("green"))
    home.register.put(Member("green", ROLES, "SwitchedOff=webhook"))
    home.clock.advance(timedelta(minutes=5))
    doors.invoke("webhook", review("green"))
    assert len(green.doorbell.rings) == 1


def test_the_stacks_own_api_server_is_answered_without_a_look_at_the_register(doors: Doors, home: World) -> None:
    """Its path has the token alone, as ever."""
    call = review("green") | {"rawPath": f"/{TOKEN}"}
    assert result(doors.invoke("webhook", call))["statusCode"] == 200
    assert [bell.value for _, bell in home.doorbell.rings] == ["provisioning"]
    assert not home.register.reads


# --- interruptions ---


def warned(world: World, place: int = 0) -> dict[str, Any]:
    """EC2's warning for an instance of that cluster."""
    event: dict[str, Any] = json.loads((EVENTS / "interruption_spot_warning.json").read_text())
    envelope = json.loads(event["Records"][0]["body"])
    envelope["detail"]["instance-id"] = world.cloud.instances()[place].instance_id
    return {**envelope, "time": world.clock.now().isoformat()}


def batch(*envelopes: dict[str, Any]) -> dict[str, Any]:
    """A batch of the interruption queue."""
    return {
        "Records": [record(f"message-{number}", "joinery-interruptions", one) for number, one in enumerate(envelopes)]
    }


def failed(call: Call) -> list[str]:
    """The messages that are delivered again."""
    return [one["itemIdentifier"] for one in result(call)["batchItemFailures"]]


@pytest.fixture
def with_nodes(doors: Doors, home: World, green: World) -> Doors:
    """Each cluster has an instance."""
    home.cluster.add(builders.pod("pod", cpu="1"))
    for name in ("simulated", "green"):
        doors.invoke("provisioning", bell("provisioning", name))
    return doors


def breaks(world: World, call: str) -> None:
    """From now on that call of a gateway fails."""

    def fails(*_: Any) -> Any:
        raise UnavailableError("down")

    world.latency = Latency(world.gateways)
    world.latency.answers[call] = fails


def going(world: World) -> list[bool]:
    """Of each claim whether it is being retired."""
    return [claim.is_deleting for claim in world.cluster.node_claims.values()]


def test_a_warning_reaches_the_cluster_whose_the_instance_is(with_nodes: Doors, home: World, green: World) -> None:
    """By the instance's own tag: EventBridge knows no cluster."""
    call = with_nodes.invoke("interruption", batch(warned(green)))
    assert failed(call) == []
    assert (going(home), going(green)) == ([False], [True])
    assert '"claims":1,"cluster":"green"' in call.log


def test_of_a_batch_each_cluster_gets_its_own(with_nodes: Doors, home: World, green: World) -> None:
    """And the stack's own as ever."""
    assert failed(with_nodes.invoke("interruption", batch(warned(home), warned(green)))) == []
    assert (going(home), going(green)) == ([True], [True])


def test_a_cluster_that_cannot_be_read_has_its_own_notices_delivered_again(
    with_nodes: Doors, home: World, green: World
) -> None:
    """Those of others are done, also where it is the stack's own that cannot be read."""
    breaks(green, "cluster.claims_snapshot")
    assert failed(with_nodes.invoke("interruption", batch(warned(home), warned(green)))) == ["message-1"]
    assert going(home) == [True]


def test_the_stacks_own_cluster_may_be_down_and_its_members_are_served(
    with_nodes: Doors, home: World, green: World
) -> None:
    """It is a cluster like others."""
    breaks(home, "cluster.claims_snapshot")
    assert failed(with_nodes.invoke("interruption", batch(warned(home), warned(green)))) == ["message-0"]
    assert going(green) == [True]


def test_what_ec2_does_not_say_is_asked_again(with_nodes: Doors, home: World, green: World) -> None:
    """Whose an instance is that the stack's own cluster does not know. What it knows is done."""
    home.cloud.fail_next("look_up", UnavailableError("throttled"))
    assert failed(with_nodes.invoke("interruption", batch(warned(home), warned(green)))) == ["message-1"]
    assert going(home) == [True]


def test_an_instance_of_a_cluster_that_is_no_member_is_nobodys(with_nodes: Doors, home: World, green: World) -> None:
    """The account has clusters that Joinery does not look after."""
    home.register.remove("green")
    assert failed(with_nodes.invoke("interruption", batch(warned(green)))) == []
    assert going(green) == [False]


def test_a_stack_without_members_asks_ec2_about_no_notice(home: World, green: World) -> None:
    """Its claims say which instances are its own."""
    home.cluster.add(builders.pod("pod", cpu="1"))
    with Doors(home).open() as doors:
        doors.invoke("provisioning", bell("provisioning", "simulated"))
        home.cloud.fail_next("look_up", UnavailableError("nobody asks"))
        assert failed(doors.invoke("interruption", batch(warned(home)))) == []
    assert going(home) == [True]


def test_a_members_poll_asks_about_its_own(with_nodes: Doors, home: World, green: World) -> None:
    """Its schedule calls the function, and names it."""
    poll = STATUS_POLL | {"cluster": "green"}
    assert result(with_nodes.invoke("interruption", poll))["outcome"] == "done"
    with_nodes.invoke("interruption", STATUS_POLL | {"cluster": "gone"})


def test_a_member_that_hangs_keeps_no_other_waiting() -> None:
    """The one answers only when the others have."""
    others_are_done, done = threading.Event(), list[str]()

    def hangs(notices: Sequence[Notice]) -> Sequence[dict[str, Any]]:
        assert others_are_done.wait(timeout=10)
        return [{"claims": 1}] * len(notices)

    def answers(name: str, notices: Sequence[Notice]) -> Sequence[dict[str, Any]]:
        done.append(name)
        if len(done) == 2:
            others_are_done.set()
        return [{"claims": 1}] * len(notices)

    handles: dict[str, Handle[Notice]] = {"red": hangs, "green": partial(answers, "green")}
    dealing = Dealing(
        partial(answers, "own"), lambda ids: dict(zip(ids, ids, strict=True)), lambda _: handles, Threads(9)
    )
    notices = [Notice(NoticeKind.SPOT_INTERRUPTED, (name,)) for name in ("red", "green", "own")]
    assert [outcome["claims"] for outcome in dealing.handle(notices)] == [1, 1, 1]  # type: ignore[index]
