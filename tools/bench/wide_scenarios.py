"""Scenarios that are wide rather than long: a dozen NodePools of one weight or of several, hundreds of capacity
reservations.

    python -m tools.bench.wide_scenarios FOLDER [--seed 1]

Writes ``NAME.json.gz`` (a List of Kubernetes objects) and, where a scenario needs its own, ``NAME.catalog.json``.
``tools.bench.packing --wide`` measures them. One seed writes the same bytes.
"""

import argparse
import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from joinery_cli.sources import SAMPLE

ZONES = [f"us-east-1{letter}" for letter in "abcdf"]
PODS, WORKLOADS, RESERVATIONS = 1200, 30, 300

Document = dict[str, Any]


def requirement(key: str, *values: str, operator: str = "In") -> Document:
    return {"key": key, "operator": operator, "values": list(values)}


def capacity(*kinds: str) -> Document:
    return requirement("karpenter.sh/capacity-type", *kinds)


def arch(*kinds: str) -> Document:
    return requirement("kubernetes.io/arch", *kinds)


def category(*letters: str) -> Document:
    return requirement("karpenter.k8s.aws/instance-category", *letters)


SERVED = requirement("topology.kubernetes.io/zone", *ZONES)
MODERN = requirement("karpenter.k8s.aws/instance-generation", "4", operator="Gt")
LARGE = requirement("karpenter.k8s.aws/instance-cpu", "15", operator="Gt")
_USUAL = (arch("amd64"), category("c", "m", "r"), MODERN, capacity("on-demand"), SERVED)
#: Twelve pools by name: what they ask of their nodes, and for whom they are tainted.
POOLS: Sequence[tuple[str, Sequence[Document], str]] = (
    ("general", _USUAL, ""),
    ("spot", (arch("amd64"), category("c", "m", "r"), MODERN, capacity("spot"), SERVED), "spot"),
    ("arm", (arch("arm64"), category("c", "m", "r"), MODERN, capacity("on-demand"), SERVED), ""),
    ("compute", (arch("amd64"), category("c"), MODERN, capacity("on-demand"), SERVED), ""),
    ("memory", (arch("amd64"), category("r"), MODERN, capacity("on-demand"), SERVED), ""),
    ("any", (arch("amd64", "arm64"), category("c", "m", "r"), MODERN, capacity("spot", "on-demand"), SERVED), "batch"),
    ("team-a", _USUAL, "team-a"),
    ("team-b", _USUAL, "team-b"),
    ("zone-a", (*_USUAL[:-1], requirement("topology.kubernetes.io/zone", ZONES[0])), ""),
    ("burst", (arch("amd64"), category("t", "m"), capacity("on-demand"), SERVED), ""),
    ("large", (*_USUAL, LARGE), ""),
    ("old", (arch("amd64"), category("c", "m", "r"), capacity("on-demand"), SERVED), ""),
)


def node_pool(name: str, requirements: Sequence[Document], taint: str = "", weight: int = 0) -> Document:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    taints = [{"key": "for", "value": taint, "effect": "NoSchedule"}] if taint else []
    spec = {"requirements": list(requirements), "nodeClassRef": reference, "taints": taints, "expireAfter": "720h"}
    template = {"metadata": {"labels": {"pool": name}}, "spec": spec}
    return {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": template, **({"weight": weight} if weight else {})},
    }  # fmt: skip


def node_class(**spec: Any) -> Document:
    selector = [{"tags": {"karpenter.sh/discovery": "scenario"}}]
    terms = {"subnetSelectorTerms": selector, "securityGroupSelectorTerms": selector}
    return {
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes", **terms, **spec},
    }  # fmt: skip


def pods(app: str, count: int, chance: random.Random, spec: Document) -> Iterator[Document]:
    """The pending pods of one ReplicaSet, small ones more likely than large ones."""
    cpu = chance.choices((100, 250, 500, 1000, 2000, 4000), weights=(6, 5, 4, 3, 2, 1))[0]
    memory = int(cpu * chance.choice((1, 2, 4, 8)) * chance.uniform(0.8, 1.1)) // 16 * 16
    container = {
        "name": "app",
        "image": app,
        "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{max(64, memory)}Mi"}},
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": f"rs-{app}", "controller": True}
    for index in range(count):
        name = f"{app}-{index:04d}"
        yield {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "default", "uid": name, "labels": {"app": app}, "ownerReferences": [owner],
            },
            "spec": {"containers": [container], **spec},
            "status": {"phase": "Pending"},
        }  # fmt: skip


