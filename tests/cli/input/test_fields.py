"""Whatever no API has is noticed at any depth, and what a field must be is said in plain words.

Misspelt or misplaced is an error with a question, newer a warning; everything that is wrong with all files is said at
once, in a line each that names file, object and field.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.meta import CustomResource
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import in_words
from joinery_cli.reading.fields import findings
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document
from tools import api_fields
from tools.controlplane.plane import ControlPlane

CLASS, POOL = (yaml.safe_load(text) for text in CLUSTER.split("---")[:2])
CLAIM = {
    "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "a"},
    "spec": {"nodeClassRef": POOL["spec"]["template"]["spec"]["nodeClassRef"], "requirements": []},
}  # fmt: skip
DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod_document()["spec"]},
    },
}  # fmt: skip
DAEMON_SET = {**DEPLOYMENT, "kind": "DaemonSet"}
POD, A_QUANTITY = pod_document(), "a quantity such as 500m, 2 or 4Gi"
SPREAD = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
CONTAINER, RESOURCES = "spec.containers.0", "spec.containers.0.resources"
IN_POOL, IN_TEMPLATE = "spec.template.spec", "spec.template"


def changed(document: Any, path: str, value: Any) -> Any:
    """The document with another value at a path such as ``spec.volumes.0.name``."""
    first, _, rest = path.partition(".")
    if isinstance(document, list):
        at = int(first)
        return [*document[:at], changed(document[at], rest, value) if rest else value, *document[at + 1 :]]
    return {**document, first: changed(document.get(first, {}), rest, value) if rest else value}


def _told(run: Run, *paths: str) -> list[str]:
    outcome = run("plan", "--now", NOW, *(option for path in paths for option in ("-f", path)))
    assert (outcome.status, outcome.out) == (2, "")
    return [line.removeprefix("joinery: ") for line in outcome.err.splitlines()]


def _said(run: Run, write: Write, document: Any) -> str:
    """The one thing that is wrong with an object, after its file and its name."""
    path = write("object.json", document)
    (line,) = _told(run, path)
    prefix = f"{path}:1: {document['kind']} {document['metadata']['name']}: "
    assert line.startswith(prefix)
    return line.removeprefix(prefix)


NO_FIELDS: list[tuple[Any, str, Any, str]] = [
    (POD, CONTAINER, {"name": "a", "resource": {}}, "spec.containers[0].resource: no such field; is it resources?"),
    (POD, RESOURCES, {"request": {}}, "spec.containers[0].resources.request: no such field; is it requests?"),
    (POD, RESOURCES, {"cpu": "30"}, "spec.containers[0].resources.cpu: no such field; is it requests.cpu?"),
    (
        POD, f"{CONTAINER}.requests", {"cpu": "30"},
        "spec.containers[0].requests: no such field here; it belongs to spec.containers[0].resources",
    ),
    (
        POD, "spec.affinity", {"podAntiAffinity": {"requiredDuringScheduling": [TERM]}},
        "spec.affinity.podAntiAffinity.requiredDuringScheduling: no such field; is it "
        "requiredDuringSchedulingIgnoredDuringExecution?",
    ),
    (
        POD, "spec.topologySpreadConstraints", [{**SPREAD, "topology_key": "z"}],
        "spec.topologySpreadConstraints[0].topology_key: no such field; is it topologyKey?",
    ),
    (
        POD, "spec.topologySpreadConstraints", [{**SPREAD, "labelSelector": {"app": "web"}}],
        "spec.topologySpreadConstraints[0].labelSelector.app: no such field; is it matchLabels.app?",
    ),
    (POD, "metadata.label", {}, "metadata.label: no such field; is it labels?"),
    (POD, "sepc", {}, "sepc: no such field; is it spec?"),
    (POD, "nodeSelector", {}, "nodeSelector: no such field here; it belongs to spec"),
    (DAEMON_SET, f"{IN_POOL}.toleration", [], "spec.template.spec.toleration: no such field; is it tolerations?"),
    (CLASS, "spec.roel", "a", "spec.roel: no such field; is it role?"),
    (CLASS, "spec.placementGroup", {"name": "a"}, "spec.placementGroup: no such field; is it placementGroupSelector?"),
    (POOL, "metadata.lables", {}, "metadata.lables: no such field; is it labels?"),
    (POOL, "limits", {"cpu": 1}, "limits: no such field here; it belongs to spec"),
    (POOL, "spec.requirements", [], "spec.requirements: no such field here; it belongs to spec.template.spec"),
    (POOL, "spec.labels", {"a": "b"}, "spec.labels: no such field here; it belongs to spec.template.metadata"),
    (
        POOL, "spec.disruption", {"expireAfter": "720h"},
        "spec.disruption.expireAfter: no such field here; it belongs to spec.template.spec",
    ),
    (
        POOL, f"{IN_POOL}.kubelet", {"maxPods": 20},
        "spec.template.spec.kubelet: no such field here; it belongs to spec of the EC2NodeClass",
    ),
    (
        POOL, "spec.ttlSecondsAfterEmpty", 30,
        "spec.ttlSecondsAfterEmpty: no such field in v1; write spec.disruption.consolidateAfter instead",
    ),
    (
        POOL, "spec.kubeletConfiguration", {"maxPods": 9},
        "spec.kubeletConfiguration: no such field in v1; write spec.kubelet of the EC2NodeClass instead",
    ),
    (
        POOL, f"{IN_POOL}.nodeClassRef", {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "name": "a"},
        "spec.template.spec.nodeClassRef.apiVersion: no such field in v1; write group: karpenter.k8s.aws instead",
    ),
    (
        POOL, f"{IN_POOL}.requirements.1.valeus", [],
        "spec.template.spec.requirements[1].valeus: no such field; is it values?",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("document", "path", "value", "words"), NO_FIELDS, ids=lambda value: str(value)[:60])
def test_a_field_that_no_api_has_is_an_error_at_every_depth(
    run: Run, write: Write, document: Any, path: str, value: Any, words: str
) -> None:
    """A plan without the field would be for something else."""
    assert _said(run, write, changed(document, path, value)) == words


NOT_INDENTED: list[tuple[Any, str, dict[str, Any], list[str]]] = [
    (
        POOL, "spec", {"limits": None, "cpu": 1, "memory": "10Gi"},
        ["spec.cpu: no such field; is it limits.cpu? Then indent it deeper than limits",
         "spec.memory: no such field; is it limits.memory? Then indent it deeper than limits"],
    ),
    (
        POOL, IN_TEMPLATE, {"metadata": {"annotations": None, "labels": None, "team": "web"}},
        ["spec.template.metadata.team: no such field; is it labels.team? Then indent it deeper than labels"],
    ),
    (
        DEPLOYMENT, IN_POOL, {"nodeSelector": None, "example.com/disk": "ssd"},
        ["spec.template.spec[example.com/disk]: no such field; is it nodeSelector[example.com/disk]? Then indent it "
         "deeper than nodeSelector"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("document", "path", "fields", "lines"), NOT_INDENTED)
def test_members_of_a_map_that_are_not_indented_are_an_error(
    run: Run, write: Write, document: Any, path: str, fields: dict[str, Any], lines: list[str]
) -> None:
    """Without them a plan would be for a NodePool without limits."""
    part = document
    for step in path.split("."):
        part = part.get(step, {})
    given = write("object.json", changed(document, path, {**part, **fields}))
    prefix = f"{given}:1: {document['kind']} {document['metadata']['name']}: "
    assert _told(run, given) == [f"{prefix}{line}" for line in lines]


WORDS: list[tuple[Any, str, Any, str]] = [
    (POOL, "spec.weight", "10", "spec.weight: must be a whole number, is '10'"),
    (POOL, "spec.weight", 500, "spec.weight: must be at most 100, is 500"),
    (POOL, "spec.replicas", -1, "spec.replicas: must be at least 0, is -1"),
    (POOL, "spec.limits", [1], "spec.limits: must be a map, is a list"),
    (
        POOL,
        "spec.limits",
        {"cpu": "4 GB"},
        f"spec.limits.cpu: '4 GB' is not a quantity (is it 4G?): write {A_QUANTITY}",
    ),
    (POOL, "spec.limits", {"cpu": True}, f"spec.limits.cpu: must be {A_QUANTITY}, is true"),
    (
        POOL, "spec.disruption", {"consolidateAfter": 30},
        "spec.disruption.consolidateAfter: must be hours, minutes and seconds, such as 720h or 1h30m, is 30",
    ),
    (
        POOL, "spec.disruption", {"consolidateAfter": "soon"},
        "spec.disruption.consolidateAfter: 'soon' will not do: write hours, minutes and seconds, such as 720h or "
        "1h30m, or Never",
    ),
    (
        POOL, "spec.disruption", {"budgets": [{"nodes": "few"}]},
        "spec.disruption.budgets[0].nodes: 'few' will not do: write a number such as 5 or a share such as 10%",
    ),
    (
        POOL, "spec.disruption", {"consolidationPolicy": "WhenEmty"},
        "spec.disruption.consolidationPolicy: must be one of WhenEmpty, WhenEmptyOrUnderutilized, Balanced, is "
        "'WhenEmty'; is it WhenEmpty?",
    ),
    (
        POOL, f"{IN_POOL}.requirements.0.values", "m7a",
        "spec.template.spec.requirements[0].values: must be a list, is 'm7a'",
    ),
    (
        POOL, f"{IN_TEMPLATE}.metadata.labels", {"team": 1},
        "spec.template.metadata.labels.team: 1 must be text: write it in quotes",
    ),
    (CLASS, "spec.detailedMonitoring", "yes", "spec.detailedMonitoring: must be true or false, is 'yes'"),
    (CLASS, "spec.subnetSelectorTerms", [], "spec.subnetSelectorTerms: must have at least 1 entry, has 0"),
    (CLASS, "spec.role", "", "spec.role: must not be empty"),
    (
        CLASS, "spec.blockDeviceMappings", [{"ebs": {"volumeSize": "100 GB"}}],
        "spec.blockDeviceMappings[0].ebs.volumeSize: '100 GB' will not do: write a size such as 100Gi, of at "
        "most 59000Gi, 64000G, 58Ti or 64T",
    ),
    (CLAIM, "spec.resources", {"requests": "2"}, "spec.resources.requests: must be a map, is '2'"),
    (DEPLOYMENT, "spec.replicas", "three", "spec.replicas: must be a whole number, is 'three'"),
    (DEPLOYMENT, "spec.revisionHistoryLimit", True, "spec.revisionHistoryLimit: must be a whole number, is true"),
    (POD, f"{CONTAINER}.env", [{"name": "A", "value": 1}], "spec.containers[0].env[0].value: 1 must be text: write it "
     "in quotes"),
    (POD, f"{CONTAINER}.image", ["nginx"], "spec.containers[0].image: must be text, is a list"),
    (POD, "spec.hostNetwork", "yes", "spec.hostNetwork: must be true or false, is 'yes'"),
    (POD, "spec.tolerations", {"key": "a"}, "spec.tolerations: must be a list, is a map"),
    (POD, "spec.nodeSelector", ["a"], "spec.nodeSelector: must be a map, is a list"),
    (
        POD, "spec.nodeSelector", {"example.com/fast": True},
        "spec.nodeSelector[example.com/fast]: true must be text: write it in quotes",
    ),
    (
        POD, RESOURCES, {"requests": {"memory": "512 Mi"}},
        f"spec.containers[0].resources.requests.memory: '512 Mi' is not a quantity (is it 512Mi?): write {A_QUANTITY}",
    ),
    (POD, RESOURCES, {"limits": {"cpu": -1}}, "spec.containers[0].resources.limits.cpu: must not be negative"),
    (POD, RESOURCES, {"limits": {"cpu": True}}, f"spec.containers[0].resources.limits.cpu: must be {A_QUANTITY}, is "
     "true"),
    (
        POD, "status", {"containerStatuses": [{"name": "a", "allocatedResources": {"memory": "inf"}}]},
        f"status.containerStatuses[0].allocatedResources.memory: 'inf' is not a quantity: write {A_QUANTITY}",
    ),
    (POD, "spec.overhead", {"cpu": "\u0661"}, f"spec.overhead.cpu: '\u0661' is not a quantity: write {A_QUANTITY}"),
    (
        POD, RESOURCES, {"requests": {"memroy": "1Gi"}},
        "spec.containers[0].resources.requests.memroy: no such resource: there are cpu, memory, ephemeral-storage; is "
        "it memory?",
    ),
    (
        POD, RESOURCES, {"requests": {"gpu": "1"}},
        "spec.containers[0].resources.requests.gpu: no such resource: there are cpu, memory, ephemeral-storage, and "
        "others have a domain such as nvidia.com/gpu",
    ),
    (
        POD, "metadata.creationTimestamp", "today",
        "metadata.creationTimestamp: must be a moment such as 2026-01-01T00:00:00Z, is 'today'",
    ),
    (POD, "metadata.labels", {"a": "b c"}, "metadata.labels.a: 'b c' is no label value: letters, digits, '-', '_' and "
     "'.' only, beginning and ending with a letter or digit, 63 characters at most"),
    (POD, "spec.containers", [], "spec.containers: a pod needs a container"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "path", "value", "words"), WORDS, ids=lambda value: str(value)[:60])
def test_what_a_field_must_be_is_said_in_plain_words(
    run: Run, write: Write, document: Any, path: str, value: Any, words: str
) -> None:
    """Whole numbers, truth values, choices, lists, maps, durations, quantities: no word of a library's."""
    assert _said(run, write, changed(document, path, value)) == words


