"""EKS for some clusters: its API, and the authenticator of each that the API server asks who a token is of.

An EKS token is a presigned GetCallerIdentity request (aws-iam-authenticator, "API Authorization from Outside a
Cluster"). The authenticator sends it to STS, as EKS does, and answers with user and groups of the access entry of the
role that STS names. So a signature that is wrong or a role without an entry is refused.
"""

import base64
import json
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tools.controlplane.https import Answer, Call

TOKEN_PREFIX = "k8s-aws-v1."
#: The access policies that let their role do everything in a cluster (EKS User Guide, "Review access policy
#: permissions"). Others give no rights here.
ADMINISTRATOR = "AmazonEKSClusterAdminPolicy"
_ARN = re.compile(r"<Arn>arn:aws:sts::(\d+):assumed-role/([^/<]+)/[^<]*</Arn>")
Json = dict[str, Any]


@dataclass
class Entry:
    """An access entry. ``policies``: the ARNs of its access policies."""

    principal: str
    groups: list[str]
    kind: str
    policies: list[str] = field(default_factory=list)

    def document(self, cluster: str) -> Json:
        return {
            "clusterName": cluster,
            "principalArn": self.principal,
            "kubernetesGroups": self.groups,
            "username": self.principal,
            "type": self.kind,
            "accessEntryArn": f"{self.principal}-entry",
            "tags": {},
        }


@dataclass
class Cluster:
    """What EKS knows. ``description``: what DescribeCluster says of it."""

    name: str
    description: Json = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    def entry_of(self, role: str) -> Entry | None:
        """The entry of a role, by the last part of its ARN: STS leaves out a role's path."""
        return next((e for e in self.entries.values() if e.principal.rpartition("/")[2] == role), None)


class Authenticator:
    """Answers TokenReviews. ``sts``: where GetCallerIdentity is answered."""

    def __init__(self, cluster: Cluster, sts: str) -> None:
        self._cluster = cluster
        self._sts = sts

    def __call__(self, call: Call) -> Answer:
        review = json.loads(call.body)
        return 200, json.dumps({**review, "status": self._status(review["spec"]["token"])}).encode()

    def _status(self, token: str) -> Json:
        role = self._role(token)
        entry = self._cluster.entry_of(role) if role else None
        if entry is None:
            return {"authenticated": False, "error": f"{role or 'a token that STS refuses'} has no access entry"}
        is_administrator = any(policy.endswith(f"/{ADMINISTRATOR}") for policy in entry.policies)
        groups = [*entry.groups, *(["system:masters"] if is_administrator else [])]
        return {"authenticated": True, "user": {"username": entry.principal, "groups": groups}}

    def _role(self, token: str) -> str:
        """The name of the role that signed, or nothing."""
        if not token.startswith(TOKEN_PREFIX):
            return ""
        encoded = token.removeprefix(TOKEN_PREFIX)
        url = urllib.parse.urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
        request = urllib.request.Request(f"{self._sts}{url.path}?{url.query}")
        request.add_header("Host", url.netloc)
        request.add_header("x-k8s-aws-id", self._cluster.name)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                identity = _ARN.search(answer.read().decode())
        except urllib.error.HTTPError:
            return ""
        return identity.group(2) if identity else ""


@contextmanager
def eks(*clusters: Cluster) -> Iterator[str]:
    """EKS's API inside the ``with``. Its address, for ``AWS_ENDPOINT_URL_EKS``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler({one.name: one for one in clusters}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer(clusters: Mapping[str, Cluster], method: str, path: str, body: Mapping[str, Any]) -> tuple[int, Json]:
    """EKS's answer to a request: ListClusters, DescribeCluster, access entries and their access policies."""
    parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
    if parts == ["clusters"]:
        return 200, {"clusters": sorted(clusters)}
    cluster = clusters.get(parts[1]) if parts[0] == "clusters" else None
    if cluster is None:
        return _missing(f"No cluster found for name: {parts[1] if len(parts) > 1 else ''}.")
    match method, parts[2:]:
        case "GET", []:
            return 200, {"cluster": cluster.description}
        case "GET", ["access-entries"]:
            return 200, {"accessEntries": sorted(cluster.entries)}
        case "POST", ["access-entries"]:
            return _create(cluster, body)
        case _, ["access-entries", principal, *rest] if principal in cluster.entries:
            return _about_entry(cluster, cluster.entries[principal], method, rest, body)
    return _missing(f"The specified principalArn could not be found: {'/'.join(parts[3:])}")


def _create(cluster: Cluster, body: Mapping[str, Any]) -> tuple[int, Json]:
    principal = body["principalArn"]
    if principal in cluster.entries:
        return 409, _error("ResourceInUseException", f"The specified access entry {principal} already exists.")
    entry = Entry(principal, list(body.get("kubernetesGroups", ())), body.get("type", "STANDARD"))
    cluster.entries[principal] = entry
    return 200, {"accessEntry": entry.document(cluster.name)}


def _about_entry(
    cluster: Cluster, entry: Entry, method: str, rest: list[str], body: Mapping[str, Any]
) -> tuple[int, Json]:
    match method, rest:
        case "GET", []:
            return 200, {"accessEntry": entry.document(cluster.name)}
        case "DELETE", []:
            del cluster.entries[entry.principal]
            return 200, {}
        case "POST", []:
            entry.groups = list(body.get("kubernetesGroups", entry.groups))
            return 200, {"accessEntry": entry.document(cluster.name)}
        case "GET", ["access-policies"]:
            return 200, {"associatedAccessPolicies": [{"policyArn": policy} for policy in entry.policies]}
        case "POST", ["access-policies"]:
            entry.policies = sorted({*entry.policies, body["policyArn"]})
            return 200, {"associatedAccessPolicy": {"policyArn": body["policyArn"]}}
        case "DELETE", ["access-policies", policy]:
            entry.policies = [name for name in entry.policies if name != policy]
            return 200, {}
    return _missing(f"{method} {'/'.join(rest)}")


def _missing(message: str) -> tuple[int, Json]:
    return 404, _error("ResourceNotFoundException", message)


def _error(code: str, message: str) -> Json:
    return {"__type": code, "message": message}


def _handler(clusters: Mapping[str, Cluster]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            code, document = answer(clusters, self.command, self.path.partition("?")[0], body)
            payload = json.dumps(document).encode()
            self.send_response(code)
            if "__type" in document:
                self.send_header("x-amzn-errortype", document["__type"])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    return Handler