def fleet(chance: random.Random, own: Callable[[random.Random, str], Document]) -> Iterator[Document]:
    """So many pods of so many workloads, a few of them with many replicas;
    ``own``: what a workload's pods say besides.
    """
    weights = [chance.paretovariate(1.2) for _ in range(WORKLOADS)]
    counts = [max(1, int(PODS * weight / sum(weights))) for weight in weights]
    counts[0] += PODS - sum(counts)
    for number, count in enumerate(counts):
        yield from pods(f"svc-{number:02d}", count, chance, own(chance, f"svc-{number:02d}"))


def zone_spread(app: str) -> Document:
    selector = {"matchLabels": {"app": app}}
    rule = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": selector}]}


def of_some_pools(chance: random.Random, app: str) -> Document:
    """A third tolerates some pool's taint or all; the rest selects a pool or an architecture, keeps to two zones,
    spreads, or says nothing.
    """
    team, pool = chance.choice(("spot", "batch", "team-a", "team-b")), chance.choice(("general", "arm", "memory"))
    zones = requirement("topology.kubernetes.io/zone", *chance.sample(ZONES, 2))
    terms = {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}
    return chance.choice(
        (
            {"tolerations": [{"key": "for", "operator": "Exists"}]},
            {"tolerations": [{"key": "for", "operator": "Equal", "value": team, "effect": "NoSchedule"}]},
            {"tolerations": [{"key": "for", "operator": "Equal", "value": team, "effect": "NoSchedule"}]},
            {"nodeSelector": {"pool": pool}},
            {"nodeSelector": {"kubernetes.io/arch": chance.choice(("amd64", "arm64"))}},
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}},
            zone_spread(app),
            {},
            {},
            {},
        )
    )


def twelve_pools(weights: Sequence[int]) -> Callable[[random.Random], tuple[list[Document], None]]:
    def make(chance: random.Random) -> tuple[list[Document], None]:
        listed = zip(POOLS, weights, strict=True)
        made = [node_pool(name, requirements, taint, weight=weight) for (name, requirements, taint), weight in listed]
        return [node_class(), *made, *fleet(chance, of_some_pools)], None

    return make


def many_reservations(most: int) -> Callable[[random.Random], tuple[list[Document], Document]]:
    """Reservations of up to so many instances, each of another type or zone;
    a fifth of the workloads spread over zones.
    """

    def make(chance: random.Random) -> tuple[list[Document], Document]:
        catalogue = json.loads(gzip.decompress(SAMPLE.read_bytes()))
        kinds = [f"{letter}{number}{more}" for letter in "cmr" for number in "567" for more in ("i", "a", "")]
        sold = sorted({(o["instanceType"], o["zone"]) for o in catalogue["offerings"] if o["zone"] in ZONES})
        fitting = [place for place in sold if place[0].split(".")[0] in kinds and "metal" not in place[0]]
        tags = [{"Key": "for", "Value": "plan"}]
        catalogue["capacityReservations"] = [
            {
                "CapacityReservationId": f"cr-{number:04x}", "InstanceType": kind, "AvailabilityZone": zone,
                "OwnerId": "111122223333", "AvailableInstanceCount": chance.randint(1, most), "Tags": tags,
                "InstanceMatchCriteria": "targeted", "ReservationType": "default", "State": "active",
            }
            for number, (kind, zone) in enumerate(chance.sample(fitting, RESERVATIONS))
        ]  # fmt: skip
        pool = node_pool("default", (*_USUAL[:3], capacity("reserved", "on-demand"), SERVED))
        chosen = node_class(capacityReservationSelectorTerms=[{"tags": {"for": "plan"}}])
        return [chosen, pool, *fleet(chance, lambda c, app: zone_spread(app) if c.random() < 0.2 else {})], catalogue

    return make


SCENARIOS: dict[str, Callable[[random.Random], tuple[list[Document], Document | None]]] = {
    "pools-12-alike": twelve_pools([0] * 12),
    "pools-12-weighted": twelve_pools([60 - 5 * number for number in range(12)]),
    "pools-12-both": twelve_pools([50, 0, 0, 30] * 3),
    "reservations-300": many_reservations(6),
    "reservations-300-single": many_reservations(1),
}


def write(folder: Path, seed: int = 1) -> None:
    """All scenarios, as files of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in SCENARIOS.items():
        objects, catalogue = make(random.Random(f"{name}/{seed}"))
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, separators=(",", ":"))
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        if catalogue is not None:
            (folder / f"{name}.catalog.json").write_text(json.dumps(catalogue))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write(options.folder, options.seed)


if __name__ == "__main__":
    main()
