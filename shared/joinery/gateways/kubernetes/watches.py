"""What has changed in a kind since it was last read: a watch that ends after what is there.

A watch has no end of its own: after the changes that there are, the API server waits for more. So a reader first asks
for a fence: the first object of a list that must be current ("most recent" in Kubernetes API concepts, "Resource
versions"). The answer has the list's resource version, and says how many objects there are. Whatever happened before
the read began is at or below that version. The reader is done when the watch shows a later version, and then nothing
was missed for certain.

Where nothing happens in a kind there is no later version until the API server sends a bookmark, one to two seconds
after the beginning. On a server that answers at once, the reader takes a tenth of a second without a word for the end:
the server has caught up with the fence before it is asked to watch (a consistent read waits for its watch cache), and
sends what it has at once. The number of objects must also be the fence's. Otherwise, and on a server that is slow to
answer, the reader waits for the bookmark. What comes late all the same is not lost, because a reader goes on from the
last change that it was given. Claims and kinds of a few objects are not read this way
(``joinery.gateways.kubernetes.mirrors``).

Resource versions of one kind are compared as numbers (Kubernetes 1.35, KEP-5504 Comparable Resource Version); those of
two kinds are not.
"""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from joinery.gateways.kubernetes.api_errors import Response, Status, refusal
from joinery.gateways.kubernetes.transport import BrokenStreamError, Transport
from joinery.objects.kubernetes.decoding import decoder

#: How long a watch is asked for, in seconds. The server sends a bookmark two seconds before its end, looking once in
#: 1.25 s (apiserver ``cacheWatcher.nextBookmarkTime``).
_SECONDS = 3
#: Seconds without a word that are taken for the end, at least, and how often the time that fence and head of the watch
#: have taken together.
_SILENCE, _TIMES = 0.1, 2.0
#: A server that took longer for these, in seconds, is slow.
_SLOW = 0.25
#: Longer than any watch.
_FOR_EVER = _SECONDS + 1.0
#: Without the right to list, or without the kind, a list says so best.
_GONE = (403, 404)
_BUSY = (429, 503)


class LostTrackError(Exception):
    """What has changed cannot be known any more: the kind has to be listed."""


class Fence(NamedTuple):
    """A kind at this moment: its resource version, and how many objects there are; None where nobody knows.

    ``seconds``: how long the answer took.
    """

    version: int
    objects: int | None
    seconds: float = 0.0


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class Head(msgspec.Struct, frozen=True):
    """What tells an object's place and version."""

    metadata: _Meta = _Meta()

    @property
    def key(self) -> str:
        return key_of(self.metadata.namespace, self.metadata.name)

    @property
    def version(self) -> str:
        return self.metadata.resource_version


def key_of(namespace: str, name: str) -> str:
    """namespace/name, or the name alone where there is no namespace. A list is in the order of these."""
    return f"{namespace}/{name}" if namespace else name


class Change(NamedTuple):
    """A change of one object. ``key``: which one. ``raw``: as it is now; None if it is gone."""

    version: int
    key: str
    raw: msgspec.Raw | None


class Changes(NamedTuple):
    """The changes up to a fence, in order. ``version``: whence to go on the next time."""

    changes: list[Change]
    version: int


class ListMeta(
    msgspec.Struct, rename={"version": "resourceVersion", "more": "continue", "remaining": "remainingItemCount"}
):
    """A list's metadata (meta/v1 ListMeta). ``more``: the token by which its next page is read."""

    version: str = ""
    more: str | None = None
    remaining: int | None = None


class _Count(msgspec.Struct):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


def fence(transport: Transport, path: str) -> Fence:
    """How far a kind has come by now. Raises ``LostTrackError``, and what a list raises where the server refuses."""
    begun = transport.clock()
    answer = transport.ask("GET", f"{path}?limit=1")
    seconds = transport.clock() - begun
    if answer.code >= 400:
        raise LostTrackError if answer.code in _GONE else refusal(f"GET {path}", answer)
    try:
        page = decoder(_Count).decode(answer.body)
        version, first = int(page.metadata.version), len(page.items or ())
    except (msgspec.DecodeError, ValueError) as error:
        raise LostTrackError from error
    if not page.metadata.more:
        return Fence(version, first, seconds)
    return Fence(version, None if page.metadata.remaining is None else first + page.metadata.remaining, seconds)


def changes(transport: Transport, path: str, since: int, until: Fence, *, must_be_certain: bool = False) -> Changes:
    """What has changed after ``since`` and up to ``until``.

    ``must_be_certain``: silence is no end. Raises ``LostTrackError``, and ``UnavailableError`` where the server is too
    busy.
    """
    query = {
        "watch": "1",
        "resourceVersion": since,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": _SECONDS,
    }
    read: list[Change] = []
    begun = transport.clock()
    try:
        with transport.stream(f"{path}?{urlencode(query)}") as stream:
            if isinstance(stream, Response):
                raise _lost(path, stream)
            taken = until.seconds + transport.clock() - begun
            silence = _FOR_EVER if must_be_certain or taken > _SLOW else max(_SILENCE, _TIMES * taken)
            for change in _events(stream.lines(silence)):
                if change.version > until.version:
                    return Changes(read, until.version)
                if change.key:
                    read.append(change)
                since = max(since, change.version)
                if change.version == until.version:
                    return Changes(read, since)
    except BrokenStreamError as error:
        raise LostTrackError from error
    return Changes(read, since)


def _events(lines: Iterator[bytes]) -> Iterator[Change]:
    """The events of a watch; a bookmark is a change of nothing, whose key is empty."""
    for line in lines:
        if not line.strip():
            continue
        try:
            event = decoder(_Event).decode(line)
            if event.type == "ERROR":
                raise LostTrackError(decoder(Status).decode(event.object).message)
            head = decoder(Head).decode(event.object)
            version = int(head.version)
        except (msgspec.DecodeError, ValueError) as error:
            raise LostTrackError from error
        if event.type == "BOOKMARK":
            yield Change(version, "", None)
        else:
            yield Change(version, head.key, None if event.type == "DELETED" else event.object)


def _lost(path: str, answer: Response) -> Exception:
    """What a refused watch means. A server that is busy must not be asked for a list instead."""
    error = refusal(f"watch {path}", answer)
    return error if answer.code in _BUSY else LostTrackError(str(error))
