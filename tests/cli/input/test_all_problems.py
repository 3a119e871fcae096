"""Everything that is wrong with all files is told at once, in plain words:
what a field must be, and what was written.
"""

from typing import Any

import pytest
import yaml

from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

CLASS, POOL = (yaml.safe_load(text) for text in CLUSTER.split("---")[:2])
CLAIM = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "a"},
    "spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [],
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod_document()["spec"]},
    },
}
SPREAD = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}


def changed(document: Any, path: str, value: Any) -> Any:
    """The document with another value at a path such as ``spec.volumes.0.name``."""
    first, _, rest = path.partition(".")
    if isinstance(document, list):
        at = int(first)
        return [*document[:at], changed(document[at], rest, value), *document[at + 1 :]]
    return {**document, first: changed(document.get(first, {}), rest, value) if rest else value}


def _told(run: Run, *paths: str) -> list[str]:
    files = [option for path in paths for option in ("-f", path)]
    outcome = run("plan", "--now", NOW, *files)
    assert (outcome.status, outcome.out) == (2, "")
    return [line.removeprefix("joinery: ") for line in outcome.err.splitlines()]


WORDS: list[tuple[Any, str, Any, str]] = [
    (POOL, "spec.weight", "many", "spec.weight: must be a whole number, is 'many'"),
    (POOL, "spec.weight", "10", "spec.weight: must be a whole number, is '10'"),
    (POOL, "spec.weight", 1.5, "spec.weight: must be a whole number, is 1.5"),
    (POOL, "spec.weight", True, "spec.weight: must be a whole number, is true"),
    (POOL, "spec.weight", [1], "spec.weight: must be a whole number, is a list"),
    (POOL, "spec.weight", 500, "spec.weight: must be at most 100, is 500"),
    (POOL, "spec.replicas", -1, "spec.replicas: must be at least 0, is -1"),
    (POOL, "spec.limits", [1], "spec.limits: must be a map, is a list"),
    (
        POOL,
        "spec.limits",
        {"cpu": "4 GB"},
        "spec.limits.cpu: '4 GB' is not a quantity: write a quantity such as 500m, 2 or 4Gi",
    ),
    (POOL, "spec.limits", {"cpu": True}, "spec.limits.cpu: must be a quantity such as 500m, 2 or 4Gi, is true"),
    (POOL, "spec.limits", {"cpu": {}}, "spec.limits.cpu: must be a quantity such as 500m, 2 or 4Gi, is a map"),
    (
        POOL,
        "spec.disruption",
        {"consolidateAfter": 30},
        "spec.disruption.consolidateAfter: must be hours, minutes and seconds, such as 720h or 1h30m, is 30",
    ),
    (
        POOL,
        "spec.disruption",
        {"consolidateAfter": "soon"},
        (
            "spec.disruption.consolidateAfter: 'soon' will not do: write hours, minutes and seconds, such as 720h or "
            "1h30m, or Never"
        ),
    ),
    (
        POOL,
        "spec.disruption",
        {"consolidationPolicy": "WhenEmty"},
        (
            "spec.disruption.consolidationPolicy: must be one of WhenEmpty, WhenEmptyOrUnderutilized, Balanced, is "
            "'WhenEmty'; is it WhenEmpty?"
        ),
    ),
    (POOL, "spec.template.spec.requirements", {}, "spec.template.spec.requirements: must be a list, is a map"),
    (
        POOL,
        "spec.template.spec.requirements.0.operator",
        "in",
        (
            "spec.template.spec.requirements[0].operator: must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, "
            "Lte, is 'in'; is it In?"
        ),
    ),
    (
        POOL,
        "spec.template.spec.requirements.0.values",
        "m7a",
        "spec.template.spec.requirements[0].values: must be a list, is 'm7a'",
    ),
    (POOL, "spec.template.spec.requirements.0.key", None, "spec.template.spec.requirements[0].key: is missing"),
    (
        POOL,
        "spec.template.spec.taints",
        [{"key": "a", "effect": "Never"}],
        "spec.template.spec.taints[0].effect: must be one of NoSchedule, PreferNoSchedule, NoExecute, is 'Never'",
    ),
    (
        POOL,
        "spec.template.metadata.labels",
        {"team": 1},
        "spec.template.metadata.labels.team: 1 must be text: write it in quotes",
    ),
    (CLASS, "spec.detailedMonitoring", "yes", "spec.detailedMonitoring: must be true or false, is 'yes'"),
    (
        CLASS,
        "spec.amiFamily",
        "al2023",
        (
            "spec.amiFamily: must be one of AL2, AL2023, Bottlerocket, Custom, Windows2019, Windows2022, Windows2025, "
            "is 'al2023'; is it AL2023?"
        ),
    ),
    (CLASS, "spec.subnetSelectorTerms", [], "spec.subnetSelectorTerms: must have at least 1 entry, has 0"),
    (CLASS, "spec.role", "", "spec.role: must not be empty"),
    (CLASS, "spec.kubelet", {"maxPods": "many"}, "spec.kubelet.maxPods: must be a whole number, is 'many'"),
    (
        CLASS,
        "spec.blockDeviceMappings",
        [{"ebs": {"volumeSize": "100 GB"}}],
        (
            "spec.blockDeviceMappings[0].ebs.volumeSize: '100 GB' will not do: write a size in G, Gi, T or Ti, such as "
            "100Gi"
        ),
    ),
    (
        CLASS,
        "spec.blockDeviceMappings",
        [{"ebs": {"encrypted": "true"}}],
        "spec.blockDeviceMappings[0].ebs.encrypted: must be true or false, is 'true'",
    ),
    (CLAIM, "spec.resources", {"requests": "2"}, "spec.resources.requests: must be a map, is '2'"),
    (DEPLOYMENT, "spec.replicas", "three", "spec.replicas: must be a whole number, is 'three'"),
    (DEPLOYMENT, "spec.replicas", 2.5, "spec.replicas: must be a whole number, is 2.5"),
    (
        DEPLOYMENT,
        "spec.template.metadata.labels",
        {"app": 7},
        "spec.template.metadata.labels.app: 7 must be text: write it in quotes",
    ),
    (pod_document(), "spec.hostNetwork", "yes", "spec.hostNetwork: must be true or false, is 'yes'"),
    (pod_document(), "spec.priority", "high", "spec.priority: must be a whole number, is 'high'"),
    (
        pod_document(),
        "spec.topologySpreadConstraints",
        [{**SPREAD, "maxSkew": "1"}],
        "spec.topologySpreadConstraints[0].maxSkew: must be a whole number, is '1'",
    ),
    (
        pod_document(),
        "spec.nodeSelector",
        {"kubernetes.io/arch": ["arm64"]},
        "spec.nodeSelector[kubernetes.io/arch]: must be text, is a list",
    ),
    (
        pod_document(),
        "spec.nodeSelector",
        {"example.com/fast": True},
        "spec.nodeSelector[example.com/fast]: true must be text: write it in quotes",
    ),
    (
        pod_document(),
        "spec.containers.0.resources",
        {"requests": {"memory": "512 Mi"}},
        (
            "spec.containers[0].resources.requests.memory: '512 Mi' is not a quantity: write a quantity such as 500m, "
            "2 or 4Gi"
        ),
    ),
    (
        pod_document(),
        "metadata.creationTimestamp",
        "today",
        "metadata.creationTimestamp: must be a moment such as 2026-01-01T00:00:00Z, is 'today'",
    ),
]