REQUIRED: list[tuple[Any, str, str]] = [
    (POOL, "spec.template.spec.requirements", "is missing; write requirements: [] for none"),
    (POOL, "spec.template.spec.nodeClassRef", "is missing"),
    (POOL, "spec.template.spec.nodeClassRef.group", "is missing; write group: karpenter.k8s.aws"),
    (POOL, "spec", "is missing"),
    (CLAIM, "spec.nodeClassRef.kind", "is missing; write kind: EC2NodeClass"),
    (CLASS, "spec.subnetSelectorTerms", "is missing"),
]


@pytest.mark.parametrize(("document", "path", "words"), REQUIRED, ids=lambda value: str(value)[:40])
def test_a_null_where_the_definition_asks_for_a_value_is_refused(
    run: Run, write: Write, document: Any, path: str, words: str
) -> None:
    """As an API server does: it prunes the null and then misses the field."""
    assert _said(run, write, changed(document, path, None)) == f"{path}: {words}"


@pytest.mark.parametrize("path", ["spec.limits", "spec.disruption", "spec.template.metadata"])
def test_a_null_elsewhere_is_a_field_left_out(run: Run, write: Write, path: str) -> None:
    """And a budget without its number has the API server's default."""
    files = write("class.json", CLASS), write("pool.json", changed(POOL, path, None))
    assert run("plan", "--now", NOW, "-f", files[0], "-f", files[1]).status == 0


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"name": "Web"}, "metadata.name: 'Web' is no name"),
        ({"name": "w" * 254}, "is no name"),
        ({"name": "web", "namespace": "a.b"}, "metadata.namespace: 'a.b' is no name"),
        ({"name": "web", "labels": {"a b": "c"}}, "metadata.labels: 'a b' is no label key"),
    ],
)
def test_names_that_no_api_server_takes_are_refused(
    run: Run, write: Write, metadata: dict[str, Any], words: str
) -> None:
    """The line says what a name may consist of."""
    (line,) = _told(run, write("pod.json", {**POD, "metadata": metadata}))
    assert words in line


