"""A command line to call, and a small cluster in files to call it with."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from joinery_cli.main import main

NOW = "2026-01-01T00:00:00Z"

CLUSTER = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: nodes
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    metadata: {labels: {team: web}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m7a.large, m7a.xlarge]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
# Runs on no node: it is there as each cluster has some.
spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {
  nodeSelector: {example.com/agent: "true"}, containers: [{name: agent}]}}}
---
"""


def pod_document(name: str = "web", **spec: Any) -> dict[str, Any]:
    """A pod as a person writes it: no status, no namespace, one container that asks for half a core."""
    container = {"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


@dataclass(frozen=True)
class Outcome:
    """What a command did: exit status and both streams."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON."""
        return msgspec.json.decode(self.out)


Run = Callable[..., Outcome]
Write = Callable[[str, Any], str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """``run("plan", "-f", path)``: one command in this process."""

    def call(*arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("pods.json", document)``: a file in a folder of the test's own; text as it is, anything else as JSON."""

    def store(name: str, content: Any) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else msgspec.json.encode(content))
        return str(path)

    return store


@pytest.fixture
def cluster(write: Write) -> str:
    """A file with a NodePool for two instance types on demand, and its EC2NodeClass."""
    return write("cluster.yaml", CLUSTER)


def outcome_of(arguments: Sequence[str]) -> Outcome:
    """One command in this process, for what is shared by tests and so cannot have their ``run``."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(arguments)
    return Outcome(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def shell(arguments: Sequence[str], *, stdin: bytes = b"") -> Outcome:
    """The installed command in a process of its own, for what only a real process has."""
    command = [str(Path(sys.executable).with_name("joinery")), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
