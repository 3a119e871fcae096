"""What the Kubernetes adapter does about a network and an API server that are not at their best.

The simulator's cluster never throttles, restarts or forgets. Here the adapter meets answers recorded from API servers,
over real HTTP, from a server that gives them out in order.
"""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from joinery.gateways.kubernetes import lists
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.api_errors import Response
from joinery.gateways.kubernetes.connection import connection
from joinery.gateways.kubernetes.events import KubernetesRecorder
from joinery.gateways.kubernetes.gateway import Event, Eviction
from joinery.gateways.kubernetes.legacy import LegacyApis
from joinery.gateways.kubernetes.objects import KubernetesObjects
from joinery.gateways.kubernetes.transport import ATTEMPTS, Transport
from joinery.objects.errors import ConfigurationError, UnavailableError, UnreachableError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.kubernetes.core import CSINode, Pod
from simulator import builders
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.kubeapi import KubernetesServer
from tests.gateways.scripted import page, refuses, says, scripted

PODS = "/api/v1/pods"


# --- lists ------------------------------------------------------------------------------------------------------------


def test_ten_thousand_pods_are_read_in_pages_of_five_hundred() -> None:
    """Twenty requests for the pods, none of which the API server has to hold ten thousand objects for."""
    memory = InMemoryCluster(Clock(), *(builders.pod(f"p{number:05}") for number in range(10_000)))
    with KubernetesServer(memory) as server:
        transport = Transport(connection(server.url))
        read = KubernetesCluster(transport, now=memory.clock.now, node_class=EC2NodeClass).snapshot()
        assert len({pod.key for pod in read.pods}) == 10_000
        assert server.api.requests.count(("GET", PODS)) == 20


def test_nodes_are_read_before_pods() -> None:
    """A pod that is bound while the snapshot is taken is read as bound, so no node is launched for it."""
    with KubernetesServer(InMemoryCluster(Clock())) as server:
        KubernetesCluster(Transport(connection(server.url)), now=Clock().now, node_class=EC2NodeClass).snapshot()
        paths = [path for _, path in server.api.requests]
    assert paths.index("/api/v1/nodes") < paths.index(PODS)


@pytest.mark.parametrize("field", ["capacity", "allocatable"])
def test_a_node_with_an_amount_that_is_none_has_no_room_and_is_told(field: str) -> None:
    """The others go on: one kubelet must not stop every decision."""
    memory = InMemoryCluster(Clock(), builders.node("good"))
    odd = builders.node("odd")
    memory.api.create(replace(odd, status=replace(odd.status, **{field: {"cpu": "many"}})))
    with KubernetesServer(memory) as server:
        transport = Transport(connection(server.url))
        seen = KubernetesCluster(transport, now=memory.clock.now, node_class=EC2NodeClass).snapshot()
    room = {view.name: bool(view.allocatable) for view in seen.views}
    assert room == {"good": True, "odd": False}
    assert [(bad.kind, bad.name, bad.reason) for bad in seen.invalid] == [
        ("Node", "odd", f"status.{field}: 'many' is not a quantity")
    ]


def test_a_list_that_grew_too_old_is_read_again() -> None:
    """etcd forgets the version a long list is read at: the adapter starts over and returns every pod once."""
    expired = refuses(410, "The provided continue parameter is too old")
    with scripted(page("a", more="token"), expired, page("a", more="token"), page("b")) as script:
        pods = lists.read(script.transport, PODS, Pod).objects
    assert [pod.metadata.name for pod in pods] == ["a", "b"]


def test_a_list_without_items_is_empty() -> None:
    """Go writes an empty list as null."""
    with scripted(says(200, {"metadata": {}, "items": None})) as script:
        assert lists.read(script.transport, PODS, Pod) == lists.ObjectList(())


CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


def test_a_null_where_a_list_belongs_is_an_empty_list() -> None:
    """Go prints one for the drivers of a CSINode that has none yet: Fargate's,
    Windows', and every node until its first registers.
    """
    items = [
        {"metadata": {"name": "bare"}, "spec": {"drivers": None}},
        {"metadata": {"name": "ebs"}, "spec": {"drivers": [{"name": "e"}]}},
    ]
    with scripted(says(200, {"metadata": {}, "items": items})) as script:
        listed = lists.read(script.transport, CSI_NODES, CSINode)
    assert [(node.metadata.name, len(node.spec.drivers)) for node in listed.objects] == [("bare", 0), ("ebs", 1)]
    assert listed.invalid == ()


