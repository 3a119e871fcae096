"""Small clusters, drawn at random, and the least that nodes for their pods can cost, found by trying everything."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.objects.karpenter.labels import HOSTNAME, INSTANCE_TYPE, ON_DEMAND, RESERVED, ZONE
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.snapshot.offerings import InstanceType, Offering, Reservation
from simulator.builders import daemon_set, instance_type, node, node_pool, pod
from tests.unit.decisions.verification.plans import A, B, problem

T = TypeVar("T")
ZONES = (A, B)
DAEMON = {"cpu": 100, "memory": 128 << 20, "pods": 1}
TAINT = {"key": "rare", "value": "yes", "effect": "NoSchedule"}
SELECTOR = {"matchLabels": {"app": "red"}}
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": SELECTOR, "topologyKey": HOSTNAME}]}


def _spread(key: str) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}


RULES: dict[str, dict[str, Any]] = {
    "none": {},
    "apart": {"affinity": {"podAntiAffinity": APART}},
    "hosts": {"spread": [_spread(HOSTNAME)]},
    "zones": {"spread": [_spread(ZONE)]},
}


@dataclass(frozen=True)
class Wish:
    """A pod in words. Only red pods have rules, and only about red pods; ``port`` is a host port."""

    app: str
    cpu: int
    gib: int
    rule: str
    zone: str
    tolerates: bool
    port: int

    def pod(self, name: str) -> Pod:
        sidecar = {"name": "door", "restartPolicy": "Always", "ports": [{"hostPort": self.port}]}
        return pod(
            name,
            cpu=f"{self.cpu}m",
            memory=f"{self.gib}Gi",
            labels={"app": self.app},
            node_selector={ZONE: self.zone} if self.zone else {},
            tolerations=[{"operator": "Exists"}] if self.tolerates else [],
            init_containers=[sidecar] if self.port else [],
            **RULES[self.rule],
        )

    @property
    def needs(self) -> Mapping[str, int]:
        return {"cpu": self.cpu, "memory": self.gib << 30, "pods": 1}


def wishes(rules: Sequence[str] = tuple(RULES)) -> st.SearchStrategy[Wish]:
    """Pods of a few sizes; a red one has one of the rules, and every pod may have a zone, a port or a toleration."""
    plain = st.builds(
        Wish,
        app=st.sampled_from(("red", "blue")),
        cpu=st.sampled_from((200, 500, 900, 1700)),
        gib=st.sampled_from((1, 2, 5)),
        rule=st.sampled_from(rules),
        zone=st.sampled_from(("", "", "", A, B)),
        tolerates=st.booleans(),
        port=st.sampled_from((0, 0, 0, 0, 8080)),
    )
    return plain.map(_sensible)


def _sensible(wish: Wish) -> Wish:
    """Blue pods have no rules."""
    return replace(wish, rule=wish.rule if wish.app == "red" else "none")


def _types(cheap_b: bool) -> tuple[InstanceType, ...]:
    """Six types; with ``cheap_b``, some are cheaper in one zone."""
    kinds = [
        instance_type(name, price=price, spot=spot, zones=ZONES)
        for name, price, spot in (
            ("c7a.large", 0.09, None), ("m7a.large", 0.11, None), ("r7a.large", 0.14, 0.7),
            ("c7a.xlarge", 0.17, 0.6), ("m7a.xlarge", 0.2, None), ("r7a.2xlarge", 0.5, 0.9),
        )
    ]  # fmt: skip
    return tuple(_cheaper_in_b(kind) if cheap_b and kind.name[0] != "m" else kind for kind in kinds)


def _cheaper_in_b(kind: InstanceType) -> InstanceType:
    offerings = tuple(with_fields(o, price=round(o.price * 0.8, 4)) if o.zone == B else o for o in kind.offerings)
    return replace(kind, offerings=offerings)


def _reserved(kind: InstanceType, places: Sequence[tuple[str, str, int]]) -> InstanceType:
    """The type with what is reserved of it: (type, zone, how many)."""
    found = tuple(
        Offering(
            zone, RESERVED, (kind.price(zone, ON_DEMAND) or 0) / 1e7, True, "", Reservation(f"cr-{i}", remaining=count)
        )
        for i, (name, zone, count) in enumerate(places)
        if name == kind.name
    )
    return replace(kind, offerings=(*kind.offerings, *found))


@dataclass(frozen=True)
class World:
    """``pools``: name to what is said of it; ``rooms``: vCPUs and zone of nodes that exist; ``overhead``: of a
    DaemonSet; ``reserved``: type, zone and number of capacity reservations.
    """

    wishes: tuple[Wish, ...]
    pools: tuple[NodePool, ...]
    rooms: tuple[tuple[int, str], ...]
    types: tuple[InstanceType, ...]
    has_daemon: bool
    node_size: str = "cheapest"
    reserved: tuple[tuple[str, str, int], ...] = ()

    @cached_property
    def problem(self) -> Problem:
        nodes = [node(f"n{i}", cpu=str(cpu), memory=f"{4 * cpu}Gi", zone=z, node_pool=self.pools[0].metadata.name)
                 for i, (cpu, z) in enumerate(self.rooms)]  # fmt: skip
        daemons = [daemon_set()] if self.has_daemon else []
        pods = [wish.pod(f"p{i}") for i, wish in enumerate(self.wishes)]
        options = Options(only_marked_unschedulable=False, node_size=self.node_size)
        return problem(*self.pools, *daemons, *nodes, *pods, types=self.types, options=options)

    def fits(self, wish: Wish, kind: InstanceType) -> bool:
        """Whether a new node of the type holds one such pod beside the DaemonSet's."""
        return _fits(kind.allocatable, Counter(wish.needs) + Counter(DAEMON if self.has_daemon else {}))

    def wish(self, key: str) -> Wish:
        """Of a pod by its name in a plan."""
        return self.wishes[int(key.removeprefix("default/p"))]