def test_every_problem_of_every_file_is_a_line(run: Run, write: Write) -> None:
    """Several in one object, several objects, several files: who mends them hears of all at once."""
    pod = pod_document("Web", nodeSelectr={}, containers=[{"name": "a", "resources": {"requests": {"cpu": "x"}}}])
    listed = [pod, pod_document("fine"), {"apiVersion": "v1", "kind": "Pdo"}]
    pods = write("pods.json", {"apiVersion": "v1", "kind": "List", "items": listed})
    pool = write("pool.json", changed(changed(POOL, "spec.weight", 0), "spec.limits", {"cpu": "many"}))
    torn = write("torn.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: [")
    assert _told(run, pods, pool, torn, "/nowhere") == [
        f"{pods}:1: Pod Web: spec.containers[0].resources.requests.cpu: 'x' is not a quantity: write {A_QUANTITY}",
        f"{pods}:1: Pod Web: spec.nodeSelectr: no such field; is it nodeSelector?",
        f"{pods}:1: Pod Web: metadata.name: 'Web' is no name: it must have lower-case letters, digits and '-' only, "
        "and begin and end with a letter or digit; dots between, 253 characters at most",
        f"{pods}:1: Pdo: kind: no such kind as Pdo; is it Pod?",
        f"{pool}:1: NodePool default: spec.limits.cpu: 'many' is not a quantity: write {A_QUANTITY}",
        f"{pool}:1: NodePool default: spec.weight: must be at least 1, is 0",
        f"{torn}:1: Pod a: spec.containers: a pod needs a container",
        f"{torn}:6: not YAML: did not find expected node content",
        "/nowhere: No such file or directory",
    ]


