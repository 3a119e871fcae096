"""EC2 says it late, or not at all: what it has launched is listed late, and any answer leaves out some of what runs."""

from datetime import timedelta
from itertools import cycle

import pytest

from tests.fire.soak import Tally
from tests.fire.stories import APART, NODE_CLASS, STORIES, apply, node_pool, pods, when_empty
from tests.fire.telling import Story, Telling

#: Seconds by which EC2 lists late, the share of instances that an answer leaves out, and the seconds that nodes boot.
_LAGS, _SHARES, _BOOTS = (0, 10, 40, 75, 120), (0.0, 0.1, 0.4), (20, 90, 300)
#: How long is looked on, which is longer than any time in which a claim is given up; in `make test` not by much.
_LONG, _SHORT = timedelta(minutes=45), timedelta(minutes=22)
_WANTED = 3
_NEW = Story(
    "three pods apart get three nodes",
    lambda simulation: apply(simulation, pods(_WANTED, affinity=APART)),
    (NODE_CLASS, when_empty(node_pool(capacity_type="on-demand"))),
)


def _late(story: Story, lag: int, share: float, boot: int = _BOOTS[0]) -> Telling:
    telling = Telling(story)
    cloud = telling.simulation.world.cloud
    cloud.lag, cloud.omission = timedelta(seconds=lag), share
    telling.simulation.kubelets.lateness = timedelta(seconds=boot - _BOOTS[0])
    return telling


@pytest.mark.soak
def test_as_many_nodes_are_bought_as_are_wanted_and_none_is_ended(pytestconfig: pytest.Config, tally: Tally) -> None:
    """A list that lacks an instance says nothing of it: a claim is given up for what EC2 and the kubelet do say."""
    is_soak = pytestconfig.getoption("soak") > 0
    every = [(lag, share, boot) for lag in _LAGS for share in _SHARES for boot in _BOOTS]
    tried, length = (every, _LONG) if is_soak else ([(75, 0.4, 90)], _SHORT)
    for case in tried:
        with _late(_NEW, *case) as telling:
            telling.begin(length)
            simulation = telling.simulation
        alive = [name for name in simulation.instances if simulation.world.cloud.look(name)[1] is None]
        assert (len(simulation.instances), len(alive), len(simulation.world.cluster.nodes)) == (_WANTED,) * 3, case
    tally("stories told with an EC2 that lists late", len(tried))


@pytest.mark.soak
def test_every_story_ends_as_it_does_with_an_ec2_that_says_all_at_once(
    pytestconfig: pytest.Config, tally: Tally
) -> None:
    """Nodes that are deleted, interrupted, replaced: the same pods, nodes and claims, and as many launches."""
    is_soak = pytestconfig.getoption("soak") > 0
    lags = cycle((40, 75, 120, 10, 0))
    told = [(story, next(lags), share) for story in STORIES for share in (_SHARES * len(_LAGS) if is_soak else (0.4,))]
    for story, lag, share in told if is_soak else told[3:6:2]:
        with _late(story, lag, share) as telling:
            telling.begin()
            # Nobody is in a hurry to tag an instance, which takes a run that knows of it.
            telling.finish().simulation.engine.run_for(timedelta(minutes=5))
        assert telling.end == Telling(story).tell().end, (story.name, lag, share)
    tally("stories told with an EC2 that lists late", len(told))