@st.composite
def _pools(draw: st.DrawFn) -> tuple[NodePool, ...]:
    """One pool or two: of different weights perhaps, perhaps tainted, limited, or for some types only."""
    found = []
    for name in ("one", "two")[: draw(st.integers(1, 2))]:
        only = draw(st.sampled_from(((), (), ("c7a.large", "c7a.xlarge"), ("m7a.large", "m7a.xlarge", "r7a.2xlarge"))))
        found.append(
            node_pool(
                name,
                weight=draw(st.sampled_from((None, 10))),
                taints=[TAINT] if draw(st.integers(0, 3)) == 3 else [],
                limits=draw(st.sampled_from(({}, {}, {"cpu": "12"}, {"nodes": "3"}))),
                requirements=[f"{INSTANCE_TYPE}={','.join(only)}"] if only else [],
            )
        )
    return tuple(found)


@st.composite
def weighted_pools(draw: st.DrawFn) -> tuple[NodePool, ...]:
    """Two pools or three, the heavier ones dear and with limits that a few pods use up."""
    limits = st.sampled_from(({"cpu": "4"}, {"cpu": "8"}, {"nodes": "1"}, {"nodes": "2"}))
    return tuple(
        node_pool(name, weight=weight, limits=draw(limits) if weight else {}, requirements=[f"{INSTANCE_TYPE}={types}"])
        for name, weight, types in (
            ("heavy", 20, draw(st.sampled_from(("m7a.large,m7a.xlarge", "m7a.large,r7a.2xlarge", "r7a.large")))),
            ("middle", 10, draw(st.sampled_from(("c7a.large,m7a.large", "m7a.xlarge")))),
            ("light", None, "c7a.large,c7a.xlarge,r7a.2xlarge"),
        )
        if name != "middle" or draw(st.booleans())
    )


def _reservations(most: int) -> st.SearchStrategy[tuple[tuple[str, str, int], ...]]:
    """Up to so many capacity reservations, of one place or two each."""
    names = st.sampled_from(("c7a.large", "m7a.large", "r7a.2xlarge"))
    one = st.tuples(names, st.sampled_from(ZONES), st.integers(1, 2))
    return st.lists(one, min_size=min(most, 1), max_size=most).map(tuple)


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    most: int = 6,
    copies: int = 1,
    rules: Sequence[str] = tuple(RULES),
    reservations: int = 0,
    pools: st.SearchStrategy[tuple[NodePool, ...]] | None = None,
) -> World:
    """Up to ``most`` different pods, up to ``copies`` of each."""
    reserved = draw(_reservations(reservations))
    listed = draw(st.lists(wishes(rules), min_size=1, max_size=most))
    return World(
        wishes=tuple(wish for wish in listed for _ in range(draw(st.integers(1, copies)))),
        pools=draw(_pools() if pools is None else pools),
        rooms=tuple(draw(st.lists(st.tuples(st.sampled_from((1, 2)), st.sampled_from(ZONES)), max_size=2))),
        types=tuple(_reserved(kind, reserved) for kind in _types(draw(st.booleans()))),
        reserved=reserved,
        has_daemon=draw(st.booleans()),
        node_size=draw(st.sampled_from(("cheapest", "balanced", "small"))),
    )