def test_a_misspelt_field_is_read_as_if_it_were_right(run: Run, write: Write) -> None:
    """It is not missing besides, and what is wrong with its value is said of the field as it is written."""
    requirements = [{"key": "a", "operator": "Amnog"}]
    pool = changed(POOL, "spec.template.spec.requirments", requirements)
    del pool["spec"]["template"]["spec"]["requirements"]
    assert [line.split(": ", 2)[2] for line in _told(run, write("pool.json", pool))] == [
        "spec.template.spec.requirments: no such field; is it requirements?",
        "spec.template.spec.requirments[0].operator: must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, "
        "Lte, is 'Amnog'",
    ]


@pytest.mark.parametrize(
    ("document", "lines"),
    [
        (
            pod_document(nodeSelectr="arm64"),
            ["spec.nodeSelectr: no such field; is it nodeSelector?", "spec.nodeSelectr: must be a map, is 'arm64'"],
        ),
        (
            changed(changed(POOL, "spec.limit", {"cpu": 5}), "spec.limits", {"cpu": "5x"}),
            ["spec.limit: no such field; is it limits?",
             f"spec.limits.cpu: '5x' is not a quantity: write {A_QUANTITY}"],
        ),
    ],
)  # fmt: skip
def test_a_wrong_value_is_said_once_and_of_its_own_field(
    run: Run, write: Write, document: Any, lines: list[str]
) -> None:
    """Whether the misspelt name stands alone or beside the right one."""
    assert [line.split(": ", 2)[2] for line in _told(run, write("object.json", document))] == lines


