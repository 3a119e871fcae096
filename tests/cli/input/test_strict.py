"""Whatever no API has is noticed at any depth: misspelt or misplaced is an error with a suggestion, newer a warning."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.meta import CustomResource
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import in_words
from joinery_cli.reading.fields import real_kinds, unknown_in_object
from joinery_cli.reading.model_fields import unknown_in_model
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document
from tools import api_fields
from tools.controlplane.plane import ControlPlane

POOL = CLUSTER.split("---")[1]
ANTI = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}


def _refused(run: Run, write: Write, document: Any) -> str:
    outcome = run("plan", "--now", NOW, "-f", write("object.yaml", document))
    assert (outcome.status, outcome.out) == (2, "")
    (line,) = outcome.err.splitlines()
    return line


def _template(kind: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {**pod_document()["spec"], **spec}}
    made = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": made}


def _container(**fields: Any) -> dict[str, Any]:
    return pod_document(containers=[{"name": "main", **fields}])


SPREAD = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
WRONG: list[tuple[Any, str]] = [
    (
        _container(env=[{"name": "A", "value": 1}]),
        "spec.containers[0].env[0].value: 1 must be text: write it in quotes",
    ),
    (_container(image=5), "spec.containers[0].image: 5 must be text: write it in quotes"),
    (_container(tty="yes"), "spec.containers[0].tty: must be true or false, is 'yes'"),
    (
        _container(readinessProbe={"periodSeconds": "5s"}),
        "spec.containers[0].readinessProbe.periodSeconds: must be a whole number, is '5s'",
    ),
    (
        {**_template("Deployment"), "spec": {**_template("Deployment")["spec"], "revisionHistoryLimit": True}},
        "spec.revisionHistoryLimit: must be a whole number, is true",
    ),
    (_container(resource={"requests": {"cpu": "30"}}), "spec.containers[0].resource: no such field; is it resources?"),
    (
        _container(resources={"request": {"cpu": 1}}),
        "spec.containers[0].resources.request: no such field; is it requests?",
    ),
    (_container(resources={"cpu": "30"}), "spec.containers[0].resources.cpu: no such field; is it requests.cpu?"),
    (
        _container(requests={"cpu": "30"}),
        "spec.containers[0].requests: no such field here; it belongs to spec.containers[0].resources",
    ),
    (
        pod_document(affinity={"podAntiAffinity": {"requiredDuringScheduling": [ANTI]}}),
        "requiredDuringScheduling: no such field; is it requiredDuringSchedulingIgnoredDuringExecution?",
    ),
    (
        pod_document(
            affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologykey": "z"}]}}
        ),
        "[0].topologykey: no such field; is it topologyKey?",
    ),
    (
        pod_document(topologySpreadConstraints=[{**SPREAD, "topology_key": "z"}]),
        "spec.topologySpreadConstraints[0].topology_key: no such field; is it topologyKey?",
    ),
    (
        pod_document(topologySpreadConstraints=[{**SPREAD, "labelSelector": {"app": "web"}}]),
        "labelSelector.app: no such field; is it matchLabels.app?",
    ),
    (
        pod_document(volumes=[{"name": "v", "persistentVolumeClaim": {"claim": "x"}}]),
        "spec.volumes[0].persistentVolumeClaim.claim: no such field",
    ),
    (
        pod_document(tolerations=[{"key": "a", "opperator": "Exists"}]),
        "spec.tolerations[0].opperator: no such field; is it operator?",
    ),
    ({**pod_document(), "metadata": {"name": "web", "label": {}}}, "metadata.label: no such field; is it labels?"),
    ({**pod_document(), "sepc": {}}, "Pod web: sepc: no such field; is it spec?"),
    ({**pod_document(), "nodeSelector": {}}, "Pod web: nodeSelector: no such field here; it belongs to spec"),
    (_template("DaemonSet", toleration=[]), "spec.template.spec.toleration: no such field; is it tolerations?"),
    (
        _template("Deployment", containers=[{"name": "a", "resourses": {}}]),
        "spec.template.spec.containers[0].resourses: no such field; is it resources?",
    ),
    (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "a"},
            "spec": {"storageClass": "gp3"},
        },
        "spec.storageClass: no such field; is it storageClassName?",
    ),
    (
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatble": {}}},
        "status.allocatble: no such field; is it allocatable?",
    ),
    (pod_document(tolerations={"key": "a"}), "spec.tolerations: must be a list, is a map"),
    (pod_document(nodeSelector=["a"]), "spec.nodeSelector: must be a map, is a list"),
    (_container(image=["nginx"]), "spec.containers[0].image: must be text, is a list"),
    (
        CLUSTER.replace("amiSelectorTerms", "amiSelectorTerm"),
        "EC2NodeClass default: spec.amiSelectorTerm: no such field; is it amiSelectorTerms?",
    ),
    (
        POOL.replace("metadata: {name: default}", "metadata: {name: default, lables: {}}"),
        "NodePool default: metadata.lables: no such field; is it labels?",
    ),
    (
        POOL.replace("\nspec:", "\nlimits: {cpu: 1}\nspec:"),
        "NodePool default: limits: no such field here; it belongs to spec",
    ),
]


@pytest.mark.parametrize(("document", "problem"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_slip_is_an_error_at_every_depth(run: Run, write: Write, document: Any, problem: str) -> None:
    """A plan without the field would be for something else."""
    assert problem in _refused(run, write, document)


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
        ("karpenter.k8s.aws/v1", "Provisioner", "in karpenter.k8s.aws/v1; is it karpenter.sh/v1alpha5?"),
        ("karpenter.k8s.aws/v1", "NodeOverlay", "in karpenter.k8s.aws/v1; is it one of karpenter.sh?"),
        ("v1", "Deployment", "apiVersion: there is no Deployment in v1; is it apps/v1?"),
        ("apps/v2", "Deployment", "apiVersion: there is no Deployment in apps/v2; is it apps/v1?"),
    ],
)
def test_a_kind_that_is_none_is_an_error(run: Run, write: Write, version: str, kind: str, problem: str) -> None:
    """Such an object would take no part, and whoever wrote it means it to."""
    assert problem in _refused(run, write, {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("argoproj.io/v1alpha1", "AppProject"), ("bitnami.com/v1alpha1", "SealedSecret"), ("v1", "PodTemplate"),
        ("v1", "Secret"), ("hypershift.openshift.io/v1beta1", "NodePool"), ("serving.knative.dev/v1", "Service"),
        ("stable.example.com/v1", "CronTab"), ("rbac.authorization.k8s.io/v1", "Role"),
        ("apps/v1", "ControllerRevision"), ("monitoring.coreos.com/v1", "PodMonitor"),
    ],
)  # fmt: skip
def test_other_peoples_kinds_are_nobodys_mistake(run: Run, write: Write, version: str, kind: str) -> None:
    """Ignored, and counted in a warning."""
    given = write("object.json", {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": {"a": 1}})
    outcome = run("plan", "--now", NOW, "-f", given)
    assert outcome.status == 0
    assert f"ignored 1 object of kind {kind}: not used in a plan" in outcome.err


@pytest.mark.parametrize(
    ("version", "instead"),
    [("extensions/v1beta1", "apps/v1"), ("apps/v1beta2", "apps/v1"), ("apps/v1", ""), ("", "")],
)
def test_a_version_that_no_cluster_takes_any_more_is_told(run: Run, write: Write, version: str, instead: str) -> None:
    """It is planned: what it means is known. ``kubectl apply`` would refuse it."""
    given = {**_template("Deployment"), "apiVersion": version}
    outcome = run("plan", "--now", NOW, "-f", write("d.json", {k: v for k, v in given.items() if v}))
    assert "default/web-1" in outcome.out
    told = f"warning: no supported cluster takes 1 object of kind Deployment of {version}; write {instead}"
    assert (told in outcome.err.splitlines()) == bool(instead)


def test_what_an_api_server_served_is_newer_at_most(run: Run, write: Write) -> None:
    """Its unknown fields are warnings also where a person's would be misplaced; a slip in them stays a slip."""
    pod = pod_document(requests={"cpu": 1}, telepathy=True)
    pod["metadata"]["uid"] = "1"
    outcome = run("plan", "--now", NOW, "-f", write("pod.json", {**pod, "status": {"phasee": "Pending"}}))
    assert outcome.status == 0
    for path in ("spec.requests", "spec.telepathy", "status.phasee"):
        assert f"warning: ignored {path} of 1 object of kind Pod: no such field" in outcome.err
    odd = {**pod, "spec": {**pod["spec"], "tolerations": [{"eky": "a"}]}}
    assert "spec.tolerations[0].eky: no such field" in _refused(run, write, odd)
    pod["spec"] = {**pod["spec"], "tolerationz": []}
    assert "spec.tolerationz: no such field; is it tolerations?" in _refused(run, write, pod)


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({"name": "Web"}, "metadata.name: 'Web' is no name"),
        ({"name": "web/1"}, "metadata.name: 'web/1' is no name"),
        ({"name": "w" * 254}, "is no name"),
        ({"name": "web", "namespace": "a.b"}, "metadata.namespace: 'a.b' is no name"),
        ({"name": "web", "labels": {"a b": "c"}}, "metadata.labels: 'a b' is no label key"),
        ({"name": "web", "labels": {"a": "b c"}}, "metadata.labels.a: 'b c' is no label value"),
    ],
)
def test_names_and_labels_that_no_api_server_takes_are_refused(
    run: Run, write: Write, meta: dict[str, Any], problem: str
) -> None:
    """The line says what a name may consist of."""
    assert problem in _refused(run, write, {**pod_document(), "metadata": meta})


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"containers": []}, "spec.containers: a pod needs a container"),
        ({"containers": [{"image": "a"}]}, "spec.containers[0].name: is missing"),
        ({"containers": [{"name": "a"}, {"name": "a"}]}, "spec.containers[1].name: 'a' is used twice"),
        ({"containers": [{"name": "A_b"}]}, "spec.containers[0].name: 'A_b' is no name"),
        (
            {"containers": [{"name": "a", "resources": {"limits": {"cpu": "-1"}}}]},
            "resources.limits.cpu: must not be negative",
        ),
        (
            {"containers": [{"name": "a", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]},
            "spec.containers[0].resources.requests.cpu: 2 is more than the limit of 1",
        ),
        (
            {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "500m"}}}]},
            "spec.containers[0].resources.limits.nvidia.com/gpu: 500m must be a whole number",
        ),
        (
            {"containers": [{"name": "a", "resources": {"requests": {"a.b/c": 1}, "limits": {"a.b/c": 2}}}]},
            "spec.containers[0].resources.requests.a.b/c: 1 must be the same as the limit of 2",
        ),
    ],
)
def test_pods_that_no_api_server_takes_are_refused(run: Run, write: Write, spec: Any, problem: str) -> None:
    """A pod without containers asks for nothing, and would be planned for nothing."""
    assert problem in _refused(run, write, {**pod_document(), "spec": spec})


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_selector_that_does_not_match_its_own_template_is_refused(run: Run, write: Write, kind: str) -> None:
    """An API server refuses it, and the plan would be for pods that no spread and no affinity of theirs counts."""
    given = _template(kind)
    given["spec"]["template"]["metadata"]["labels"] = {"app": "b"}
    problem = f"{kind} web: spec.selector: does not match the labels of spec.template: app: b"
    assert problem in _refused(run, write, given)


