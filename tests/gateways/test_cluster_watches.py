"""What a mirror of one kind does about watches that expire, break, hang, are late or wrong."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from joinery.gateways.kubernetes.mirrors import RELIST_SECONDS, CoreKind, Mirror
from joinery.objects.errors import UnavailableError
from joinery.objects.kubernetes.core import Pod
from tests.gateways.scripted import Script, refuses, says, scripted

Answer = tuple[int, dict[str, str], bytes]
KIND = CoreKind("pods", "/api/v1/pods", Pod)


def pod(name: str, version: int) -> dict[str, Any]:
    """A pod as it is printed."""
    return {"metadata": {"name": name, "namespace": "default", "resourceVersion": str(version)}}


def listing(version: int, **pods: int) -> Answer:
    """A list, with the versions of its pods by name."""
    items = [pod(name, at) for name, at in pods.items()]
    return says(200, {"metadata": {"resourceVersion": str(version)}, "items": items})


def fence(version: int, count: int) -> Answer:
    """The first pod of so many."""
    more = {"continue": "x", "remainingItemCount": count - 1} if count > 1 else {}
    return says(200, {"metadata": {"resourceVersion": str(version), **more}, "items": [pod("a", 1)][:count]})


def watch(*events: tuple[str, str, int], is_open: bool = True) -> Answer:
    """Events of a watch, which does not end unless somebody ends it."""
    told = [{"type": what, "object": pod(name, version)} for what, name, version in events]
    body = "".join(json.dumps(event) + "\n" for event in told).encode()
    return 200, {"Content_Length": str(len(body) + 1)} if is_open else {}, body


def versions(mirror: Mirror) -> Mapping[str, str]:
    """What the mirror reads now: the versions of the pods by name."""
    return {each.metadata.name: each.metadata.resource_version for each in mirror.read().objects}


class ListedMirror(Mirror):
    """A mirror that has listed two pods at version 10, and its complaints."""

    def __init__(self, script: Script) -> None:
        self.complaints: list[str] = []
        super().__init__(script.transport, KIND, short=0, log=self.complaints.append)
        assert versions(self) == {"a": "1", "b": "2"}


FIRST = listing(10, a=1, b=2)


def test_a_watch_is_read_up_to_the_fence() -> None:
    """What happened before the read is in it, and what happens later is left to the next one."""
    events = watch(("ADDED", "c", 11), ("MODIFIED", "a", 12), ("DELETED", "b", 15), ("MODIFIED", "c", 17))
    with scripted(FIRST, fence(16, 2), events, fence(17, 2), watch(("MODIFIED", "c", 17))) as script:
        mirror = ListedMirror(script)
        assert versions(mirror) == {"a": "12", "c": "11"}
        assert versions(mirror) == {"a": "12", "c": "17"}
    assert "resourceVersion=10&" in script.asked[2]
    assert "resourceVersion=16&" in script.asked[4]
    assert mirror.complaints == []


def test_nothing_is_watched_where_nothing_has_happened() -> None:
    """The version of the fence is that of the last read."""
    with scripted(FIRST, fence(10, 2)) as script:
        assert versions(ListedMirror(script)) == {"a": "1", "b": "2"}
    assert len(script.asked) == 2


def test_silence_is_the_end_of_a_watch() -> None:
    """Other kinds have changed, and this one has not. The next watch goes on from the last change that was told."""
    with scripted(FIRST, fence(16, 2), watch(("MODIFIED", "a", 12)), fence(20, 2), watch()) as script:
        mirror = ListedMirror(script)
        assert versions(mirror) == {"a": "12", "b": "2"}
        assert versions(mirror) == {"a": "12", "b": "2"}
    assert "resourceVersion=12&" in script.asked[4]
    assert mirror.complaints == []


def test_silence_within_an_event_is_no_end() -> None:
    """Half of an event has come, of a change before the fence: the pod must not be taken to be as it was."""
    code, headers, body = watch(("MODIFIED", "a", 12))
    half = (code, {"Content_Length": str(len(body))}, body[:-20])
    with scripted(FIRST, fence(16, 2), half, listing(17, a=12, b=2)) as script:
        mirror = ListedMirror(script)
        assert versions(mirror) == {"a": "12", "b": "2"}
    assert mirror.complaints == []


def test_a_bookmark_is_an_end_and_a_place_to_go_on_from() -> None:
    """It says that nothing before it is missing."""
    events = watch(("MODIFIED", "a", 12), ("BOOKMARK", "", 16))
    with scripted(FIRST, fence(16, 2), events, fence(20, 2), watch(("BOOKMARK", "", 30))) as script:
        mirror = ListedMirror(script)
        assert versions(mirror) == {"a": "12", "b": "2"}
        assert versions(mirror) == {"a": "12", "b": "2"}
    assert "resourceVersion=16&" in script.asked[4]


def test_a_missing_object_is_waited_for() -> None:
    """The fence has three, two are known: the watch is asked once more, and its bookmark is waited for."""
    late = watch(("ADDED", "c", 15), ("BOOKMARK", "", 16))
    with scripted(FIRST, fence(16, 3), watch(), late) as script:
        mirror = ListedMirror(script)
        assert versions(mirror) == {"a": "1", "b": "2", "c": "15"}
    assert mirror.complaints == []


def test_numbers_that_differ_are_told_and_the_kind_is_listed() -> None:
    """A mirror that is wrong heals itself, and somebody learns of it."""
    with scripted(FIRST, fence(16, 3), watch(), watch(("BOOKMARK", "", 16)), listing(17, a=1, b=2, c=15)) as script:
        mirror = ListedMirror(script)
        assert versions(mirror) == {"a": "1", "b": "2", "c": "15"}
    assert mirror.complaints == ["/api/v1/pods: 2 objects are known and 3 are there"]


def test_a_change_that_comes_late_is_applied_and_told() -> None:
    """It was before the fence of a read that did not see it."""
    with scripted(FIRST, fence(16, 2), watch(), fence(20, 2), watch(("MODIFIED", "a", 14))) as script:
        mirror = ListedMirror(script)
        assert versions(mirror) == {"a": "1", "b": "2"}
        assert versions(mirror) == {"a": "14", "b": "2"}
    assert mirror.complaints == ["/api/v1/pods: default/a has changed before the last read, which did not see it"]


_EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
LOST = {
    "expired": refuses(410, "too old resource version"),
    "expired, said later": (200, {}, json.dumps(_EXPIRED).encode() + b"\n"),
    "not allowed": refuses(403, 'pods is forbidden: User "x" cannot watch resource "pods"'),
    "ended": watch(("MODIFIED", "a", 12), is_open=False),
    "not JSON": (200, {}, b"<html>\n"),
}


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
def test_a_watch_that_is_lost_is_a_list(lost: Answer) -> None:
    """Compacted, cut off, or refused: the kind is listed, and followed again from there."""
    with scripted(FIRST, fence(16, 2), lost, listing(18, a=14, b=2), fence(18, 2)) as script:
        mirror = ListedMirror(script)
        assert versions(mirror) == {"a": "14", "b": "2"}
        assert versions(mirror) == {"a": "14", "b": "2"}
    assert [path.partition("?")[2].partition("&")[0] for path in script.asked] == [
        "limit=500", "limit=1", "watch=1", "limit=500", "limit=1",
    ]  # fmt: skip
    assert mirror.complaints == []


def test_a_cluster_that_was_restored_is_listed() -> None:
    """Its versions go backwards: a watch from ours would tell of nothing."""
    with scripted(FIRST, fence(7, 2), listing(7, a=1, b=1)) as script:
        assert versions(ListedMirror(script)) == {"a": "1", "b": "1"}


def test_a_busy_server_is_not_asked_for_a_list_instead() -> None:
    """A watch is tried again; a list would be the heavier load."""
    with scripted(FIRST, fence(16, 2), refuses(429, "storage is (re)initializing")) as script:
        mirror = ListedMirror(script)
        with pytest.raises(UnavailableError, match="initializing"):
            mirror.read()
    assert not any("limit=500" in path for path in script.asked[1:])


@pytest.mark.parametrize(
    ("events", "complaints"),
    [
        (watch(("MODIFIED", "a", 14), ("BOOKMARK", "", 18)), []),
        (watch(("BOOKMARK", "", 18)), ["/api/v1/pods: 1 objects were not followed, such as default/a"]),
        (refuses(410, "too old"), []),
    ],
)
def test_a_mirror_is_held_against_a_list(events: Answer, complaints: list[str]) -> None:
    """What was followed must be what is listed. Where it is not, somebody learns of it, and the list counts."""
    with scripted(FIRST, listing(18, a=14, b=2), events) as script:
        mirror = ListedMirror(script)
        listed = mirror.read(verify=True).objects
    assert [each.metadata.resource_version for each in listed] == ["14", "2"]
    assert mirror.complaints == complaints


def test_what_has_not_changed_is_the_same_object() -> None:
    """Through watches, lists and verification: what was derived from it can be kept."""
    answers = (fence(16, 2), watch(("MODIFIED", "a", 16)), fence(17, 2), refuses(410, "x"), listing(18, a=16, b=2))
    with scripted(FIRST, *answers) as script:
        mirror = ListedMirror(script)
        (_, b), (a, _) = mirror.read().objects, mirror.read().objects
        assert b is mirror.read(verify=True).objects[1]
        assert a is mirror.read(verify=True).objects[0]


def test_short_lists_are_not_followed() -> None:
    """One request is less than two."""
    with scripted(FIRST) as script:
        mirror = Mirror(script.transport, KIND)
        mirror.read()
        mirror.read()
    assert mirror.age == 0 < RELIST_SECONDS
    assert len(script.asked) == 2