def test_a_wrong_type_hides_nothing_else(run: Run, write: Write) -> None:
    """Its name, its labels and what its containers ask for are looked at, too."""
    containers = [{"name": "c", "resources": {"requests": {"memroy": "1Gi"}}}]
    pod = changed(pod_document("My_Pod", containers=containers), "metadata.labels", {"v": 1.5})
    assert [line.split(": ", 2)[2][:45] for line in _told(run, write("pod.json", pod))] == [
        "metadata.labels.v: 1.5 must be text: write it",
        "metadata.name: 'My_Pod' is no name: it must h",
        "spec.containers[0].resources.requests.memroy:",
    ]


def test_a_wrong_value_under_a_dotted_key_hides_nothing_else(run: Run, write: Write) -> None:
    """Keys of labels have dots and slashes of their own."""
    pod = changed(pod_document("My_Pod", nodeSelector={"example.com/disk": 1}), "metadata.labels", {"a.b/v": 1.5})
    assert [line.split(": ", 2)[2][:45] for line in _told(run, write("pod.json", pod))] == [
        "metadata.labels[a.b/v]: 1.5 must be text: wri",
        "spec.nodeSelector[example.com/disk]: 1 must b",
        "metadata.name: 'My_Pod' is no name: it must h",
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
        **changed(changed(POOL, "spec.weight", 0), "spec.limits", {"cpu": "many"}),
        "apiVersion": "karpenter.sh/v1beta1",
    }
    lines = _told(run, write("old.json", old), write("pod.json", pod_document(priority="high")))
    assert [line.split(": ", 2)[2].partition(": ")[0] for line in lines] == [
        "spec.priority",
        "spec.limits.cpu",
        "spec.weight",
    ]


