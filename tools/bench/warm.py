"""How long provisioning takes to plan ten new pods in a cluster of 1,000 nodes and 30,000 pods that run: in a process
that has just begun, and in one that has planned before.

    python -m tools.bench.warm [--seed 0] [--runs 5] [--size NODES PODS] [--profile LINES]

Measured is the whole run of the controller over the simulator's gateways, which keep an object that has not changed as
the mirrors of a real cluster do (what these take to follow it: ``tools.bench.snapshot``), and the plan alone: reading,
deciding and verifying. In half of the runs the ten pods fit where there is room, in the other half nodes have to be
bought, and the decision is recorded. Milliseconds of the processor: median and spread. ``MiB``: what the process has,
without the records, which are kept in a bucket.
"""

import argparse
import contextlib
import cProfile
import gc
import io
import itertools
import pstats
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from joinery import bootstrap  # noqa: F401 - as it sets how often garbage is looked for
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.launching.supply import read_supply
from joinery.controllers.provisioning import ProvisioningController
from joinery.decisions.capping import plan_within_caps
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.objects.annotations.plans import remembered
from joinery.objects.kubernetes.core import Pod
from joinery.objects.settings import Settings
from simulator import builders
from simulator.cloud.market import ZONES, sample
from simulator.world import World
from tools.bench.frame import show, spread

NODES, PODS, NEW = 1000, 30_000, 10
_PODS_PER_WORKLOAD = 100
_CPU = (50, 100, 150, 250, 400)
#: What a node has. Thirty pods leave some two processors of it.
_NODE_CPU, _NODE_GIB = 8, 32
_PAGE = 4096


def workload(chance: random.Random, number: int) -> Mapping[str, Any]:
    """What the pods of a Deployment ask for: a third spreads over zones, a tenth keeps off its like or prefers to."""
    app = f"app-{number:03}"
    selector = {"matchLabels": {"app": app}}
    given: dict[str, Any] = {"labels": {"app": app, "pod-template-hash": f"{number:08}"}, "owner": f"{app}-{number:08}"}
    given |= {"cpu": f"{chance.choice(_CPU)}m", "memory": f"{chance.choice((64, 128, 256, 512))}Mi"}
    kind = number % 30
    if kind < 10:
        rule = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "labelSelector": selector}
        given["spread"] = [{**rule, "whenUnsatisfiable": "DoNotSchedule" if kind < 5 else "ScheduleAnyway"}]
    elif kind < 13:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}
        given["affinity"] = {"podAntiAffinity": required if kind < 11 else preferred}
    return given


