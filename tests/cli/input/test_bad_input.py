"""Bad input: one line that names file, object, field and what is wrong; exit status 2; nothing on standard output."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document


def _refused(run: Run, *arguments: str) -> str:
    outcome = run("plan", "--now", NOW, "-o", "json", *arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    return line


def _requesting(**quantities: Any) -> dict[str, Any]:
    return pod_document(containers=[{"name": "main", "resources": {"requests": quantities}}])


def _with_devices(**resources: Any) -> dict[str, Any]:
    return pod_document(containers=[{"name": "main", "resources": resources}])


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (_requesting(cpu="4 GB"), "Pod web: spec.containers[0].resources.requests.cpu: '4 GB' is not a quantity"),
        (
            "No resources found",
            "not a Kubernetes object: must be a map with apiVersion and kind, is 'No resources found'",
        ),
        (
            {
                "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata",
                "overhead": {"podFixed": {"cpu": "\u0661"}},
            },
            "RuntimeClass kata: overhead.podFixed.cpu: '\u0661' is not a quantity",
        ),
        (
            {
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
                "spec": {"capacity": {"storage": "0x1"}},
            },
            "PersistentVolume disk: spec.capacity.storage: '0x1' is not a quantity",
        ),
        (
            {
                "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": "left"},
                "storageClassName": "local", "maximumVolumeSize": "1_000",
            },
            "CSIStorageCapacity left: maximumVolumeSize: '1_000' is not a quantity",
        ),
        (
            _with_devices(limits={"nvidia.com/gpu": "500m"}),
            "Pod web: spec.containers[0].resources.limits[nvidia.com/gpu]: '500m' must be a whole number",
        ),
        (
            _with_devices(requests={"nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": 2}),
            "Pod web: spec.containers[0].resources.requests[nvidia.com/gpu]: 1 must be the same as the limit, 2",
        ),
        (
            _with_devices(requests={"nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": "two"}),
            "Pod web: spec.containers[0].resources.limits[nvidia.com/gpu]: 'two' is not a quantity",
        ),
        ({**pod_document(), "metadata": {}}, "Pod: metadata.name: is missing"),
        ({"apiVersion": "v1", "metadata": {}}, "not a Kubernetes object: kind is missing: "),
    ],
)  # fmt: skip
def test_a_broken_object_is_one_line(run: Run, write: Write, document: Any, problem: str) -> None:
    """Types, quantities, names: the field is named as the API names it."""
    path = write("pod.json", document)
    assert _refused(run, "-f", path).startswith(f"joinery: {path}:1: {problem}")


def test_blanks_around_a_quantity_count_for_nothing(run: Run, write: Write) -> None:
    """An API server cuts them off, of a pod's and not of a NodePool's, whose pattern knows none."""
    outcome = run("plan", "--now", NOW, "-f", write("pod.json", _requesting(memory="1Gi ", **{"example.com/x": " 1"})))
    assert (outcome.status, "Traceback" in outcome.err) == (0, False)
    limited = CLUSTER.replace("  template:", '  limits: {cpu: "1 "}\n  template:')
    problem = _refused(run, "-f", write("cluster.yaml", limited))
    assert "NodePool default: spec.limits.cpu: '1 ' is not a quantity" in problem


def test_a_broken_object_in_a_list_is_named(run: Run, write: Write) -> None:
    """Among many pods the line says which, with its namespace."""
    bad = _requesting(memory="lots")
    bad["metadata"] = {"name": "bad", "namespace": "shop"}
    path = write("list.json", {"apiVersion": "v1", "kind": "List", "items": [pod_document(), bad]})
    assert _refused(run, "-f", path).startswith(f"joinery: {path}:1: Pod shop/bad: spec.containers[0]")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: [", "2: not YAML"),
        ('{"kind": "Pod"', "1: not JSON"),
        ("just words", "1: not a Kubernetes object"),
        ("[1, 2]", "1: not a Kubernetes object"),
        ("kind: Pod\nmetadata: {name: [a]}", "1: Pod: metadata.name: must be text, is a list"),
        ("kind: Pod\nmetadata: {name: off}", "1: Pod: metadata.name: false must be text: write it in quotes"),
        ("kind: Pod\napiVersion: 1", "1: Pod: apiVersion: 1 must be text: write it in quotes"),
        ("kind: 1\nmetadata: {}", "1: not a Kubernetes object: kind: 1 must be text: write it in quotes"),
    ],
)
def test_what_is_no_object_at_all_is_refused(run: Run, write: Write, text: str, problem: str) -> None:
    """Neither YAML nor JSON, or something else in them."""
    path = write("objects", text)
    assert _refused(run, "-f", path).startswith(f"joinery: {path}:{problem}")


@pytest.mark.parametrize(
    "text",
    [
        "metadata:\n  name: {{ .Values.name }}\n",
        "metadata: {}\n{{- if .Values.on }}\nkind: Pod\n{{- end }}\n",
        '{{- include "labels" . }}\nkind: Pod\n',
    ],
)
def test_a_template_that_was_never_rendered_is_told_how(run: Run, write: Write, text: str) -> None:
    """It is neither YAML nor JSON before helm has filled it in."""
    line = _refused(run, "-f", write("pod", text))
    assert line.endswith("looks like a template: run helm template, or what fills it in, first")


def test_files_that_cannot_be_read_are_named(run: Run, tmp_path: Path) -> None:
    """Missing, a folder, half a gzip, not even text."""
    half, binary = tmp_path / "half.gz", tmp_path / "binary"
    half.write_bytes(b"\x1f\x8bhalf")
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "missing.yaml", tmp_path, half, binary):
        assert _refused(run, "-f", str(path)).startswith(f"joinery: {path}: ")


def test_a_catalogue_that_is_none_is_named(run: Run, cluster: str) -> None:
    """Kubernetes objects are no catalogue."""
    assert _refused(run, "-f", cluster, "--catalog", cluster).startswith(f"joinery: {cluster}: not a catalogue")


@pytest.mark.parametrize("now", ["yesterday", "2026-01-01T00:00:00"])
def test_a_moment_needs_its_zone(run: Run, cluster: str, now: str) -> None:
    """A time without zone would mean something else on every desk."""
    outcome = run("plan", "-f", cluster, "--now", now)
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert outcome.err.startswith(f"joinery: --now {now}: ")


def test_a_time_limit_is_positive(run: Run, cluster: str) -> None:
    """Nothing can be planned in no time."""
    assert _refused(run, "-f", cluster, "--time-limit", "0") == "joinery: --time-limit 0: must be more than 0 seconds"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("plan", "-o", "JSON"), "--output: must be one of table, wide, json, html, yaml, is 'JSON'; is it json?"),
        (("plan", "-o", "pdf"), "--output: must be one of table, wide, json, html, yaml, is 'pdf'"),
        (("catalog", "-o", "html"), "--output: must be one of table, wide, json, is 'html'"),
        (
            ("plan", "--node-size", "chepest"),
            "--node-size: must be one of cheapest, balanced, small, is 'chepest'; is it cheapest?",
        ),
        (("simulate", "-o", "Text"), "--output: must be one of text, json, is 'Text'; is it text?"),
        (("plan", "--seed", "x"), "--seed: must be a whole number, is 'x'"),
        (("plan", "--seed", "-1"), "--seed: must be at least 0, is '-1'"),
        (("plan", "--time-limit", "soon"), "--time-limit: must be a number, is 'soon'"),
    ],
)
def test_a_bad_argument_is_told_in_plain_words(run: Run, arguments: tuple[str, ...], line: str) -> None:
    """What it must be, what it is, and what was probably meant; exit status 2."""
    outcome = run(*arguments)
    assert (outcome.status, outcome.out, outcome.err) == (2, "", f"joinery: {line}\n")


def test_unknown_operators_of_a_pod_are_its_own_problem(run: Run, cluster: str, write: Write) -> None:
    """A reason on that pod; the others are planned."""
    term = {"matchExpressions": [{"key": "a", "operator": "Resembles", "values": ["b"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    odd = write("odd.json", pod_document("odd", affinity=affinity))
    outcome = run("plan", "-o", "json", "-f", cluster, "-f", odd, "-f", write("pod.json", pod_document()))
    assert outcome.status == 0
    assert [one["pod"] for one in outcome.document["unschedulable"]] == ["default/odd"]
    assert len(outcome.document["launch"]) == 1


def test_a_quantity_beyond_every_node_is_the_pods_own_problem(run: Run, cluster: str, write: Write) -> None:
    """The API server would cut it to its largest; no node holds either."""
    outcome = run("plan", "-o", "json", "-f", cluster, "-f", write("pod.json", _requesting(cpu="1e30")))
    assert outcome.status == 0
    assert [one["pod"] for one in outcome.document["unschedulable"]] == ["default/web"]


def test_an_alias_of_a_family_that_nobody_knows_is_told_the_families(run: Run, write: Write) -> None:
    """A dash in it is no fault of the alias' format."""
    written = CLUSTER.replace("al2023@latest", "bottlerocket-fips@latest")
    refused = _refused(run, "-f", write("cluster.yaml", written))
    assert "spec.amiSelectorTerms[0].alias: the family must be one of al2, al2023, bottlerocket, " in refused


