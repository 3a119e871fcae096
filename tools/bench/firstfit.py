"""How long, and how much memory, does first-fit take on one core: 10,000 pods in 50 classes, and 1,500 that are all
different?

    python -m tools.bench.firstfit [--seed 0] [--runs 5]

800 instance types of the sample catalogue, drawn by the seed, in six zones on demand and as spot; a third of the
classes spread over zones or hosts. First-fit is where every packing starts and what it falls back on. Prints median and
spread, and the promised figure beside each; exit status 1 where one is missed, because a promise that nothing checks is
none.
"""

import argparse
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from joinery.decisions.scheduling.firstfit.firstfit import FirstFit
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.sources import SAMPLE, load_catalog
from simulator.builders import EPOCH, node_class, node_pool, pod
from tools.bench.frame import spread

ZONES = tuple(f"us-east-1{letter}" for letter in "abcdef")
TYPES, CLASSES = 800, 50
MOST_MIB = 400
_KIB_A_MIB = 1024  # getrusage counts KiB


@dataclass(frozen=True)
class Promise:
    """A set of pods, and how many seconds first-fit may take for it."""

    name: str
    seconds: float
    pods: Callable[[random.Random], Iterable[Pod]]


def instance_types(chance: random.Random) -> tuple[InstanceType, ...]:
    """Some of the sample catalogue's, as nodes of a default EC2NodeClass have them, sold in all of its zones."""
    known = resolve(load_catalog(str(SAMPLE)).catalog, node_class(zones=ZONES))
    return tuple(chance.sample(sorted(known, key=lambda kind: kind.name), TYPES))


def in_classes(chance: random.Random) -> Iterable[Pod]:
    """10,000 pods in 50 classes."""
    for number in range(CLASSES):
        app = f"app-{number}"
        how = chance.choice(("plain", "plain", "plain", "plain", "zones", "hosts"))
        cpu, memory = chance.choice((100, 250, 500, 1000, 2000, 4000)), chance.choice((256, 512, 1024, 2048, 8192))
        for index in range(200):
            yield _pod(f"{app}-{index}", app, how, cpu, memory)


def all_different(chance: random.Random) -> Iterable[Pod]:
    """1,500 pods of which no two ask for the same."""
    for number in range(1500):
        yield _pod(f"pod-{number}", "app", "plain", 50 + 7 * number % 4000, chance.randrange(64, 16384) + number)


def _pod(name: str, app: str, how: str, cpu: int, memory: int) -> Pod:
    selects = {"matchLabels": {"app": app}}
    key = {"zones": "topology.kubernetes.io/zone", "hosts": "kubernetes.io/hostname"}.get(how)
    spread = {"maxSkew": 5, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selects}
    return pod(name, cpu=f"{cpu}m", memory=f"{memory}Mi", labels={"app": app}, spread=[spread] if key else [])


PROMISES = (Promise("10,000 pods, 50 classes", 1.0, in_classes), Promise("1,500 different pods", 3.0, all_different))


def problem(promise: Promise, seed: int) -> Problem:
    """The same for the same seed."""
    chance = random.Random(seed)
    snapshot = Snapshot(
        now=EPOCH,
        pods=tuple(promise.pods(chance)),
        node_pools=(node_pool(),),
        node_classes=(node_class(zones=ZONES),),
    )
    options = Options(only_marked_unschedulable=False)
    return Problem(snapshot=snapshot, instance_types={"default": instance_types(chance)}, options=options)


def seconds(asked: Problem) -> float:
    """CPU seconds from parsed objects to a packing in which every pod has a place:
    one core's, whoever else is at work.
    """
    begun = time.process_time()
    packer = FirstFit(Workspace(asked))
    packer.run()
    taken = time.process_time() - begun
    if packer.left:
        raise SystemExit(f"{sum(map(len, packer.left.values()))} pods were left without a place")
    return taken


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(arguments)
    print(f"first-fit, {TYPES} instance types in {len(ZONES)} zones, seed {options.seed}, {options.runs} runs")
    kept = True
    for promise in PROMISES:
        asked = problem(promise, options.seed)
        taken = [seconds(asked) for _ in range(options.runs)]
        kept &= statistics.median(taken) < promise.seconds
        print(f"{promise.name:<26} {spread(taken)} s (promised {promise.seconds:g} s)")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_A_MIB
    print(f"{'peak memory':<26} {peak:.0f} MiB (promised {MOST_MIB} MiB)")
    return 0 if kept and peak < MOST_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
