"""What waits because it was refused, and for how long."""

from datetime import UTC, datetime, timedelta

import pytest

from joinery.objects.actions import Announce, Command, DeleteClaim, Evict, TerminateInstance, UpdateClaim, UpdateNode
from joinery.objects.errors import ConfigurationError, ConflictError, DeniedError, JoineryError, UnavailableError
from joinery.objects.refusals import Refusal, due, is_refusal, refused, request
from simulator import builders

NOW = datetime(2026, 8, 24, 9, 0, tzinfo=UTC)
CLAIM, NODE = builders.node_claim("claim-1"), builders.node("node-1")
END = TerminateInstance("i-1", "its claim is being deleted")
TAINT, LABEL = UpdateNode(NODE, NODE, "its claim is being deleted"), UpdateNode(NODE, NODE, "it belongs to claim-1")
RECORD, DELETION = UpdateClaim(CLAIM, CLAIM, "reached: Drained"), DeleteClaim(CLAIM, "it is old")
TOLD = Announce("GivenUp", "it is old", CLAIM)
EVICTION, OTHER = (Evict(builders.pod(name), NODE, "it goes") for name in ("pod-1", "pod-2"))


def _refusals(*commands: Command, asked: datetime = NOW) -> dict[str, Refusal]:
    return {
        request(each): Refusal(request(each), NOW - timedelta(seconds=5), asked)
        for each in commands
        if not isinstance(each, Announce)
    }


def test_a_request_waits_as_long_again_as_it_was_refused() -> None:
    """From seconds to minutes: eighteen times in the first hour."""
    moment, tries, refusal = NOW, 0, None
    while moment < NOW + timedelta(hours=1):
        if refusal is None or refusal.is_due(moment):
            refusal, tries = refused(END, ConfigurationError("no"), moment, refusal), tries + 1
        moment += timedelta(seconds=5)
    assert tries == 18


@pytest.mark.parametrize(
    ("refusal", "chain", "kept"),
    [
        ([END], [RECORD, END, DELETION], [RECORD]),
        ([TAINT], [LABEL, RECORD], [LABEL, RECORD]),
        ([DELETION], [TOLD, DELETION], []),
        ([EVICTION], [EVICTION, OTHER, RECORD], [OTHER, RECORD]),
        ([], [TOLD, END], [TOLD, END]),
    ],
)
def test_what_relies_on_a_refused_request_waits_with_it(
    refusal: list[Command], chain: list[Command], kept: list[Command]
) -> None:
    """Another request about the same object does not, nor does a pod's neighbour."""
    assert list(due(chain, _refusals(*refusal), NOW + timedelta(seconds=5)).commands) == kept


def test_what_is_asked_again_is_not_told_again() -> None:
    """What was decided is the same as before."""
    assert due([TOLD, DELETION], _refusals(DELETION), NOW + timedelta(minutes=1)).commands == (DELETION,)


def test_a_moment_to_come_holds_nothing() -> None:
    """Somebody's clock was wrong."""
    assert due([END], _refusals(END, asked=NOW + timedelta(days=9)), NOW).commands == (END,)


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (ConfigurationError("a policy denies it"), True),
        (DeniedError("a right is missing"), True),
        (ConflictError("somebody wrote first"), False),
        (UnavailableError("throttled", is_answer=True), False),
    ],
)
def test_only_what_a_person_can_mend_is_a_refusal(error: JoineryError, is_one: bool) -> None:
    """The rest passes by itself."""
    assert is_refusal(error) is is_one