def test_bytes_that_are_no_text_are_refused(run: Run, write: Write, tmp_path: Path) -> None:
    """Whatever the file's name says."""
    path = tmp_path / "objects.json.gz"
    path.write_bytes(bytes(range(128, 256)))
    assert (
        _refused(run, "-f", str(path))
        == f"joinery: {path}: neither text nor gzip: byte 0x80 in line 1 is not UTF-8; save it as UTF-8"
    )


def test_a_broken_entry_of_a_catalogue_is_named_with_its_file(run: Run, write: Write) -> None:
    """Among a thousand entries, and although entries are read late."""
    broken = {"apiVersion": "joinery.dev/v1", "kind": "Catalog", "region": "r", "instanceTypes": [{"InstanceType": 5}]}
    catalogue, cluster = write("catalogue.json", broken), write("cluster.yaml", CLUSTER)
    line = _refused(run, "-f", cluster, "--catalog", catalogue)
    assert line.startswith(f"joinery: {catalogue}: not a catalogue: instanceTypes[0]: ")
    assert line.endswith("$.InstanceType`")


def test_yaml_is_read_as_kubectl_reads_it(run: Run, cluster: str, write: Write) -> None:
    """A lone ``=`` of the Prometheus operator's definitions is text,
    and so are times of day and addresses with a port.
    """
    definition = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c}\nspec: "
        "{enum: [=, =~]}\n---\n"
    )
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {at: 12:30, until: 20:30:15.5}}\nspec: "
        "{containers: [{name: a, args: [10:20]}]}\n"
    )
    outcome = run("plan", "--now", NOW, "-o", "json", "-f", cluster, "-f", write("all.yaml", definition + pod))
    assert (outcome.status, len(outcome.document["launch"])) == (0, 1), outcome.err