def test_an_object_that_cannot_be_read_is_named_and_the_others_go_on() -> None:
    """Whatever a newer API server or an odd object holds, it must not stop every decision."""
    odd = {"metadata": {"name": "odd", "namespace": "shop"}, "spec": {"containers": "many"}}
    with scripted(says(200, {"metadata": {}, "items": [odd, {"metadata": {"name": "a"}}]})) as script:
        listed = lists.read(script.transport, PODS, Pod)
    assert [pod.metadata.name for pod in listed.objects] == ["a"]
    (bad,) = listed.invalid
    assert (bad.kind, bad.name) == ("Pod", "shop/odd")
    assert "$.spec.containers" in bad.reason


def test_an_answer_that_is_no_json_is_no_answer() -> None:
    """Half of one, by its ends: the event source tries again."""
    with scripted((200, {}, b'{"items": [{}}')) as script, pytest.raises(UnavailableError, match="not JSON"):
        lists.read(script.transport, PODS, Pod)


def test_custom_resources_that_are_not_installed_are_named() -> None:
    """A cluster without our definitions is a configuration error, not an empty cluster."""
    with scripted((404, {}, b"404 page not found\n")) as script, pytest.raises(ConfigurationError, match="nodepools"):
        lists.read(script.transport, lists.NODE_POOLS.path, Raw)


def test_a_pool_that_does_not_validate_is_reported_and_the_others_go_on() -> None:
    """One bad NodePool never stops the others."""
    memory = InMemoryCluster(Clock(), builders.node_pool("good"))
    memory.add_document({"kind": "NodePool", "metadata": {"name": "bad"}, "spec": {"template": {"spec": {}}}})
    with KubernetesServer(memory) as server:
        cluster = KubernetesCluster(Transport(connection(server.url)), now=memory.clock.now, node_class=EC2NodeClass)
        read = cluster.snapshot()
        cluster.reject("NodePool", "bad", read.invalid[0].reason)

    assert [pool.metadata.name for pool in read.node_pools] == ["good"]
    assert [(invalid.kind, invalid.name) for invalid in read.invalid] == [("NodePool", "bad")]
    assert "nodeClassRef" in read.invalid[0].reason
    told = {
        condition["type"]: condition["status"]
        for condition in memory.document("NodePool", "bad")["status"]["conditions"]
    }
    assert told == {"ValidationSucceeded": "False", "Ready": "False"}


# --- a server that is busy or gone ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_a_read_is_tried_again(code: int) -> None:
    """A busy or restarting API server costs a moment, not the decision."""
    with scripted(refuses(code, "busy"), page("a")) as script:
        assert len(lists.read(script.transport, PODS, Pod).objects) == 1
    assert len(script.waits) == 1


def test_the_server_says_how_long_to_wait() -> None:
    """Retry-After is obeyed, up to a few seconds: a function is paid by the time it runs."""
    busy = [refuses(429, "busy", Retry_After="2"), refuses(429, "busy", Retry_After="600")]
    with scripted(*busy, page()) as script:
        lists.read(script.transport, PODS, Pod)
    assert script.waits == [2.0, 5.0]


def test_a_server_that_stays_down_is_unavailable() -> None:
    """After a few attempts the error is raised, and the event source tries again."""
    with scripted(refuses(503, "etcd is down")) as script, pytest.raises(UnavailableError, match="etcd is down"):
        script.cluster.snapshot()
    assert len([asked for asked in script.asked if "/nodes" in asked]) == ATTEMPTS


def test_a_write_is_not_repeated_when_it_may_have_happened() -> None:
    """A 500 leaves open whether the claim was stored: a second one would be a conflict with ourselves."""
    with scripted(refuses(500, "timeout")) as script, pytest.raises(UnavailableError):
        script.cluster.create_node_claim(builders.node_claim())
    assert len(script.asked) == 1


def test_a_write_that_was_turned_away_is_repeated() -> None:
    """429 with Retry-After says that nobody looked at the request."""
    stored = {"metadata": {"name": "c"}, "spec": {"nodeClassRef": {"name": "default"}}}
    with scripted(refuses(429, "queue is full", Retry_After="1"), says(201, stored)) as script:
        script.cluster.create_node_claim(builders.node_claim())
    assert len(script.asked) == 2


