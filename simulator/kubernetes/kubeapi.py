"""The part of the Kubernetes API that Joinery's adapter uses, over an in-memory cluster.

``KubernetesApi.answer`` is the API without the network: method, path, query and body in, status code and document out.
It knows lists in pages, watches, single objects, creation, JSON merge patches, the status subresource, deletion with
preconditions and grace, eviction, Leases and Events. There is no discovery, no strategic merge and no authentication.
A watch ends after what is there, with a bookmark (``simulator.kubernetes.journal``).
"""

import json
import re
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from joinery.gateways.kubernetes.gateway import Event, Eviction
from joinery.objects.errors import ConfigurationError, ConflictError, JoineryError, NotFoundError
from joinery.objects.karpenter.nodeclaim import NodeClaim
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.journal import ExpiredError, Journal
from simulator.kubernetes.resources import KINDS, Kind, from_document, key, to_document, with_fields
from simulator.kubernetes.shapes import printed

Document = dict[str, Any]
_PATH = re.compile(
    r"^/(?:api|apis)/(?P<version>(?:[a-z0-9.-]+/)?v1(?:(?:alpha|beta)\d)?)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[a-z0-9]+)(?:/(?P<name>[^/]+))?(?:/(?P<part>[a-z]+))?$"
)
_KINDS = {(kind.api_version, kind.plural): kind for kind in KINDS.values()}
_CODES = {NotFoundError: (404, "NotFound"), ConflictError: (409, "Conflict"), ConfigurationError: (422, "Invalid")}
_EVENTS = "events.k8s.io/v1"


