"""How long, and how much memory, do 10,000 pods take from the API server's bytes to structs?

    python -m tools.bench_snapshot --pods 10000

The pods are as large as real ones (managed fields, volumes, statuses: 5 KB each) and come in pages of 500, as they do
over the network; only decoding is timed. For comparison the same pages go through ``json.loads``.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

from joinery.apis.core import Pod
from joinery.cluster.lists import PAGE, Page

MIB = 1024  # getrusage counts KiB


def pages(pods: int) -> Iterator[bytes]:
    """Pages of a pod list, one at a time."""
    for start in range(0, pods, PAGE):
        items = [_pod(number) for number in range(start, min(start + PAGE, pods))]
        yield json.dumps(
            {"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": "x"}, "items": items}
        ).encode()


def _pod(number: int) -> dict[str, Any]:
    name, labels = f"web-7d4b9c6f5-{number:05}", {"app": "web", "pod-template-hash": "7d4b9c6f5", "tier": "front"}
    owned: dict[str, Any] = {f"f:field-{index}": {".": {}, "f:value": {}} for index in range(60)}
    requests = {"cpu": "250m", "memory": "512Mi"}
    tolerations = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]
    container = {
        "name": "main",
        "image": "registry.example.com/team/web:1.2.3",
        "env": [{"name": f"VARIABLE_{index}", "value": "some value " * 3} for index in range(15)],
        "resources": {"requests": requests, "limits": requests},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": "123",
            "creationTimestamp": "2026-11-21T12:00:00Z",
            "labels": labels,
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
            ],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": owned}],
        },
        "spec": {
            "nodeName": f"node-{number % 300}",
            "containers": [container],
            "tolerations": tolerations,
            "topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {"app": "web"}}}],
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}] * 4},
    }


def measure(name: str, decode: Callable[[bytes], list[Any]], pods: int) -> str:
    """One row: seconds of decoding, and how much the process grew while all pods were kept."""
    kept: list[Any] = []
    size, spent, before = 0, 0.0, _rss()
    for page in pages(pods):
        size += len(page)
        begun = time.perf_counter()
        kept += decode(page)
        spent += time.perf_counter() - begun
    grown = _rss() - before
    return f"{name:<10} {len(kept):>7} {size / MIB / MIB:>9.1f} {spent:>9.3f} {grown / MIB:>9.1f}"


def _rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    import msgspec

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pods", type=int, default=10_000)
    pods = parser.parse_args().pods
    decoder = msgspec.json.Decoder(Page[Pod])
    for page in pages(PAGE):  # the growth of one page in bytes is not the structs'
        decoder.decode(page)
    print(f"{'decoder':<10} {'pods':>7} {'MiB':>9} {'seconds':>9} {'+ MiB':>9}")
    print(measure("structs", lambda page: decoder.decode(page).items or [], pods))
    print(measure("json", lambda page: list(json.loads(page)["items"]), pods))


if __name__ == "__main__":
    main()