def test_a_server_that_nobody_answers_for_is_unavailable() -> None:
    """A refused connection is one of our errors, never urllib3's."""
    transport = Transport(connection("http://127.0.0.1:9"), sleep=lambda _: None)
    with pytest.raises(UnreachableError, match="/api/v1/pods"):
        transport.get(PODS)


def test_a_proxy_s_page_is_not_quoted() -> None:
    """A body that is not a Status says nothing about Kubernetes and may say too much: only its code is kept."""
    with scripted((403, {}, b"<html>secret</html>")) as script, pytest.raises(UnavailableError) as caught:
        script.transport.get(PODS)
    assert "HTTP 403" in str(caught.value)
    assert "secret" not in str(caught.value)


_NO_OBJECTS = (b"", b"<html>log in</html>", b"null", b"[]", b'{"metadata": {"na')


@pytest.mark.parametrize("body", _NO_OBJECTS)
@pytest.mark.parametrize(
    "ask",
    [
        lambda cluster: cluster.node("n"),
        lambda cluster: cluster.node_claim("c"),
        lambda cluster: cluster.create_node_claim(builders.node_claim()),
        lambda cluster: cluster.evict(builders.pod(node="n")),
        lambda cluster: cluster.acquire_lease("l", holder="h", seconds=9),
    ],
    ids=["node", "node_claim", "create_node_claim", "evict", "acquire_lease"],
)
def test_what_is_no_object_is_nobody_s_word(ask: Callable[[KubernetesCluster], object], body: bytes) -> None:
    """A proxy answers in the API server's place, with 200: nothing was read, and no pod was evicted."""
    answer: tuple[int, dict[str, str], bytes] = (200, {}, body)
    with (
        scripted(*[answer] * ATTEMPTS) as script,
        pytest.raises(UnavailableError, match="no JSON object|HTTP 200") as caught,
    ):
        ask(script.cluster)
    assert "log in" not in str(caught.value)


_ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "joinery"}}


@pytest.mark.parametrize("body", _NO_OBJECTS)
@pytest.mark.parametrize(
    "ask",
    [
        lambda transport: lists.read(transport, PODS, Pod),
        lambda transport: LegacyApis(transport, EC2NodeClass).served(),
        lambda transport: KubernetesObjects(transport).is_administrator(),
        lambda transport: KubernetesObjects(transport).apply(_ROLE),
        lambda transport: KubernetesObjects(transport).create(_ROLE),
    ],
    ids=["list", "older APIs", "rights", "apply", "create"],
)
def test_what_is_no_object_is_no_list_and_no_installation(ask: Callable[[Transport], object], body: bytes) -> None:
    """The installer would say that a cluster has what it has not."""
    with scripted((200, {}, body)) as script, pytest.raises(UnavailableError, match="no JSON object"):
        ask(script.transport)


# --- evictions and Events ---------------------------------------------------------------------------------------------


def test_more_than_one_budget_blocks_although_the_server_calls_it_an_error() -> None:
    """The eviction API answers 500 for a pod of two budgets; a drain has to wait, not to fail."""
    message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    with scripted(refuses(500, message)) as script:
        assert script.cluster.evict(builders.pod()) is Eviction.BLOCKED
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    ("code", "message", "is_answer"),
    [
        (503, "busy", True),
        (500, "etcdserver: request timed out", False),
        (504, "Timeout: request did not complete", False),
    ],
)
def test_a_server_that_gave_up_waiting_has_not_answered(code: int, message: str, is_answer: bool) -> None:
    """What it was asked for may have been done, and the next request may take as long."""
    with scripted(refuses(code, message)) as script, pytest.raises(UnavailableError) as refused:
        script.cluster.create_node_claim(builders.node_claim())
    assert refused.value.is_answer is is_answer


@pytest.mark.parametrize("code", [429, 403])
def test_a_budget_s_refusal_is_told_by_its_cause(code: int) -> None:
    """403: the budget's controller has too many evictions to confirm, or has not looked at it yet."""
    causes = [{"reason": "DisruptionBudget", "message": "The disruption budget web needs 2 healthy pods and has 2"}]
    status = {"message": "Cannot evict pod", "code": code, "details": {"causes": causes}}
    with scripted(says(code, status)) as script:
        assert script.cluster.evict(builders.pod()) is Eviction.BLOCKED


