"""Start the control plane's processes, wait until they answer, stop them.

The API server listens on 127.0.0.1 with a certificate of its own, authenticates static tokens and authorises with RBAC.
It is ready in about three seconds and takes 0.4 GB; scheduler and controller-manager add 0.2 GB.
"""

import base64
import contextlib
import json
import os
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joinery.decisions.installation.shipped import DOORS as IN_CLUSTER
from joinery.decisions.installation.shipped import groups_of
from tools.controlplane.assets import binary

START_SECONDS = 60
#: How many writes etcd takes in one transaction (``--max-txn-ops``).
_AT_ONCE = 128
#: The scheduler's own default.
BACKOFF_SECONDS = 10
#: Everything here lives for minutes on a busy machine: a heap may grow fivefold before Go collects its garbage, which
#: takes a quarter less of the processor, and a third more of memory.
_GO = {"GOGC": "400"}
#: What the API server serves and the scheduler heeds beside their defaults: PodGroups, which are alpha in 1.36.
_GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
#: The profile of the scheduler that spreads over zones what asks for no spread.
SPREADING = "spreading"
#: How the scheduler prefers nodes: those with the most room, which is its default, or those with the least.
LEAST_ALLOCATED, MOST_ALLOCATED = "LeastAllocated", "MostAllocated"


@dataclass(frozen=True)
class User:
    """A user of the API server. The name is the token as well. The group ``system:masters`` is allowed everything."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        return f"{self.name}-token"


ADMIN = User("admin", ("system:masters",))
#: The doors, by the names of their functions.
DOORS = {door.lower(): User(f"joinery-{door.lower()}", groups_of(door)) for door in IN_CLUSTER}
#: Whoever may what any door may.
JOINERY = User("joinery", tuple(sorted({group for door in DOORS.values() for group in door.groups})))
KUBELET = User("kubelet", ("system:masters",))
USERS = (ADMIN, JOINERY, *DOORS.values(), KUBELET)


@dataclass
class ControlPlane:
    """A running control plane. ``server`` is its URL, ``folder`` holds its logs, data and kubeconfigs."""

    folder: Path
    server: str
    etcd: str
    users: tuple[User, ...]
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    #: What the API server's process gets beside this process' environment.
    environment: Mapping[str, str] = field(default_factory=dict)
    _commands: dict[str, list[str]] = field(default_factory=dict)

    @property
    def certificate(self) -> Path:
        """The PEM file that a client trusts."""
        return self.folder / "certs" / "apiserver.crt"

    def kubeconfig(self, user: User = ADMIN) -> Path:
        """A kubeconfig file for that user."""
        path = self.folder / f"{user.name}.kubeconfig"
        authority = base64.b64encode(self.certificate.read_bytes()).decode()
        path.write_text(
            "apiVersion: v1\nkind: Config\n"
            f"clusters: [{{name: local, cluster: "
            f"{{server: '{self.server}', certificate-authority-data: {authority}}}}}]\n"
            f"users: [{{name: {user.name}, user: {{token: {user.token}}}}}]\n"
            f"contexts: [{{name: local, context: {{cluster: local, user: {user.name}}}}}]\n"
            "current-context: local\n"
        )
        return path

    def kubectl(self, *arguments: str, user: User = ADMIN, stdin: str = "") -> str:
        """What kubectl prints. Raises ``RuntimeError`` with its complaint."""
        command = [str(binary("kubectl")), "--kubeconfig", str(self.kubeconfig(user)), *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, env={**_GO, **os.environ}
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def run(self, name: str, *flags: object) -> None:
        """Start one more process; its output goes to ``<name>.log``."""
        self._commands[name] = [str(binary(name)), *map(str, flags)]
        self._start(name)

    @contextlib.contextmanager
    def without_api_server(self) -> Iterator[None]:
        """Stop the API server for the length of a ``with``, and start it again with what etcd holds."""
        name = "kube-apiserver"
        process = self.processes.pop(name)
        process.terminate()
        process.wait()
        try:
            yield
        finally:
            self._start(name)
            self.wait(f"{self.server}/readyz")

    def compact(self) -> None:
        """Let etcd forget every revision before this one, as kube-apiserver asks it to every five minutes."""
        revision = self._ask_etcd("range", {"key": _base64(b"/")})["header"]["revision"]
        with contextlib.suppress(urllib.error.HTTPError):  # compacted already
            self._ask_etcd("compaction", {"revision": revision, "physical": True})

    def store(self, documents: Mapping[str, Mapping[str, Any]]) -> None:
        """Put objects straight into etcd, by key: thousands a second, and nobody looks at them first."""
        pairs = [(_base64(key.encode()), _base64(json.dumps(documents[key]).encode())) for key in documents]
        for start in range(0, len(pairs), _AT_ONCE):
            puts = [{"requestPut": {"key": key, "value": value}} for key, value in pairs[start : start + _AT_ONCE]]
            self._ask_etcd("txn", {"success": puts})

    def _ask_etcd(self, what: str, body: object) -> Any:
        request = urllib.request.Request(f"{self.etcd}/v3/kv/{what}", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            return json.load(answer)

    def _start(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            environment = {**_GO, **os.environ, **(self.environment if name == "kube-apiserver" else {})}
            self.processes[name] = subprocess.Popen(
                self._commands[name], stdout=log, stderr=subprocess.STDOUT, env=environment
            )

    def wait(self, url: str) -> None:
        """Return when that URL answers 200. Raises ``RuntimeError`` when a process died or a minute has passed."""
        deadline = time.monotonic() + START_SECONDS
        while not _answers(url, self.users[0].token):
            dead = [name for name, process in self.processes.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise RuntimeError(
                    f"the control plane did not start ({', '.join(dead) or url}): see {self.folder}/*.log"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """End every process, last started first."""
        for process in reversed(self.processes.values()):
            process.terminate()
            process.wait()
        self.processes.clear()


@contextlib.contextmanager
def running(
    folder: Path,
    *,
    schedules: bool = True,
    controls: bool = True,
    users: Sequence[User] = USERS,
    backoff_seconds: int = BACKOFF_SECONDS,
    scoring: str = LEAST_ALLOCATED,
    flags: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[ControlPlane]:
    """A control plane for the length of a ``with``: with or without its scheduler and controller-manager.

    ``folder`` must be empty or absent. The first user must be an administrator. ``backoff_seconds``: how long the
    scheduler leaves a pod alone, at most, after it did not fit. ``scoring``: the strategy by which its
    NodeResourcesFit plugin prefers nodes, LeastAllocated or MostAllocated. ``flags`` and ``environment``: more for the
    API server. Raises ``MissingBinaryError``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    api, etcd, peer = free_ports(3)
    plane = ControlPlane(
        folder, f"https://127.0.0.1:{api}", f"http://127.0.0.1:{etcd}", tuple(users), environment=environment or {}
    )
    try:
        _start_api(plane, peer, flags)
        if schedules:
            _start_scheduler(plane, backoff_seconds, scoring)
        if controls:
            _start_controllers(plane)
        yield plane
    finally:
        plane.stop()