class Exhaustive:
    """Tries every way to put the launched pods of a plan on nodes: new ones, and what the plan leaves free of others.

    A new node is bought in a zone, or takes a place in a reservation, within the limits of its pool. Pods that repel
    each other are apart, ports are used once, and the counts of zones differ by one at most where a pod says so.
    ``keeps_weights``: no pod is bought for in a lighter pool than the plan's.
    """

    def __init__(self, world: World, plan: Packing, *, keeps_weights: bool = False) -> None:
        self._world = world
        self._wishes = [world.wish(key) for launch in plan.launches for key in launch.pods]
        weights = {pool.metadata.name: pool.spec.weight or 0 for pool in world.pools}
        self._weights = [
            weights[launch.node_pool] if keeps_weights else 0 for launch in plan.launches for _ in launch.pods
        ]
        placed = {found.node: [world.wish(key) for key in found.pods] for found in plan.existing}
        self._standing = [placed.get(f"n{i}", []) for i in range(len(world.rooms))]
        self._prices: dict[tuple[tuple[int, ...], str], float] = {}
        self._zones = {zone: zone for zone in ZONES}
        self._zones |= {f"cr-{i}": zone for i, (_, zone, _) in enumerate(world.reserved)}
        self._stock = {f"cr-{i}": count for i, (_, _, count) in enumerate(world.reserved)}

    def least(self) -> float:
        """$/h of the cheapest new nodes."""
        self._best = float("inf")
        self._place(0, [[*pods] for pods in self._standing], [], [])
        return self._best

    def _place(self, index: int, standing: list[list[Wish]], nodes: list[list[int]], zones: list[str]) -> None:
        """Pod after pod onto each node there is, or onto one more in each zone and reservation."""
        prices = [self._price(tuple(pods), zone) for pods, zone in zip(nodes, zones, strict=True)]
        if sum(prices) >= self._best:
            return
        if index == len(self._wishes):
            if self._is_spread(standing, nodes, zones):
                offers = [self._offered(tuple(pods), zone) for pods, zone in zip(nodes, zones, strict=True)]
                self._best = self._within_limits(offers, [], 0.0)
            return
        wish = self._wishes[index]
        for place, there in enumerate(standing):
            if self._may_stand(place, [*there, wish]):
                self._place(index + 1, [*standing[:place], [*there, wish], *standing[place + 1 :]], nodes, zones)
        for place, here in enumerate(nodes):
            self._place(index + 1, standing, [*nodes[:place], [*here, index], *nodes[place + 1 :]], zones)
        for zone in self._zones:
            if zones.count(zone) < self._stock.get(zone, len(self._wishes)):
                self._place(index + 1, standing, [*nodes, [index]], [*zones, zone])

    def _may_stand(self, place: int, there: Sequence[Wish]) -> bool:
        cpu, zone = self._world.rooms[place]
        room = {"cpu": cpu * 1000, "memory": 4 * cpu << 30, "pods": 110}
        return _may_meet(there) and _fits(room, self._total(there)) and all(w.zone in ("", zone) for w in there)

    def _total(self, there: Sequence[Wish]) -> Counter[str]:
        total = Counter(DAEMON) if self._world.has_daemon else Counter[str]()
        for wish in there:
            total.update(wish.needs)
        return total

    def _price(self, pods: tuple[int, ...], zone: str) -> float:
        """$/h of the cheapest node in the zone, or of one in the reservation, that may hold exactly these."""
        key = (pods, zone)
        if key not in self._prices:
            self._prices[key] = min((price for price, _, _ in self._offered(pods, zone)), default=float("inf"))
        return self._prices[key]

    def _offered(self, pods: tuple[int, ...], zone: str) -> list[tuple[float, str, int]]:
        """Price, pool and millicores of all nodes that may hold exactly these there, the cheapest first."""
        here = [self._wishes[i] for i in pods]
        right = _may_meet(here) and all(wish.zone in ("", self._zones[zone]) for wish in here)
        least_weight = max(self._weights[i] for i in pods)
        return sorted(self._offers(here, zone, least_weight)) if right else []

    def _offers(self, here: Sequence[Wish], zone: str, least_weight: int) -> Iterator[tuple[float, str, int]]:
        for pool in self._world.pools:
            if (pool.spec.weight or 0) >= least_weight and all(self._may_use(wish, pool) for wish in here):
                for kind in _kinds(pool, self._world.types):
                    if _fits(kind.allocatable, self._total(here)):
                        sold = (o.price for o in kind.offerings if zone == (o.reservation_id or o.zone))
                        yield from ((price, pool.metadata.name, kind.capacity["cpu"]) for price in sold)

    def _within_limits(
        self, offers: Sequence[list[tuple[float, str, int]]], chosen: list[tuple[str, int]], price: float
    ) -> float:
        """The best known price, or a better one of one offer for each node that no pool's limits forbid together."""
        if price >= self._best or not all(self._is_allowed(pool, chosen) for pool in self._world.pools):
            return self._best
        if len(chosen) == len(offers):
            return price
        for more, pool, cores in offers[len(chosen)]:
            self._best = self._within_limits(offers, [*chosen, (pool, cores)], price + more)
        return self._best

    def _is_allowed(self, pool: NodePool, chosen: Sequence[tuple[str, int]]) -> bool:
        taken = [cores for name, cores in chosen if name == pool.metadata.name]
        running = sum(cpu for cpu, _ in self._world.rooms) if pool is self._world.pools[0] else 0
        limits = amounts(pool.spec.limits)
        nodes = len(taken) + (len(self._world.rooms) if pool is self._world.pools[0] else 0)
        is_within = nodes <= limits.get("nodes", nodes) and sum(taken) + 1000 * running <= limits.get("cpu", 1 << 40)
        return is_within or not taken

    def _may_use(self, wish: Wish, pool: NodePool) -> bool:
        """Whether the pod tolerates the pool, and no heavier one must take it."""
        heavier = (p for p in self._world.pools if (p.spec.weight or 0) > (pool.spec.weight or 0))
        return _tolerates(wish, pool) and not any(self._must_use(wish, p) for p in heavier)

    def _must_use(self, wish: Wish, pool: NodePool) -> bool:
        """Whether nothing keeps the pod from the pool: where ports or zones are scarce,
        or a limit strikes, something may.
        """
        is_counted = wish.app == "red" and any(w.rule == "zones" for w in self._world.wishes)
        if pool.spec.limits or wish.port or is_counted or not _tolerates(wish, pool):
            return False
        return any(_fits(kind.allocatable, self._total([wish])) for kind in _kinds(pool, self._world.types))

    def _is_spread(self, standing: list[list[Wish]], nodes: list[list[int]], zones: list[str]) -> bool:
        new = [(self._wishes[i], self._zones[z]) for pods, z in zip(nodes, zones, strict=True) for i in pods]
        old = [(wish, self._world.rooms[place][1]) for place, there in enumerate(standing) for wish in there]
        counts = Counter(zone for wish, zone in (*new, *old) if wish.app == "red")
        return all(
            counts[zone] - min(counts[other] for other in self._domains(wish, zones)) <= 1
            for wish, zone in (*new, *old)
            if wish.rule == "zones"
        )

    def _domains(self, wish: Wish, zones: Sequence[str]) -> set[str]:
        """The zones that a spread of the pod ranges over: where nodes are, and where it could get one."""
        if wish.zone:
            return {wish.zone}
        needs = self._total([wish])
        pools = (pool for pool in self._world.pools if _tolerates(wish, pool))
        may_buy = any(_fits(kind.allocatable, needs) for pool in pools for kind in _kinds(pool, self._world.types))
        return {*(self._zones[z] for z in zones), *(zone for _, zone in self._world.rooms), *(ZONES if may_buy else ())}


