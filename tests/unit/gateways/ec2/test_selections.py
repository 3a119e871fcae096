"""What a node class selects is asked of AWS once a minute, and at once where that may have changed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from joinery.gateways.aws import error
from joinery.gateways.ec2.nodeclass.readiness import SelectedResources
from joinery.gateways.ec2.nodeclass.selections import Selections
from joinery.objects.errors import JoineryError, UnavailableError
from joinery.objects.karpenter.ec2nodeclass import AMIStatus, EC2NodeClass, SecurityGroupStatus, SubnetStatus
from simulator import builders
from simulator.clock import Clock

WHOLE = SelectedResources(
    subnets=[SubnetStatus(id="subnet-1", zone="us-east-1a")],
    security_groups=[SecurityGroupStatus(id="sg-1", name="nodes")],
    amis=[AMIStatus(id="ami-1", requirements=[])],
    instance_profile=builders.node_class().status.instance_profile,
)


class _Asked:
    """Selections by a clock. ``times``: how often AWS was asked. ``selection``: what it answers."""

    def __init__(self) -> None:
        self.clock, self.times, self.selection = Clock(), 0, WHOLE
        self.selections = Selections(self.clock.now)

    def __call__(self, node_class: EC2NodeClass | None = None, purpose: str = "find") -> SelectedResources:
        return self.selections.of(node_class or builders.node_class(), purpose, self._select)

    def _select(self) -> SelectedResources:
        self.times += 1
        return self.selection


def test_a_class_is_looked_at_once_a_minute() -> None:
    """Twelve ticks ask AWS once."""
    asked = _Asked()
    for _ in range(12):
        assert asked() is WHOLE
        asked.clock.advance(timedelta(seconds=5))
    assert asked.times == 1
    asked()
    assert asked.times == 2


def test_what_may_have_changed_is_looked_at_anew() -> None:
    """Another spec, another purpose, a launch that was refused."""
    asked, node_class = _Asked(), builders.node_class()
    asked(node_class)
    asked(node_class.model_copy(update={"spec": node_class.spec.model_copy(update={"role": "another"})}))
    assert asked.times == 2
    asked(node_class)
    asked(node_class, "prepare")
    assert asked.times == 4
    asked.selections.forget(node_class.metadata.name)
    asked(node_class, "prepare")
    assert asked.times == 5
    theirs = node_class.status.model_copy(update={"instance_profile": "theirs"})
    asked(node_class.model_copy(update={"status": theirs}), "prepare")
    assert asked.times == 6


def test_what_is_missing_is_looked_for_each_time() -> None:
    """A user who has just tagged a subnet is waiting."""
    asked = _Asked()
    asked.selection = replace(WHOLE, subnets=())
    asked()
    asked()
    assert asked.times == 2


class _Failing(_Asked):
    """AWS does not say what it has. ``error``: what it says."""

    def __init__(self, error: JoineryError) -> None:
        super().__init__()
        self.error: JoineryError | None = error

    def _select(self) -> SelectedResources:
        super()._select()
        if self.error is not None:
            raise self.error
        return self.selection

    def fails(self) -> None:
        with pytest.raises(JoineryError):
            self()


@pytest.mark.parametrize(
    "refusal",
    [error("Throttling", "slow down", doing="asking"), error("AccessDenied", "no", doing="asking")],
)
def test_a_refusal_is_not_remembered(refusal: JoineryError) -> None:
    """The next run asks again: it costs no time."""
    asked = _Failing(refusal)
    asked.fails()
    asked.error = None
    assert asked() is WHOLE


def test_a_service_that_is_silent_is_not_waited_for_again_for_half_a_minute() -> None:
    """Each run would wait for twenty seconds in vain, and look at nodes every twenty-five."""
    asked = _Failing(UnavailableError("SSM did not answer"))
    for _ in range(6):
        asked.fails()
        asked.clock.advance(timedelta(seconds=5))
    assert asked.times == 1
    asked.error = None
    assert asked() is WHOLE


def test_after_a_silence_a_class_that_has_changed_is_looked_at_at_once() -> None:
    """It may need nothing of what is silent. The same where a launch was refused."""
    asked, node_class = _Failing(UnavailableError("SSM did not answer")), builders.node_class()
    asked.fails()
    asked.error = None
    changed = node_class.model_copy(update={"spec": node_class.spec.model_copy(update={"role": "another"})})
    assert asked(changed) is WHOLE
    asked.error = UnavailableError("SSM did not answer")
    asked.selections.forget(node_class.metadata.name)
    asked.fails()
    asked.error = None
    asked.selections.forget(node_class.metadata.name)
    assert asked() is WHOLE
