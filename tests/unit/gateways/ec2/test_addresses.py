"""Which subnet of a zone a launch goes to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from joinery.gateways.ec2.gateway import LaunchedInstance, LaunchRequest, Override
from joinery.gateways.ec2.launch.addresses import Addresses
from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, SubnetStatus
from simulator import builders
from simulator.clock import Clock

#: Two subnets in the first zone and one in the second.
SUBNETS = [SubnetStatus(id=name, zone=f"us-east-1{name[0]}") for name in ("a1", "a2", "b1")]


class _Subnets:
    """EC2's subnets. ``free``: their addresses; ``times``: how often they were asked for."""

    def __init__(self, **free: int) -> None:
        self.clock, self.times, self.free, self.is_mute = Clock(), 0, free, False
        self.addresses = Addresses(self._describe, self.clock.now)

    def _describe(self, names: Sequence[str]) -> Mapping[str, int]:
        self.times += 1
        if self.is_mute:
            raise UnavailableError("no answer")
        return {name: self.free[name] for name in names}

    def launch(self, request: LaunchRequest) -> tuple[str, int]:
        """The first zone's subnet, and how many instances were launched there: all that the call was for."""
        places = self.addresses.choose(request, ipv6=False)
        self.addresses.release(places, [_instance("us-east-1a")] * places.count)
        return places.subnets["us-east-1a"], places.count


def _instance(zone: str) -> LaunchedInstance:
    return LaunchedInstance("i-1", "m5.large", zone, "on-demand", "ami-1")


def _class() -> EC2NodeClass:
    found = builders.node_class()
    return found.model_copy(update={"status": found.status.model_copy(update={"subnets": SUBNETS})})


def request(*zones: str, count: int = 1) -> LaunchRequest:
    """Nodes of 29 pods in these zones."""
    pools = tuple(Override("m5.large", f"us-east-1{zone}", 0.1, 29) for zone in zones or "a")
    return LaunchRequest(
        token="t-1", count=count, node_pool="general", node_class=_class(), capacity_type="on-demand", overrides=pools,
        labels={},
    )  # fmt: skip


def test_a_launch_goes_where_most_addresses_are_free() -> None:
    """Whichever subnet the class lists first: its status is a minute old."""
    assert _Subnets(a1=100, a2=200).launch(request()) == ("a2", 1)


def test_what_was_launched_a_moment_ago_has_taken_its_addresses() -> None:
    """Its pods will: EC2 does not count them yet. The next launch goes next door."""
    subnets = _Subnets(a1=100, a2=120)
    assert [subnets.launch(request())[0] for _ in range(4)] == ["a2", "a1", "a2", "a1"]
    assert subnets.times == 1


def test_what_a_call_has_not_launched_takes_nothing() -> None:
    """Neither in the zones that EC2 did not choose nor where it was out of everything."""
    subnets = _Subnets(a1=100, a2=120, b1=100)
    for launched in ([], [_instance("us-east-1b")]):
        places = subnets.addresses.choose(request("a", "b"), ipv6=False)
        subnets.addresses.release(places, launched)
    assert subnets.launch(request())[0] == "a2"


def test_calls_side_by_side_do_not_count_on_the_same_addresses() -> None:
    """The first has no answer yet when the second begins."""
    subnets = _Subnets(a1=100, a2=120)
    chosen = [subnets.addresses.choose(request(), ipv6=False).subnets["us-east-1a"] for _ in range(2)]
    assert chosen == ["a2", "a1"]


def test_a_subnet_takes_as_many_nodes_as_it_has_addresses_for() -> None:
    """Three of five; the other two are for the next call."""
    subnets = _Subnets(a1=60, a2=100)
    assert subnets.launch(request(count=5)) == ("a2", 3)
    assert subnets.launch(request(count=2)) == ("a1", 2)


@pytest.mark.parametrize(("free", "expected"), [({"a1": 60, "a2": 100}, 50), ({"a1": 1, "a2": 3}, 3)])
def test_a_node_of_an_ipv6_cluster_takes_one_address(free: dict[str, int], expected: int) -> None:
    """Pods have addresses of IPv6, of which EC2 counts none; the node has one of each family (EKS Best Practices,
    "Running IPv6 EKS Clusters").
    """
    places = _Subnets(**free).addresses.choose(request(count=50), ipv6=True)
    assert (places.subnets["us-east-1a"], places.count) == ("a2", expected)


def test_where_none_has_enough_the_launch_is_tried_all_the_same() -> None:
    """Pods need not all have an address of the subnet: prefixes and other subnets may serve them."""
    assert _Subnets(a1=3, a2=5).launch(request(count=4)) == ("a2", 4)


