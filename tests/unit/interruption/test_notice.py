"""Reading EventBridge's envelopes."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.interruption.notice import READERS, Kind, MalformedNoticeError, Notice, parse


def _envelope(detail_type: str, detail: Any, source: str = "aws.ec2", version: str = "0") -> dict[str, Any]:
    return {"version": version, "source": source, "detail-type": detail_type, "detail": detail}


def _state_change(state: str) -> dict[str, Any]:
    return _envelope("EC2 Instance State-change Notification", {"instance-id": "i-1", "state": state})


def _health(**detail: Any) -> dict[str, Any]:
    given = {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": [{"entityValue": "i-1"}]}
    return _envelope("AWS Health Event", {**given, **detail}, source="aws.health")


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (_envelope("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}), Kind.SPOT_INTERRUPTED),
        (_envelope("EC2 Instance Rebalance Recommendation", {"instance-id": "i-1"}), Kind.REBALANCE_RECOMMENDATION),
        (
            _envelope("EC2 Capacity Reservation Instance Interruption Warning", {"instance-id": "i-1"}),
            Kind.CAPACITY_RESERVATION_INTERRUPTED,
        ),
        (_health(), Kind.SCHEDULED_CHANGE),
        (_state_change("stopping"), Kind.INSTANCE_STOPPED),
        (_state_change("stopped"), Kind.INSTANCE_STOPPED),
        (_state_change("shutting-down"), Kind.INSTANCE_TERMINATED),
        (_state_change("Terminated"), Kind.INSTANCE_TERMINATED),
    ],
)
def test_every_kind_of_warning_becomes_a_notice(event: dict[str, Any], kind: Kind) -> None:
    """A warning names its kind and the instance, and no other field of the event matters."""
    assert parse(event) == Notice(kind, ("i-1",))


def test_a_health_event_concerns_every_instance_it_lists() -> None:
    """AWS Health may retire the hardware below several instances at once."""
    event = _health(affectedEntities=[{"entityValue": "i-1"}, {"entityValue": "i-2"}])
    assert parse(event) == Notice(Kind.SCHEDULED_CHANGE, ("i-1", "i-2"))


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
    """An instance that starts, another service's trouble or an unknown version needs nothing."""
    assert parse(event) is None


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
    ],
)
def test_a_known_warning_that_cannot_be_read_names_the_field(event: dict[str, Any], field: str) -> None:
    """A warning is worth a node, so one that is broken is never dropped in silence."""
    with pytest.raises(MalformedNoticeError, match=field):
        parse(event)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(key=st.sampled_from(sorted(READERS)), detail=json_values)
def test_nothing_that_arrives_breaks_the_reader(key: tuple[str, str, str], detail: Any) -> None:
    """Whatever an event of a known kind holds, it is read, ignored, or refused as malformed."""
    version, source, detail_type = key
    event = {"version": version, "source": source, "detail-type": detail_type, "detail": detail}
    with suppress(MalformedNoticeError):
        assert parse(event) is None or isinstance(parse(event), Notice)