class KubernetesApi:
    """Requests against one cluster, one at a time. ``requests`` records them: method and path."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self.cluster = cluster
        self.requests: list[tuple[str, str]] = []
        self._event_names: set[str] = set()
        self._journals: dict[str, Journal] = {}
        #: Lists of which pages are still to come, by kind and version: the version, and the objects by key.
        self._begun: dict[tuple[str, str], tuple[int, Mapping[str, Document]]] = {}
        self._lock = threading.Lock()

    def answer(self, method: str, target: str, body: Document) -> tuple[int, Document]:
        """The status code and the document: the object, a list of them, or a Status that says why not."""
        url = urlsplit(target)
        with self._lock:
            self.requests.append((method, url.path))
            try:
                return self._route(method, url.path, dict(parse_qsl(url.query)), body)
            except JoineryError as error:
                return _refusal(*_CODES.get(type(error), (500, "InternalError")), str(error))
            except ValueError as error:
                return _refusal(422, "Invalid", str(error))

    def watch(self, target: str) -> tuple[int, list[Document]]:
        """The status code of a watch, and its events: what has changed since its resource version, and a bookmark."""
        url = urlsplit(target)
        match = _PATH.match(url.path)
        with self._lock:
            self.requests.append(("WATCH", url.path))
            if match is None:
                return 404, [_refusal(404, "NotFound", f"the simulated API server has no {url.path}")[1]]
            kind = self._kind(match["version"], match["plural"])
            version, _ = self._look(kind)
            try:
                events = self._journals[kind.name].since(int(dict(parse_qsl(url.query))["resourceVersion"]))
            except ExpiredError as error:
                return 410, [_refusal(410, "Expired", str(error))[1]]
        metadata = {"resourceVersion": str(version)}
        bookmark = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
        return 200, [*events, {"type": "BOOKMARK", "object": bookmark}]

    def _route(self, method: str, path: str, query: Mapping[str, str], body: Document) -> tuple[int, Document]:
        match = _PATH.match(path)
        if match is None:
            raise NotFoundError(f"the simulated API server has no {path}")
        version, namespace, plural, name, part = match.groups(default="")
        if (version, plural) == (_EVENTS, "events"):
            return 201, self._create_event(body)
        kind = self._kind(version, plural)
        if part == "eviction":
            return self._evict(key(kind.name, namespace, name), body)
        if not name:
            return self._collection(method, kind, namespace, query, body)
        return self._object(method, kind, (namespace, name, part), body)

    def _kind(self, version: str, plural: str) -> Kind:
        kind = _KINDS.get((version, plural))
        if kind is None:
            raise NotFoundError(f"the simulated API server has no {plural} of {version}")
        return kind

    def _collection(
        self, method: str, kind: Kind, namespace: str, query: Mapping[str, str], body: Document
    ) -> tuple[int, Document]:
        if method == "POST":
            return 201, self._create(kind, namespace, body, dry_run="dryRun" in query)
        return 200, self._list(kind, namespace, query)

    def _object(self, method: str, kind: Kind, where: tuple[str, str, str], body: Document) -> tuple[int, Document]:
        namespace, name, part = where
        place = key(kind.name, namespace, name)
        if method == "PATCH":
            return 200, self._patch(kind, place, body, part)
        if method == "DELETE":
            return 200, self._delete(kind, place, body)
        return 200, self._get(kind, place)

    # --- reading --------------------------------------------------------------------------------------------------

    def _get(self, kind: Kind, place: str) -> Document:
        return _typed(kind, self.cluster.document(kind.name, place))

    def _list(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> Document:
        begun, _, place = query.get("continue", "").partition(".")
        version, stored = self._begun.get((kind.name, begun)) or self._look(kind)
        prefix = f"{namespace}/" if namespace else ""
        names = [name for name in stored if name.startswith(prefix)]
        start, size = int(place or 0), int(query.get("limit", "0")) or len(names)
        rest = len(names) - start - size
        more = {"continue": f"{version}.{start + size}", "remainingItemCount": rest} if rest > 0 else {}
        if more:
            # The next page is of the same moment. One list of a kind is remembered, if only its newest.
            self._begun = {at: seen for at, seen in self._begun.items() if at[0] != kind.name}
            self._begun[kind.name, str(version)] = version, stored
        return {
            "kind": f"{kind.name}List",
            "apiVersion": kind.api_version,
            "metadata": {"resourceVersion": str(version), **more},
            "items": [stored[name] for name in names[start : start + size]],
        }

    def _look(self, kind: Kind) -> tuple[int, Mapping[str, Document]]:
        """The kind's newest version, and its objects by key."""
        journal = self._journals.setdefault(kind.name, Journal(self.cluster.api.advance))
        now = int(self.cluster.api.resource_version)
        return journal.look(now, {name: self._item(kind, name) for name in self._names(kind)})

    def _names(self, kind: Kind) -> list[str]:
        return [*sorted(self.cluster.api.objects(kind.name)), *self._unparsed(kind)]

    def _item(self, kind: Kind, name: str) -> Document:
        if kind.name == "PodDisruptionBudget":
            return _typed(kind, to_document(self.cluster.disruption_budgets[name]))
        return self._get(kind, name)

    def _unparsed(self, kind: Kind) -> Iterable[str]:
        return [invalid.name for invalid in self.cluster.snapshot().invalid if invalid.kind == kind.name]

    # --- writing --------------------------------------------------------------------------------------------------

    def _create(self, kind: Kind, namespace: str, body: Document, *, dry_run: bool) -> Document:
        item = from_document(kind.name, {**body, "metadata": {**body["metadata"], "namespace": namespace}})
        if hasattr(item, "status"):
            # What was sent as status is dropped: it has a subresource of its own.
            item = with_fields(item, status=type(item.status)())
        if isinstance(item, NodeClaim):
            return _typed(kind, to_document(self.cluster.create_node_claim(item, dry_run=dry_run)))
        return _typed(kind, to_document(self.cluster.api.create(item)))

    def _patch(self, kind: Kind, place: str, body: Document | list[Document], part: str) -> Document:
        before = self.cluster.document(kind.name, place)
        body = _merge_patch(before, body) if isinstance(body, list) else body
        guard = body.get("metadata", {})
        if guard.get("uid", before["metadata"].get("uid")) != before["metadata"].get("uid"):
            raise ConfigurationError(f"{kind.name} {place} is invalid: metadata.uid: field is immutable")
        # Through the main path everything but status, through /status nothing but it.
        wanted = {"status": body.get("status", {})} if part == "status" else {**body, "status": {}}
        after = merged(before, wanted)
        if place in self._unparsed(kind):
            before.update(after)
            return _typed(kind, before)
        item = self.cluster.api.update(from_document(kind.name, after), version=guard.get("resourceVersion", ""))
        return _typed(kind, to_document(item))

    def _delete(self, kind: Kind, place: str, body: Document) -> Document:
        item = self.cluster.api.get(kind.name, place)
        _check_uid(place, body.get("preconditions", {}).get("uid"), to_document(item))
        if kind.name == "Pod":
            self.cluster.delete_pod(item, grace_seconds=int(body.get("gracePeriodSeconds", 30)))
        else:
            self.cluster.api.delete(item)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def _evict(self, place: str, body: Document) -> tuple[int, Document]:
        pod = self.cluster.api.get("Pod", place)
        _check_uid(place, body.get("deleteOptions", {}).get("preconditions", {}).get("uid"), to_document(pod))
        if self.cluster.evict(pod) is Eviction.BLOCKED:
            code, status = _refusal(
                429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget."
            )
            return code, {**status, "details": {"causes": [{"reason": "DisruptionBudget"}]}}
        return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def _create_event(self, body: Document) -> Document:
        name, about = f"{body['metadata']['namespace']}/{body['metadata']['name']}", body.get("regarding", {})
        if name in self._event_names:
            raise ConflictError(f'events.events.k8s.io "{name}" already exists')
        self._event_names.add(name)
        event = Event(
            reason=body["reason"], message=body.get("note", ""), kind=about.get("kind", ""), name=about.get("name", ""),
            uid=about.get("uid", ""), namespace=about.get("namespace", ""), api_version=about.get("apiVersion", "v1"),
            warning=body.get("type") == "Warning",
        )  # fmt: skip
        self.cluster.emit(event, reporter=body.get("reportingController", ""))
        return body


def merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch applied (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def _check_uid(place: str, wanted: str | None, document: Document) -> None:
    stored = document["metadata"].get("uid", "")
    if wanted and wanted != stored:
        raise ConflictError(f"{place}: the UID in the precondition ({wanted}) is not the UID of the object ({stored})")


def _merge_patch(before: Document, operations: list[Document]) -> Document:
    """What a JSON patch (RFC 6902) of additions and replacements does to the object, as a merge patch."""
    patch: Document = {}
    for operation in operations:
        *parents, last = operation["path"].strip("/").split("/")
        inside, there = patch, before
        for name in parents[:-1] if last == "-" else parents:
            inside, there = inside.setdefault(name, {}), there.get(name, {})
        if last == "-":
            inside[parents[-1]] = [*there[parents[-1]], operation["value"]]
        else:
            inside[last] = operation["value"]
    return patch


def _typed(kind: Kind, document: Document) -> Document:
    metadata = {"resourceVersion": "1", **document["metadata"]}
    return {"apiVersion": kind.api_version, "kind": kind.name, **printed(kind.name, {**document, "metadata": metadata})}


def _refusal(code: int, reason: str, message: str) -> tuple[int, Document]:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return code, {**status, "code": code}


class KubernetesServer:
    """The API over HTTP, served by threads.

    ``port`` 0 takes a free one. A context manager: it serves inside the ``with``.
    """

    def __init__(self, cluster: InMemoryCluster, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.api = KubernetesApi(cluster)
        self._server = ThreadingHTTPServer((host, port), _handler(self.api))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> "KubernetesServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(api: KubernetesApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps connections, as the API server does
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "watch=1" in self.path:
                code, documents = api.watch(self.path)
            else:
                code, document = api.answer(self.command, self.path, json.loads(body) if body else {})
                documents = [document]
            payload = "".join(json.dumps(each) + "\n" for each in documents).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Requests are recorded, not printed."""

    return Handler
