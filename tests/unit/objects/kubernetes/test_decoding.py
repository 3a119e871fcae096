"""Whatever may be left out may be null: Go writes one for the other, and so do exporters."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import msgspec
import pytest

from joinery.gateways.kubernetes import lists
from joinery.gateways.kubernetes.api_errors import Status
from joinery.gateways.kubernetes.leases import LeaseObject
from joinery.objects.kubernetes import core
from joinery.objects.kubernetes.decoding import decode

ROOTS = [*(struct for _, _, struct in lists.CORE), lists.Page[core.Pod], LeaseObject, Status]


def fields(struct: Any, outside: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every field of a struct at every depth; ``0`` stands for a member of a list."""
    for field in msgspec.structs.fields(struct):
        path = (*outside, field.encode_name)
        yield path
        if len(path) < 12:
            yield from _inside(field.type, path)


def _inside(kind: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from fields(kind, path)
    elif get_origin(kind) is list:
        yield (*path, "0")
        yield from _inside(get_args(kind)[0], (*path, "0"))
    elif get_origin(kind) is dict and get_args(kind)[1] is not Any:
        yield (*path, "key")
    else:
        for part in get_args(kind):
            yield from _inside(part, path)


def document(path: tuple[str, ...], value: Any) -> Any:
    """A document in which that value stands at the path, and nothing else."""
    for step in reversed(path):
        value = [value] if step == "0" else {step: value}
    return value


@pytest.mark.parametrize("struct", ROOTS, ids=lambda struct: getattr(struct, "__name__", str(struct)))
def test_a_null_is_a_field_left_out_in_every_field_of_every_kind(struct: Any) -> None:
    """At every depth: the same object is read as without it."""
    for path in fields(struct):
        *outside, last = path
        parent: Any = [] if last == "0" else {}
        bare = msgspec.json.encode(document(tuple(outside), parent))
        nulled = msgspec.json.encode(document(path, None))
        assert decode(nulled, struct) == decode(bare, struct), ".".join(path)


def test_what_is_wrong_is_still_refused_with_its_place() -> None:
    """A null beside it does not hide a list that is a text."""
    raw = b'{"spec": {"taints": "none", "providerID": null}}'
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.taints"):
        decode(raw, core.Node)


def test_threads_may_read_kinds_for_the_first_time_together() -> None:
    """A cold start reads its lists side by side. What msgspec has half learned of a struct ended such a process, most
    often where threads change places often.
    """
    program = """
import sys, threading
from joinery.objects.kubernetes import core, decoding, dynamic_resources, workloads
sys.setswitchinterval(1e-6)
kinds = [core.Pod, core.Node, core.DaemonSet, workloads.Workload, dynamic_resources.ResourceClaim] * 2
together = threading.Barrier(len(kinds))
def read(kind):
    together.wait()
    decoding.decode(b'{"metadata": {"name": "a", "ownerReferences": [{"name": "b"}]}}', kind)
threads = [threading.Thread(target=read, args=(kind,)) for kind in kinds]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    assert [subprocess.run([sys.executable, "-c", program]).returncode for _ in range(5)] == [0] * 5