@pytest.mark.parametrize("body", [b"Too many requests, please try again later.", b'{"message": "busy", "code": 429}'])
def test_an_overloaded_server_is_not_a_budget(body: bytes) -> None:
    """API priority and fairness sheds load with the same code; nobody should look for a budget then."""
    with scripted((429, {"Retry_After": "1"}, body)) as script, pytest.raises(UnavailableError, match="429"):
        script.cluster.evict(builders.pod())
    assert len(script.asked) == 1


def test_any_other_server_error_of_an_eviction_is_raised() -> None:
    """The tick is repeated by whoever sent it."""
    with scripted(refuses(500, "etcd is down")) as script, pytest.raises(UnavailableError):
        script.cluster.evict(builders.pod())


def test_an_event_that_cannot_be_written_is_counted_and_no_more() -> None:
    """The decision stands, whether or not it could be told."""
    with scripted(refuses(403, "events is forbidden")) as script:
        recorder = KubernetesRecorder(script.transport, now=Clock().now)
        recorder.emit([Event("Launched", "m", "Node", "n1"), Event("Registered", "m", "Node", "n1")])
    assert recorder.failures == 2


def test_a_long_message_is_cut_to_what_an_event_may_hold() -> None:
    """The API server takes 1024 bytes of note and refuses more."""
    memory = InMemoryCluster(Clock())
    with KubernetesServer(memory) as server:
        transport = Transport(connection(server.url))
        KubernetesRecorder(transport, now=Clock().now).emit([Event("Failed", "ä" * 2000, "Node", "n1")])
    assert len(memory.events[0].message.encode()) == 1024


# --- a cold start -----------------------------------------------------------------------------------------------------


def test_the_adapter_does_without_the_official_client() -> None:
    """No layer has it: it is 75 MB, and importing the part that was used of it took as long as all of urllib3."""
    code = (
        "import sys; sys.modules['kubernetes'] = None\n"
        "from joinery.gateways.kubernetes.connection import connection\n"
        "from joinery.gateways.kubernetes.transport import Transport\n"
        "Transport(connection('https://x'))\n"
        "print(*({'requests', 'yaml', 'oauthlib', 'multiprocessing'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


class _Silent(Transport):
    """Requests to a server that gives its nodes and answers nothing else."""

    def __init__(self) -> None:
        super().__init__(connection("http://127.0.0.1:9"))
        self.waiting = threading.Barrier(len(lists.CORE) + 2, timeout=10)

    def apart(self) -> Transport:
        """The same."""
        return self

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        """Raises ``UnavailableError`` for whatever is not nodes."""
        if path.startswith("/api/v1/nodes"):
            return Response(200, b'{"items": []}')
        self.waiting.wait()
        raise UnavailableError(f"{method} {path}: read timed out")


def test_lists_that_are_not_answered_wait_side_by_side() -> None:
    """A dozen lists that each wait for their time in turn would outlast the function."""
    with pytest.raises(UnavailableError, match="timed out"):
        KubernetesCluster(_Silent(), now=Clock().now, node_class=EC2NodeClass).snapshot()


def test_a_server_that_hangs_is_given_up_in_time() -> None:
    """All attempts together take no longer than a request may: the function must live to ring again."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"http://127.0.0.1:{silent.getsockname()[1]}"
        transport = Transport(connection(host), sleep=lambda _: None, patience=0.2)
        before = time.monotonic()
        with pytest.raises(UnreachableError, match="ReadTimeout"):
            transport.request("PATCH", PODS, {})
        assert time.monotonic() - before < 5


def test_nothing_is_tried_again_when_the_time_is_over() -> None:
    """Two answers of a busy server, a wait that would be too long, and the refusal is the answer."""
    with scripted(refuses(503, "busy")) as script:
        seconds = iter([0.0, 0.0, 1.0, 9.0, 9.9])
        transport = Transport(connection(script.url), sleep=lambda _: None, clock=lambda: next(seconds))
        with pytest.raises(UnavailableError, match="busy"):
            transport.get(PODS)
        assert len(script.asked) == 2
