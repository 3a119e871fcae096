"""Whatever call is refused for good, it is asked ever less often and told once, and is made good when it is granted."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from joinery.decisions.lifecycle.conditions.refused import REFUSED
from joinery.gateways.ec2.gateway import LaunchRequest
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.refusals import LONGEST
from joinery.objects.snapshot.instances import instance_id
from tests.fire.faults import NEVER_RAISES, Wires
from tests.fire.soak import Tally
from tests.fire.stories import STORIES
from tests.fire.telling import Story, Telling
from tests.functional.fuse import WRITES

#: How long calls are refused; in `make test` these of these stories are, for a shorter time.
_LONG, _SHORT = timedelta(hours=1), timedelta(minutes=10)
_FEW = ((STORIES[0], "cloud.launch"), (STORIES[0], "cluster.create_node_claim"))
#: Calls in an hour that the schedule makes by itself, or that a refused one may add.
_MOST_CALLS, _MOST_RUNS = 45, 250
#: What the doors do in every run, whatever came of it before; its failure is the run's.
_OF_RUNS = {"cluster.acquire_lease", "cluster.release_lease", "doorbell.ring", "store.record", "store.put_catalog"} | {
    "unavailable.mark"
}
#: What a claim says of itself that it is refused.
_SAID = {"cluster.update_node", "cluster.delete_node", "cluster.delete_node_claim", "cloud.terminate", "cloud.tag"}
_DENIED = "denied the request: not by Joinery"
#: A claim that cannot be told its instance is given up once its time to join is over, and a node is bought anew.
_BOUGHT_ANEW = {"cluster.update_node_claim": 2}


class _Refusing(Wires):
    """Wires on which a method is refused. ``asked``: how often since, by object; ``about``: of one object only."""

    def __init__(self, method: str, about: str = "") -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self.is_on = True
        self._method, self._about = method, about

    def through(self, name: str, go: Callable[[], Any], about: Any = None) -> Any:
        """One call. EC2 refuses a call for many instances because of one of them."""
        if not self.is_on or name != self._method:
            return super().through(name, go, about)
        asked = [each for each in _names(about) if self._about in ("", each)]
        if not asked:
            return super().through(name, go, about)
        self.asked.update(asked)
        raise ConfigurationError(_DENIED)


def _names(about: Any) -> list[str]:
    """The names of what a call is about: of a claim that is to be made, or launched, its NodePool's."""
    if isinstance(about, list | tuple):
        return [str(each) for each in about]
    if isinstance(about, LaunchRequest):
        return [about.node_pool]
    if isinstance(about, NodeClaim) and not about.metadata.uid:
        return [about.metadata.labels["karpenter.sh/nodepool"]]
    return [getattr(about, "key", "") or getattr(getattr(about, "metadata", None), "name", "") or str(about)]


@cache
def _undisturbed(story: Story) -> tuple[Telling, frozenset[str]]:
    """The story as it is told without refusals, and what it writes."""
    telling = Telling(story).tell()
    return telling, frozenset(call for call in telling.wires.calls if call.partition(".")[2] in WRITES)


def _every() -> Sequence[tuple[Story, str]]:
    """All, but for launches that drift asks for: it stops where launches fail, until a person changes the NodePool."""
    pairs = [(story, method) for story in STORIES for method in sorted(_undisturbed(story)[1] - {NEVER_RAISES})]
    return [(story, method) for story, method in pairs if method != "cloud.launch" or "drift" not in story.name]


@pytest.mark.soak
def test_what_is_refused_for_good_slows_down_is_said_and_ends_well(pytestconfig: pytest.Config, tally: Tally) -> None:
    """Each method in each story, about all objects: when it is granted after all, the story ends as it should."""
    is_soak = pytestconfig.getoption("soak") > 0
    told, length = (_every(), _LONG) if is_soak else (_FEW, _SHORT)
    for story, method in told:
        wires = _Refusing(method)
        with Telling(story, wires) as telling:
            telling.begin(length)
            _assert_bounded(telling, wires, method, length)
            wires.is_on = False
            telling.simulation.engine.run_for(LONGEST + timedelta(minutes=1))
            telling.finish()
        end, wanted = telling.end, _undisturbed(story)[0].end
        alike = ("pods", "unowned")
        assert [end[key] for key in alike] == [wanted[key] for key in alike], (story.name, method)
        assert end["launched"] - wanted["launched"] in range(_BOUGHT_ANEW.get(method, 0) + 1), (story.name, method)
        assert end["nodes"].total() == end["claims"].total() == wanted["claims"].total(), (story.name, method)
    tally("stories told with a method that is refused for good", len(told))


def _assert_bounded(telling: Telling, wires: _Refusing, method: str, length: timedelta) -> None:
    simulation, hours = telling.simulation, length / _LONG
    where = (telling.story.name, method)
    runs = Counter(call.door for call in simulation.doors.calls if (call.result or {}).get("outcome") != "rests")
    assert max(runs["lifecycle"], runs["provisioning"]) <= _MOST_RUNS * max(hours, 0.5), (*where, runs)
    if method in _OF_RUNS:
        return
    assert max(wires.asked.values(), default=0) <= _MOST_CALLS * max(hours, 0.5), (*where, wires.asked)
    events = [event for event in simulation.world.recorder.events if _DENIED in event.message]
    refused = [event for event in events if event.reason in ("Refused", "FailedEviction", "FailedSurge")]
    told = Counter((event.uid, event.reason, event.message.partition(_DENIED)[2]) for event in refused)
    assert set(told.values()) <= {1}, (*where, told)
    assert bool(told) == bool(wires.asked), where
    assert all("except Joinery from what denies it" in rest for _, _, rest in told), where
    claims = simulation.world.cluster.node_claims.values()
    silent = [claim.metadata.name for claim in claims if _of(claim) & set(wires.asked) and not claim.condition(REFUSED)]
    assert method not in _SAID or not silent, (*where, silent)


def _of(claim: NodeClaim) -> set[str]:
    return {claim.metadata.name, claim.status.node_name, instance_id(claim.status.provider_id)} - {""}