INDENTED = "no such field; is it {0}? Then indent it deeper than {1}"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (pod_document(nodeSelector=None, team="web"), ("spec.team", "nodeSelector.team", "nodeSelector")),
        (
            {**pod_document(), "metadata": {"name": "web", "labels": None, "app": "web"}},
            ("metadata.app", "labels.app", "labels"),
        ),
        (
            POOL.replace("\nspec:", "\nspec:\n  limits:\n  cpu: 100"),
            ("spec.cpu", "limits.cpu", "limits"),
        ),
        (
            CLUSTER.replace("metadata: {labels: {team: web}}", "metadata: {labels: , team: web}"),
            ("spec.template.metadata.team", "labels.team", "labels"),
        ),
    ],
)
def test_members_of_a_map_that_are_not_indented_are_refused(
    run: Run, write: Write, document: Any, problem: tuple[str, str, str]
) -> None:
    """``limits:`` with ``cpu: 100`` below it is no limit at all, and a plan without it buys without one."""
    path, *meant = problem
    assert f"{path}: {INDENTED.format(*meant)}" in _refused(run, write, document)


def test_a_newer_field_beside_an_empty_map_is_newer_still(run: Run, write: Write) -> None:
    """Charts write ``nodeSelector: {}``, and what is itself a map or a list is no member of one."""
    for beside in ({"nodeSelector": {}, "newer": "a"}, {"nodeSelector": None, "newer": {"a": "b"}}):
        outcome = run("plan", "--now", NOW, "-f", write("pod.json", pod_document(**beside)))
        assert "warning: ignored spec.newer of 1 object of kind Pod: no such field" in outcome.err


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
                "*?" if is_either else {"string": "s*", "integer": "i", "boolean": "b"}.get(inner.get("type"), shape)
            )
            if shape and len(shape) == 1 and shape not in wanted:
                wrong.append(f"{name}.{field}: {shape}, not {wanted}")
    assert wrong == []