def _start_api(plane: ControlPlane, peer: int, flags: Sequence[str]) -> None:
    key, tokens = plane.folder / "service-account.key", plane.folder / "tokens.csv"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    lines = [f'{user.token},{user.name},{user.name},"{",".join(user.groups)}"\n' for user in plane.users]
    tokens.write_text("".join(lines))
    plane.run(
        "etcd", "--data-dir", plane.folder / "etcd", "--unsafe-no-fsync", "--log-level=warn",
        f"--listen-client-urls={plane.etcd}", f"--advertise-client-urls={plane.etcd}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
    )  # fmt: skip
    plane.run(
        "kube-apiserver", f"--etcd-servers={plane.etcd}", "--cert-dir", plane.folder / "certs",
        "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
        f"--secure-port={plane.server.rpartition(':')[2]}",
        "--service-cluster-ip-range=10.0.0.0/24", f"--service-account-issuer={plane.server}",
        "--service-account-key-file", key, "--service-account-signing-key-file", key,
        "--token-auth-file", tokens, "--authorization-mode=RBAC", "--allow-privileged=true",
        # Without kubelets nobody mounts a service account's token, so pods need not have one.
        "--disable-admission-plugins=ServiceAccount",
        _GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true", *flags,
    )  # fmt: skip
    plane.wait(f"{plane.server}/readyz")
    plane.wait(f"{plane.server}/api/v1/namespaces/default")


def _start_scheduler(plane: ControlPlane, backoff_seconds: int, scoring: str) -> None:
    port, config = free_ports(1)[0], plane.folder / "kube-scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"clientConnection: {{kubeconfig: '{plane.kubeconfig()}', qps: 1000, burst: 2000}}\n"
        f"leaderElection: {{leaderElect: false}}\npodMaxBackoffSeconds: {backoff_seconds}\n"
        "profiles: [{schedulerName: default-scheduler, pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: "
        f"{{type: {scoring}, resources: [{{name: cpu, weight: 1}}, {{name: memory, weight: 1}}]}}}}}}]}},\n"
        f"  {{schedulerName: {SPREADING}, pluginConfig: [{{name: PodTopologySpread, args: {{defaultingType: List, "
        "defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, "
        "whenUnsatisfiable: DoNotSchedule}]}}]}]\n"
    )
    plane.run("kube-scheduler", "--config", config, f"--secure-port={port}", _GATES)
    plane.wait(f"https://127.0.0.1:{port}/readyz")


def _start_controllers(plane: ControlPlane) -> None:
    port = free_ports(1)[0]
    plane.run(
        "kube-controller-manager", "--kubeconfig", plane.kubeconfig(), f"--secure-port={port}", *_FAST,
        "--service-account-private-key-file", plane.folder / "service-account.key",
        # Nodes here have no kubelet that renews a heartbeat: without these controllers they stay as a test says.
        # Admission still taints every new node node.kubernetes.io/not-ready, and whoever plays the kubelet takes that
        # taint off.
        "--controllers=*,-node-lifecycle-controller,-node-ipam-controller,-taint-eviction-controller",
    )  # fmt: skip
    plane.wait(f"https://127.0.0.1:{port}/healthz")


_FAST = ("--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000")


def _base64(text: bytes) -> str:
    return base64.b64encode(text).decode()


def _answers(url: str, token: str) -> bool:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    # Ready or not is all that is asked here, before the certificate exists.
    unverified = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(request, context=unverified, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]
