"""Which subnet of a zone a launch goes to, and to which zones: where there are addresses for its pods.

EC2 says how many are free, and the pods of a node take theirs only as they come. So what was launched since EC2 was
asked counts as if every pod that its nodes may have were there (Karpenter for AWS, in-flight addresses). Otherwise all
nodes of a surge would go to one subnet, and their pods would wait there for addresses that its neighbour has. What EC2
counts are IPv4 addresses: in a cluster of IPv6 a node takes one, and its pods none (EKS Best Practices, "Running IPv6
EKS Clusters").

Of several subnets of a zone it is that with the most free addresses. A zone without addresses for one whole node is
left out where another has them (https://github.com/aws/karpenter-provider-aws/issues/5234): EC2 takes the node there as
long as it has an address of its own. A launch into one zone with one subnet leaves no choice, and EC2 is not asked.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from joinery.gateways.answers import Log, unlogged
from joinery.gateways.ec2.gateway import LaunchedInstance, LaunchRequest
from joinery.gateways.ec2.launch.fleet import subnets_by_zone
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter.ec2nodeclass import of_ec2

#: How long EC2's word is good for (Karpenter for AWS ``AvailableIPAddressTTL``).
TIME_TO_LIVE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LaunchSubnets:
    """Where one call may launch.

    ``subnets``: by zone, the id of the subnet. ``count``: how many instances they have addresses for, at most as many
    as were requested. ``taken``: by subnet, the addresses that are counted as taken until the call is answered.
    ``left_out``: zones that have no addresses for a node, where others have. ``per_node``: by zone, how many a node
    takes.
    """

    subnets: Mapping[str, str]
    count: int
    taken: Mapping[str, int] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    per_node: Mapping[str, int] = field(default_factory=dict)


class Addresses:
    """What is free, by the id of the subnet. Safe to use from several threads.

    ``describe``: reads from EC2 the free addresses of these subnets.
    """

    def __init__(
        self, describe: Callable[[Sequence[str]], Mapping[str, int]], now: Callable[[], datetime], log: Log = unlogged
    ) -> None:
        self._describe, self._now, self._log = describe, now, log
        self._lock = Lock()
        self._free: dict[str, int] = {}
        self._under_way: dict[str, int] = {}
        self._read_at: dict[str, datetime] = {}

    def choose(self, request: LaunchRequest, *, ipv6: bool) -> LaunchSubnets:
        """The places of a call, which are counted as taken. The request's full subnets are passed over.

        Where a zone has several subnets, and the best of them has addresses for some of the nodes only, the call is for
        these. ``ipv6``: whether the cluster is of that family.
        """
        first = subnets_by_zone(of_ec2(request.node_class), request.full_subnets)
        subnets = self._subnets(request)
        rivals = {zone: names for zone, names in subnets.items() if len(names) > 1}
        asked = rivals if len(subnets) == 1 else subnets
        with self._lock:
            if not asked or not self._is_known({name for names in asked.values() for name in names}):
                return LaunchSubnets(first, request.count)
            needed = _addresses(request, ipv6=ipv6)
            chosen = {zone: max(names, key=lambda name: self._free.get(name, 0)) for zone, names in asked.items()}
            room = {zone: max(self._free.get(name, 0), 0) // needed[zone] for zone, name in chosen.items()}
            left_out = frozenset(zone for zone, nodes in room.items() if any(room.values()) and not nodes)
            # Where no subnet has enough for one, it is the last one's to say so.
            count = min([request.count, *(room[zone] or request.count for zone in rivals if zone not in left_out)])
            # Of a zone with one subnet a call takes what it launches there, not what it might: it may go elsewhere.
            per_node = {zone: needed[zone] if zone in rivals else 0 for zone in chosen if zone not in left_out}
            taken = {chosen[zone]: count * addresses for zone, addresses in per_node.items()}
            self._add(taken, -1)
            for name, number in taken.items():
                self._under_way[name] = self._under_way.get(name, 0) + number
        places = {zone: name for zone, name in {**first, **chosen}.items() if zone not in left_out}
        return LaunchSubnets(places, count, taken, left_out, needed)

    def release(self, places: LaunchSubnets, launched: Iterable[LaunchedInstance] = ()) -> None:
        """The call was answered, or failed: the addresses that it did not take are free again."""
        zones = [instance.zone for instance in launched]
        used = {name: zones.count(zone) * places.per_node.get(zone, 0) for zone, name in places.subnets.items()}
        with self._lock:
            self._add({name: taken - used.get(name, 0) for name, taken in places.taken.items()}, 1)
            for name, number in places.taken.items():
                self._under_way[name] -= number

    def _subnets(self, request: LaunchRequest) -> Mapping[str, list[str]]:
        """The subnets of each zone of the request, in the order of the status."""
        zones = {override.zone for override in request.overrides}
        subnets: dict[str, list[str]] = {}
        for subnet in of_ec2(request.node_class).status.subnets:
            if subnet.zone in zones and subnet.id not in request.full_subnets:
                subnets.setdefault(subnet.zone, []).append(subnet.id)
        return subnets

    def _is_known(self, names: set[str]) -> bool:
        """Whether their free addresses are known. What is old is read again, and what was computed is forgotten.

        Not what calls have taken that are under way: EC2 does not count it, and they give some of it back.

        Without an answer the order of the status has to do, which is by free addresses a minute ago.
        """
        now = self._now()
        if any(name not in self._read_at or now - self._read_at[name] >= TIME_TO_LIVE for name in names):
            try:
                described = self._describe(sorted(names))
            except JoineryError as error:
                self._log(f"free addresses of subnets are not known: {error}")
                return False
            self._free |= {name: free - self._under_way.get(name, 0) for name, free in described.items()}
            self._read_at |= dict.fromkeys(names, now)
        return True

    def _add(self, addresses: Mapping[str, int], sign: int) -> None:
        for name, number in addresses.items():
            self._free[name] = self._free.get(name, 0) + sign * number


def _addresses(request: LaunchRequest, *, ipv6: bool) -> Mapping[str, int]:
    """By zone, how many IPv4 addresses a node takes: as many as it may have pods, if these take any. EC2 chooses the
    type, so it is the least that may be.
    """
    addresses: dict[str, int] = {}
    for override in request.overrides:
        needed = 1 if ipv6 else max(override.max_pods, 1)
        addresses[override.zone] = min(needed, addresses.get(override.zone, needed))
    return addresses
