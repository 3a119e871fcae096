"""What a warm function remembers of the cluster, kind by kind, and how it is brought up to date.

A kind is listed the first time, and followed from then on: only what has changed is read
(``joinery.gateways.kubernetes.watches``), and an object that has not changed is the same Python object as before. A
kind is listed on every read where

- money hangs on seeing every write that came before: NodeClaims (a claim that is overlooked is bought again, or its
  instance is taken for garbage), and
- the list is short, and one request costs less than a fence and a watch.

All lists are consistent ("most recent"). ``resourceVersion=0`` would spare etcd some work on API servers before 1.34,
but it ignores ``limit``: half a gigabyte of pods in one answer.

A kind is listed anew when the watch has expired (410: compaction, or an API server that was restarted), was dropped, or
hangs; when the numbers of objects differ; and once in half an hour in any case, one kind a read. Objects that
were missed until then, or came late, are logged: there should be none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import msgspec

from joinery.gateways.kubernetes import lists
from joinery.gateways.kubernetes.lists import ObjectList
from joinery.gateways.kubernetes.transport import Transport
from joinery.gateways.kubernetes.watches import Change, Fence, Head, LostTrackError, changes, fence, key_of
from joinery.objects.kubernetes.decoding import decode, decoder
from joinery.objects.snapshot.snapshot import Invalid

#: A kind whose whole list takes fewer bytes on the wire is listed on every read.
SHORT = 32 * 1024
#: How old a mirror may be before its kind is listed anew, in seconds.
RELIST_SECONDS = 1800.0
#: For how long a kind that the cluster does not serve is not asked for again, in seconds.
ABSENT_SECONDS = 600.0


class Entry(NamedTuple):
    """What a mirror holds of one stored object. ``item``: the object, or None if it cannot be used.

    ``invalid``: what is wrong with it. Both are None for another provider's.
    """

    version: str
    item: Any
    invalid: Invalid | None = None


class MirroredKind(Protocol):
    """How the objects of one kind are read. ``field``: the snapshot's for them."""

    field: str
    path: str

    def list_all(self, transport: Transport, known: Mapping[str, Entry]) -> tuple[str, dict[str, Entry]]:
        """The version of the list, and all objects by key. ``known`` ones that have not changed stay the same."""
        ...

    def entry(self, raw: msgspec.Raw, head: Head) -> Entry:
        """One object."""
        ...


class CoreKind:
    """A kind of Kubernetes' own. ``usable``: makes an object fit for decisions."""

    def __init__(self, field: str, path: str, struct: Any, usable: Callable[[Any], Any] | None = None) -> None:
        self.field, self.path = field, path
        self._struct = struct
        self._usable = usable

    def list_all(self, transport: Transport, known: Mapping[str, Entry]) -> tuple[str, dict[str, Entry]]:
        listed = lists.read(transport, self.path, self._struct)
        entries = {problem.name: Entry("", None, problem) for problem in listed.invalid}
        for item in listed.objects:
            key, version = key_of(item.metadata.namespace, item.metadata.name), item.metadata.resource_version
            before = known.get(key)
            entries[key] = before if before is not None and before.version == version else self._entry_of(item)
        return listed.version, entries

    def entry(self, raw: msgspec.Raw, head: Head) -> Entry:
        try:
            return self._entry_of(decode(raw, self._struct))
        except msgspec.ValidationError as error:
            document = msgspec.json.decode(raw)
            return Entry("", None, lists.unreadable(document, self._struct.__name__, str(error)))

    def _entry_of(self, item: Any) -> Entry:
        usable, invalid = self._usable(item) if self._usable else (item, None)
        return Entry(item.metadata.resource_version, usable, invalid)


class VersionedKind(CoreKind):
    """A kind that clusters serve in one version or another, or not at all. ``paths``: of its lists, the newest version
    first.
    """

    def __init__(self, field: str, paths: Sequence[str], struct: Any) -> None:
        super().__init__(field, paths[0], struct)
        self._paths = paths

    def list_all(self, transport: Transport, known: Mapping[str, Entry]) -> tuple[str, dict[str, Entry]]:
        listed: tuple[str, dict[str, Entry]] = ("", {})
        for path in self._paths:
            self.path = path
            listed = super().list_all(transport, known)
            if any(listed):
                break
        return listed


class CustomKind:
    """A kind of custom resource. ``group``: the API group of our cloud's node classes."""

    def __init__(self, custom: lists.Custom[Any], group: str) -> None:
        self.field, self.path = custom.field, custom.path
        self._custom = custom
        self._group = group

    def list_all(self, transport: Transport, known: Mapping[str, Entry]) -> tuple[str, dict[str, Entry]]:
        listed = lists.read(transport, self.path, msgspec.Raw)
        # Of a kind that can be done without, that it may not be read.
        entries = {bad.name: Entry("", None, replace(bad, kind=self._custom.kind)) for bad in listed.invalid}
        return listed.version, entries | entries_of(listed.objects, known, self.entry)

    def entry(self, raw: msgspec.Raw, head: Head) -> Entry:
        # A resource is validated by pydantic, which takes longer than all the rest.
        stored = lists.as_stored(raw, self._custom, self._group)
        return Entry(head.version, None, stored) if isinstance(stored, Invalid) else Entry(head.version, stored)


