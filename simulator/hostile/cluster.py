"""A cluster with hostile pods in it: beside them pods of others, which wait for nodes or run on some."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from simulator import builders
from simulator.builders.defaults import ZONES
from simulator.hostile.pods import TENANT, Document, pod
from simulator.kubernetes.resources import KINDS as RESOURCES
from simulator.kubernetes.resources import kind_of, to_document

__all__ = ["BYSTANDERS", "TENANT", "Cluster", "cluster"]

#: The namespace of pods that have done nothing.
BYSTANDERS = "shop"
_APPS = (("web", "250m", "256Mi"), ("cart", "500m", "1Gi"), ("search", "1", "4Gi"), ("mail", "100m", "128Mi"))
_REPLICAS = 6
#: How many hostile pods run on one node.
_PER_NODE = 20
_TYPE = "m7a.4xlarge"


@dataclass(frozen=True)
class Cluster:
    """``documents``: all objects, as `kubectl get -o json` prints them."""

    documents: Sequence[Document]

    @property
    def as_list(self) -> Document:
        """One document of kind List."""
        return {"apiVersion": "v1", "kind": "List", "items": list(self.documents)}

    def names(self, namespace: str) -> list[str]:
        """The pods of a namespace, as ``namespace/name``."""
        pods = (d["metadata"] for d in self.documents if d["kind"] == "Pod")
        return [f"{namespace}/{meta['name']}" for meta in pods if meta["namespace"] == namespace]


def cluster(hostile: Iterable[Document], *, running: bool = False) -> Cluster:
    """The hostile objects in a cluster with one NodePool, a class of volumes, and pods of others.

    All pods wait for nodes; where the cluster is ``running``, they are on nodes that have much room.
    """
    objects = list(hostile)
    waiting = [*_bystanders(), *(one for one in objects if one["kind"] == "Pod")]
    shared = [
        builders.node_pool(consolidateAfter="0s", budgets=[{"nodes": "100%"}]),
        builders.node_class(),
        builders.storage_class("gp3"),
        builders.namespace(TENANT),
        builders.namespace(BYSTANDERS),
    ]
    others = [one for one in objects if one["kind"] != "Pod"]
    pods = list(_bound(waiting)) if running else waiting
    return Cluster([*map(_document, shared), *others, *pods])


def _bystanders() -> Iterator[Document]:
    for app, cpu, memory in _APPS:
        for number in range(_REPLICAS):
            requests = {"cpu": cpu, "memory": memory}
            yield pod(f"{app}-{number}", namespace=BYSTANDERS, labels={"app": app}, requests=requests)


def _bound(pods: Sequence[Document]) -> Iterator[Document]:
    """The pods on nodes, and the nodes with their claims."""
    for number in range(-(-len(pods) // _PER_NODE)):
        name, zone = f"node-{number:04}", ZONES[number % len(ZONES)]
        yield _document(builders.node(name, cpu="16", memory="64Gi", instance_type=_TYPE, zone=zone))
        yield _document(builders.node_claim(f"claim-{number:04}", node=name, instance_type=_TYPE, zone=zone))
        for one in pods[number * _PER_NODE : (number + 1) * _PER_NODE]:
            ready = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": "owner", "controller": True}
            yield {
                **one,
                "metadata": {**one["metadata"], "ownerReferences": [owner]},
                "spec": {**one["spec"], "nodeName": name},
                "status": {"phase": "Running", "conditions": ready},
            }


def _document(item: Any) -> Document:
    kind = kind_of(item)
    return {"apiVersion": RESOURCES[kind].api_version, "kind": kind, **to_document(item)}
