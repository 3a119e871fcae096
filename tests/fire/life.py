"""A cluster's life under fire, as a state machine: whatever may happen happens, in any order, and calls go wrong.

Rules of this file: a rule does one thing that users, EC2, kubelets, queues or a bad network do. What must hold at every
moment is checked where it happens (``Witness``), what must hold once nothing more happens in ``quiet``.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from joinery.objects.annotations.disruption import is_candidate, replaces_of
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import RETIRED_FOR, SPOT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.offerings import OfferingKey
from joinery.objects.snapshot.pods import is_reschedulable
from simulator.kubernetes.apiserver import Change
from simulator.story.leaks import unowned_instances
from simulator.story.simulation import Simulation
from tests.fire.faults import Fault, Wires, faults_of
from tests.fire.stories import APART, NODE_CLASS, budget, database, node_pool, pods, running
from tests.fire.telling import Story, Telling

#: One cluster: a pool of spot nodes and one of on-demand nodes, three Deployments, and a database.
_WORKLOADS: Mapping[str, Mapping[str, Any]] = {"web": {"affinity": APART}, "api": {}, "job": {}}
_STORY = Story(
    "a life under fire",
    lambda _: None,
    (
        NODE_CLASS,
        node_pool(),
        node_pool("steady", "on-demand"),
        budget("web"),
        budget("api"),
        pods(2, name="api"),
        *database(),
    ),
    (running(), running(capacity_type="on-demand", pool="steady", zone="us-east-1b")),
)
#: Which of several, by a number; and how many seconds pass before the next thing happens.
_ANY, _SECONDS = st.integers(0, 99), st.sampled_from([0, 0, 1, 3, 10, 30])
#: How many calls that could meet a fault go well before one does.
_STRIKES = st.lists(st.tuples(st.integers(0, 15), st.sampled_from(Fault)), min_size=1, max_size=4)
#: How many things happen at least between two moments at which the cluster comes to rest.
_UNREST = 15
_Item = TypeVar("_Item")


class Witness(Wires):
    """The wires of the machine. ``caused`` are the instances that something has happened to: others are left alone,
    unless a command of disruption says that they are not worth their price, or has bought them and was rolled back.

    ``struck`` counts the faults that calls have met.
    """

    def __init__(self, struck: Counter[str]) -> None:
        super().__init__()
        self.caused: set[str] = set()
        self.wrongs: list[str] = []
        self.simulation: Simulation | None = None
        self._struck = struck
        self._strikes: list[tuple[int, Fault]] = []

    def arm(self, calls: int, fault: Fault) -> None:
        """Let that fault strike a call after so many others that could have met it."""
        self._strikes.append((calls, fault))

    def through(self, name: str, go: Callable[[], Any], about: Any = None) -> Any:
        """One call, looked at."""
        if self.simulation is not None:
            self._look(name, about, self.simulation)
        return super().through(name, go, about)

    def _fault_of(self, number: int, name: str) -> Fault | None:
        possible, waiting, due = set(faults_of(name)), [], None
        for calls, fault in self._strikes:
            if due is None and calls == 0 and fault in possible:
                due = fault
            else:
                waiting.append((max(0, calls - 1) if fault in possible else calls, fault))
        self._strikes = waiting
        if due is not None:
            self._struck[f"faults of calls: {due.value}"] += 1
        return due

    def _look(self, name: str, about: Any, simulation: Simulation) -> None:
        """Note what no door may ask for, whatever has happened."""
        if name == "cluster.delete_pod":
            self.wrongs.append(f"{about.key} is deleted past its budget, and no deadline is near")
        if name == "cluster.evict" and not _is_leaving(about, simulation):
            self.wrongs.append(f"{about.key} is evicted from {about.spec.node_name}, which stays")
        is_caused = name != "cluster.delete_node_claim" or is_candidate(about) or _is_abandoned(about, simulation)
        if not is_caused and instance_id(about.status.provider_id) not in {"", *self.caused}:
            self.wrongs.append(f"{about.metadata.name} is deleted without a cause")


def _is_leaving(pod: Pod, simulation: Simulation) -> bool:
    cluster = simulation.world.cluster
    node = cluster.nodes.get(pod.spec.node_name)
    claims = [claim for claim in cluster.node_claims.values() if claim.status.node_name == pod.spec.node_name]
    return (node is not None and node.metadata.deletion_timestamp is not None) or any(c.is_deleting for c in claims)


def _is_abandoned(claim: NodeClaim, simulation: Simulation) -> bool:
    """Whether it was to replace nodes that stay now, and nobody uses it (``lifecycle.disrupting.started_commands``)."""
    cluster = simulation.world.cluster
    stored, node = cluster.node_claims.get(claim.metadata.name), claim.status.node_name
    if stored is None or stored.metadata.annotations.get(RETIRED_FOR) != DisruptionReason.ABANDONED:
        return False
    return replaces_of(stored) is not None and not any(
        pod.spec.node_name == node and is_reschedulable(pod) for pod in cluster.pods.values() if node
    )


class Life(RuleBasedStateMachine):
    """Subclass it with a ``struck`` of one's own, which counts what was done."""

    struck: Counter[str] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._wires = Witness(self.struck)
        self._telling = Telling(_STORY, self._wires)
        self._simulation = self._telling.simulation
        self._wires.simulation = self._simulation
        self._happened = 0
        self._replicas = dict.fromkeys(_WORKLOADS, 0) | {"api": 2}
        self._simulation.world.cluster.api.watch(self._notice)
        self._telling.__enter__()
        self._pass(1)

    @property
    def claims(self) -> list[NodeClaim]:
        """The NodeClaims that there are now."""
        return list(self._simulation.world.cluster.node_claims.values())

    # --- time, and what goes wrong in it ---

    @rule(seconds=st.integers(1, 40))
    def time_passes(self, seconds: int) -> None:
        """Everybody does his work."""
        self._pass(seconds)

    @rule(strikes=_STRIKES, seconds=_SECONDS)
    def calls_go_wrong(self, strikes: list[tuple[int, Fault]], seconds: int) -> None:
        """Some of the next, by whichever door."""
        for calls, fault in strikes:
            self._wires.arm(calls, fault)
        self._pass(seconds)

    @rule(late=st.sampled_from([0, 30, 150]))
    def kubelets_are_late(self, late: int) -> None:
        """From now on."""
        self._simulation.kubelets.lateness = timedelta(seconds=late)

    @rule(journeys=st.lists(st.sampled_from([0.4, 2.0, 20.0, 90.0]), min_size=1, max_size=3))
    def messages_come_late_and_twice(self, journeys: list[float]) -> None:
        """From now on: how long each copy of a message is on its way."""
        self._simulation.interruptions.journeys = lambda: [timedelta(seconds=seconds) for seconds in journeys]

    # --- what users do ---

    @rule(name=st.sampled_from(sorted(_WORKLOADS)), replicas=st.integers(0, 4), seconds=_SECONDS)
    def a_deployment_is_scaled(self, name: str, replicas: int, seconds: int) -> None:
        """Pods arrive and go."""
        self._replicas[name] = replicas
        document = pods(replicas, name=name, **_WORKLOADS[name])
        self._simulation.apply([document])
        self._pass(seconds)

    @rule(number=_ANY, seconds=_SECONDS)
    @precondition(lambda self: self._simulation.world.cluster.pods)
    def a_pod_is_deleted(self, number: int, seconds: int) -> None:
        """``kubectl delete pod``."""
        pod = self._choose(self._simulation.world.cluster.pods, number)
        self._simulation.world.cluster.delete_pod(pod, grace_seconds=30)
        self._pass(seconds)

    @rule(number=_ANY, seconds=_SECONDS)
    @precondition(lambda self: self._simulation.world.cluster.node_claims)
    def a_claim_is_deleted(self, number: int, seconds: int) -> None:
        """``kubectl delete nodeclaim``."""
        self._simulation.world.cluster.delete_node_claim(self._touched_claim(number))
        self._pass(seconds)

    @rule(number=_ANY, seconds=_SECONDS)
    @precondition(lambda self: self._simulation.world.cluster.nodes)
    def a_node_is_deleted(self, number: int, seconds: int) -> None:
        """``kubectl delete node``."""
        node = self._choose(self._simulation.world.cluster.nodes, number)
        self._wires.caused.add(instance_id(node.spec.provider_id))
        self._simulation.world.cluster.delete_node(node)
        self._pass(seconds)

    @rule(number=_ANY, seconds=_SECONDS)
    @precondition(lambda self: self._simulation.world.cluster.nodes)
    def a_node_vanishes(self, number: int, seconds: int) -> None:
        """Somebody removes its finalizers and deletes it."""
        node = self._choose(self._simulation.world.cluster.nodes, number)
        self._wires.caused.add(instance_id(node.spec.provider_id))
        self._simulation.world.cluster.remove(node)
        self._pass(seconds)

    # --- what EC2 does ---

    @rule(number=_ANY, seconds=_SECONDS)
    @precondition(lambda self: self._spot())
    def ec2_warns(self, number: int, seconds: int) -> None:
        """It takes a spot instance back in two minutes."""
        self._simulation.ec2.interrupt(self._caused(self._spot(), number))
        self._pass(seconds)

    @rule(number=_ANY, seconds=_SECONDS)
    @precondition(lambda self: self._alive())
    def ec2_ends_an_instance(self, number: int, seconds: int) -> None:
        """Without a warning."""
        self._simulation.world.cloud.terminate([self._caused(self._alive(), number)])
        self._pass(seconds)

    @rule(
        zone=st.sampled_from(["us-east-1a", "us-east-1b"]),
        capacity_type=st.sampled_from([SPOT, "on-demand"]),
        seconds=_SECONDS,
    )
    def ec2_runs_out(self, zone: str, capacity_type: str, seconds: int) -> None:
        """Of everything that it sells there in that way."""
        offerings = self._simulation.world.cloud.catalog().offerings
        self._simulation.world.cloud.run_out(
            *(
                OfferingKey(offering.instance_type, zone, capacity_type)
                for offering in offerings
                if (offering.zone, offering.capacity_type) == (zone, capacity_type)
            )
        )
        self._pass(seconds)

    @rule()
    def ec2_has_enough_again(self) -> None:
        """Of everything."""
        self._simulation.world.cloud.restock(*list(self._simulation.world.cloud.stock))

    # --- what must hold ---

    @invariant()
    def nothing_is_asked_for_without_a_cause(self) -> None:
        """No budget is passed over, no node drained and no claim deleted that nothing has happened to."""
        self.struck["steps"] += 1
        assert self._wires.wrongs == []

    @rule()
    @precondition(lambda self: self._happened >= _UNREST)
    def quiet(self) -> None:
        """Once nothing more happens, every pod that can be placed is placed, and nothing is left behind."""
        self.ec2_has_enough_again()
        self.kubelets_are_late(0)
        self.struck["quiet moments"] += 1
        self._happened = 0
        self._telling.finish()
        simulation = self._simulation
        assert list(unowned_instances(simulation)) == []
        # A message that met a fault on each of its five deliveries. A person redrives it, and it needs nothing else.
        redriven = simulation.interruptions.redrive()
        if redriven:
            self.struck["dead letters redriven"] += redriven
            self._telling.finish()
        assert simulation.interruptions.dead_letters == []
        wanted = Counter({name: number for name, number in self._replicas.items() if number} | {"db": 1})
        assert Counter(pod.metadata.labels["app"] for pod in simulation.world.cluster.pods.values()) == wanted

    def teardown(self) -> None:
        """Every life ends quietly."""
        try:
            self.quiet()
            self.struck["instances left unowned"] += len(list(unowned_instances(self._simulation)))
        finally:
            self._telling.__exit__()

    # --- inside ---

    def _pass(self, seconds: float) -> None:
        self._happened += 1
        self._simulation.engine.run_for(timedelta(seconds=seconds))

    def _notice(self, change: Change) -> None:
        """A claim has one instance, for ever."""
        before, after = change.before, change.after
        if change.kind != "NodeClaim" or before is None or after is None:
            return
        had, has = before.status.provider_id, after.status.provider_id
        if had and had != has:
            self._wires.wrongs.append(f"{after.metadata.name} had {had} and has {has}")
        owners = [claim for claim in self._simulation.world.cluster.node_claims.values() if _has(claim, has)]
        if len(owners) > 1:
            self._wires.wrongs.append(f"{has} belongs to {[claim.metadata.name for claim in owners]}")

    def _choose(self, objects: Mapping[str, _Item], number: int) -> _Item:
        return [item for _, item in sorted(objects.items())][number % len(objects)]

    def _touched_claim(self, number: int) -> NodeClaim:
        claim = self._choose(self._simulation.world.cluster.node_claims, number)
        self._wires.caused.add(instance_id(claim.status.provider_id))
        return claim

    def _caused(self, instances: list[str], number: int) -> str:
        chosen = instances[number % len(instances)]
        self._wires.caused.add(chosen)
        return chosen

    def _alive(self) -> list[str]:
        return [instance.instance_id for instance in self._simulation.world.cloud.instances() if not instance.is_going]

    def _spot(self) -> list[str]:
        look = self._simulation.world.cloud.look
        return [instance for instance in self._alive() if look(instance)[0].capacity_type == SPOT]


def _has(claim: NodeClaim, provider_id: str) -> bool:
    return bool(provider_id) and claim.status.provider_id == provider_id