OF_THE_CLASS = (
    "EC2NodeClass default: spec.quantumEntanglement: no such field; in a cluster the class is not Ready with it"
)


def test_a_field_of_a_newer_api_is_a_warning(run: Run, write: Write) -> None:
    """An export of tomorrow's cluster can be planned; one line tells of it, however many objects have it."""
    pods = [pod_document(name, telepathy=True) for name in ("a", "b")]
    listed = write("pods.json", {"apiVersion": "v1", "kind": "List", "items": pods})
    newer = write("cluster.yaml", CLUSTER.replace("  role: nodes", "  role: nodes\n  quantumEntanglement: {}"))
    outcome = run("plan", "--now", NOW, "-f", newer, "-f", listed)
    assert outcome.status == 0
    assert outcome.err.splitlines()[:2] == [
        f"warning: {newer}: {OF_THE_CLASS}",
        f"warning: {listed}: Pod a, Pod b: spec.telepathy: no such field; it is ignored",
    ]


def test_a_warning_names_the_file_of_each_object(run: Run, write: Write) -> None:
    """In a folder, ten classes may be called ``default``."""
    newer = CLUSTER.replace("  role: nodes", "  role: nodes\n  quantumEntanglement: {}")
    files = [write(name, newer) for name in ("a.yaml", "b.yaml")]
    err = run("plan", "--now", NOW, "-f", *files).err
    for file in files:
        assert f"warning: {file}: {OF_THE_CLASS}" in err


@pytest.mark.parametrize(
    ("document", "path", "value"),
    [
        (changed(POD, "metadata.name", "a"), "spec.kind", "Pod"),
        (POOL, f"{IN_POOL}.nodeClassRef.apiVersion", "karpenter.k8s.aws/v1beta1"),
    ],
)
def test_what_every_object_has_is_at_home_nowhere_else(
    run: Run, write: Write, cluster: str, document: Any, path: str, value: Any
) -> None:
    """A field of that name is unknown, and no hint says where it belongs."""
    outcome = run("plan", "--now", NOW, "-f", cluster, "-f", write("object.json", changed(document, path, value)))
    assert outcome.status == 0
    assert f"{path}: no such field; it is ignored" in outcome.err


