"""All kinds of a snapshot, read side by side, each by its mirror (``joinery.gateways.kubernetes.mirrors``)."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from joinery.gateways.kubernetes import legacy, lists
from joinery.gateways.kubernetes.lists import ObjectList
from joinery.gateways.kubernetes.mirrors import RELIST_SECONDS, SHORT, CoreKind, CustomKind, Mirror, MirroredKind
from joinery.gateways.kubernetes.transport import Transport
from joinery.gateways.workers import as_here

NODES, PODS = "nodes", "pods"
#: What is bought and what exists: see ``joinery.gateways.kubernetes.mirrors``.
_LISTED_ALWAYS = frozenset({lists.NODE_CLAIMS.field, *legacy.CLAIM_PATHS})


class Reads:
    """Everything that a snapshot holds. Safe to use from several threads, one read after the other.

    ``customs``: the custom resources among it. ``group``: the API group of our cloud's node classes. ``others``: kinds
    that are read only when they are asked for, and that no field of a snapshot is for. ``short``: see
    ``joinery.gateways.kubernetes.mirrors.SHORT``. ``log`` gets a line about objects that an earlier read had
    missed.
    """

    def __init__(
        self,
        transport: Transport,
        customs: Iterable[lists.Custom[Any]],
        group: str,
        *,
        others: Iterable[MirroredKind] = (),
        short: int = SHORT,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._transport, self._short, self._log = transport, short, log
        kinds: list[MirroredKind] = [
            CoreKind(field, path, struct, lists.usable if field == NODES else None)
            for field, path, struct in lists.CORE
        ]
        kinds += [CustomKind(custom, group) for custom in customs]
        self._fields = tuple(kind.field for kind in kinds)
        self._kinds = {kind.field: kind for kind in (*kinds, *others)}
        self._mirrors: dict[str, Mirror] = {}
        self._one_at_a_time = threading.Lock()

    @property
    def bytes_read(self) -> int:
        """What all lists and watches took on the wire so far."""
        return sum(mirror.bytes_read for mirror in self._mirrors.values())

    @property
    def fields(self) -> tuple[str, ...]:
        """The kinds of a snapshot, by its fields."""
        return self._fields

    def read(self, fields: Iterable[str]) -> dict[str, Any]:
        """These kinds as they are now: the values of their fields, and ``invalid``. Raises as ``lists.read`` does."""
        with self._one_at_a_time:
            read = self._read([self._mirror(field) for field in fields])
        objects = {field: listed.objects for field, listed in read.items()}
        return objects | {"invalid": tuple(bad for listed in read.values() for bad in listed.invalid)}

    def unserved(self, fields: Iterable[str]) -> frozenset[str]:
        """Which of these kinds the cluster did not have, or did not let us list, when they were read last."""
        return frozenset(field for field in fields if not self._mirror(field).is_served)

    def _read(self, mirrors: list[Mirror]) -> Mapping[str, ObjectList]:
        oldest = max(mirrors, key=lambda mirror: mirror.age)
        nodes_fixed: Future[None] = Future()
        if all(mirror.kind.field != NODES for mirror in mirrors):
            nodes_fixed.set_result(None)

        def read(mirror: Mirror) -> ObjectList:
            verify = mirror is oldest and mirror.age > RELIST_SECONDS
            if mirror.kind.field == NODES:
                with _fixing(nodes_fixed) as fixed:
                    return mirror.read(verify=verify, fixed=fixed)
            if mirror.kind.field == PODS:
                # Nodes before pods: a pod that is bound in between takes up room on its node. The other way round it
                # would still count as pending, and the room that it has taken as free.
                nodes_fixed.result()
            return mirror.read(verify=verify)

        # Nearly all of the time is spent waiting, so a thread for each.
        with ThreadPoolExecutor(len(mirrors)) as readers:
            reading = {mirror.kind.field: readers.submit(as_here(partial(read, mirror))) for mirror in mirrors}
        return {field: begun.result() for field, begun in reading.items()}

    def _mirror(self, field: str) -> Mirror:
        if field not in self._mirrors:
            self._mirrors[field] = Mirror(
                self._transport,
                self._kinds[field],
                is_listed_always=field in _LISTED_ALWAYS,
                short=self._short,
                log=self._log,
            )
        return self._mirrors[field]


@contextmanager
def _fixing(nodes: "Future[None]") -> Iterator[Callable[[], None]]:
    """What to call when the nodes are fixed. Where they cannot be read, whoever waits for that gets the error."""

    def fixed() -> None:
        if not nodes.done():
            nodes.set_result(None)

    try:
        yield fixed
    except BaseException as error:
        if not nodes.done():
            nodes.set_exception(error)
        raise