@pytest.mark.parametrize(("document", "path", "value", "words"), WORDS, ids=lambda value: str(value)[:60])
def test_what_a_field_must_be_is_said_in_plain_words(
    run: Run, write: Write, document: Any, path: str, value: Any, words: str
) -> None:
    """Whole numbers, truth values, choices, lists, maps, durations, quantities: no word of a library's."""
    given = write("object.json", changed(document, path, value))
    (line,) = _told(run, given)
    assert line == f"{given}: {document['kind']} {document['metadata']['name']}: {words}"


REQUIRED: list[tuple[Any, str, str]] = [
    (POOL, "spec.template.spec.requirements", "is missing; write requirements: [] for none"),
    (POOL, "spec.template.spec.nodeClassRef", "is missing"),
    (POOL, "spec.template.spec.nodeClassRef.group", "is missing; write group: karpenter.k8s.aws"),
    (POOL, "spec.template.spec.nodeClassRef.name", "is missing"),
    (POOL, "spec.template", "is missing"),
    (POOL, "spec", "is missing"),
    (CLAIM, "spec.requirements", "is missing; write requirements: [] for none"),
    (CLAIM, "spec.nodeClassRef.kind", "is missing; write kind: EC2NodeClass"),
    (CLASS, "spec.subnetSelectorTerms", "is missing"),
    (CLASS, "spec.securityGroupSelectorTerms", "is missing"),
    (CLASS, "spec.amiSelectorTerms", "is missing"),
]