def test_where_none_had_enough_the_next_launch_is_tried_as_well() -> None:
    """Addresses that were promised twice are none, and not fewer."""
    subnets = _Subnets(a1=3, a2=5)
    assert [subnets.launch(request(count=4))[1] for _ in range(3)] == [4, 4, 4]


@pytest.mark.parametrize(
    ("free", "ipv6", "zones"),
    [
        ({"b1": 28}, False, ["us-east-1a"]),
        ({"b1": 29}, False, ["us-east-1a", "us-east-1b"]),
        ({"b1": 1}, True, ["us-east-1a", "us-east-1b"]),
        ({"b1": 0}, True, ["us-east-1a"]),
        ({"a1": 28, "a2": 1, "b1": 100}, False, ["us-east-1b"]),
        ({"a1": 28, "a2": 1, "b1": 28}, False, ["us-east-1a", "us-east-1b"]),
    ],
)
def test_a_zone_without_addresses_for_a_node_is_left_out_where_another_has_them(
    free: dict[str, int], ipv6: bool, zones: list[str]
) -> None:
    """The pods would wait there (karpenter-provider-aws#5234). They take no IPv4 addresses in an IPv6 cluster."""
    subnets = _Subnets(**{"a1": 100, "a2": 120} | free)
    places = subnets.addresses.choose(request("a", "b"), ipv6=ipv6)
    assert sorted(places.subnets) == zones


def test_a_zone_is_left_out_once_what_was_launched_there_takes_its_addresses() -> None:
    """Not while a call is under way that may go elsewhere."""
    subnets, asked = _Subnets(a1=100, a2=120, b1=30), request("a", "b")
    under_way = subnets.addresses.choose(asked, ipv6=False)
    assert "us-east-1b" in subnets.addresses.choose(asked, ipv6=False).subnets
    subnets.addresses.release(under_way, [_instance("us-east-1b")])
    assert "us-east-1b" not in subnets.addresses.choose(asked, ipv6=False).subnets


def test_a_zone_with_one_subnet_limits_no_launch() -> None:
    """Its pods take fewer addresses than they may, and each call takes seconds."""
    only = _Subnets(b1=30, c1=60)
    subnets = [SubnetStatus(id=f"{zone}1", zone=f"us-east-1{zone}") for zone in "bc"]
    asked = request("b", "c", count=9)
    node_class = _class().model_copy(update={"status": _class().status.model_copy(update={"subnets": subnets})})
    places = only.addresses.choose(replace(asked, node_class=node_class), ipv6=False)
    assert (places.count, sorted(places.subnets.values())) == (9, ["b1", "c1"])


def test_a_zone_without_a_choice_is_not_asked_about() -> None:
    """It costs a call."""
    subnets = _Subnets()
    assert subnets.addresses.choose(request("b", count=9), ipv6=False).count == 9
    assert (
        subnets.addresses.choose(replace(request("a"), full_subnets=frozenset({"a2"})), ipv6=False).subnets[
            "us-east-1a"
        ]
        == "a1"
    )
    assert subnets.times == 0


def test_after_a_minute_ec2_is_asked_again() -> None:
    """By then it counts what was launched."""
    subnets = _Subnets(a1=100, a2=120)
    subnets.launch(request())
    subnets.clock.advance(timedelta(minutes=1))
    assert subnets.launch(request())[0] == "a2"
    assert subnets.times == 2


def test_a_call_that_is_under_way_while_ec2_is_asked_again_gives_back_no_more_than_it_took() -> None:
    """Its addresses would count as free twice, for a minute."""
    subnets = _Subnets(a1=100, a2=120)
    under_way = subnets.addresses.choose(request(), ipv6=False)
    subnets.clock.advance(timedelta(minutes=1))
    assert subnets.launch(request())[0] == "a1"
    subnets.addresses.release(under_way)
    assert [subnets.launch(request())[0] for _ in range(3)] == ["a2", "a2", "a1"]


def test_without_an_answer_the_order_of_the_status_has_to_do() -> None:
    """A launch must not fail for it. The next one asks again."""
    subnets = _Subnets(a1=100, a2=120)
    subnets.is_mute = True
    assert subnets.launch(request(count=9)) == ("a1", 9)
    subnets.is_mute = False
    assert subnets.launch(request())[0] == "a2"


def test_a_class_without_subnets_is_the_users_mistake() -> None:
    """As where there is nothing to choose."""
    bare = builders.node_class().model_copy(update={"status": _class().status.model_copy(update={"subnets": []})})
    with pytest.raises(ConfigurationError, match=r"status\.subnets is empty"):
        _Subnets().addresses.choose(replace(request(), node_class=bare), ipv6=False)
