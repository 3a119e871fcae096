"""What the recorder promises of Events, in every form of it."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from joinery.gateways.kubernetes.events import name
from joinery.gateways.kubernetes.gateway import Event
from joinery.objects.karpenter.labels import REPORTER
from simulator.clock import START
from tests.gateways.clusters import Form

NEWS = Event(
    reason="Launched", message="launched m7a.large in us-east-1a", kind="NodeClaim", name="default-1", uid="u-1",
    api_version="karpenter.sh/v1",
)  # fmt: skip


def test_an_event_says_who_what_and_why(form: Form) -> None:
    """It names the object, the reason and us as its reporter, which is how our webhook knows not to ring for it."""
    form.recorder.emit([NEWS])
    (told,) = form.events()
    assert (told.reason, told.message, told.kind, told.name) == (NEWS.reason, NEWS.message, "NodeClaim", "default-1")
    assert (told.reporter, told.warning) == (REPORTER, False)


def test_a_warning_about_a_pod_lives_in_its_namespace(form: Form) -> None:
    """``kubectl describe pod`` finds it there."""
    form.recorder.emit([Event("FailedScheduling", "no room", "Pod", "p1", "u-2", "default", warning=True)])
    (told,) = form.events()
    assert (told.kind, told.warning) == ("Pod", True)


def test_what_is_told_of_an_object_for_one_reason_is_told_once_in_two_minutes(form: Form) -> None:
    """Repeats are dropped, whoever emits them, and changes wait as long; other reasons and objects are news."""
    changed = replace(NEWS, message="launched m7a.xlarge in us-east-1b")
    form.recorder.emit([NEWS, NEWS])
    form.clock.advance(timedelta(seconds=60))
    form.recorder.emit([NEWS, changed])
    assert len(form.events()) == 1
    form.clock.advance(timedelta(seconds=120))
    form.recorder.emit([NEWS, changed, Event("Registered", "", "NodeClaim", "default-1", "u-1")])
    assert sorted(told.message for told in form.events()) == sorted([NEWS.message, changed.message, ""])


def test_what_has_not_changed_is_told_again_after_half_an_hour(form: Form) -> None:
    """The API server keeps Events for an hour, and each is a request to it."""
    form.recorder.emit([NEWS])
    for _ in range(29):
        form.clock.advance(timedelta(minutes=1))
        assert not form.recorder.is_news(NEWS)
        form.recorder.emit([NEWS])
    assert len(form.events()) == 1
    form.clock.advance(timedelta(minutes=1))
    assert form.recorder.is_news(NEWS)
    form.recorder.emit([NEWS])
    assert len(form.events()) == 2


@pytest.mark.parametrize("character", ["-", "."])
def test_an_event_about_an_object_with_a_long_name_can_be_stored(form: Form, character: str) -> None:
    """Its own name begins with as much of the object's as there is room for, and its parts end in letters or digits."""
    pod = f"{'p' * 199}{character}web"
    event = Event("FailedScheduling", "no room", "Pod", pod, "u-2", "default", warning=True)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name(event, START))
    form.recorder.emit([event])
    assert [told.name for told in form.events()] == [pod]