def test_what_an_api_server_served_is_newer_at_most(run: Run, write: Write) -> None:
    """Its unknown fields are warnings, also where a person's would be misspelt or misplaced."""
    pod = {**pod_document(telepathy=True, tolerationz=[]), "status": {"phasee": "Pending"}}
    pod["metadata"]["uid"] = "1"
    pool = changed(changed(POOL, "metadata.uid", "u"), "spec.taints", [])
    served, of_pool = write("pod.json", pod), write("pool.json", pool)
    outcome = run("plan", "--now", NOW, "-f", served, of_pool, write("c.json", CLASS))
    assert outcome.status == 0
    assert outcome.err.splitlines()[:4] == [
        f"warning: {served}: Pod web: spec.telepathy: no such field; it is ignored",
        f"warning: {served}: Pod web: spec.tolerationz: no such field; is it tolerations?",
        f"warning: {served}: Pod web: status.phasee: no such field; is it phase?",
        f"warning: {of_pool}: NodePool default: spec.taints: no such field here; it belongs to spec.template.spec",
    ]


@pytest.mark.parametrize(
    ("version", "kind", "problem"),
    [
        ("v1", "Pdo", "kind: no such kind as Pdo; is it Pod?"),
        ("v1", "pod", "kind: no such kind as pod; is it Pod?"),
        ("apps/v1", "Deploymnet", "kind: no such kind as Deploymnet; is it Deployment?"),
        ("karpenter.sh/v1", "Nodepool", "kind: no such kind as Nodepool; is it NodePool?"),
        ("karpenter.sh/v2", "NodePool", "apiVersion: there is no NodePool in karpenter.sh/v2; is it karpenter.sh/v1?"),
        ("karpenter.sh/v1", "EC2NodeClass", "there is no EC2NodeClass in karpenter.sh/v1; is it karpenter.k8s.aws/v1?"),
        ("karpnter.sh/v1", "NodePool", "there is no NodePool in karpnter.sh/v1; is it karpenter.sh/v1?"),
        ("karpenter.sh/v1", "Provisioner", "no Provisioner in karpenter.sh/v1; is it karpenter.sh/v1alpha5?"),
        ("karpenter.k8s.aws/v1", "NodeOverlay", "in karpenter.k8s.aws/v1; is it karpenter.sh/v1alpha1?"),
        ("v1", "Deployment", "apiVersion: there is no Deployment in v1; is it apps/v1?"),
    ],
)
def test_a_kind_that_is_none_is_an_error(run: Run, write: Write, version: str, kind: str, problem: str) -> None:
    """Such an object would take no part, and whoever wrote it means it to."""
    (line,) = _told(run, write("object.json", {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}))
    assert problem in line


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("argoproj.io/v1alpha1", "AppProject"), ("v1", "Secret"),
        ("hypershift.openshift.io/v1beta1", "NodePool"), ("serving.knative.dev/v1", "Service"),
        ("stable.example.com/v1", "CronTab"), ("rbac.authorization.k8s.io/v1", "Role"),
    ],
)  # fmt: skip
def test_other_peoples_kinds_are_nobodys_mistake(run: Run, write: Write, version: str, kind: str) -> None:
    """Ignored, and counted in a note."""
    given = write("object.json", {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": {"a": 1}})
    outcome = run("plan", "--now", NOW, "-f", given)
    assert outcome.status == 0
    assert f"ignored 1 object of kind {kind}: not used in a plan" in outcome.err


# --- what fields there are ---


#: What the table has under another name: a kind is called like it.
_NAMESAKES = {"io.k8s.api.core.v1.ResourceClaim": "ContainerResourceClaim"}


def test_the_table_of_fields_is_the_clients() -> None:
    """``python -m tools.api_fields`` makes it anew."""
    assert api_fields.TABLE.read_text() == api_fields.text()


def test_the_table_has_the_types_that_a_real_api_server_serves(api_server: ControlPlane) -> None:
    """Where a number is welcome beside text (a quantity, a port) the table says so, and nowhere else."""
    schemas = json.loads(api_server.kubectl("get", "--raw", "/openapi/v3/api/v1"))["components"]["schemas"]
    table, wrong = json.loads(api_fields.TABLE.read_text())["types"], []
    for name, schema in ((name.rpartition(".")[2], schema) for name, schema in schemas.items()):
        for field, served in schema.get("properties", {}).items():
            shape = table.get(name, {}).get(field, "").strip("[]{}")
            inner = served.get("items") or served.get("additionalProperties") or served
            is_either = "Quantity" in str(inner) or "IntOrString" in str(inner)
            wanted = (
                "q*?" if is_either else {"string": "s*", "integer": "i", "boolean": "b"}.get(inner.get("type"), shape)
            )
            if shape and len(shape) == 1 and shape not in wanted:
                wrong.append(f"{name}.{field}: {shape}, not {wanted}")
    assert wrong == []


def test_the_table_has_every_field_that_a_real_api_server_serves(api_server: ControlPlane) -> None:
    """No field of a cluster is unknown: the published OpenAPI schemas of all kinds that are read."""
    lacking = []
    for path in (
        "api/v1", "apis/apps/v1", "apis/batch/v1", "apis/autoscaling/v2", "apis/policy/v1", "apis/scheduling.k8s.io/v1",
        "apis/storage.k8s.io/v1", "apis/resource.k8s.io/v1",
    ):  # fmt: skip
        schemas = json.loads(api_server.kubectl("get", "--raw", f"/openapi/v3/{path}"))["components"]["schemas"]
        kinds = {_NAMESAKES.get(name) or name.rpartition(".")[2]: schema for name, schema in schemas.items()}
        for name, fields in json.loads(api_fields.TABLE.read_text())["types"].items():
            lacking += [f"{name}.{field}" for field in kinds.get(name, {}).get("properties", {}) if field not in fields]
    assert lacking == []


def test_a_claim_for_devices_is_not_what_a_container_says_of_one() -> None:
    """Both are called ResourceClaim."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    claim = {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [request]}}, "status": {"reservedFor": []}}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    assert findings("ResourceClaim", json.dumps({**head, **claim}).encode()) == []
    pod = pod_document()
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu", "request": "gpu"}]}
    assert findings("Pod", json.dumps(pod).encode()) == []


def test_an_object_with_every_kind_of_field_is_known() -> None:
    """Maps, lists, nulls and free-form parts are looked through."""
    pod = {**pod_document(), "metadata": {"name": "a", "managedFields": [{"fieldsV1": {"f:spec": {}}}], "labels": None}}
    pod["spec"]["volumes"] = [{"name": "v", "emptyDir": {}, "projected": {"sources": [None]}}]
    assert findings("Pod", json.dumps(pod).encode()) == []


@pytest.mark.parametrize("model", [EC2NodeClass, NodePool, NodeClaim])
def test_every_field_of_the_definitions_is_known_however_it_is_misspelt(model: type[CustomResource]) -> None:
    """A letter forgotten, one too many, or all of them small, at the top of the spec."""
    for name in model.model_json_schema()["$defs"][f"{model.__name__}Spec"]["properties"]:
        for misspelt in {name[:-1], f"{name}x", name.lower()} - {name}:
            found = findings(model.kind, json.dumps({"spec": {misspelt: None}}).encode())
            (problem,) = (one.problem for one in found if one.path == f"spec.{misspelt}")
            assert problem == f"no such field; is it {name}?"


@pytest.mark.parametrize("model", [EC2NodeClass, NodePool, NodeClaim])
def test_every_pattern_of_the_definitions_has_words(model: type[CustomResource]) -> None:
    """A regular expression is no help to who wrote 30d. A new one needs words too."""
    assert [pattern for pattern in _patterns(model.model_json_schema()) if not in_words(pattern)] == []


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str) and "x-kubernetes-int-or-string" not in schema:
            yield schema["pattern"]
        schema = list(schema.values())
    for member in schema if isinstance(schema, list) else ():
        yield from _patterns(member)
