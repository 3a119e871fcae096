"""What somebody who may make pods can have us write and send: each has a ceiling, of which docs/cost.md is made."""

import json
from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest

from joinery.controllers.acting.announcements import MOST_EVENTS
from joinery.controllers.reporting.change_monitor import MOST_LINES
from joinery.controllers.telemetry import MOST_BYTES, logger, metrics
from joinery.controllers.telemetry import MOST_LINES as MOST_LINES_OF_A_RUN
from joinery.objects.kubernetes.core import Pod
from joinery.objects.wording import MOST_PUBLIC
from simulator import builders
from simulator.doors.doors import Call, Doors
from simulator.hostile import many_pods, one_pod
from simulator.hostile.pods import TENANT, Document
from simulator.world import World
from tools.cost import LINE_BYTES

#: What provisioning may write in a run for pods alone, without its last line.
MOST_SAID = (MOST_LINES + 1) * (MOST_PUBLIC + LINE_BYTES)


@pytest.fixture
def doors(world: World) -> Iterator[Doors]:
    """Open, in a cluster with a NodePool."""
    world.cluster.add(builders.node_class(), builders.node_pool())
    with Doors(world).open() as opened:
        opened.invoke("lifecycle", {})
        yield opened


def _waiting(doors: Doors, *documents: Document) -> None:
    doors.world.cluster.add(*(msgspec.convert(document, Pod) for document in documents))


def _run(doors: Doors) -> Call:
    """A run of provisioning, a second after the last; what it has written but metrics."""
    doors.world.clock.advance(timedelta(seconds=1))
    call = doors.invoke("provisioning", {})
    assert not call.error
    return call


def _lines(call: Call) -> list[str]:
    return [line for line in call.log.splitlines() if "level" in json.loads(line)]


def test_reasons_without_number_are_said_a_few_at_a_time_and_once(doors: Doors) -> None:
    """A thousand pods, each hopeless for a reason of its own, wrote 315 KB in every run."""
    _waiting(doors, *many_pods.hopeless_selectors(60))
    runs = [_run(doors) for _ in range(60 // MOST_LINES + 1)]
    for call in runs:
        assert sum(len(line.encode()) for line in _lines(call)[:-1]) <= MOST_SAID
    *_, last = runs
    assert [json.loads(line)["message"] for line in _lines(last)] == ["done"]
    said = [json.loads(line) for call in runs for line in _lines(call)]
    assert len({line["pod"] for line in said if line["message"] == "1 pods fit nowhere"}) == 60
    assert json.loads(_lines(runs[0])[-2])["message"].startswith(f"pods fit nowhere for {60 - MOST_LINES} other")


def test_every_pod_is_told_once_a_hundred_in_a_run(doors: Doors) -> None:
    """Not the first hundred again and again; and not again before half an hour while nothing has changed."""
    _waiting(doors, *many_pods.hopeless_selectors(MOST_EVENTS + 50))
    counts = []
    for _ in range(3):
        before = len(doors.world.recorder.events)
        _run(doors)
        counts.append(len(doors.world.recorder.events) - before)
    assert counts == [MOST_EVENTS, 50, 0]
    assert len({event.name for event in doors.world.recorder.events if event.kind == "Pod"}) == MOST_EVENTS + 50


@pytest.mark.parametrize("kind", [one_pod.ephemeral_volumes, one_pod.node_selector, one_pod.node_affinity_values])
def test_a_pod_that_names_thousands_of_things_is_told_in_a_kilobyte(kind: object, doors: Doors) -> None:
    """One with 2,000 ephemeral volumes wrote 122 KB in every run."""
    _waiting(doors, *kind(2_000))  # type: ignore[operator]
    first, second = _run(doors), _run(doors)
    assert sum(len(line.encode()) for line in _lines(first)) <= 2 * (MOST_PUBLIC + LINE_BYTES)
    assert len(_lines(second)) == 1
    (event,) = [event for event in doors.world.recorder.events if event.kind == "Pod"]
    assert 0 < len(event.message.encode()) <= MOST_PUBLIC


def test_a_crowd_of_one_namespace_leaves_room_for_what_others_are_told(doors: Doors) -> None:
    """In the log and in Events alike, namespaces take turns."""
    theirs = builders.pod("victim", namespace="victim", node_selector={"example.com/place": "elsewhere"})
    _waiting(doors, *many_pods.hopeless_selectors(MOST_EVENTS + 50))
    doors.world.cluster.add(theirs)
    call = _run(doors)
    assert theirs.key in {json.loads(line).get("pod") for line in _lines(call)}
    assert "victim" in {event.name for event in doors.world.recorder.events}


def test_a_reason_that_has_changed_is_said_at_once(doors: Doors) -> None:
    """What waits an hour is what everybody has read."""
    _waiting(doors, *many_pods.hopeless_selectors(1))
    _run(doors)
    doors.world.cluster.add(builders.node_pool("other", requirements=["kubernetes.io/arch=arm64"]))
    doors.invoke("lifecycle", {})
    assert "1 pods fit nowhere" in {json.loads(line)["message"] for line in _lines(_run(doors))}
    doors.world.clock.advance(timedelta(hours=1))
    assert "1 pods fit nowhere" in {json.loads(line)["message"] for line in _lines(_run(doors))}


def test_no_pod_adds_a_series_to_the_metrics(doors: Doors) -> None:
    """Each would cost 0.30 $ a month: dimensions and their values are the code's."""
    _waiting(doors, *many_pods.hopeless_selectors(50), *one_pod.node_selector(200))
    call = _run(doors)
    written = [json.loads(line) for line in call.log.splitlines() if "_aws" in line]
    assert written
    assert not any(TENANT in json.dumps(line) or "nowhere" in json.dumps(line) for line in written)


def test_a_run_that_says_too_much_says_how_much(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it is that writes without end, by number or by size, a month of it has a price."""

    @metrics.sent_at_the_end
    def door(text: str) -> None:
        for _ in range(2 * MOST_LINES_OF_A_RUN):
            logger.info("said", extra={"reason": text})

    metrics.sent_at_the_end(lambda: None)()  # what other tests measured outside of a run
    capsys.readouterr()
    for text in ("x", "x" * 100_000):
        door(text)
        lines = capsys.readouterr().out.splitlines()
        assert sum(len(line) for line in lines) <= MOST_BYTES + 2 * (MOST_PUBLIC + LINE_BYTES)
        assert len(lines) <= MOST_LINES_OF_A_RUN + 1
        left_out = 2 * MOST_LINES_OF_A_RUN - len(lines) + 1
        assert json.loads(lines[-1])["message"] == f"{left_out} lines of the run were left out of the log"
