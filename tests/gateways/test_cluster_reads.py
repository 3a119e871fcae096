"""Several kinds are read side by side, and one that waits for another waits for no more than it gets."""

import queue
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import pytest

from joinery.gateways.kubernetes.connection import connection
from joinery.gateways.kubernetes.lists import NODE_CLAIMS
from joinery.gateways.kubernetes.reads import Reads
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.errors import DeniedError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from tests.gateways.scripted import Script, page, refuses, scripted

PATIENCE = 20.0


def _read(script: Script, *fields: str) -> Mapping[str, Any]:
    """What a read gives. One that never ends is a failure, not a test that never ends."""
    reads = Reads(script.transport, [NODE_CLAIMS], EC2NodeClass.identity().group)
    answers: queue.Queue[Mapping[str, Any] | Exception] = queue.Queue()

    def ask() -> None:
        try:
            answers.put(reads.read(fields))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    answer = answers.get(timeout=PATIENCE)
    if isinstance(answer, Exception):
        raise answer
    return answer


def test_pods_may_be_read_without_nodes() -> None:
    """They wait for the nodes of the same read, and there are none in this one."""
    with scripted(page("web")) as script:
        assert [pod.metadata.name for pod in _read(script, "pods")["pods"]] == ["web"]


@pytest.mark.parametrize("fields", [("nodes", "pods"), ("pods", "nodes")])
def test_pods_are_read_after_nodes_in_whichever_order_they_are_asked_for(fields: Sequence[str]) -> None:
    """Otherwise a pod that is bound in between would count as pending, and its room as free."""
    with scripted(page("one")) as script:
        assert list(_read(script, *fields)) == [*fields, "invalid"]
        assert [line.split("?")[0] for line in script.asked] == ["GET /api/v1/nodes", "GET /api/v1/pods"]


def test_pods_do_not_wait_for_nodes_that_cannot_be_read() -> None:
    """Whoever waits for them gets the same error."""
    with scripted(refuses(403, "no")) as script, pytest.raises(DeniedError, match="nodes"):
        _read(script, "pods", "nodes")


def test_kinds_are_read_in_the_context_of_the_run_that_asks() -> None:
    """A line of the log about one of them names the run's cluster and mode, whichever thread has read it."""
    run = ContextVar("run", default="none")
    runs: list[str] = []

    def token() -> str:
        runs.append(run.get())
        return "Bearer a"

    with scripted(page("one")) as script:
        transport = Transport(connection(script.url, authorization=token))
        run.set("green")
        Reads(transport, [NODE_CLAIMS], EC2NodeClass.identity().group).read(("nodes", "pods"))
    assert runs == ["green", "green"]