def _fits(room: Mapping[str, int], needs: Mapping[str, int]) -> bool:
    return all(needs[name] <= room.get(name, 0) for name in needs)


def _may_meet(there: Sequence[Wish]) -> bool:
    """Whether such pods may share a host: each keeps its distance, and a port is taken once."""
    red = [wish for wish in there if wish.app == "red"]
    if len(red) > 1 and any(wish.rule in ("apart", "hosts") for wish in red):
        return False
    return not any(a.port and a.port == b.port for a, b in combinations(there, 2))


def _tolerates(wish: Wish, pool: NodePool) -> bool:
    return wish.tolerates or not pool.spec.template.spec.taints


def _kinds(pool: NodePool, types: Sequence[InstanceType]) -> list[InstanceType]:
    """The types that the pool allows."""
    named = [rule.values for rule in pool.spec.template.spec.requirements if rule.key == INSTANCE_TYPE]
    return [kind for kind in types if all(kind.name in values for values in named)]


def shuffled(asked: Problem, random: Random) -> Problem:
    """The same objects and types in another order."""
    snapshot = asked.snapshot
    mixed = replace(
        snapshot,
        pods=_mixed(snapshot.pods, random),
        nodes=_mixed(snapshot.nodes, random),
        node_pools=_mixed(snapshot.node_pools, random),
    )
    types = {name: _mixed(listed, random) for name, listed in asked.instance_types.items()}
    return replace(asked, snapshot=mixed, instance_types=types)


def _mixed(listed: Sequence[T], random: Random) -> tuple[T, ...]:
    return tuple(random.sample(listed, len(listed)))
