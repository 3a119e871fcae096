"""Many pods, each of which says little. They can be placed, unless the docstring says otherwise."""

from collections.abc import Callable, Iterator
from typing import Any

from simulator.hostile.pods import (
    HOST,
    TENANT,
    ZONE,
    Document,
    expression,
    pod,
    pod_terms,
    preferred_nodes,
    selecting,
    spread,
    words,
)

#: How many preferences or ports each pod has, where it has many.
_EACH = 40
_PORTS = 100


def _pods(size: int, fields: Callable[[int], dict[str, Any]]) -> Iterator[Document]:
    """Pods with the fields of their number."""
    for number in range(size):
        yield pod(f"hostile-{number:05}", **fields(number))


def _named(number: int) -> dict[str, str]:
    return {"app": f"app-{number:05}"}


def _repels(number: int, *expressions: Document, key: str = HOST) -> dict[str, Any]:
    return {"labels": _named(number), "affinity": pod_terms("podAntiAffinity", [selecting(*expressions, key=key)])}


def equal(size: int) -> Iterator[Document]:
    return _pods(size, lambda number: {"labels": {"app": "hostile"}})


def distinct_requests(size: int) -> Iterator[Document]:
    return _pods(size, lambda number: {"requests": {"cpu": f"{10 + number}m", "memory": f"{16 + number * 7 % 997}Mi"}})


def urgent(size: int) -> Iterator[Document]:
    """Each asks for something else, and all say that they come first."""
    return _pods(size, lambda number: {"requests": {"cpu": f"{10 + number}m"}, "priority": 1000})


def node_each(size: int) -> Iterator[Document]:
    """Each needs a large node of its own, unlike the others'."""
    return _pods(size, lambda number: {"requests": {"cpu": f"{100_000 + 10 * number}m"}})


