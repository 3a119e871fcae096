"""Reading EventBridge's envelopes."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.interruption.envelope import Ignored
from joinery.decisions.interruption.notice import READERS, Notice, NoticeKind, parse


def _envelope(detail_type: str, detail: Any, source: str = "aws.ec2", version: str | None = "0") -> dict[str, Any]:
    return {"version": version, "source": source, "detail-type": detail_type, "detail": detail}


def _state_change(state: str) -> dict[str, Any]:
    return _envelope("EC2 Instance State-change Notification", {"instance-id": "i-1", "state": state})


def _health(**detail: Any) -> dict[str, Any]:
    given = {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": [{"entityValue": "i-1"}]}
    return _envelope("AWS Health Event", {**given, **detail}, source="aws.health")


@pytest.mark.parametrize(
    ("said", "starts"),
    [
        ("Fri, 20 Mar 2026 09:00:00 GMT", datetime(2026, 3, 20, 9, tzinfo=UTC)),
        ("2026-03-20T09:00:00Z", datetime(2026, 3, 20, 9, tzinfo=UTC)),
        ("soon", None),
        (7, None),
        (None, None),
        ("Fri, 20 Mar 99999999999 09:00:00 GMT", None),
    ],
)
def test_a_health_event_says_when_its_change_begins(said: object, starts: datetime | None) -> None:
    """Weeks ahead, mostly. An event that does not say it is for now."""
    notice = parse(_health(startTime=said))
    assert isinstance(notice, Notice)
    assert notice.starts == starts


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (_envelope("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}), NoticeKind.SPOT_INTERRUPTED),
        (
            _envelope("EC2 Instance Rebalance Recommendation", {"instance-id": "i-1"}),
            NoticeKind.REBALANCE_RECOMMENDATION,
        ),
        (
            _envelope("EC2 Capacity Reservation Instance Interruption Warning", {"instance-id": "i-1"}),
            NoticeKind.CAPACITY_RESERVATION_INTERRUPTED,
        ),
        (
            _envelope("EC2 Interruptible Capacity Reservation Instance Interruption Warning", {"instance-id": "i-1"}),
            NoticeKind.CAPACITY_RESERVATION_INTERRUPTED,
        ),
        (
            _envelope("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}, version=None),
            NoticeKind.SPOT_INTERRUPTED,
        ),
        (_health(), NoticeKind.SCHEDULED_CHANGE),
        (_state_change("stopping"), NoticeKind.INSTANCE_STOPPED),
        (_state_change("stopped"), NoticeKind.INSTANCE_STOPPED),
        (_state_change("shutting-down"), NoticeKind.INSTANCE_TERMINATED),
        (_state_change("Terminated"), NoticeKind.INSTANCE_TERMINATED),
    ],
)
def test_every_kind_of_warning_becomes_a_notice(event: dict[str, Any], kind: NoticeKind) -> None:
    """A warning names its kind and the instance, and no other field of the event matters."""
    assert parse(event) == Notice(kind, ("i-1",))


def test_a_health_event_concerns_every_instance_it_lists() -> None:
    """AWS Health may retire the hardware below several instances at once."""
    event = _health(affectedEntities=[{"entityValue": "i-1"}, {"entityValue": "i-2"}])
    assert parse(event) == Notice(NoticeKind.SCHEDULED_CHANGE, ("i-1", "i-2"))


def test_a_capacity_block_that_ends_concerns_all_that_is_in_it() -> None:
    """EC2 names the reservation, and no instance; its User Guide spells the kind with an underscore."""
    detail = {"capacity-reservation-id": "cr-1", "end-date": "2026-11-21T22:38:00Z"}
    found = _envelope("Capacity Block Reservation Expiration Warning", detail)
    documented = {**found, "detail_type": found["detail-type"]}
    del documented["detail-type"], documented["version"]
    assert parse(found) == parse(documented) == Notice(NoticeKind.CAPACITY_BLOCK_EXPIRING, reservation="cr-1")


@pytest.mark.parametrize("field", ["status", "statusCode"])
@pytest.mark.parametrize("over", ["RESOLVED", "resolved", "UNIMPAIRED"])
def test_an_instance_that_is_past_a_change_stays(field: str, over: str) -> None:
    """Others of the same event may still wait for it, and go."""
    resolved = {"entityValue": "i-1", field: over}
    assert isinstance(parse(_health(affectedEntities=[resolved])), Ignored)
    waiting = [{"entityValue": "i-2", field: "PENDING"}, {"entityValue": "i-3", field: None}, {"entityValue": "i-4"}]
    assert parse(_health(affectedEntities=[resolved, *waiting])) == Notice(
        NoticeKind.SCHEDULED_CHANGE, ("i-2", "i-3", "i-4")
    )


@pytest.mark.parametrize(("state", "acts"), [("open", True), ("upcoming", True), (None, True), ("closed", False)])
def test_only_a_change_that_comes_is_answered(state: str | None, acts: bool) -> None:
    """Health reports each change once more when it is over; its older events do not say."""
    assert isinstance(parse(_health(statusCode=state)), Notice) is acts


@pytest.mark.parametrize("state", ["open", "upcoming", None])
def test_a_planned_lifecycle_event_takes_no_node(state: str | None) -> None:
    """It names sound instances half a year ahead, and those that were bought in their place would be named next."""
    event = _health(eventTypeCode="AWS_EC2_PLANNED_LIFECYCLE_EVENT", statusCode=state)
    assert "AWS_EC2_PLANNED_LIFECYCLE_EVENT is for people" in getattr(parse(event), "reason", "")


@pytest.mark.parametrize("kind", [None, "", 7, [], "AWS_EC2_INSTANCE_RETIREMENT_EXPEDITED"])
def test_a_change_of_any_other_name_is_answered(kind: object) -> None:
    """Health has new names every year, and a lost warning costs a node."""
    assert isinstance(parse(_health(eventTypeCode=kind)), Notice)


@pytest.mark.parametrize("entities", [None, [], [{"entityValue": "h-1"}], [{"entityValue": "AWS_ACCOUNT"}]])
def test_a_change_of_no_instance_is_ignored(entities: Any) -> None:
    """Public events list nothing; a dedicated host or an account is no node."""
    assert isinstance(parse(_health(affectedEntities=entities)), Ignored)


def test_an_instance_may_be_named_by_its_arn() -> None:
    """Health writes either."""
    arn = "arn:aws-cn:ec2:cn-north-1:111122223333:instance/i-1"
    assert parse(_health(affectedEntities=[{"entityValue": arn}])) == Notice(NoticeKind.SCHEDULED_CHANGE, ("i-1",))


def test_what_can_be_read_of_a_change_is_not_lost_with_the_rest() -> None:
    """The instance goes now, and the log says what is wrong with the rest."""
    notice = parse(_health(affectedEntities=[{"entityValue": None}, {"entityValue": "i-1"}]))
    assert notice == Notice(NoticeKind.SCHEDULED_CHANGE, ("i-1",), unread="entityValue is missing or not a text")


@pytest.mark.parametrize(
    "event",
    [
        _state_change("pending"),
        _state_change("running"),
        _health(service="RDS"),
        _health(eventTypeCategory="accountNotification"),
        _health(eventTypeCategory="SCHEDULEDCHANGE"),
        _envelope("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}, version="1"),
        _envelope("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}, source="my.app"),
        _envelope("EBS Volume Notification", {}),
        {},
    ],
)
def test_what_is_of_no_consequence_is_no_notice(event: dict[str, Any]) -> None:
    """An instance that starts, another service's trouble or an unknown version needs nothing,
    and the reason is said.
    """
    found = parse(event)
    assert isinstance(found, Ignored)
    assert found.reason


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (_envelope("EC2 Spot Instance Interruption Warning", None), "detail"),
        (_envelope("EC2 Spot Instance Interruption Warning", {}), "instance-id"),
        (_envelope("EC2 Spot Instance Interruption Warning", {"instance-id": 7}), "instance-id"),
        (_envelope("EC2 Instance State-change Notification", {"instance-id": "i-1"}), "state"),
        (_health(affectedEntities="i-1"), "affectedEntities"),
        (_health(affectedEntities=["i-1"]), "affectedEntities"),
        (_health(affectedEntities=[{}]), "entityValue"),
        (_envelope("EC2 Spot Instance Interruption Warning", {"instance-id": None}), "instance-id"),
        (_envelope("EC2 Instance Rebalance Recommendation", {"instance-id": ""}), "instance-id"),
        (_envelope("EC2 Instance State-change Notification", {"state": "stopped"}), "instance-id"),
        (_envelope("Capacity Block Reservation Expiration Warning", []), "detail"),
        (_envelope("Capacity Block Reservation Expiration Warning", {"instance-id": "i-1"}), "capacity-reservation-id"),
    ],
)
def test_a_known_warning_that_cannot_be_read_is_ignored_and_names_the_field(event: dict[str, Any], field: str) -> None:
    """It says of no instance what happens to it, and would say no more if it came again."""
    found = parse(event)
    assert isinstance(found, Ignored)
    assert (found.is_broken, field in found.reason) == (True, True)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def _fields(**words: tuple[str, ...]) -> dict[str, st.SearchStrategy[Any]]:
    """Fields as an event has them, or with anything in them."""
    return {name.replace("_", "-"): st.sampled_from(allowed) | anything for name, allowed in words.items()}


#: By their names: a reader that is given other fields looks no further than for the first of its own.
entities = st.fixed_dictionaries({}, optional=_fields(entityValue=("i-1", "vol-1"), status=("RESOLVED", "IMPAIRED")))
details = anything | st.fixed_dictionaries(
    {"affectedEntities": st.lists(entities | anything) | anything},
    optional=_fields(
        instance_id=("i-1",),
        capacity_reservation_id=("cr-1",),
        state=("stopping", "running"),
        service=("EC2", "RDS"),
        eventTypeCategory=("scheduledChange", "issue"),
        statusCode=("open", "closed"),
    ),
)


@given(key=st.sampled_from(sorted(READERS)), detail=details)
def test_nothing_that_arrives_breaks_the_reader(key: tuple[str, str], detail: Any) -> None:
    """Whatever an event of a known kind holds, it is read or ignored: it never comes back."""
    source, kind = key
    parse({"version": "0", "source": source, "detail-type": kind, "detail": detail})


@pytest.mark.parametrize(
    ("time", "at"),
    [("2026-11-21T12:00:00Z", datetime(2026, 11, 21, 12, tzinfo=UTC)), (None, None), ("yesterday", None), (7, None)],
)
def test_a_notice_says_when_it_was_sent(time: object, at: datetime | None) -> None:
    """Its age tells how long an instance that nobody knows may still become known."""
    detail = {"instance-id": "i-1"}
    event = {
        "source": "aws.ec2",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "time": time,
        "detail": detail,
    }
    assert parse(event) == Notice(NoticeKind.SPOT_INTERRUPTED, ("i-1",), at=at)
