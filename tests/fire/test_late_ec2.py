"""EC2 says it late, or not at all: what it has launched is listed late, and any answer leaves out some of what runs."""

from datetime import timedelta

import pytest

from simulator.story.simulation import Simulation
from tests.fire.soak import Tally
from tests.fire.stories import APART, NODE_CLASS, apply, delete_claim, node_pool, pods, running, when_empty
from tests.fire.telling import Story, Telling

#: Seconds by which EC2 lists late, the share of instances that an answer leaves out, and the seconds that nodes boot.
_ALL = [(lag, share, boot) for lag in (0, 10, 40, 75, 120) for share in (0.0, 0.1, 0.4) for boot in (20, 90, 300)]
_FEW = [(75, 0.4, 90)]
#: How long is looked on, which is longer than any time in which a claim is given up; in `make test` not by much.
_LONG, _SHORT = timedelta(minutes=45), timedelta(minutes=22)
_WANTED = 3
_ON_DEMAND = when_empty(node_pool(capacity_type="on-demand"))
#: What happens, and how many instances end by that.
_STORIES = (
    (Story("new", lambda it: apply(it, pods(_WANTED, affinity=APART)), (NODE_CLASS, _ON_DEMAND)), 0),
    (
        Story(
            "deleted",
            delete_claim,
            (NODE_CLASS, _ON_DEMAND, pods(_WANTED, affinity=APART)),
            tuple(running(zone=f"us-east-1{zone}", capacity_type="on-demand") for zone in "aba"),
        ),
        1,
    ),
)


def _told(story: Story, lag: int, share: float, boot: int, length: timedelta) -> Simulation:
    telling = Telling(story)
    cloud = telling.simulation.world.cloud
    cloud.lag, cloud.omission = timedelta(seconds=lag), share
    telling.simulation.kubelets.lateness = timedelta(seconds=boot - 20)
    with telling:
        telling.begin(length)
    return telling.simulation


@pytest.mark.soak
@pytest.mark.parametrize(("story", "ended"), _STORIES, ids=lambda it: getattr(it, "name", ""))
def test_as_many_nodes_are_bought_as_are_wanted_and_none_is_ended(
    story: Story, ended: int, pytestconfig: pytest.Config, tally: Tally
) -> None:
    """A list that lacks an instance says nothing of it: a claim is given up for what EC2 and the kubelet do say."""
    is_soak = pytestconfig.getoption("soak") > 0
    tried, length = (_ALL, _LONG) if is_soak else (_FEW, _SHORT)
    for lag, share, boot in tried:
        simulation = _told(story, lag, share, boot, length)
        alive = [name for name in simulation.instances if simulation.world.cloud.look(name)[1] is None]
        about = f"{lag} s late, {share:.0%} left out, {boot} s to boot"
        assert (len(simulation.instances), len(alive)) == (_WANTED + ended, _WANTED), about
        assert len(simulation.world.cluster.nodes) == _WANTED, about
    tally("stories told with an EC2 that lists late", len(tried))
