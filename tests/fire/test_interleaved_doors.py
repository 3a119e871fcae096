"""Two doors that run at the same time end as they would one after the other, wherever one overtakes the other.

SQS delivers a message twice at times, a schedule rings while a run is on its way, and doors do not wait for each other.
So one run is stopped before each of its calls in turn, and another runs in that gap: as a whole, and in `make soak`
also up to each of its own calls.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import count

import pytest

from joinery import bootstrap
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.disruption import DisruptionController
from joinery.controllers.expiration import ExpirationController
from joinery.controllers.interruption import InterruptionController
from joinery.controllers.lifecycle import LifecycleController
from joinery.controllers.provisioning import ProvisioningController
from joinery.decisions.interruption.notice import Notice, parse
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from simulator.actors.ec2 import Envelope
from simulator.story.simulation import Simulation
from tests.fire.soak import Tally
from tests.fire.stories import STORIES
from tests.fire.telling import Picture, Story, Telling
from tests.fire.turns import Door, Run, interleave

#: One of so many orders is tried in `make test`.
_SHARE = 10
_invocations = count()


@dataclass(frozen=True)
class Scene:
    """A moment of a story, in seconds after its beginning, at which two doors run."""

    story: Story
    seconds: float
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.first} and {self.second}, {self.seconds:g} s after: {self.story.name}"


_LAUNCH, _WARNING, _AGE, _DRAIN, _NODE_DELETED, _ENDED, _LOST, _UNKNOWN, _EMPTY, *_ = STORIES
_STATIC, _TOO_LARGE = STORIES[12:14]
SCENES = (
    # Pods wait, nothing is bought.
    Scene(_LAUNCH, 1, "provisioning", "provisioning"),
    Scene(_LAUNCH, 1, "provisioning", "lifecycle"),
    Scene(_LAUNCH, 1, "lifecycle", "provisioning"),
    # Nodes have come.
    Scene(_LAUNCH, 33, "lifecycle", "lifecycle"),
    Scene(_LAUNCH, 33, "lifecycle", "provisioning"),
    # The warning is on its way.
    Scene(_WARNING, 0.2, "interruption", "lifecycle"),
    Scene(_WARNING, 0.2, "lifecycle", "interruption"),
    Scene(_WARNING, 0.2, "interruption", "interruption"),
    Scene(_WARNING, 0.2, "interruption", "provisioning"),
    Scene(_WARNING, 0.2, "provisioning", "interruption"),
    # It is known, and nothing is bought.
    Scene(_WARNING, 1, "provisioning", "lifecycle"),
    Scene(_WARNING, 1, "lifecycle", "provisioning"),
    Scene(_WARNING, 9, "lifecycle", "lifecycle"),
    Scene(_AGE, 0, "expiration", "lifecycle"),
    Scene(_AGE, 0, "lifecycle", "expiration"),
    Scene(_DRAIN, 3, "lifecycle", "lifecycle"),
    Scene(_DRAIN, 30, "lifecycle", "lifecycle"),
    Scene(_NODE_DELETED, 0.2, "lifecycle", "provisioning"),
    Scene(_ENDED, 0.2, "lifecycle", "interruption"),
    Scene(_LOST, 21, "lifecycle", "provisioning"),
    Scene(_LOST, 21, "provisioning", "lifecycle"),
    Scene(_UNKNOWN, 35, "lifecycle", "lifecycle"),
    Scene(_EMPTY, 2, "disruption", "disruption"),
    Scene(_EMPTY, 2, "disruption", "provisioning"),
    Scene(_EMPTY, 2, "provisioning", "disruption"),
    Scene(_EMPTY, 2, "disruption", "lifecycle"),
    Scene(_EMPTY, 2, "lifecycle", "disruption"),
    Scene(_STATIC, 0.2, "provisioning", "lifecycle"),
    Scene(_TOO_LARGE, 2, "disruption", "provisioning"),
    Scene(_TOO_LARGE, 2, "disruption", "lifecycle"),
)


@cache
def _undisturbed(story: Story) -> Picture:
    return Telling(story).tell().end


def _doors(simulation: Simulation, envelopes: list[Envelope]) -> Mapping[str, Door]:
    """The doors by their names, each with the gateways that it is given."""

    def provision(gateways: Gateways) -> object:
        controller = ProvisioningController(gateways, bootstrap.door("provisioning").settings)
        return bootstrap.door("provisioning").dispatcher.answer(
            {}, Bell.PROVISIONING, lambda: controller.reconcile(_invocation())
        )

    def live(gateways: Gateways) -> object:
        controller = LifecycleController(gateways, bootstrap.door("lifecycle").settings)
        return bootstrap.door("lifecycle").dispatcher.answer(
            {}, Bell.LIFECYCLE, lambda: controller.reconcile(_invocation())
        )

    def interrupt(gateways: Gateways) -> object:
        # What fails comes again: the message of the story itself is on its way still.
        notices = [notice for notice in map(parse, envelopes) if isinstance(notice, Notice)]
        return InterruptionController(gateways).reconcile(notices, _invocation()) if notices else ()

    def expire(gateways: Gateways) -> object:
        return ExpirationController(gateways).reconcile(_invocation())

    def disrupt(gateways: Gateways) -> object:
        controller = DisruptionController(gateways, bootstrap.door("disruption").settings)
        return bootstrap.door("disruption").dispatcher.answer(
            {}, Bell.DISRUPTION, lambda: controller.reconcile(_invocation(300.0))
        )

    return {
        "provisioning": provision,
        "lifecycle": live,
        "interruption": interrupt,
        "expiration": expire,
        "disruption": disrupt,
    }


def _invocation(seconds: float = 60.0) -> Invocation:
    return Invocation(f"overlapping-{next(_invocations)}", lambda: seconds)


def _tell(scene: Scene, stop: int | None, second_stop: int | None) -> tuple[Telling, Run, Run]:
    """The story with the two runs at its moment, which are stopped before those calls."""
    telling = Telling(scene.story)
    simulation = telling.simulation
    envelopes: list[Envelope] = []
    simulation.when_published.append(envelopes.append)
    with telling:
        telling.begin(timedelta(seconds=scene.seconds))
        doors, gateways = _doors(simulation, envelopes), simulation.world.gateways
        first = Run(doors[scene.first], gateways, stop)
        second = Run(doors[scene.second], gateways, second_stop)
        interleave(first, second)
        telling.finish()
    return telling, first, second


def _orders(scene: Scene, *, is_all: bool) -> Iterator[tuple[int, int | None]]:
    """Where the first run stops, and where the second, if it does."""
    _, first, second = _tell(scene, None, None)
    for stop in range(len(first.calls)):
        yield stop, None
        if is_all:
            yield from ((stop, second_stop) for second_stop in range(1, len(second.calls)))


@pytest.mark.soak
@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_two_doors_at_the_same_time_end_as_one_after_the_other(
    scene: Scene, pytestconfig: pytest.Config, tally: Tally
) -> None:
    """The same pods, Nodes and claims, no instance launched twice, nothing unowned."""
    is_all = pytestconfig.getoption("soak") > 0
    end = _undisturbed(scene.story)
    orders = list(_orders(scene, is_all=is_all))
    if not is_all:
        orders = random.Random(str(scene)).sample(orders, -(-len(orders) // _SHARE))
    for stop, second_stop in orders:
        telling, first, second = _tell(scene, stop, second_stop)
        told = f"stopped before call {stop}, {first.calls[stop : stop + 1]}"
        if second_stop is not None:
            told += f", the other before its call {second_stop}, {second.calls[second_stop : second_stop + 1]}"
        assert telling.end == end, told
    tally("orders of two doors", len(orders))