@pytest.mark.parametrize(("document", "path", "words"), REQUIRED, ids=lambda value: str(value)[:40])
def test_a_null_where_the_definition_asks_for_a_value_is_refused(
    run: Run, write: Write, document: Any, path: str, words: str
) -> None:
    """As an API server does: it prunes the null and then misses the field."""
    (line,) = _told(run, write("object.json", changed(document, path, None)))
    assert line.endswith(f": {path}: {words}")


@pytest.mark.parametrize(
    "path",
    ["spec.limits", "spec.disruption", "spec.weight", "spec.template.metadata", "spec.template.spec.taints"],
)
def test_a_null_elsewhere_is_a_field_left_out(run: Run, write: Write, path: str) -> None:
    """And a budget without its number has the API server's default."""
    files = write("class.json", CLASS), write("pool.json", changed(POOL, path, None))
    assert run("plan", "--now", NOW, "-f", files[0], "-f", files[1]).status == 0


def test_every_problem_of_every_file_is_a_line(run: Run, write: Write) -> None:
    """Several in one object, several objects, several files: who mends them hears of all at once."""
    pod = pod_document(
        nodeSelectr={}, containers=[{"name": "A", "resources": {"requests": {"cpu": "x"}}}, {"image": "b"}]
    )
    pods = write(
        "pods.json",
        {"apiVersion": "v1", "kind": "List", "items": [pod, pod_document("fine"), {"apiVersion": "v1", "kind": "Pdo"}]},
    )
    pool = changed(changed(POOL, "spec.weight", 0), "spec.limits", {"cpu": "many"})
    torn = write("torn.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: [")
    assert _told(run, pods, write("pool.json", pool), torn, "/nowhere") == [
        f"{pods}: Pod web: spec.nodeSelectr: no such field; is it nodeSelector?",
        (
            f"{pods}: Pod web: spec.containers[0].name: 'A' is no name: it must have lower-case letters, digits and "
            "'-' only, and begin and end with a letter or digit"
        ),
        f"{pods}: Pod web: spec.containers[1].name: is missing",
        (
            f"{pods}: Pod web: spec.containers[0].resources.requests.cpu: 'x' is not a quantity: write a quantity such "
            "as 500m, 2 or 4Gi"
        ),
        f"{pods}: Pdo: kind: no such kind as Pdo; is it Pod?",
        (
            f"{pods.replace('pods.json', 'pool.json')}: NodePool default: spec.limits.cpu: 'many' is not a quantity: "
            "write a quantity such as 500m, 2 or 4Gi"
        ),
        f"{pods.replace('pods.json', 'pool.json')}: NodePool default: spec.weight: must be at least 1, is 0",
        f"{torn}: Pod a: spec.containers: a pod needs a container",
        f"{torn}: line 6: not YAML: did not find expected node content",
        "/nowhere: No such file or directory",
    ]


def test_a_misspelt_field_is_read_as_if_it_were_right(run: Run, write: Write) -> None:
    """What follows from the slip alone is no problem of its own, and what is wrong below it is."""
    pool = changed(POOL, "spec.template.spec.requirments", [{"key": "a", "operator": "Amnog"}])
    del pool["spec"]["template"]["spec"]["requirements"]
    assert [line.split(": ", 2)[2] for line in _told(run, write("pool.json", pool))] == [
        "spec.template.spec.requirments: no such field; is it requirements?",
        (
            "spec.template.spec.requirements[0].operator: must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, "
            "Lte, is 'Amnog'"
        ),
    ]


def test_many_problems_are_bounded(run: Run, write: Write) -> None:
    """Twenty lines, and how many more there are."""
    pods = [pod_document(f"web-{number:02}", priority="high") for number in range(50)]
    lines = _told(run, write("pods.json", {"apiVersion": "v1", "kind": "List", "items": pods}))
    assert len(lines) == 21
    assert "Pod web-19: spec.priority: must be a whole number" in lines[19]
    assert lines[20] == "and 30 more"


def test_problems_of_legacy_objects_are_told_with_the_others(run: Run, write: Write) -> None:
    """All of them, by the names that the fields have in v1."""
    old = {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "old"},
        "spec": changed(POOL["spec"], "weight", 0),
    }
    old["spec"]["limits"] = {"cpu": "many"}
    lines = _told(run, write("old.json", old), write("pod.json", pod_document(priority="high")))
    assert [line.split(": ", 2)[2].partition(": ")[0] for line in lines] == [
        "spec.priority",
        "spec.limits.cpu",
        "spec.weight",
    ]
