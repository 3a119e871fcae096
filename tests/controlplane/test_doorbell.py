"""The webhook configuration that users apply, on a real API server: what rings, and what does not.

The door is a local HTTPS server here that counts; what the webhook door makes of a call has tests of its own.
"""

import datetime
import http.server
import ipaddress
import json
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.karpenter.labels import INTERRUPTED_AT, REPORTER
from tests.controlplane.objects import MANIFESTS, connect, install
from tests.unit.objects.karpenter.objects import good
from tools.controlplane.plane import ControlPlane

WEBHOOK = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
EVENTS, CORE_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events", "/api/v1/namespaces/default/events"
POOLS, CLAIMS = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.sh/v1/nodeclaims"
CLASSES, NODES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
PATIENCE_SECONDS = 20


class Door(http.server.BaseHTTPRequestHandler):
    """Allows everything, and remembers what it was asked."""

    reviews: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:  # noqa: N802
        """Answer one AdmissionReview."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reviews.append({"path": self.path, **review["request"]})
        response = {"uid": review["request"]["uid"], "allowed": True}
        body = json.dumps({**review, "response": response, "request": None}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


def certificate(folder: Path) -> tuple[Path, Path]:
    """A key and a certificate of its own for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "door")])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=36500))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    secret = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    (folder / "certificate.pem").write_bytes(signed.public_bytes(encoding))
    return folder / "certificate.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, list[dict[str, Any]]]]:
    """Host and port, the certificate to trust, and the reviews that came."""
    trust, key = certificate(tmp_path_factory.mktemp("door"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trust, key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", trust, Door.reviews
        server.shutdown()


class Bell:
    """The configured API server: write something, see whether it rang."""

    def __init__(self, transport: Transport, reviews: list[dict[str, Any]]) -> None:
        self.transport = transport
        self.reviews = reviews
        self._number = 0

    def rings(self, method: str, path: str, body: Any) -> int:
        """How often the door was called during that request.

        An API server that finds the object changed under its hands begins a patch again and asks again: that is one
        ring.
        """
        before = len(self.reviews)
        self.transport.request(
            method, path, body, content_type=MERGE_PATCH if method == "PATCH" else "application/json"
        )
        asked = self.reviews[before:]
        return len(asked) if method == "POST" else len({(review["kind"]["kind"], review["name"]) for review in asked})

    def name(self) -> str:
        """A name that no other object has."""
        self._number += 1
        return f"rings-{self._number}"

    def remove(self, path: str) -> int:
        """Take an object away, finalizers first, and say how often the deletion rang."""
        self.transport.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
        return self.rings("DELETE", path, None)


def event(name: str, reason: str = "FailedScheduling", **fields: Any) -> dict[str, Any]:
    """An Event as events.k8s.io has it."""
    reporter = {"reportingController": "default-scheduler", "reportingInstance": "a", "action": "Scheduling"}
    about = {"regarding": {"kind": "Pod", "namespace": "default", "name": "p"}, "type": "Warning", "note": "0/1 nodes"}
    moment = {"eventTime": "2026-08-24T08:00:00.000000Z"}
    return {"metadata": {"name": name}, "reason": reason, **reporter, **about, **moment, **fields}


def core_event(name: str, reason: str = "FailedScheduling", **fields: Any) -> dict[str, Any]:
    """An Event as the core API has it."""
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"metadata": {"name": name}, "reason": reason, "involvedObject": about, "type": "Warning", **fields}


@pytest.fixture(scope="module")
def bell(api_server: ControlPlane, door: tuple[str, Path, list[dict[str, Any]]]) -> Iterator[Bell]:
    """manifests/webhook.yaml, with the address of the local door in it."""
    install(api_server, MANIFESTS / "crds")
    host, trust, reviews = door
    document = yaml.safe_load(
        (MANIFESTS / "webhook.yaml").read_text().replace("FUNCTION-URL-HOST/TOKEN", f"{host}/secret")
    )
    for webhook in document["webhooks"]:
        webhook["clientConfig"]["caBundle"] = b64encode(trust.read_bytes()).decode()
    bell = Bell(connect(api_server), reviews)
    bell.transport.request("POST", WEBHOOK, document)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not bell.rings("POST", EVENTS, event(bell.name())):  # the API server learns of it by a watch
            assert time.monotonic() < deadline, "the API server never called"
        yield bell
    finally:
        bell.transport.request("DELETE", f"{WEBHOOK}/joinery")


def test_a_pod_that_fits_nowhere_rings_in_either_api(bell: Bell) -> None:
    """Old and new schedulers report through different APIs; each Event is one call, to the secret path."""
    assert bell.rings("POST", EVENTS, event(bell.name())) == 1
    assert bell.rings("POST", CORE_EVENTS, core_event(bell.name())) == 1
    assert bell.reviews[-1]["path"].partition("?")[0] == "/secret"


def test_a_repeated_failure_rings_again(bell: Bell) -> None:
    """The scheduler updates the Event it wrote: the pod still fits nowhere."""
    name = bell.name()
    bell.rings("POST", EVENTS, event(name))
    series = {"series": {"count": 2, "lastObservedTime": "2026-08-24T08:01:00.000000Z"}}
    assert bell.rings("PATCH", f"{EVENTS}/{name}", series) == 1


@pytest.mark.parametrize("reason", ["Scheduled", "Preempted", "NotTriggerScaleUp"])
def test_other_events_do_not_ring(reason: str, bell: Bell) -> None:
    """The reason is judged inside the API server."""
    assert bell.rings("POST", EVENTS, event(bell.name(), reason)) == 0
    assert bell.rings("POST", CORE_EVENTS, core_event(bell.name(), reason)) == 0


def test_a_pod_at_our_gate_rings_when_it_comes(bell: Bell) -> None:
    """kube-scheduler says nothing of it. Other pods do not ring, nor does what becomes of it."""
    container = {"name": "main", "image": "example.com/main"}
    gates = [{"name": gate} for gate in ("kueue.x-k8s.io/admission", "joinery.dev/on-demand")]
    for count, rings in ((0, 0), (1, 0), (2, 1)):
        name = bell.name()
        spec = {"containers": [container], "schedulingGates": gates[:count]}
        assert bell.rings("POST", PODS, {"metadata": {"name": name}, "spec": spec}) == rings
        assert bell.rings("PATCH", f"{PODS}/{name}", {"metadata": {"labels": {"a": "b"}}}) == 0
        bell.transport.request("DELETE", f"{PODS}/{name}", None)


def test_a_buffer_rings_when_it_comes_and_when_it_asks_for_something_else(bell: Bell) -> None:
    """Its status, labels and end do not."""
    place = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers"
    path = f"{place}/{(name := bell.name())}"
    spec = {"podTemplateRef": {"name": "chunk"}, "replicas": 1}
    kind = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer"}
    assert bell.rings("POST", place, {**kind, "metadata": {"name": name}, "spec": spec}) == 1
    assert bell.rings("PATCH", f"{path}/status", {"status": {"replicas": 1}}) == 0
    assert bell.rings("PATCH", path, {"metadata": {"labels": {"a": "b"}}}) == 0
    assert bell.rings("PATCH", path, {"spec": {"replicas": 2}}) == 1
    assert bell.rings(
        "PATCH", path, {"metadata": {"annotations": {"joinery.dev/buffer-schedule": "from 0 8 * * * for 1h"}}}
    )
    assert bell.rings("DELETE", path, None) == 0


def test_our_own_events_do_not_ring(bell: Bell) -> None:
    """Whichever API and field says that Joinery reported: else every answer would be a question."""
    assert bell.rings("POST", EVENTS, event(bell.name(), reportingController=REPORTER)) == 0
    assert bell.rings("POST", CORE_EVENTS, core_event(bell.name(), source={"component": REPORTER})) == 0
    ours = {"reportingComponent": REPORTER, "reportingInstance": "a", "action": "x"}
    assert (
        bell.rings("POST", CORE_EVENTS, core_event(bell.name(), **ours, eventTime="2026-08-24T08:00:00.000000Z")) == 0
    )


def test_a_node_rings_when_it_comes_turns_ready_is_tainted_and_goes(bell: Bell) -> None:
    """A heartbeat and a label do not."""
    path = f"{NODES}/{(name := bell.name())}"
    ready = {"type": "Ready", "reason": "x", "message": "", "lastHeartbeatTime": "2026-08-24T08:00:00Z"}
    later = {**ready, "lastHeartbeatTime": "2026-08-24T08:05:00Z"}
    assert bell.rings("POST", NODES, {"metadata": {"name": name}}) == 1
    assert bell.rings("PATCH", f"{path}/status", {"status": {"conditions": [{**ready, "status": "False"}]}}) == 1
    assert bell.rings("PATCH", f"{path}/status", {"status": {"conditions": [{**later, "status": "False"}]}}) == 0
    assert bell.rings("PATCH", f"{path}/status", {"status": {"conditions": [{**later, "status": "True"}]}}) == 1
    assert bell.rings("PATCH", f"{path}/status", {"status": {"allocatable": {"cpu": "1"}}}) == 1
    assert bell.rings("PATCH", path, {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}) == 0
    assert bell.rings("PATCH", path, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}) == 1
    assert bell.remove(path) == 1