class Cluster:
    """``nodes`` nodes, and ``pods`` pods of many Deployments on them, dealt out over all of them."""

    def __init__(self, seed: int, nodes: int, pods: int) -> None:
        self.world = World(seed, catalog=sample())
        self._chance = random.Random(seed)
        self._made = itertools.count()
        requirements = [
            "karpenter.k8s.aws/instance-category=c,m,r",
            {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["5"]},
        ]
        add = self.world.cluster.add
        add(builders.node_class(zones=ZONES), builders.node_pool(requirements=requirements), builders.daemon_set())
        self._workloads = [workload(self._chance, number) for number in range(pods // _PODS_PER_WORKLOAD)]
        running: dict[int, dict[str, Pod]] = {number: {} for number in range(nodes)}
        used = [0] * nodes
        for given in self._workloads:
            for index, number in enumerate(self._emptiest(used)):
                used[number] += int(given["cpu"][:-1])
                pod = builders.pod(f"{given['owner']}-{index:03}", node=_node_name(number), **given)
                running[number][pod.key] = pod
        machines = [item for number, there in running.items() for item in _machine(number, there)]
        all_pods = [*map(_daemon, running), *(pod for there in running.values() for pod in there.values())]
        # In the order in which an API server lists them, and mirrors have them.
        add(*machines, *sorted(all_pods, key=lambda pod: pod.key))

    def _emptiest(self, used: Sequence[int]) -> Iterator[int]:
        """The nodes of a Deployment's pods: those of which least is used, from one zone after the other."""
        order = sorted(range(len(used)), key=lambda number: (used[number], self._chance.random()))
        zones = [[number for number in order if number % len(ZONES) == zone] for zone in range(len(ZONES))]
        return itertools.islice(itertools.chain.from_iterable(zip(*zones, strict=False)), _PODS_PER_WORKLOAD)

    def pods(self, *, fitting: bool) -> Sequence[Pod]:
        """Ten new pods: of Deployments that there are, or too large for what is left of the nodes."""
        large = {} if fitting else {"cpu": "3"}
        drawn = self._chance.sample(self._workloads, NEW)
        return [builders.pod(f"new-{next(self._made)}", **{**given, **large}) for given in drawn]

    @contextlib.contextmanager
    def asked(self, pods: Iterable[Pod]) -> Iterator[None]:
        """Pods that wait; afterwards they are gone, and so is what was bought for them."""
        cluster, before = self.world.cluster, set(self.world.cluster.node_claims)
        cluster.add(*pods)
        yield
        bought = [claim for name, claim in cluster.node_claims.items() if name not in before]
        for item in (*pods, *bought):
            cluster.remove(cluster.api.current(item))


def _machine(number: int, pods: Mapping[str, Pod]) -> Iterator[Any]:
    """A node and its claim, which was bought for the pods that run there."""
    name, zone = _node_name(number), ZONES[number % len(ZONES)]
    provider_id = f"aws:///{zone}/i-{number + (1 << 40):017x}"
    labels = {"topology.kubernetes.io/zone": zone}
    yield builders.node_claim(
        f"default-{number:05}", node=name, provider_id=provider_id, labels=labels, annotations=remembered(pods, pods)
    )
    yield builders.node(name, provider_id=provider_id, zone=zone, cpu=f"{_NODE_CPU}", memory=f"{_NODE_GIB}Gi")


def _daemon(number: int) -> Pod:
    owner = builders.owner("DaemonSet", "agent")
    given: dict[str, Any] = {"cpu": "100m", "memory": "128Mi", "labels": {"app": "agent"}, "namespace": "kube-system"}
    return builders.pod(f"agent-{number:05}", node=_node_name(number), owner=owner, **given)


def _node_name(number: int) -> str:
    return f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}.ec2.internal"


class Door:
    """Provisioning in one process: every run after the first is a warm one."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._controller = ProvisioningController(cluster.world.gateways, Settings(cluster="simulated"))

    def plan(self, *, fitting: bool) -> float:
        """Milliseconds of the processor that the plan of a run takes, acting apart."""
        gateways, settings = self._cluster.world.gateways, Settings(cluster="simulated")
        with self._cluster.asked(self._cluster.pods(fitting=fitting)):
            begun = time.process_time()
            snapshot = gateways.cluster.snapshot()
            supply = read_supply(gateways, snapshot)
            options = Options.of(settings, caps=settings.caps, time_limit=60.0)
            plan = plan_within_caps(Problem(snapshot=snapshot, instance_types=supply.types, options=options))
            taken = 1000 * (time.process_time() - begun)
        if plan.violations or plan.packing.unplaced or bool(plan.packing.launches) is fitting:
            raise SystemExit("the plan came out another way than meant")
        return taken

    def run(self, *, fitting: bool, profile: cProfile.Profile | None = None) -> float:
        """Milliseconds of the processor that one run takes."""
        with self._cluster.asked(self._cluster.pods(fitting=fitting)), contextlib.redirect_stdout(io.StringIO()):
            if profile:
                profile.enable()
            begun = time.process_time()
            outcome = self._controller.reconcile(Invocation("bench"))
            taken = 1000 * (time.process_time() - begun)
            if profile:
                profile.disable()
        self._cluster.world.store.documents.clear()
        if outcome["placed"] != NEW or bool(outcome["launches"]) is fitting:
            raise SystemExit(f"the run came out another way than meant: {outcome}")
        return taken


def resident() -> float:
    """What the process has of memory now, in MiB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / (1 << 20)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", type=int, nargs=2, default=(NODES, PODS), metavar=("NODES", "PODS"))
    parser.add_argument("--profile", type=int, default=0, metavar="LINES", help="where the time of the warm runs goes")
    options = parser.parse_args(arguments)
    cluster = Cluster(options.seed, *options.size)
    door, profile = Door(cluster), cProfile.Profile() if options.profile else None
    before, first = resident(), door.run(fitting=False)
    after_first = resident()
    door.run(fitting=True)
    warm = {
        f"{what}, {how}": [measured(fitting=fitting) for _ in range(options.runs)]
        for how, fitting in (("they fit", True), ("nodes are bought", False))
        for what, measured in (("warm plan", door.plan), ("warm run", partial(door.run, profile=profile)))
    }
    print("{} new pods, {} nodes with {} pods, seed {seed}, {runs} runs".format(
        NEW, *options.size, seed=options.seed, runs=options.runs))  # fmt: skip
    rows = [["first run", f"{first:.0f}"], *([how, spread(taken, "{:.0f}")] for how, taken in warm.items())]
    show(("", "ms"), rows)
    print(f"MiB: {before:.0f} before, {after_first:.0f} after the first run, {resident():.0f} after all")
    if profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(options.profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