def entries_of(
    objects: Iterable[msgspec.Raw], known: Mapping[str, Entry], entry: Callable[[msgspec.Raw, Head], Entry]
) -> dict[str, Entry]:
    """By key, what a mirror holds of these objects. ``entry`` reads those that have changed since they were known."""
    entries = {}
    for raw in objects:
        head = decoder(Head).decode(raw)
        before = known.get(head.key)
        entries[head.key] = before if before is not None and before.version == head.version else entry(raw, head)
    return entries


class Mirror:
    """One kind, as it was when it was last read. For one thread at a time.

    ``is_listed_always``: see the module. ``short``: ``SHORT``, but for tests. ``log`` gets a line about objects
    that an earlier read had missed.
    """

    def __init__(
        self,
        transport: Transport,
        kind: MirroredKind,
        *,
        is_listed_always: bool = False,
        short: int = SHORT,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.kind = kind
        # The fence and the watch must be answered by one API server of several: one connection, one server.
        self._transport = transport.apart()
        self._is_listed_always, self._short = is_listed_always, short
        self._is_followed = False
        self._log = log
        self._entries: dict[str, Entry] = {}
        self._version = 0
        self._assumed = 0
        self._listed_at = 0.0
        self._is_absent = False
        self._view: ObjectList | None = None

    @property
    def bytes_read(self) -> int:
        return self._transport.bytes_read

    @property
    def age(self) -> float:
        """Seconds since the kind was last listed; none where it is listed on every read."""
        return self._transport.clock() - self._listed_at if self._is_followed else 0.0

    @property
    def is_served(self) -> bool:
        """Whether the cluster has the kind and lets us list it, as far as the last read knows."""
        return self._version > 0

    def read(self, *, verify: bool = False, fixed: Callable[[], None] = lambda: None) -> ObjectList:
        """The kind as it is now: with everything that happened before the call.

        ``verify``: list it, and log how what was followed differs. ``fixed`` is called as soon as nothing that happens
        from then on will be in the answer. Raises as ``lists.read`` does.
        """
        if self._is_absent and self._transport.clock() - self._listed_at < ABSENT_SECONDS:
            fixed()
            return self._viewed()
        if not (self._version and self._is_followed):
            self._list()
        elif verify:
            self._verify()
        else:
            self._follow(fixed)
        fixed()
        return self._viewed()

    def _list(self) -> None:
        before = self._transport.bytes_read
        version, entries = self.kind.list_all(self._transport, self._entries)
        is_short = self._transport.bytes_read - before < self._short
        self._is_followed = not (is_short or self._is_listed_always)
        self._is_absent = not version and not entries
        if entries != self._entries:
            self._entries, self._view = entries, None
        self._version = self._assumed = _number(version)
        self._listed_at = self._transport.clock()

    def _follow(self, fixed: Callable[[], None]) -> None:
        try:
            until = fence(self._transport, self.kind.path)
            fixed()
            self._catch_up(until)
        except LostTrackError:
            self._list()

    def _catch_up(self, until: Fence) -> None:
        """Apply what has happened up to a fence. Raises ``LostTrackError``."""
        if until.version < self._version:
            raise LostTrackError("the cluster was restored from a backup")
        for must_be_certain in (False, True):
            if until.version > self._version:
                watched = changes(
                    self._transport, self.kind.path, self._version, until, must_be_certain=must_be_certain
                )
                self._apply(watched.changes)
                self._version = watched.version
            if until.objects in (None, len(self._entries)):
                self._assumed = until.version
                return
        self._log(f"{self.kind.path}: {len(self._entries)} objects are known and {until.objects} are there")
        raise LostTrackError

    def _apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._view = None
            if change.version <= self._assumed:
                self._log(f"{self.kind.path}: {change.key} has changed before the last read, which did not see it")
            if change.raw is None:
                self._entries.pop(change.key, None)
            else:
                self._entries[change.key] = self.kind.entry(change.raw, decoder(Head).decode(change.raw))

    def _verify(self) -> None:
        """List the kind, and follow it up to the list's version, where both must be the same."""
        version, entries = self.kind.list_all(self._transport, self._entries)
        try:
            self._catch_up(Fence(_number(version), len(entries)))
            keys = entries.keys() | self._entries.keys()
            differing = [key for key in keys if _differ(entries.get(key), self._entries.get(key))]
            if differing:
                self._log(f"{self.kind.path}: {len(differing)} objects were not followed, such as {min(differing)}")
        except LostTrackError:
            pass  # nothing to compare with
        self._entries, self._view = entries, None
        self._version = self._assumed = _number(version)
        self._listed_at = self._transport.clock()

    def _viewed(self) -> ObjectList:
        if self._view is None:
            # The order of a list is that of its keys in etcd.
            ordered = [self._entries[key] for key in sorted(self._entries)]
            self._view = ObjectList(
                tuple(entry.item for entry in ordered if entry.item is not None),
                tuple(entry.invalid for entry in ordered if entry.invalid is not None),
            )
        return self._view


def _number(version: str) -> int:
    """A resource version; 0 for what cannot be followed, such as the list of a kind that we may not read."""
    return int(version) if version.isdecimal() else 0


def _differ(one: Entry | None, other: Entry | None) -> bool:
    return (one and one.version) != (other and other.version)
