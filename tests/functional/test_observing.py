"""In observe mode everything is read and decided, and nothing but Events and records is written."""

from inspect import Parameter, signature
from typing import Any, cast, get_type_hints

from joinery.gateways.bundles import Gateways
from joinery.gateways.observing import read_only
from joinery.objects.karpenter.labels import INSTANCE_TYPE
from simulator import builders
from simulator.world import World
from tests.functional.fuse import READS, WRITES, Fuse
from tests.functional.stand import Stand

#: What is a process's own, and no way to anybody else.
OWN = {"workers", "refusals"}
TOLD_AND_KEPT = {"recorder.emit", "store.record", "store.put_catalog", "store.put_paid_for"}


def _observed(stand: Stand) -> tuple[Stand, Fuse]:
    """The same world as an observing process sees it, and a witness of what that process writes."""
    fuse = Fuse()
    return Stand(stand.world, gateways=read_only(fuse.protect(stand.world.gateways))), fuse


def test_no_door_writes_anything_but_events_and_records(stand: Stand) -> None:
    """Pods that wait, a node that registers, one that EC2 takes away,
    one that is too old, an instance that nobody knows.
    """
    stand.pods(3)
    stand.settle()
    stand.pods(6)
    stand.provision()
    stand.boot()
    stand.world.cluster.add(*(builders.pod(f"late-{number}", cpu="900m") for number in range(4)))
    watching, fuse = _observed(stand)
    watching.receive("interruption_spot_warning", stand.alive[0])
    watching.provision()
    stand.wait(3600 * 24 * 365)
    watching.expire()
    stand.world.cluster.remove(stand.claims[1])
    watching.live()
    watching.refresh()
    assert set(fuse.writes) == TOLD_AND_KEPT - {"store.put_paid_for"}  # no commitments count


def test_a_claim_that_nobody_launches_is_left_alone(world: World) -> None:
    """It may be another controller's, beside which Joinery is tried:
    nothing is asked of EC2, and nothing is said of the claim.
    """
    stand = Stand(world).with_defaults()
    world.cluster.add(builders.node_claim("theirs", conditions=(), created=world.clock.now()))
    stand.wait(90)
    before = len(world.cluster.events)
    watching, fuse = _observed(stand)
    watching.live()
    watching.provision()
    assert set(fuse.writes) <= TOLD_AND_KEPT
    assert [event.name for event in world.cluster.events[before:]] == []


def test_nothing_is_said_of_a_claim_that_joinery_could_not_launch(world: World) -> None:
    """It may be another controller's, which knows instance types that Joinery does not know."""
    stand = Stand(world).with_defaults()
    unknown = builders.node_claim(
        "theirs", conditions=(), created=world.clock.now(), requirements=[f"{INSTANCE_TYPE}=x9.huge"]
    )
    world.cluster.add(unknown)
    stand.wait(90)
    watching, _ = _observed(stand)
    watching.live()
    watching.provision()
    assert [event.reason for event in world.cluster.events if event.name == "theirs"] == []


def test_a_plan_is_recorded_and_told_and_nothing_is_bought(stand: Stand) -> None:
    """A user tries Joinery beside what they have."""
    stand.pods(3)
    outcome = stand.observing().provision()
    assert (outcome["launches"], outcome["launched"]) == (1, 0)
    assert (stand.claims, stand.alive, stand.rung()) == ([], [], set())
    assert stand.event_reasons("Pod") == {"Observed"}
    assert len(stand.world.store.documents) == 1
    assert [lease.spec.holder_identity for lease in stand.world.cluster.leases.values()] == [None]


def test_nobody_is_nominated_for_what_is_only_observed(stand: Stand) -> None:
    """No claim is written, so none is promised."""
    stand.pods(1)
    stand.observing().provision()
    assert stand.messages("Nominated") == {}


def test_a_node_that_comes_is_left_as_it_is(stand: Stand) -> None:
    """No node is registered, no instance launched or terminated, no bell rung."""
    stand.pods(1)
    stand.provision()
    stand.boot()
    stand.rung()
    before = stand.world.cluster.snapshot()
    stand.observing().live()
    assert (stand.world.cluster.snapshot(), stand.rung()) == (before, set())


def test_a_warning_is_told_and_nothing_is_done(stand: Stand) -> None:
    """The Events say what would have happened."""
    stand.pods(3)
    stand.settle()
    stand.rung()
    before = stand.claim
    stand.observing().receive("interruption_spot_warning", stand.alive[0])
    assert (stand.claim, stand.rung()) == (before, set())
    assert "SpotInterrupted" in stand.event_reasons("NodeClaim")


def test_an_old_node_is_told_of_and_kept(stand: Stand) -> None:
    """The Event says what would have happened."""
    stand.pods(1)
    stand.settle()
    stand.wait(30 * 24 * 3600)
    stand.observing().expire()
    assert "Expired" in stand.event_reasons("NodeClaim")
    assert not stand.claim.is_deleting


def test_every_method_of_a_gateway_is_known_to_read_or_to_write() -> None:
    """The fuse of these tests, and of the crash tests, counts what writes: a new method must be told to it."""
    protocols = [protocol for name, protocol in get_type_hints(Gateways).items() if name not in OWN]
    methods = {name for protocol in protocols for name in vars(protocol) if not name.startswith("_")}
    assert methods == WRITES | READS


def test_no_write_of_any_gateway_gets_through() -> None:
    """Method by method, whoever may call it one day: only Events, records, the catalogue and what is paid for do."""
    reached: list[str] = []
    protocols = {name: protocol for name, protocol in get_type_hints(Gateways).items() if name not in OWN}
    bundle = read_only(Gateways(**{name: cast("Any", _Heard(name, reached)) for name in protocols}))
    for name, protocol in protocols.items():
        for method in (method for method in vars(protocol) if not method.startswith("_")):
            call = getattr(getattr(bundle, name), method)
            asked = signature(call).parameters.values()
            given = {each.name: _Heard(each.name, reached) for each in asked}
            call(
                *(given[each.name] for each in asked if each.kind is not Parameter.KEYWORD_ONLY),
                **{each.name: given[each.name] for each in asked if each.kind is Parameter.KEYWORD_ONLY},
            )
    assert {call for call in reached if call.partition(".")[2] not in READS} == TOLD_AND_KEPT


class _Heard:
    """Stands for a gateway, and for anything that may be handed to one: it writes down what is asked of it."""

    def __init__(self, name: str, reached: list[str]) -> None:
        self._name, self._reached = name, reached

    def __getattr__(self, method: str) -> Any:
        def heard(*given: Any, **named: Any) -> None:
            self._reached.append(f"{self._name}.{method}")

        return heard