def test_a_claim_rings_when_it_comes_is_interrupted_and_is_deleted(bell: Bell) -> None:
    """Its status is our own writing, and does not."""
    path = f"{CLAIMS}/{(name := bell.name())}"
    claim = {**good("NodeClaim"), "metadata": {"name": name, "finalizers": ["karpenter.sh/termination"]}}
    condition = {"type": "Launched", "status": "True", "reason": "Launched", "message": ""}
    status = {"conditions": [{**condition, "lastTransitionTime": "2026-08-24T08:00:00Z"}]}
    assert bell.rings("POST", CLAIMS, claim) == 1
    assert bell.rings("PATCH", f"{path}/status", {"status": status}) == 0
    assert bell.rings("PATCH", path, {"metadata": {"labels": {"a": "b"}}}) == 0
    assert bell.rings("PATCH", path, {"metadata": {"annotations": {INTERRUPTED_AT: "2026-08-24T08:00:00Z"}}}) == 1
    assert bell.rings("DELETE", path, None) >= 1
    assert bell.rings("PATCH", path, {"metadata": {"finalizers": None}}) >= 1


@pytest.mark.parametrize(
    ("kind", "path", "change"),
    [("NodePool", POOLS, {"limits": {"cpu": 10}}), ("EC2NodeClass", CLASSES, {"context": "x"})],
)
def test_a_configuration_rings_when_its_spec_or_readiness_changes(
    kind: str, path: str, change: dict[str, Any], bell: Bell
) -> None:
    """Pods that fitted nowhere may fit now; an annotation changes nothing."""
    name = bell.name()
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
    status = {"conditions": [{**ready, "lastTransitionTime": "2026-08-24T08:00:00Z"}]}
    assert bell.rings("POST", path, {**good(kind), "metadata": {"name": name}}) == 1
    assert bell.rings("PATCH", f"{path}/{name}", {"spec": change}) == 1
    assert bell.rings("PATCH", f"{path}/{name}/status", {"status": status}) == 1
    assert bell.rings("PATCH", f"{path}/{name}", {"metadata": {"annotations": {"a": "b"}}}) == 0
    assert bell.remove(f"{path}/{name}") == 1