def daemon_sets(size: int) -> Iterator[Document]:
    """DaemonSets whose pods fit on no node, and would run on all of them."""
    for number in range(size):
        fits_nowhere = pod("x", requests={"cpu": str(10_000 + number)}, tolerations=[{"operator": "Exists"}])
        name, labels = f"hostile-{number:05}", _named(number)
        template = {"metadata": {"labels": labels}, "spec": fits_nowhere["spec"]}
        yield {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": TENANT},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }


def distinct_labels(size: int) -> Iterator[Document]:
    return _pods(size, lambda number: {"labels": _named(number)})


def distinct_namespaces(size: int) -> Iterator[Document]:
    return _pods(size, lambda number: {"namespace": f"{TENANT}-{number:05}"})


def hopeless_selectors(size: int) -> Iterator[Document]:
    """They cannot be placed, each for a reason of its own."""
    return _pods(size, lambda number: {"nodeSelector": {"example.com/place": f"nowhere-{number:05}"}})


def hopeless_resources(size: int) -> Iterator[Document]:
    """They cannot be placed, each for a reason of its own."""
    return _pods(size, lambda number: {"requests": {f"example.com/device-{number:05}": "1"}})


def hopeless_requests(size: int) -> Iterator[Document]:
    """They cannot be placed, each for a reason of its own."""
    return _pods(size, lambda number: {"requests": {"cpu": str(10_000 + number)}})


def preferences(size: int) -> Iterator[Document]:
    """Each prefers 40 values of a zone that no other names, and that are slips of one that exists."""
    return _pods(
        size,
        lambda number: {
            "affinity": preferred_nodes(
                *(expression(ZONE, "In", [f"us-east-{number:04}{other:02}a"]) for other in range(_EACH))
            )
        },
    )


def preferences_of_labels(size: int) -> Iterator[Document]:
    """Each prefers 40 labels that no other names."""
    return _pods(
        size,
        lambda number: {
            "affinity": preferred_nodes(
                *(expression(f"topology.kubernetes.io/zone-{number:04}-{other:02}", "Exists") for other in range(_EACH))
            )
        },
    )


def repelling(size: int) -> Iterator[Document]:
    """Each needs a node without another pod of its namespace that has a name."""
    return _pods(size, lambda number: _repels(number, expression("app", "Exists")))


def repelling_by_zone(size: int) -> Iterator[Document]:
    """Each needs a zone of its own, so all but a few cannot be placed."""
    return _pods(size, lambda number: _repels(number, expression("app", "Exists"), key=ZONE))


def repelling_own_keys(size: int) -> Iterator[Document]:
    """Each names all but itself, so that no two rules are equal."""
    return _pods(size, lambda number: _repels(number, expression("app", "NotIn", [_named(number)["app"]])))


def attracted_in_a_chain(size: int) -> Iterator[Document]:
    """Each requires the one before it on its node."""
    return _attracted(size, lambda number: max(number - 1, 0))


def attracted_in_a_ring(size: int) -> Iterator[Document]:
    """Each requires the one before it on its node, and the first requires the last: none can be placed."""
    return _attracted(size, lambda number: (number - 1) % size)


def _attracted(size: int, to: Callable[[int], int]) -> Iterator[Document]:
    def fields(number: int) -> dict[str, Any]:
        term = selecting(expression("app", "In", [_named(to(number))["app"]]))
        return {"labels": _named(number), "affinity": pod_terms("podAffinity", [term])}

    return _pods(size, fields)


def attracted_to_all(size: int) -> Iterator[Document]:
    """Each requires another one in its zone, whichever."""
    term = selecting(expression("app", "Exists"), key=ZONE)
    return _pods(size, lambda number: {"labels": _named(number), "affinity": pod_terms("podAffinity", [term])})


def spread_each(size: int) -> Iterator[Document]:
    """Each has a spread of its own over zones."""
    return _pods(size, lambda number: _spread(number, hard=True, labels=_named(number)))


def spread_over_all(size: int) -> Iterator[Document]:
    """All are counted for the spread of each."""
    return _pods(size, lambda number: _spread(number, hard=True))


def soft_spread_over_all(size: int) -> Iterator[Document]:
    """All are counted for the preferred spread of each, over zones and over nodes."""
    return _pods(size, lambda number: _spread(number, hard=False))


def _spread(number: int, *, hard: bool, labels: dict[str, str] | None = None) -> dict[str, Any]:
    keys = (ZONE,) if hard else (ZONE, HOST)
    rules = [spread(key=key, hard=hard, labels=labels) for key in keys]
    return {"labels": _named(number), "topologySpreadConstraints": rules}


def same_port(size: int) -> Iterator[Document]:
    """Each needs a node of its own for its port."""
    ports = [{"containerPort": 8080, "hostPort": 8080}]
    return _pods(size, lambda number: {"labels": _named(number), "container": {"ports": ports}})


def many_ports(size: int) -> Iterator[Document]:
    """Each takes 100 ports that no other takes."""

    def fields(number: int) -> dict[str, Any]:
        first = number * _PORTS + 1
        return {"container": {"ports": [{"containerPort": p, "hostPort": p} for p in range(first, first + _PORTS)]}}

    return _pods(size, fields)


def node_names(size: int) -> Iterator[Document]:
    """They cannot be placed: each is for a node that does not exist."""
    return _pods(size, lambda number: {"nodeSelector": {HOST: f"ip-10-0-{number // 256}-{number % 256}.ec2.internal"}})


def shared_claim(size: int) -> Iterator[Document]:
    """All use one claim that is not bound yet."""
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": TENANT},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gp3",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    yield from _pods(size, lambda number: {"volumes": volumes, "labels": _named(number)})


def ephemeral_each(size: int) -> Iterator[Document]:
    """Each has a volume of its own that is made with it."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gp3",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    volumes = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    return _pods(size, lambda number: {"volumes": volumes})


def budgets(size: int) -> Iterator[Document]:
    """As many budgets as pods, each of which covers all of them."""
    for number in range(size):
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{number:05}", "namespace": TENANT},
            "spec": {
                "maxUnavailable": 1,
                "selector": {"matchExpressions": [expression("app", "NotIn", [f"x-{number}"])]},
            },
            "status": {"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1},
        }
    yield from distinct_labels(size)


def namespaces(size: int) -> Iterator[Document]:
    """As many namespaces, and pods that keep away from pods of most of them."""
    for number, name in enumerate(words(size, "namespace")):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"group": f"g{number}"}}}
    for number, name in enumerate(words(size, "namespace")):
        term = selecting(
            expression("app", "In", [f"app-{number:05}"]),
            namespaceSelector={"matchExpressions": [expression("group", "NotIn", [f"g{number}"])]},
        )
        anti = pod_terms("podAntiAffinity", [term])
        yield pod("hostile", namespace=name, labels=_named(number), affinity=anti)


def long_each(size: int) -> Iterator[Document]:
    """Each has 20,000 characters of annotations, and says long words of a label that nothing has: no place."""
    return _pods(
        size,
        lambda number: {
            "annotations": {"example.com/note": "n" * 20_000},
            "nodeSelector": {f"example.com/{'k' * 50}-{number:05}": "v" * 63},
        },
    )
