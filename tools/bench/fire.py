"""How long runs take in a large cluster under fire, with every call charged: 10 ms Kubernetes, 100 ms AWS, 2.5 s
CreateFleet. Nothing sleeps; the seconds are simulated, and a run is killed at the timeout of its function.
"""

import contextlib
import io
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from joinery.gateways.kubernetes.gateway import Eviction
from joinery.objects.settings import Settings
from simulator import builders
from simulator.doors.large import fill
from simulator.doors.timed import TimedDoors
from simulator.story.storm import Storm
from simulator.world import CLUSTER, World
from tools.template import doors, load

NODES, PODS, STALLED, JOINING, WAITING = 1000, 10, 300, 100, 40
WARNINGS, GROUPS = 500, 50
_TIMEOUTS = {door.name: float(door.timeout) for door in doors(load()).values()}


def joining() -> str:
    """Stalled drains, registrations and launches at once."""
    timed = _doors(NODES, stalled=STALLED, joining=JOINING, waiting=WAITING)
    timed.latency.answers["cluster.evict"] = lambda _: Eviction.BLOCKED
    for _ in range(12):
        timed.live()
        timed.wait(5)
        claims = timed.world.cluster.node_claims.values()
        left = [c for c in claims if not c.is_deleting and not c.is_true("Launched")]
        left += [c for c in claims if c.metadata.name.startswith("joining") and not c.is_true("Registered")]
        if not left:
            break
    runs, longest = len(timed.lasted), max(timed.lasted)
    return f"{JOINING} registered and {WAITING} launched after {runs} runs; the longest took {longest:.1f} s"


def warning() -> str:
    """One spot warning to taint, deletion and the request for the replacement."""
    timed = _doors(NODES)
    timed.live()
    timed.lasted.clear()
    timed.warn(range(1))
    taint = timed.lasted[-1]
    timed.provision()
    # CreateFleet's answer is waited for; its request is what is measured.
    request = timed.lasted[-1] - (2.5 if timed.latency.calls["cloud.launch"] else 0.0)
    return f"taint and deletion after {taint:.2f} s, replacement requested after {taint + request:.2f} s"


def surge() -> str:
    """Pods that need 1,000 nodes come at once, in 50 groups that share nothing: a CreateFleet call for each group."""
    world = World()
    world.cluster.add(builders.node_class())
    for group in range(GROUPS):
        pool, app = f"pool-{group:02}", {"app": f"app-{group:02}"}
        world.cluster.add(builders.node_pool(pool, requirements=["karpenter.k8s.aws/instance-size=xlarge"]))
        for number in range(NODES // GROUPS):
            selector = {"karpenter.sh/nodepool": pool}
            world.cluster.add(builders.pod(f"{pool}-{number:02}", cpu="3", labels=app, node_selector=selector))
    settings = Settings(cluster=CLUSTER, max_launches=2 * NODES, max_hourly=0.0 + NODES)
    timed = TimedDoors(world, _TIMEOUTS, settings)
    timed.live()
    timed.provision()
    seconds, launched = timed.lasted[-1], len(world.cloud.instances())
    return f"{launched} nodes by {timed.latency.calls['cloud.launch']} launches in {seconds:.1f} s (target 15 s)"


def storm() -> str:
    """Many warnings, through the queue: one after another within a minute, and all at once."""
    return "; ".join(f"{name}: {_weathered(over)}" for name, over in (("in a minute", 60), ("at once", 0)))


def _weathered(over: float) -> str:
    storm = Storm(nodes=NODES, warnings=WARNINGS, over=timedelta(seconds=over))
    storm.run()
    (whole, light), (until, light_until) = (
        (reads["cluster.snapshot"], reads["cluster.claims_snapshot"])
        for reads in (storm.reads, storm.reads_until_empty)
    )
    return (
        f"{len(storm.queue.dead_letters)} dead letters, {storm.uncovered} evictions before a replacement was launched, "
        f"{len(storm.late)} nodes not empty in time, the first pod asked to go after "
        f"{storm.longest_wait.total_seconds():.0f} s at most; {whole} reads of the cluster and {light} of its claims "
        f"in {over + 120:.0f} s, {until} and {light_until} of them until the last node was empty after "
        f"{storm.lasted.total_seconds():.0f} s, the longest run took "
        f"{max(call.lasted for call in storm.calls):.1f} s"
    )


def _doors(nodes: int, **given: Any) -> TimedDoors:
    world = World()
    fill(world, nodes=nodes, pods=PODS, **given)
    return TimedDoors(world, _TIMEOUTS)


def main() -> None:
    """Print one line a figure, with the processor's seconds behind it."""
    figures: tuple[Callable[[], str], ...] = (warning, surge, storm, joining)
    for figure in figures:
        begun = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            said = figure()
        print(f"{figure.__name__:8} {said} ({time.process_time() - begun:.0f} s of processor time)", flush=True)


if __name__ == "__main__":
    main()
