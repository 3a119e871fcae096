"""One pod that names much. What it asks for exists nowhere, unless the docstring says otherwise."""

from collections.abc import Iterator

from simulator.builders.defaults import ZONES
from simulator.hostile.pods import (
    HOST,
    ZONE,
    Document,
    expression,
    node_affinity,
    pod,
    pod_terms,
    preferred_nodes,
    preferred_pods,
    selecting,
    spread,
    words,
)

_LONGEST_VALUE = 63


def resources(size: int) -> Iterator[Document]:
    yield pod("hostile", requests={f"example.com/{word}": "1" for word in words(size, "device")})


def containers(size: int) -> Iterator[Document]:
    """It can be placed."""
    several = [{"name": name, "resources": {"requests": {"cpu": "1m"}}} for name in words(size, "container")]
    one = pod("hostile")
    yield {**one, "spec": {**one["spec"], "containers": several}}


def init_containers(size: int) -> Iterator[Document]:
    """It can be placed. Each second one is a sidecar."""
    several = [
        {
            "name": name,
            "resources": {"requests": {"cpu": "1m", "memory": f"{number}Ki"}},
            **({"restartPolicy": "Always"} if number % 2 else {}),
        }
        for number, name in enumerate(words(size, "init"))
    ]
    yield pod("hostile", initContainers=several)


def host_ports(size: int) -> Iterator[Document]:
    """It can be placed."""
    ports = [{"containerPort": 1 + number, "hostPort": 1 + number} for number in range(size)]
    yield pod("hostile", container={"ports": ports})


def tolerations(size: int) -> Iterator[Document]:
    """It can be placed."""
    several = [{"key": word, "operator": "Equal", "value": word, "effect": "NoSchedule"} for word in words(size)]
    yield pod("hostile", tolerations=several)


def node_selector(size: int) -> Iterator[Document]:
    yield pod("hostile", nodeSelector={f"example.com/{word}": word for word in words(size)})


def node_affinity_values(size: int) -> Iterator[Document]:
    yield pod("hostile", affinity=node_affinity([expression("example.com/place", "In", words(size))]))


def node_affinity_values_met(size: int) -> Iterator[Document]:
    """It can be placed: the last value is a zone."""
    yield pod("hostile", affinity=node_affinity([expression(ZONE, "In", [*words(size), ZONES[0]])]))


def node_affinity_exclusions(size: int) -> Iterator[Document]:
    """It can be placed: no node has any of the values."""
    yield pod("hostile", affinity=node_affinity([expression(ZONE, "NotIn", words(size))]))


def node_affinity_expressions(size: int) -> Iterator[Document]:
    """It can be placed: no node has any of the labels."""
    absent = [expression(f"example.com/{word}", "DoesNotExist") for word in words(size)]
    yield pod("hostile", affinity=node_affinity(absent))


def node_affinity_terms(size: int) -> Iterator[Document]:
    """It can be placed: the last term names a zone."""
    terms = [[expression("example.com/place", "In", [word])] for word in words(size)]
    yield pod("hostile", affinity=node_affinity(*terms, [expression(ZONE, "In", [ZONES[0]])]))