def test_the_table_has_every_field_that_a_real_api_server_serves(api_server: ControlPlane) -> None:
    """No field of a cluster is unknown: the published OpenAPI schemas of all kinds that are read."""
    lacking = []
    for path in (
        "api/v1",
        "apis/apps/v1",
        "apis/batch/v1",
        "apis/autoscaling/v2",
        "apis/policy/v1",
        "apis/scheduling.k8s.io/v1",
        "apis/storage.k8s.io/v1",
    ):
        schemas = json.loads(api_server.kubectl("get", "--raw", f"/openapi/v3/{path}"))["components"]["schemas"]
        kinds = {name.rpartition(".")[2]: schema for name, schema in schemas.items()}
        for name, fields in json.loads(api_fields.TABLE.read_text())["types"].items():
            lacking += [f"{name}.{field}" for field in kinds.get(name, {}).get("properties", {}) if field not in fields]
    assert lacking == []


def test_an_object_with_every_kind_of_field_is_known() -> None:
    """Maps, lists, nulls and free-form parts are looked through."""
    pod = {**pod_document(), "metadata": {"name": "a", "managedFields": [{"fieldsV1": {"f:spec": {}}}], "labels": None}}
    pod["spec"]["volumes"] = [{"name": "v", "emptyDir": {}, "projected": {"sources": [None]}}]
    assert list(unknown_in_object("Pod", json.dumps(pod).encode())) == []
    assert "PodTemplate" in real_kinds()


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (
            "      nodeClassRef:",
            "      expireAfter: 30d\n      nodeClassRef:",
            (
                "spec.template.spec.expireAfter: '30d' will not do: write hours, minutes and seconds, such as 720h or "
                "1h30m, or Never"
            ),
        ),
        (
            "\nspec:",
            "\nspec:\n  disruption: {budgets: [{nodes: few}]}",
            "spec.disruption.budgets[0].nodes: 'few' will not do: write a number such as 5 or a share such as 10%",
        ),
    ],
)
def test_what_a_value_must_look_like_is_said_in_words(
    run: Run, write: Write, before: str, after: str, problem: str
) -> None:
    """A regular expression is no help to who wrote 30d."""
    line = _refused(run, write, POOL.replace(before, after))
    assert problem in line
    assert "pattern" not in line


@pytest.mark.parametrize("model", [EC2NodeClass, NodePool, NodeClaim])
def test_every_field_of_the_definitions_is_known_by_its_slips(model: type[CustomResource]) -> None:
    """A letter forgotten, one too many, or all of them small, at the top of the spec."""
    for name in model.model_json_schema()["$defs"][f"{model.__name__}Spec"]["properties"]:
        for slip in {name[:-1], f"{name}x", name.lower()} - {name}:
            (unknown,) = [one for one in unknown_in_model(model, {"spec": {slip: 1}}) if one.path == f"spec.{slip}"]
            assert unknown.problem == f"no such field; is it {name}?"


@pytest.mark.parametrize("model", [EC2NodeClass, NodePool, NodeClaim])
def test_every_pattern_of_the_definitions_has_words(model: type[CustomResource]) -> None:
    """A new one needs them too."""
    assert [pattern for pattern in _patterns(model.model_json_schema()) if not in_words(pattern)] == []


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str) and "x-kubernetes-int-or-string" not in schema:
            yield schema["pattern"]
        schema = list(schema.values())
    for member in schema if isinstance(schema, list) else ():
        yield from _patterns(member)
