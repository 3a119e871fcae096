"""What a node class remembers of instances that died at launch, and until when nothing is launched."""

from datetime import UTC, datetime, timedelta

import pytest

from joinery.objects.annotations.deaths import deaths_of, with_deaths
from joinery.objects.karpenter.conditions import Observation, true
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import DIED_AT_LAUNCH
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import REGISTERED, with_condition, with_status
from joinery.objects.snapshot.instances import Instance
from simulator import builders

NOW = datetime(2026, 8, 24, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def _instance(code: str = "Client.InternalError", image: str = "ami-1") -> Instance:
    return Instance("i-1", "m6a.large", "us-east-1a", "spot", "terminated", NOW, image, reason_code=code, reason="why")


def _claim(name: str) -> NodeClaim:
    return with_status(builders.node_claim(name, conditions=()), image_id="ami-1")


def _died(node_class: EC2NodeClass, name: str, at: datetime, **given: str) -> EC2NodeClass:
    found = with_deaths(node_class, [_claim(name)], {name: _instance(**given)}, at)
    assert isinstance(found, EC2NodeClass)
    return found


def test_waits_double_from_two_minutes_to_an_hour() -> None:
    """One death is bad luck."""
    node_class, at = _died(builders.node_class(), "claim-0", NOW), NOW + MINUTE
    assert not deaths_of(node_class, at)[0].is_cause
    waits = []
    for number in range(1, 9):
        node_class = _died(node_class, f"claim-{number}", at)
        (deaths,) = deaths_of(node_class, at)
        assert deaths.is_cause
        waits.append((deaths.until - at) // MINUTE)
        at = deaths.until
    assert waits == [2, 4, 8, 16, 32, 60, 60, 60]


def test_a_death_that_is_read_again_and_those_of_one_attempt_count_once() -> None:
    """A claim is there for some runs more, and thirty nodes may be launched at once."""
    node_class = _died(_died(builders.node_class(), "claim-0", NOW), "claim-0", NOW + MINUTE)
    assert deaths_of(node_class, NOW + MINUTE)[0].tries == 1
    for number in range(1, 30):
        node_class = _died(node_class, f"claim-{number}", NOW + MINUTE)
    assert deaths_of(node_class, NOW + MINUTE)[0].tries == 2


def test_images_that_die_of_one_cause_wait_together() -> None:
    """A key is the class's, whatever the image."""
    node_class = builders.node_class()
    for number, image in enumerate(("ami-1", "ami-2")):
        node_class = _died(node_class, f"claim-{number}", NOW + number * MINUTE, image=image)
    (deaths,) = deaths_of(node_class, NOW + MINUTE)
    assert (deaths.images, deaths.is_cause) == (("ami-1", "ami-2"), True)


def test_a_node_that_joins_later_ends_it() -> None:
    """And one that had joined before does not."""
    node_class = _died(_died(builders.node_class(), "claim-0", NOW), "claim-1", NOW + MINUTE)
    for at, is_known in ((NOW, True), (NOW + 2 * MINUTE, False)):
        joined = with_condition(_claim("claim-2"), true(REGISTERED, Observation(at, 1)))
        found = with_deaths(node_class, [joined], {}, NOW + 3 * MINUTE)
        assert (DIED_AT_LAUNCH in found.metadata.annotations) is is_known


@pytest.mark.parametrize("text", ["", "null", '[{"code": 1}]', '[{"at": "9999-01-01T00:00:00Z"}]'])
def test_what_cannot_be_read_holds_nothing(text: str) -> None:
    """Anybody may edit it."""
    node_class = builders.node_class()
    metadata = node_class.metadata.model_copy(update={"annotations": {DIED_AT_LAUNCH: text}})
    assert deaths_of(node_class.model_copy(update={"metadata": metadata}), NOW) == ()


def test_a_changed_class_has_not_died() -> None:
    """What was wrong may have been in it. So is what says that it died at a moment to come."""
    node_class = _died(_died(builders.node_class(), "claim-0", NOW), "claim-1", NOW + MINUTE)
    assert deaths_of(node_class, NOW - timedelta(hours=1)) == ()
    changed = node_class.model_copy(update={"spec": node_class.spec.model_copy(update={"tags": {"a": "b"}})})
    assert deaths_of(changed, NOW + MINUTE) == ()


@pytest.mark.parametrize(
    ("code", "has_died", "is_out_of_stock"),
    [
        ("Client.InvalidKMSKey.InvalidState", True, False),
        ("Client.InternalError", True, False),
        ("Client.InstanceInitiatedShutdown", True, False),
        ("Server.InternalError", True, False),
        ("Server.SpotInstanceTermination", False, True),
        ("Server.SpotInstanceShutdown", False, True),
        ("Server.InsufficientInstanceCapacity", False, True),
        ("Client.UserInitiatedShutdown", False, False),
        ("Server.ScheduledStop", False, False),
        ("", False, False),
    ],
)
def test_ec2_says_whether_an_instance_died(code: str, has_died: bool, is_out_of_stock: bool) -> None:
    """EC2 API, StateReason."""
    instance = _instance(code)
    assert (instance.has_died, instance.is_out_of_stock) == (has_died, is_out_of_stock)
