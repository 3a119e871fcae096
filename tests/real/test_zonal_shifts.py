"""GetManagedResource as ARC answers it: which zones traffic is shifted away from."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from joinery.gateways.aws import Clients
from joinery.gateways.ec2.launch.shifts import ZonalShifts
from joinery.objects.errors import ConfigurationError, NotFoundError, UnavailableError
from tests.real.answers import answering, read

ARN = "arn:aws:eks:us-east-1:111122223333:cluster/prod"
NOW = datetime(2026, 11, 21, 22, tzinfo=UTC)
ANSWER = ("arc", "get_managed_resource", read("arc-get-managed-resource"))
NONE: Any = ("arc", "get_managed_resource", {"arn": ARN, "appliedWeights": {}, "zonalShifts": [], "autoshifts": []})


class _Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def _refusal(code: str, status: int = 400) -> Any:
    error = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ("arc", "get_managed_resource", error)


def test_a_zone_is_left_alone_while_its_shift_is_applied_and_not_over(clients: Clients) -> None:
    """A shift by a person, and one by AWS; not one that is over, or that is not applied to this cluster."""
    with answering(clients, ANSWER):
        assert ZonalShifts(clients, lambda: NOW).zones(ARN) == {"use1-az2", "use1-az4"}


def test_a_shift_ends_by_its_own_time(clients: Clients) -> None:
    """Also within one answer."""
    clock = _Clock()
    shifts = ZonalShifts(clients, clock)
    clock.now = datetime(2026, 11, 21, 22, 59, 50, tzinfo=UTC)
    with answering(clients, ANSWER):
        assert "use1-az2" in shifts.zones(ARN)
        clock.now += timedelta(seconds=10)
        assert "use1-az2" not in shifts.zones(ARN)


def test_arc_is_asked_twice_a_minute_at_most(clients: Clients) -> None:
    """Runs of lifecycle come every few seconds."""
    clock = _Clock()
    shifts = ZonalShifts(clients, clock)
    with answering(clients, ANSWER, NONE):
        for _ in range(3):
            assert shifts.zones(ARN)
        clock.now += timedelta(seconds=30)
        assert not shifts.zones(ARN)


def test_the_last_answer_holds_while_arc_is_down(clients: Clients) -> None:
    """The zone's outage may be the reason."""
    clock = _Clock()
    shifts = ZonalShifts(clients, clock)
    with answering(clients, ANSWER, _refusal("InternalServerException", 500)):
        shifts.zones(ARN)
        clock.now += timedelta(seconds=30)
        assert "use1-az2" in shifts.zones(ARN)


def test_without_any_answer_nobody_can_say(clients: Clients) -> None:
    """Whoever asks decides what that means. ARC is not asked again at once: each run has better things to wait for."""
    shifts = ZonalShifts(clients, lambda: NOW)
    with answering(clients, _refusal("InternalServerException", 500)):
        for _ in range(2):
            with pytest.raises(UnavailableError, match="InternalServerException"):
                shifts.zones(ARN)


def test_a_cluster_that_is_not_registered_says_so(clients: Clients) -> None:
    """And a right that is missing."""
    with answering(clients, _refusal("ResourceNotFoundException", 404)), pytest.raises(NotFoundError, match=ARN):
        ZonalShifts(clients, lambda: NOW).zones(ARN)
    with answering(clients, _refusal("AccessDeniedException", 403)), pytest.raises(ConfigurationError):
        ZonalShifts(clients, lambda: NOW).zones(ARN)