def node_affinity_fields(size: int) -> Iterator[Document]:
    """It can be placed: it shuns nodes by their names."""
    shunned = [expression("metadata.name", "NotIn", [word]) for word in words(size)]
    required = {"nodeSelectorTerms": [{"matchFields": shunned}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    yield pod("hostile", affinity=affinity)


def node_preferences(size: int) -> Iterator[Document]:
    """It can be placed."""
    yield pod("hostile", affinity=preferred_nodes(*(expression(ZONE, "In", [word]) for word in words(size))))


def node_preference_values(size: int) -> Iterator[Document]:
    """It can be placed."""
    yield pod("hostile", affinity=preferred_nodes(expression(ZONE, "In", words(size))))


def soft_spreads(size: int) -> Iterator[Document]:
    """It can be placed."""
    rules = [spread(hard=False, labels={"app": word}) for word in words(size)]
    yield pod("hostile", topologySpreadConstraints=rules)


def soft_spread_keys(size: int) -> Iterator[Document]:
    """It can be placed."""
    rules = [spread(hard=False, key=f"example.com/{word}") for word in words(size)]
    yield pod("hostile", topologySpreadConstraints=rules)


def hard_spreads(size: int) -> Iterator[Document]:
    """It can be placed: nothing else is counted."""
    rules = [spread(hard=True, labels={"app": word}) for word in words(size)]
    yield pod("hostile", topologySpreadConstraints=rules)


def hard_spread_keys(size: int) -> Iterator[Document]:
    rules = [spread(hard=True, key=f"example.com/{word}") for word in words(size)]
    yield pod("hostile", topologySpreadConstraints=rules)


def spread_selector_values(size: int) -> Iterator[Document]:
    """It can be placed."""
    selector = {"matchExpressions": [expression("app", "In", words(size))]}
    rules = [{**spread(hard=True), "labelSelector": selector}]
    yield pod("hostile", labels={"app": "hostile"}, topologySpreadConstraints=rules)


def affinity_terms(size: int) -> Iterator[Document]:
    terms = [selecting(expression("app", "In", [word])) for word in words(size)]
    yield pod("hostile", labels={"app": "hostile"}, affinity=pod_terms("podAffinity", terms))


def anti_affinity_terms(size: int) -> Iterator[Document]:
    """It can be placed."""
    terms = [selecting(expression("app", "In", [word]), namespaceSelector={}) for word in words(size)]
    yield pod("hostile", labels={"app": "hostile"}, affinity=pod_terms("podAntiAffinity", terms))


def pod_preferences(size: int) -> Iterator[Document]:
    """It can be placed."""
    terms = [selecting(expression("app", "In", [word]), key=ZONE) for word in words(size)]
    yield pod("hostile", labels={"app": "hostile"}, affinity=preferred_pods("podAntiAffinity", terms))


def affinity_selector_values(size: int) -> Iterator[Document]:
    """It can be placed."""
    terms = [selecting(expression("app", "In", words(size)), namespaceSelector={})]
    yield pod("hostile", labels={"app": "hostile"}, affinity=pod_terms("podAntiAffinity", terms))


def affinity_namespaces(size: int) -> Iterator[Document]:
    """It can be placed."""
    terms = [selecting(expression("app", "Exists"), namespaces=words(size, "namespace"))]
    yield pod("hostile", labels={"app": "hostile"}, affinity=pod_terms("podAntiAffinity", terms))


def match_label_keys(size: int) -> Iterator[Document]:
    """It can be placed."""
    labels = {word: "x" for word in words(size)}
    terms = [selecting(expression("app", "Exists"), matchLabelKeys=list(labels))]
    yield pod("hostile", labels={"app": "hostile", **labels}, affinity=pod_terms("podAntiAffinity", terms))


def ephemeral_volumes(size: int) -> Iterator[Document]:
    """No node attaches so many."""
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gp3",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    volumes = [{"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": claim}}} for name in words(size, "volume")]
    yield pod("hostile", volumes=volumes)


def claims(size: int) -> Iterator[Document]:
    """None of them exists."""
    yield pod("hostile", volumes=[{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in words(size, "claim")])


def long_words(size: int) -> Iterator[Document]:
    """Annotations and labels of so many characters; the label values are as long as they may be."""
    values = {f"example.com/{n:05}": "v" * _LONGEST_VALUE for n in range(size // _LONGEST_VALUE)}
    annotations = {"example.com/note": "n" * size}
    yield pod("h" * 253, labels=values, annotations=annotations, nodeSelector={HOST: "x" * _LONGEST_VALUE})


def labels(size: int) -> Iterator[Document]:
    """It can be placed."""
    yield pod("hostile", labels={f"example.com/{word}": word for word in words(size)})


def etcd_limit(size: int) -> Iterator[Document]:
    """It can be placed. It is as large as etcd takes: an environment and arguments of so many characters."""
    environment = [{"name": f"V{number}", "value": "v" * 990} for number in range(size // 2000)]
    yield pod("hostile", container={"env": environment, "args": ["a" * 990] * (size // 2000)})
