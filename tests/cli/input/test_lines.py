"""Whoever is told what is wrong is told in which line."""

import json
from textwrap import dedent

import pytest

from tests.cli.conftest import NOW, Run, Write

PODS = dedent("""\

    # A comment, and what several containers share.
    apiVersion: v1
    kind: Pod
    metadata: {name: fine}
    spec: {containers: [{name: a}]}
    ---
    ---
    apiVersion: v1
    kind: List
    items:
      - {apiVersion: v1, kind: Pod, metadata: {name: also-fine}, spec: {containers: [{name: a}]}}
      - apiVersion: v1
        kind: Pod
        metadata:
          name: wrong
          labels:
            app.kubernetes.io/name: two words
        spec:
          nodeSelectr: {}
          containers:
            - name: first
              resources: &usual
                requests:
                  cpu: 4 GB
            - name: second
              resources:
                <<: *usual
                limits: {memory: 1Gi, cpu: x}
    """)


def _lines(run: Run, path: str, kind: str) -> dict[str, int]:
    """The line of each field that is wrong."""
    outcome = run("plan", "--now", NOW, "-f", path)
    assert outcome.status == 2
    found = {}
    for line in outcome.err.splitlines():
        at, of, field, _ = line.removeprefix(f"joinery: {path}:").split(": ", 3)
        assert of == kind
        found[field] = int(at)
    return found


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_each_field_is_named_with_its_line_in_yaml(run: Run, write: Write, ending: str) -> None:
    """Of the second of several documents, inside of a list; of a value that is shared, where it is written."""
    assert _lines(run, write("pods.yaml", PODS.replace("\n", ending)), "Pod wrong") == {
        "spec.nodeSelectr": 20,
        "spec.containers[0].resources.requests.cpu": 25,
        "spec.containers[1].resources.requests.cpu": 25,
        "spec.containers[1].resources.limits.cpu": 29,
        "metadata.labels.app.kubernetes.io/name": 17,
    }


def test_each_field_is_named_with_its_line_in_json(run: Run, write: Write) -> None:
    """As kubectl prints it, twice here; what is missing, with the line of what lacks it."""
    fine = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "fine"}, "spec": {"containers": [{"name": "a"}]}}
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"weight": 500, "template": {"spec": {"requirements": []}}},
    }
    pools = {"kind": "List", "apiVersion": "v1", "items": [fine, pool]}
    text = "\n\n".join(json.dumps(document, indent=2) for document in (fine, pools))
    given = text.splitlines()
    assert _lines(run, write("all.json", text), "NodePool default") == {
        "spec.template.spec.nodeClassRef": 1 + next(i for i, line in enumerate(given) if line == '          "spec": {'),
        "spec.weight": 1 + next(i for i, line in enumerate(given) if "500" in line),
    }


def test_what_cannot_be_read_at_all_is_named_with_its_line_too(run: Run, write: Write) -> None:
    """The key that is there twice, the bracket that nobody closes, the text that is no object."""
    for name, text, words in (
        ("twice.yaml", f"{PODS}---\nkind: Pod\nkind: Node\n", ":32: not YAML: the key 'kind' is there twice"),
        ("twice.json", '[]\n{"kind": "Pod",\n"metadata": {"name": "a", "name": "b"}}', ":1: not a Kubernetes object"),
        ("open.json", '{"kind": "Pod"}\n{"kind":\n', ":3: not JSON: "),
        ("words.yaml", "\n\nNo resources found\n", ":3: not a Kubernetes object"),
        ("helm.yaml", "\n\nkind: {{ .Values.kind }}\n", ":3: looks like a template"),
    ):
        path = write(name, text)
        assert f"joinery: {path}{words}" in run("plan", "--now", NOW, "-f", path).err
