"""What has become of the objects of one kind, for those who watch it.

Some of what the simulated API server prints is worked out when somebody asks (what a disruption budget allows), so no
write tells of it. A journal therefore compares what is there with what was there at the last look.
"""

from collections.abc import Callable, Mapping
from typing import Any

Document = dict[str, Any]


class ExpiredError(Exception):
    """The journal does not go back so far."""


class Journal:
    """One kind's objects, and its events from the first look on. ``advance`` gives a version that no write has."""

    def __init__(self, advance: Callable[[], int]) -> None:
        self._advance = advance
        self._stored: dict[str, Document] = {}
        self._events: list[tuple[int, Document]] = []
        self._first: int | None = None
        self._newest = 0

    def look(self, version: int, objects: Mapping[str, Document]) -> tuple[int, Mapping[str, Document]]:
        """Take down what has changed by now. Returns the kind's version and its objects, by key and in its order.

        ``version``: of the newest write to the cluster.
        """
        seen, self._newest = self._newest, version
        stored = {key: self._versioned(item, self._stored.get(key), seen) for key, item in objects.items()}
        events = [
            *(("ADDED", item) for key, item in stored.items() if key not in self._stored),
            *(("MODIFIED", item) for key, item in stored.items() if self._stored.get(key, item) is not item),
            *(("DELETED", self._renewed(item)) for key, item in self._stored.items() if key not in stored),
        ]
        self._stored = stored
        if self._first is None:
            self._first = self._newest
        else:
            dated = [(_version(item), {"type": what, "object": item}) for what, item in events]
            self._events += sorted(dated, key=lambda event: event[0])
        return self._newest, stored

    def since(self, version: int) -> list[Document]:
        """The events after a version. ``ExpiredError``."""
        if self._first is None or version < self._first:
            raise ExpiredError(f"too old resource version: {version} ({self._first})")
        return [event for at, event in self._events if at > version]

    def _versioned(self, item: Document, before: Document | None, seen: int) -> Document:
        """The object as it was at the last look if it is the same, or with a version that is newer than that."""
        is_old = _version(item) <= seen
        if before is not None and is_old and _content(before) == _content(item):
            return before
        return self._renewed(item) if is_old else item

    def _renewed(self, item: Document) -> Document:
        self._newest = self._advance()
        return {**item, "metadata": {**item["metadata"], "resourceVersion": str(self._newest)}}


def _version(item: Document) -> int:
    return int(item["metadata"]["resourceVersion"])


def _content(item: Document) -> Document:
    """All but the version."""
    return {**item, "metadata": {**item["metadata"], "resourceVersion": ""}}
